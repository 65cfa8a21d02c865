/* Takes memory of a CUDA device until there is no more: docs/software-cuda.md. */
#include <stddef.h>
#include <stdio.h>

/* What a program would have from cuda_runtime_api.h. */
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
const char *cudaGetErrorString(int code);

int main(void)
{
    void *memory = NULL; /* the last that was given; a call that fails gives NULL */
    for (int i = 1; i <= 8; i++) {
        void *taken = NULL;
        int code = cudaMalloc(&taken, (size_t)1 << 30);
        memory = taken != NULL ? taken : memory;
        printf("GiB %d: %s\n", i, cudaGetErrorString(code));
    }
    return cudaFree(memory);
}
