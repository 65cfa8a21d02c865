/* What the stand-ins of the CUDA libraries share: handles with fields, and how answers are written.
 * Most functions of a stand-in are made from its table (tables/NAME.calls) by generate.awk; what is
 * more than writing constants is C by hand in NAME.c, which includes the declarations that are made
 * from the table, NAME_calls.h: it does not compile if the two differ. */
#ifndef FRAG_LIBRARIES_STANDIN_H
#define FRAG_LIBRARIES_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_replay/software/software_cuda.h"

/* The CUDA release that the stand-ins say they belong to: 12 or 13 from the build, and the newest
 * release of each that was known. */
#ifndef FRAG_CUDART
#define FRAG_CUDART 13
#endif
enum { FRAG_STANDIN_MINOR = FRAG_CUDART == 12 ? 9 : 2 };

enum { FRAG_STANDIN_FIELDS = 48 };

/* A handle that differs from all others of the library and remembers fields, which begin as 0.
 * Never NULL: without host memory the process ends with a sentence. */
void *frag_standin_new(void);
/* NULL and what is no handle are left alone. */
void frag_standin_end(void *handle);
/* 0 for what is no handle of ours. */
uint64_t frag_standin_get(const void *handle, unsigned field);
void frag_standin_set(void *handle, unsigned field, uint64_t value);
/* For handles that are numbers: 1, 2, ... */
int32_t frag_standin_new_number(void);

/* NULL is left alone. */
void frag_standin_zero(void *out, uint64_t bytes);

/* A number from the caller, with negative ones as 0. */
static inline uint64_t frag_standin_count(int64_t number)
{
    return number < 0 ? 0 : (uint64_t)number;
}

static inline uint64_t frag_standin_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t frag_standin_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes of one element of a cudaDataType: 4 for CUDA_R_32F; 0 for a type that is not known. */
static inline uint64_t frag_standin_type_bytes(uint64_t type)
{
    /* By the number of the type. Less than a byte counts as one. */
    static const unsigned char bytes[] = {
        4, 8, 2, 1, 8, 16, 4, 2, 1,  2, 4,  8, 4, 8, 2, 4, 1,
        2, 1, 2, 2, 4, 2,  4, 8, 16, 8, 16, 1, 1, 1, 1, 1, 1,
    };
    return type < sizeof bytes ? bytes[type] : 0;
}

/* Of the CUDA release: what libraryPropertyType 0, 1, 2 ask for. */
int32_t frag_standin_version_part(uint64_t property);
/* The names of cublasStatus_t, which cuBLAS and cuBLASLt share. */
const char *frag_standin_cublas_status(int32_t status);

/* Bytes that the real library decides, low to high, as a count of units; noted in the report unless
 * both are 0. */
uint64_t frag_standin_size(const char *function, const char *what, uint64_t low, uint64_t high,
                           uint64_t unit_bytes);
/* The same for a count that has 32 bits: INT32_MAX if it is more. */
int32_t frag_standin_size32(const char *function, const char *what, uint64_t low, uint64_t high,
                            uint64_t unit_bytes);

#endif
