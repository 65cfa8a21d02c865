/* Prints how many nanoseconds of processor time a cudaMalloc or cudaFree takes, with so many
 * threads at it (each makes CALLS):
 *
 *     call_cost THREADS CALLS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "gpu_replay/recorder/record_cuda.h"

#define THREADS_MAX 64

static void *call(void *context)
{
    uint64_t count = *(const uint64_t *)context;
    for (uint64_t i = 0; i < count; i += 2) {
        void *pointer = NULL;
        cudaMalloc(&pointer, 1 + i);
        cudaFree(pointer);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    frag_error error = {.code = FRAG_E_NONE};
    uint64_t threads = 0;
    uint64_t calls = 0;
    if (argc != 3 || !frag_count_parse(argv[1], 1, THREADS_MAX, &threads, &error) ||
        !frag_count_parse(argv[2], 2, 100000000, &calls, &error))
        return 2;
    pthread_t running[THREADS_MAX];
    struct timespec start;
    struct timespec end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, call, &calls) != 0)
            return 4;
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    printf("%.1f\n", ns / ((double)calls * (double)threads));
    return 0;
}
