/* Exits with 0 when a library that asks dlsym for what is next finds what stands behind it. Makes
 * one device call, within which the runtime makes another. */
#include "tests/programs/layers.h"

int main(void)
{
    void *pointer = NULL;
    return layer_answer() == 11 && cudaMalloc(&pointer, 1) == 0 ? 0 : 1;
}
