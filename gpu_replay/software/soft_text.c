/* What result codes are called, and the device that attributes describe. */
#include "gpu_replay/software/soft_state.h"

typedef struct code {
    int32_t number;
    const char *runtime_name;
    const char *driver_name;
    const char *text;
} code;

static const code codes[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {35, "cudaErrorInsufficientDriver", "CUDA_ERROR_UNKNOWN",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {304, "cudaErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM",
     "OS call failed or operation not supported on this OS"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {702, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {903, "cudaErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const code *find_code(int32_t number)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            return &codes[i];
    return NULL;
}

const char *frag_soft_code_name(int32_t number, bool is_driver)
{
    const code *known = find_code(number);
    if (known == NULL)
        return NULL;
    return is_driver ? known->driver_name : known->runtime_name;
}

const char *frag_soft_code_text(int32_t number)
{
    const code *known = find_code(number);
    return known == NULL ? NULL : known->text;
}

typedef struct attribute {
    int32_t number;
    int32_t value;
} attribute;

/* Limits and abilities that programs ask about; runtime and driver number them alike. The figures
 * are those of a large data-centre card. Everything else is 0. */
static const attribute attributes[] = {
    {1, 1024},                                     /* threads of a block */
    {2, 1024},                                     /* and its three dimensions */
    {3, 1024},        {4, 64},    {5, 2147483647}, /* dimensions of a grid */
    {6, 65535},       {7, 65535}, {8, 49152},      /* shared memory of a block */
    {9, 65536},                                    /* constant memory */
    {10, 32},                                      /* threads of a warp */
    {11, 2147483647},                              /* pitch of a copy */
    {12, 65536},                                   /* registers of a block */
    {13, 1410000},                                 /* clock in kHz */
    {14, 512},                                     /* alignment of textures */
    {15, 1},                                       /* copies beside kernels */
    {16, 108},                                     /* multiprocessors */
    {19, 1},                                       /* maps host memory */
    {31, 1},                                       /* concurrent kernels */
    {32, 1},                                       /* ECC */
    {36, 1215000},                                 /* memory clock in kHz */
    {37, 5120},                                    /* memory bus in bits */
    {38, 41943040},                                /* L2 cache */
    {39, 2048},                                    /* threads of a multiprocessor */
    {40, 3},                                       /* copy engines */
    {41, 1},                                       /* unified addresses */
    {78, 1},                                       /* stream priorities */
    {79, 1},          {80, 1},    {81, 167936},    /* shared memory of a multiprocessor */
    {82, 65536},                                   /* registers of a multiprocessor */
    {83, 1},                                       /* managed memory */
    {95, 1},                                       /* cooperative launch */
    {97, 166912},                                  /* shared memory of a block, opted in */
    {99, 1},                                       /* registers host memory */
    {102, 1},                                      /* virtual memory management */
    {103, 1},                                      /* exports memory as a file descriptor */
    {106, 32},                                     /* blocks of a multiprocessor */
    {110, 1},                                      /* GPUDirect RDMA with virtual memory */
    {115, 1},                                      /* memory pools */
    {119, 1},                                      /* registers read-only host memory */
};

enum { PCI_BUS = 33, PCI_DEVICE = 34, MAJOR = 75, MINOR = 76 };

int32_t frag_soft_attribute(int32_t number, uint32_t device)
{
    int32_t capability = (int32_t)frag_soft.settings.compute_capability;
    if (number == MAJOR)
        return capability / 10;
    if (number == MINOR)
        return capability % 10;
    if (number == PCI_BUS)
        return 1 + (int32_t)device;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].number == number)
            return attributes[i].value;
    return 0;
}
