/* A program that makes device calls in the ways programs do, to be run under the recorder:
 *
 *     recorded WHAT...
 *
 * does each in turn. It prints nothing; what it did is in the software CUDA's own log of calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_replay/recorder/record_cuda.h"

#define MIB ((size_t)1 << 20)
#define THREADS 4
#define THREAD_CALLS 2000

int cudaSetDevice(int device);
int cudaGetLastError(void);

static void check(int code, int expected, const char *what)
{
    if (code == expected)
        return;
    fprintf(stderr, "recorded: %s gave %d instead of %d\n", what, code, expected);
    exit(9);
}

static void plain(void)
{
    void *first = NULL;
    void *second = NULL;
    check(cudaMalloc(&first, 3 * MIB), 0, "cudaMalloc");
    check(cudaMalloc(&second, 1000), 0, "cudaMalloc");
    check(cudaFree(first), 0, "cudaFree");
    check(cudaMalloc(&first, 5 * MIB), 0, "cudaMalloc");
    check(cudaFree(second), 0, "cudaFree");
    check(cudaFree(first), 0, "cudaFree");
}

/* More than any card has. */
static void fail(void)
{
    void *pointer = NULL;
    check(cudaMalloc(&pointer, (size_t)1 << 50), FRAG_CUDA_OUT_OF_MEMORY, "cudaMalloc");
    cudaGetLastError();
    check(cudaFree((void *)(uintptr_t)0x123456000), FRAG_CUDA_INVALID_VALUE, "cudaFree");
    cudaGetLastError();
}

static void leak(void)
{
    void *pointer = NULL;
    check(cudaMalloc(&pointer, 7 * MIB), 0, "cudaMalloc");
}

static void devices(void)
{
    void *first = NULL;
    void *second = NULL;
    check(cudaMalloc(&first, MIB), 0, "cudaMalloc");
    check(cudaSetDevice(1), 0, "cudaSetDevice");
    check(cudaMalloc(&second, 2 * MIB), 0, "cudaMalloc");
    check(cudaFree(first), 0, "cudaFree");
    check(cudaSetDevice(0), 0, "cudaSetDevice");
    check(cudaFree(second), 0, "cudaFree");
}

static void pools(void)
{
    void *pool = NULL;
    void *first = NULL;
    void *second = NULL;
    frag_cuda_pool_properties properties = {
        .allocation_type = FRAG_CUDA_PINNED,
        .location = {FRAG_CUDA_LOCATION_DEVICE, 0},
    };
    uint64_t threshold = UINT64_MAX;
    check(cudaMallocAsync(&first, 4 * MIB, NULL), 0, "cudaMallocAsync");
    check(cudaMemPoolCreate(&pool, &properties), 0, "cudaMemPoolCreate");
    check(cudaMemPoolSetAttribute(pool, FRAG_CUDA_POOL_RELEASE_THRESHOLD, &threshold), 0,
          "cudaMemPoolSetAttribute");
    check(cudaMallocFromPoolAsync(&second, 6 * MIB, pool, NULL), 0, "cudaMallocFromPoolAsync");
    check(cudaFreeAsync(first, NULL), 0, "cudaFreeAsync");
    check(cudaFreeAsync(second, NULL), 0, "cudaFreeAsync");
    check(cudaMemPoolTrimTo(pool, 0), 0, "cudaMemPoolTrimTo");
    check(cudaMemPoolDestroy(pool), 0, "cudaMemPoolDestroy");
}

typedef struct virtual_calls {
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
    int (*unreserve)(uint64_t, size_t);
    int (*create)(uint64_t *, size_t, const frag_cuda_memory_properties *, unsigned long long);
    int (*release)(uint64_t);
    int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
    int (*unmap)(uint64_t, size_t);
    int (*access)(uint64_t, size_t, const void *, size_t);
} virtual_calls;

static const char *const virtual_names[] = {
    "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap",
    "cuMemUnmap",          "cuMemSetAccess"};

static void use_virtual(const virtual_calls *calls)
{
    uint64_t range = 0;
    uint64_t handles[2] = {0};
    frag_cuda_memory_properties properties = {.type = FRAG_CUDA_PINNED,
                                              .location = {FRAG_CUDA_LOCATION_DEVICE, 0}};
    frag_cuda_access access = {{FRAG_CUDA_LOCATION_DEVICE, 0}, FRAG_CUDA_READ_WRITE};
    check(calls->reserve(&range, 8 * MIB, 0, 0, 0), 0, "cuMemAddressReserve");
    for (uint64_t i = 0; i < 2; i++) {
        check(calls->create(&handles[i], 2 * MIB, &properties, 0), 0, "cuMemCreate");
        check(calls->map(range + i * 2 * MIB, 2 * MIB, 0, handles[i], 0), 0, "cuMemMap");
        check(calls->access(range + i * 2 * MIB, 2 * MIB, &access, 1), 0, "cuMemSetAccess");
    }
    /* As ggml does: the memory lives as long as it is mapped. */
    check(calls->release(handles[0]), 0, "cuMemRelease");
    check(calls->unmap(range, 2 * MIB), 0, "cuMemUnmap");
    check(calls->unmap(range + 2 * MIB, 2 * MIB), 0, "cuMemUnmap");
    check(calls->release(handles[1]), 0, "cuMemRelease");
    check(calls->unreserve(range, 8 * MIB), 0, "cuMemAddressFree");
}

/* Every member is a function pointer: filled one by one by their names. */
static void fill_calls(virtual_calls *calls, void *(*find)(const char *name))
{
    for (size_t i = 0; i < sizeof virtual_names / sizeof *virtual_names; i++) {
        void *found = find(virtual_names[i]);
        check(found == NULL, 0, virtual_names[i]);
        memcpy((char *)calls + i * sizeof found, &found, sizeof found);
    }
}

static void *find_by_entry(const char *name)
{
    void *found = NULL;
    int status = 0;
    check(cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &status), 0, name);
    return found;
}

static void *find_by_dlsym(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    check(driver == NULL, 0, "dlopen");
    return dlsym(driver, name);
}

static void virtual_by_entry(void)
{
    virtual_calls calls;
    fill_calls(&calls, find_by_entry);
    use_virtual(&calls);
}

static void virtual_by_dlsym(void)
{
    virtual_calls calls;
    fill_calls(&calls, find_by_dlsym);
    use_virtual(&calls);
}

static void virtual_by_link(void)
{
    virtual_calls calls = {cuMemAddressReserve, cuMemAddressFree, cuMemCreate,
                           cuMemRelease,        cuMemMap,         cuMemUnmap,
                           cuMemSetAccess};
    use_virtual(&calls);
}

static void *run_thread(void *context)
{
    (void)context;
    for (int i = 0; i < THREAD_CALLS; i++) {
        void *pointer = NULL;
        check(cudaMalloc(&pointer, MIB), 0, "cudaMalloc");
        check(cudaFree(pointer), 0, "cudaFree");
    }
    return NULL;
}

static void threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, run_thread, NULL), 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* CUDA serves a child only where its parent has not begun with it; its calls are recorded anyway.
 */
static void fork_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        void *pointer = NULL;
        cudaMalloc(&pointer, 9 * MIB);
        cudaFree(pointer);
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check(status, 0, "child");
}

static void exec_self(void)
{
    execl("/proc/self/exe", "recorded", "plain", (char *)NULL);
}

static void kill_self(void)
{
    kill(getpid(), SIGKILL);
}

static void wait_for_signal(void)
{
    signal(SIGINT, SIG_DFL);
    kill(getppid(), SIGINT);
    kill(getpid(), SIGINT);
    pause();
}

static void exit_with_7(void)
{
    exit(7);
}

static void close_all(void)
{
    closefrom(3);
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {
    {"plain", plain},
    {"fail", fail},
    {"leak", leak},
    {"devices", devices},
    {"pools", pools},
    {"virtual-by-entry", virtual_by_entry},
    {"virtual-by-dlsym", virtual_by_dlsym},
    {"virtual-by-link", virtual_by_link},
    {"threads", threads},
    {"fork", fork_child},
    {"exec", exec_self},
    {"abort", abort},
    {"kill", kill_self},
    {"interrupt", wait_for_signal},
    {"exit-7", exit_with_7},
    {"close-all", close_all},
};

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof acts / sizeof *acts && strcmp(acts[at].name, argv[i]) != 0)
            at++;
        check(at == sizeof acts / sizeof *acts, 0, argv[i]);
        acts[at].act();
    }
    return 0;
}
