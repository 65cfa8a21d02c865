/* Programs that libfraglab_torch.so serves, on the software CUDA: each a child process of its own,
 * as the library reads its settings once, when it is loaded. */
#ifndef FRAG_GPU_REPLAY_TORCH_PROGRAM_H
#define FRAG_GPU_REPLAY_TORCH_PROGRAM_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "gpu_replay/software/software_cuda.h"
#include "gpu_replay/torch/torch_allocator.h"
#include "sim/trace/trace.h"

/* What a program uses of the library and of CUDA. */
typedef struct served_program {
    void *library;
    void *(*alloc)(ssize_t, int, frag_cuda_stream);
    void (*free)(void *, ssize_t, int, frag_cuda_stream);
    void (*record_stream)(void *, frag_cuda_stream);
    void (*empty_cache)(void);
    void (*set_memory_fraction)(double, int);
    void *(*base_allocation)(void *, size_t *);
    void (*begin_allocate_to_pool)(int, frag_pool_id, const frag_torch_filter *);
    void (*end_allocate_to_pool)(int, frag_pool_id);
    void (*release_pool)(int, frag_pool_id);
    const char *(*last_error)(void);
    long long (*stat)(int, const char *);
    int (*cudaStreamCreateWithFlags)(frag_cuda_stream *, unsigned);
    int (*cudaSetDevice)(int);
    int (*cudaGetDevice)(int *);
    void (*get_held)(frag_software_held *);
    bool (*get_usage)(int, frag_software_usage *);
    void (*complete)(uint64_t);
    uint64_t (*call_count)(const char *);
} served_program;

/* In a child process a broken expectation ends it; the parent sees the code. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (false)

/* Unloads the library, which is the end of the program to it. */
void torch_program_close(served_program *program);
void torch_program_expect_nothing_held(const served_program *program);

typedef void torch_program_body(served_program *program, const char *name);

/* Runs the body as a program with these settings; NULL ones are not set. Its stderr, statistics and
 * recording are files. Fails the test when the program does not end well. */
void torch_program_run(torch_program_body *body, const char *name, const char *policy,
                       const char *capacity, const char *software);
/* Is the text in "stderr" or "stats"? */
bool torch_program_file_has(const char *name, const char *text);
/* Removes what an earlier program has written. */
void torch_program_forget_files(void);

/* The recording of the last program. */
void torch_program_load(frag_recording *recording);
/* Replays it on a simulated device: the policy must grant the same addresses, and peak where it
 * did. Returns the peak of reserved bytes. */
uint64_t torch_program_replay(const char *policy, uint64_t capacity);

/* Fixtures of a test group. */
int torch_program_set_up(void **state);
int torch_program_tear_down(void **state);

#endif
