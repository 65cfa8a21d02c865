/* Takes memory of a CUDA device until there is no more: docs/software-cuda.md. */
#include <stddef.h>
#include <stdio.h>

/* What a program would have from cuda_runtime_api.h. */
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
const char *cudaGetErrorString(int code);

int main(void)
{
    void *memory = NULL;
    for (int i = 1; i <= 8; i++) {
        int code = cudaMalloc(&memory, (size_t)1 << 30);
        printf("GiB %d: %s\n", i, cudaGetErrorString(code));
    }
    return cudaFree(memory);
}
