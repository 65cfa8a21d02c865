/* What the driver does to a program under CUDA_INJECTION64_PATH, and then calls of that program:
 *
 *     injected RECORDER
 *
 * loads the recorder, starts it, and makes driver calls happen in the stand-in for CUPTI that it
 * was linked to. With the real CUPTI and no driver it makes none. */
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/programs/cupti_stand_in.h"

#define MIB ((size_t)1 << 20)

typedef int initialize(void);
typedef void make_call(uint32_t, const void *, int, int);

static make_call *call_driver;

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void take_and_give_back(void)
{
    CUdeviceptr address = 0x1000;
    cuMemAlloc_v2_params plain = {&address, 3 * MIB};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &plain, 1, CUDA_SUCCESS);
    CUdeviceptr other = 0x2000;
    cuMemAllocAsync_params async = {&other, 2 * MIB, (CUstream)(uintptr_t)0x70};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync, &async, 0, CUDA_SUCCESS);
    cuMemAlloc_v2_params refused = {&other, 900 * MIB};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &refused, 0, CUDA_ERROR_OUT_OF_MEMORY);
    cuMemFree_v2_params freed = {0x1000};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, &freed, 1, CUDA_SUCCESS);
    cuMemFreeAsync_params freed_async = {0x2000, NULL};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz, &freed_async, 0, CUDA_SUCCESS);
}

static void use_virtual(void)
{
    CUmemGenericAllocationHandle handle = 0x10;
    CUmemAllocationProp properties;
    memset(&properties, 0, sizeof properties);
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 1;
    CUdeviceptr range = 0x600000000000;
    cuMemAddressReserve_params reserved = {&range, 8 * MIB, 0, 0, 0};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve, &reserved, 0, CUDA_SUCCESS);
    cuMemCreate_params created = {&handle, 2 * MIB, &properties, 0};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemCreate, &created, 0, CUDA_SUCCESS);
    cuMemMap_params mapped = {range, 2 * MIB, 0, handle, 0};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemMap, &mapped, 0, CUDA_SUCCESS);
    cuMemSetAccess_params access = {range, 2 * MIB, NULL, 1};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemSetAccess, &access, 0, CUDA_SUCCESS);
    cuMemUnmap_params unmapped = {range, 2 * MIB};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemUnmap, &unmapped, 0, CUDA_SUCCESS);
    cuMemRelease_params released = {handle};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemRelease, &released, 0, CUDA_SUCCESS);
    cuMemAddressFree_params given_back = {range, 8 * MIB};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAddressFree, &given_back, 0, CUDA_SUCCESS);
}

static void use_pool(void)
{
    CUmemoryPool pool = (CUmemoryPool)(uintptr_t)0x5500;
    CUmemPoolProps properties;
    memset(&properties, 0, sizeof properties);
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cuMemPoolCreate_params created = {&pool, &properties};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemPoolCreate, &created, 0, CUDA_SUCCESS);
    uint64_t threshold = UINT64_MAX;
    cuMemPoolSetAttribute_params set = {pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemPoolSetAttribute, &set, 0, CUDA_SUCCESS);
    CUdeviceptr address = 0x3000;
    cuMemAllocFromPoolAsync_params taken = {&address, MIB, pool, NULL};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz, &taken, 0, CUDA_SUCCESS);
    cuMemPoolTrimTo_params trimmed = {pool, 5};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo, &trimmed, 0, CUDA_SUCCESS);
    cuMemPoolDestroy_params destroyed = {pool};
    call_driver(CUPTI_DRIVER_TRACE_CBID_cuMemPoolDestroy, &destroyed, 0, CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
    void *recorder = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (recorder == NULL) {
        fprintf(stderr, "injected: %s\n", dlerror());
        return 1;
    }
    void *found = dlsym(recorder, "InitializeInjection");
    initialize *start;
    memcpy(&start, &found, sizeof start);
    if (start == NULL || start() != 1)
        return 1;
    found = find("stand_in_call");
    memcpy(&call_driver, &found, sizeof call_driver);
    if (call_driver == NULL)
        return 0;
    take_and_give_back();
    use_virtual();
    use_pool();
    return 0;
}
