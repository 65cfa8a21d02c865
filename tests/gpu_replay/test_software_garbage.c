/* What a function gives back is written, whatever comes of the call: here every argument that a
 * function writes points to a pattern, handles and devices are bad ones or good ones, and none of
 * the pattern may be left where the interface says how many bytes are written. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

#define WRITES_MAX 3

static const unsigned char patterns[2] = {0xa5, 0x3c};

/* Six words in registers; those that are written point to buffers. */
typedef int any_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

typedef struct writing {
    unsigned char place;
    unsigned short bytes;
} writing;

typedef struct question {
    const char *name;
    writing writes[WRITES_MAX];
} question;

static const question of_runtime[] = {
    {"cudaGetDevice", {{0, 4}}},
    {"cudaGetDeviceCount", {{0, 4}}},
    {"cudaDeviceGetAttribute", {{0, 4}}},
    {"cudaDeviceCanAccessPeer", {{0, 4}}},
    {"cudaDeviceGetP2PAttribute", {{0, 4}}},
    {"cudaDeviceGetLimit", {{0, 8}}},
    {"cudaDeviceGetStreamPriorityRange", {{0, 4}, {1, 4}}},
    {"cudaDeviceGetDefaultMemPool", {{0, 8}}},
    {"cudaDeviceGetMemPool", {{0, 8}}},
    {"cudaDeviceGetCacheConfig", {{0, 4}}},
    {"cudaGetDeviceFlags", {{0, 4}}},
    {"cudaDriverGetVersion", {{0, 4}}},
    {"cudaRuntimeGetVersion", {{0, 4}}},
    {"cudaMemGetInfo", {{0, 8}, {1, 8}}},
    {"cudaMalloc", {{0, 8}}},
    {"cudaMallocManaged", {{0, 8}}},
    {"cudaMallocAsync", {{0, 8}}},
    {"cudaMallocFromPoolAsync", {{0, 8}}},
    {"cudaHostAlloc", {{0, 8}}},
    {"cudaMallocHost", {{0, 8}}},
    {"cudaHostGetDevicePointer", {{0, 8}}},
    {"cudaHostGetFlags", {{0, 4}}},
    {"cudaPointerGetAttributes", {{0, 24}}},
    {"cudaFuncGetAttributes", {{0, 144}}},
    {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", {{0, 4}}},
    {"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", {{0, 4}}},
    {"cudaOccupancyAvailableDynamicSMemPerBlock", {{0, 8}}},
    {"cudaMemPoolGetAccess", {{0, 4}}},
    {"cudaStreamCreate", {{0, 8}}},
    {"cudaStreamCreateWithPriority", {{0, 8}}},
    {"cudaStreamGetPriority", {{1, 4}}},
    {"cudaStreamGetFlags", {{1, 4}}},
    {"cudaStreamGetDevice", {{1, 4}}},
    {"cudaStreamGetId", {{1, 8}}},
    {"cudaStreamGetAttribute", {{2, 64}}},
    {"cudaStreamIsCapturing", {{1, 4}}},
    {"cudaStreamEndCapture", {{1, 8}}},
    {"cudaEventCreate", {{0, 8}}},
    {"cudaEventElapsedTime", {{0, 4}}},
    {"cudaGraphCreate", {{0, 8}}},
    {"cudaGraphInstantiate", {{0, 8}}},
    {"cudaGraphClone", {{0, 8}}},
    {"cudaGraphAddKernelNode", {{0, 8}}},
    {"cudaGraphNodeGetType", {{1, 4}}},
    {"cudaDeviceGetGraphMemAttribute", {{2, 8}}},
    {"cudaGetSymbolAddress", {{0, 8}}},
    {"cudaGetSymbolSize", {{0, 8}}},
    {"cudaGetExportTable", {{0, 8}}},
    {"cudaIpcGetMemHandle", {{0, 64}}},
    {"cudaIpcGetEventHandle", {{0, 64}}},
    {"cudaArrayGetInfo", {{0, 20}, {1, 24}, {2, 4}}},
    {"cudaMallocArray", {{0, 8}}},
    {"cudaCreateTextureObject", {{0, 8}}},
    {"cudaImportExternalMemory", {{0, 8}}},
    {"cudaLibraryGetKernel", {{0, 8}}},
    {"cudaLibraryGetGlobal", {{0, 8}, {1, 8}}},
    {"cudaUserObjectCreate", {{0, 8}}},
};

static const question of_driver[] = {
    {"cuDriverGetVersion", {{0, 4}}},
    {"cuDeviceGetCount", {{0, 4}}},
    {"cuDeviceGet", {{0, 4}}},
    {"cuDeviceGetUuid_v2", {{0, 16}}},
    {"cuDeviceTotalMem_v2", {{0, 8}}},
    {"cuDeviceGetAttribute", {{0, 4}}},
    {"cuDeviceComputeCapability", {{0, 4}, {1, 4}}},
    {"cuDeviceCanAccessPeer", {{0, 4}}},
    {"cuDeviceGetDevResource", {{1, 144}}},
    {"cuDeviceGetDefaultMemPool", {{0, 8}}},
    {"cuDevicePrimaryCtxGetState", {{1, 4}, {2, 4}}},
    {"cuDevicePrimaryCtxRetain", {{0, 8}}},
    {"cuCtxCreate_v2", {{0, 8}}},
    {"cuCtxGetCurrent", {{0, 8}}},
    {"cuCtxPopCurrent_v2", {{0, 8}}},
    {"cuCtxGetDevice", {{0, 4}}},
    {"cuCtxGetLimit", {{0, 8}}},
    {"cuCtxGetFlags", {{0, 4}}},
    {"cuCtxGetId", {{1, 8}}},
    {"cuCtxGetApiVersion", {{1, 4}}},
    {"cuCtxGetCacheConfig", {{0, 4}}},
    {"cuCtxGetStreamPriorityRange", {{0, 4}, {1, 4}}},
    {"cuGetErrorString", {{1, 8}}},
    {"cuGetErrorName", {{1, 8}}},
    {"cuMemAlloc_v2", {{0, 8}}},
    {"cuMemAllocAsync", {{0, 8}}},
    {"cuMemGetInfo_v2", {{0, 8}, {1, 8}}},
    {"cuMemGetAddressRange_v2", {{0, 8}, {1, 8}}},
    {"cuMemAddressReserve", {{0, 8}}},
    {"cuMemRetainAllocationHandle", {{0, 8}}},
    {"cuMemGetAllocationPropertiesFromHandle", {{0, 32}}},
    {"cuMemExportToShareableHandle", {{0, 4}}},
    {"cuMemImportFromShareableHandle", {{0, 8}}},
    {"cuMemHostAlloc", {{0, 8}}},
    {"cuMemHostGetFlags", {{0, 4}}},
    {"cuIpcGetMemHandle", {{0, 64}}},
    {"cuModuleLoadData", {{0, 8}}},
    {"cuModuleLoadDataEx", {{0, 8}}},
    {"cuModuleGetFunction", {{0, 8}}},
    {"cuModuleGetGlobal_v2", {{0, 8}, {1, 8}}},
    {"cuModuleGetLoadingMode", {{0, 4}}},
    {"cuModuleGetFunctionCount", {{0, 4}}},
    {"cuLibraryLoadData", {{0, 8}}},
    {"cuLibraryGetKernel", {{0, 8}}},
    {"cuLibraryGetModule", {{0, 8}}},
    {"cuKernelGetFunction", {{0, 8}}},
    {"cuKernelGetAttribute", {{0, 4}}},
    {"cuFuncGetAttribute", {{0, 4}}},
    {"cuFuncGetModule", {{0, 8}}},
    {"cuFuncGetName", {{0, 8}}},
    {"cuFuncIsLoaded", {{0, 4}}},
    {"cuFuncGetParamInfo", {{2, 8}, {3, 8}}},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", {{0, 4}}},
    {"cuOccupancyMaxPotentialBlockSize", {{0, 4}, {1, 4}}},
    {"cuOccupancyAvailableDynamicSMemPerBlock", {{0, 8}}},
    {"cuLinkComplete", {{1, 8}, {2, 8}}},
    {"cuTensorMapEncodeTiled", {{0, 128}}},
    {"cuStreamCreate", {{0, 8}}},
    {"cuStreamGetCtx", {{1, 8}}},
    {"cuStreamGetCtx_v2", {{1, 8}, {2, 8}}},
    {"cuStreamGetId", {{1, 8}}},
    {"cuStreamIsCapturing", {{1, 4}}},
    {"cuStreamEndCapture", {{1, 8}}},
    {"cuEventCreate", {{0, 8}}},
    {"cuEventElapsedTime", {{0, 4}}},
    {"cuGraphCreate", {{0, 8}}},
    {"cuGraphInstantiateWithFlags", {{0, 8}}},
    {"cuGraphAddKernelNode_v2", {{0, 8}}},
    {"cuGraphExecGetFlags", {{1, 8}}},
    {"cuMulticastCreate", {{0, 8}}},
    {"cuMulticastGetGranularity", {{0, 8}}},
    {"cuTexObjectCreate", {{0, 8}}},
    {"cuArrayCreate_v2", {{0, 8}}},
    {"cuCtxFromGreenCtx", {{0, 8}}},
    {"cuDevResourceGenerateDesc", {{0, 8}}},
    {"cuGetExportTable", {{0, 8}}},
};

static any_function *find_function(void *library, const char *name)
{
    any_function *function = NULL;
    void *found = dlsym(library, name);
    if (found == NULL)
        fail_msg("%s is not there", name);
    memcpy(&function, &found, sizeof function);
    return function;
}

/* Calls twice over two patterns: a written byte may look like one of them, not like both. */
static void ask(void *library, const question *asked, uintptr_t other)
{
    static unsigned char buffers[2][WRITES_MAX][256];
    any_function *function = find_function(library, asked->name);
    for (int time = 0; time < 2; time++) {
        uintptr_t words[6] = {other, other, other, other, other, other};
        memset(buffers[time], patterns[time], sizeof buffers[time]);
        for (int w = 0; w < WRITES_MAX && asked->writes[w].bytes > 0; w++)
            words[asked->writes[w].place] = (uintptr_t)buffers[time][w];
        function(words[0], words[1], words[2], words[3], words[4], words[5]);
    }
    for (int w = 0; w < WRITES_MAX && asked->writes[w].bytes > 0; w++) {
        const writing *written = &asked->writes[w];
        size_t left = 0;
        for (size_t i = 0; i < written->bytes; i++)
            left += buffers[0][w][i] == patterns[0] && buffers[1][w][i] == patterns[1];
        if (left > 0)
            fail_msg("%s(... %#llx ...) leaves %zu of %u bytes of argument %u", asked->name,
                     (unsigned long long)other, left, written->bytes, written->place);
        if (buffers[0][w][written->bytes] != patterns[0] ||
            buffers[1][w][written->bytes] != patterns[1])
            fail_msg("%s writes more than %u bytes to argument %u", asked->name, written->bytes,
                     written->place);
    }
}

static void ask_all(void *library, const question *questions, size_t count, const char *settings)
{
    for (size_t i = 0; i < count; i++) {
        software_start(settings);
        ask(library, &questions[i], 0);
        software_start(settings);
        ask(library, &questions[i], 0x6666666666660); /* no device, handle or address */
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The pointer attributes of 13 are longer, otherwise the two runtimes agree on all of these. */
static const char *const only_in_13[] = {"cudaPointerGetAttributes"};

static void the_runtime_leaves_no_garbage(void **state)
{
    (void)state;
    ask_all(cuda12.library, of_runtime, COUNT(of_runtime), "");
    for (size_t i = 0; i < COUNT(of_runtime); i++) {
        question asked = of_runtime[i];
        if (strcmp(asked.name, only_in_13[0]) == 0)
            asked.writes[0].bytes = 88;
        software_start("");
        ask(cuda.library, &asked, 0x6666666666660);
    }
}

static void the_driver_leaves_no_garbage(void **state)
{
    (void)state;
    ask_all(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), of_driver, COUNT(of_driver), "");
}

/* After an error that stays nothing works, and still nothing is left as it was. */
static void nor_do_they_when_every_call_fails(void **state)
{
    (void)state;
    ask_all(cuda12.library, of_runtime, COUNT(of_runtime), "sticky=700@1");
    ask_all(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), of_driver, COUNT(of_driver),
            "sticky=700@1");
}

static int load_all(void **state)
{
    (void)state;
    software_load_all();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime_leaves_no_garbage),
        cmocka_unit_test(the_driver_leaves_no_garbage),
        cmocka_unit_test(nor_do_they_when_every_call_fails),
    };
    return cmocka_run_group_tests_name("no garbage", tests, load_all, NULL);
}
