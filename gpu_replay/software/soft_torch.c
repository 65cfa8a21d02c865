/* PyTorch's caching allocator, seen from the driver. It takes memory in large pieces and hands out
 * blocks of them again and again, which no call of the driver tells. But it tells one listener of
 * its process (c10::impl::GPUTrace, which torch.cuda._sanitizer uses): every event, stream and
 * block that comes or goes. The listener is an object with a table of functions, whose order
 * changed from release to release; since every place of our table holds the same function, which
 * knows blocks by their addresses, the order does not matter. */
#include "gpu_replay/software/soft_state.h"

#include <dlfcn.h>
#include <string.h>

#define FUNCTION_COUNT 128

typedef void heard_function(void *self, int8_t kind_of_device, uint64_t number);

static void hear(void *self, int8_t kind_of_device, uint64_t number)
{
    int32_t ignored = 0;
    (void)self, (void)kind_of_device;
    if (!frag_soft_is_device_address(number))
        return;
    frag_soft_enter(&ignored);
    frag_soft_shadow_toggle(number);
    frag_soft_leave();
}

/* As C++ lays it out: an object that points to one that points to its functions. */
static heard_function *functions[FUNCTION_COUNT];
static heard_function **table = functions;
static heard_function ***listener = &table;

void frag_soft_torch_find(void)
{
    enum { TRIES = 64 }; /* who asks for memory so often without PyTorch does without it */
    static int tries;
    void *c10 = tries++ < TRIES ? dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (c10 == NULL)
        return;
    tries = TRIES;
    void *found = dlsym(c10, "_ZN3c104impl8GPUTrace9set_traceEPKNS0_13PyInterpreterE");
    void (*set_trace)(void *) = NULL;
    memcpy(&set_trace, &found, sizeof found);
    for (int i = 0; i < FUNCTION_COUNT; i++)
        functions[i] = hear;
    if (set_trace != NULL)
        set_trace(&listener);
    dlclose(c10);
}

/* PyTorch adds up equal elements of a sparse tensor in a function of C++ that others call, too, and
 * reads how many are left. What it was given is known here while it runs: this stands in its place,
 * as libraries that were preloaded come first. A tensor is returned where the caller says: on this
 * processor that place is the first argument. */
#if defined(__x86_64__)
#define SUM "_ZN2at6native21_coalesce_sparse_cudaERKNS_6TensorE"

typedef void *sum_function(void *result, const void *sparse);
sum_function frag_soft_torch_sum __asm__(SUM);

static _Thread_local const void *summed;

void *frag_soft_torch_sum(void *result, const void *sparse)
{
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library == NULL ? NULL : dlsym(library, SUM);
    sum_function *sum = NULL;
    memcpy(&sum, &found, sizeof sum);
    FRAG_ASSERT(sum != NULL);
    dlclose(library);
    summed = sparse;
    void *returned = sum(result, sparse);
    summed = NULL;
    return returned;
}

const void *frag_software_get_sum(void)
{
    return summed;
}
#endif
