/* What the stubs of the dry run answer where 0 is not enough: handles must differ from NULL, and
 * versions and heuristics must be there. Every stub library has all of this inside; its version
 * script shows what belongs to it. make_stubs.py reads the names behind HANDLE and ANSWER. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HANDLE(name)                                                                               \
    int name(void **handle);                                                                       \
    int name(void **handle)                                                                        \
    {                                                                                              \
        return give_handle(handle);                                                                \
    }
#define ANSWER(name, parameters)                                                                   \
    int name parameters;                                                                           \
    int name parameters

static int give_handle(void **handle)
{
    static uintptr_t last = 0x90000;
    last += 64;
    *handle = (void *)last;
    return 0;
}

/* ---- matrix products */
HANDLE(cublasCreate_v2)
HANDLE(cublasLtCreate)
HANDLE(cublasLtMatmulDescCreate)
HANDLE(cublasLtMatrixLayoutCreate)
HANDLE(cublasLtMatmulPreferenceCreate)

ANSWER(cublasGetMathMode, (void *handle, int *mode))
{
    (void)handle;
    *mode = 0;
    return 0;
}

ANSWER(cublasGetPointerMode_v2, (void *handle, int *mode))
{
    (void)handle;
    *mode = 0;
    return 0;
}

ANSWER(cublasGetVersion_v2, (void *handle, int *version))
{
    (void)handle;
    *version = 130000;
    return 0;
}

/* One algorithm that needs no workspace: 64 bytes of algorithm, workspace (8), status (4), waves
 * (4), reserved (16). */
ANSWER(cublasLtMatmulAlgoGetHeuristic,
       (void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
        int wanted, void *results, int *found))
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    (void)wanted;
    memset(results, 0, 96);
    *found = 1;
    return 0;
}

/* ---- the others */
HANDLE(cudnnCreate)
HANDLE(curandCreateGenerator)
HANDLE(cusparseCreate)
HANDLE(cusolverDnCreate)
HANDLE(nvrtcCreateProgram)

/* Newer than any PyTorch was built for, with the same leading figure. */
ANSWER(cudnnGetVersion, (void))
{
    return 99900;
}

ANSWER(cudnnGetCudartVersion, (void))
{
    return RUNTIME_VERSION;
}

ANSWER(nvrtcVersion, (int *major, int *minor))
{
    *major = RUNTIME_VERSION / 1000;
    *minor = RUNTIME_VERSION % 1000 / 10;
    return 0;
}

ANSWER(ncclGetVersion, (int *version))
{
    *version = 22705;
    return 0;
}
