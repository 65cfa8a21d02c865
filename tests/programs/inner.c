/* Stands for the library that another one stands before, and for a runtime that calls itself. */
#include "tests/programs/layers.h"

int layer_answer(void)
{
    return 1;
}

int cudaMalloc(void **pointer, size_t bytes)
{
    *pointer = (void *)(uintptr_t)(bytes << 20);
    return cudaFree(NULL); /* by way of whoever took its place */
}

int cudaFree(void *pointer)
{
    (void)pointer;
    return 0;
}
