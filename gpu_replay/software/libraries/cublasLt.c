/* Attributes of descriptors, and the heuristics: one algorithm that needs no workspace. PyTorch
 * takes a workspace of a size of its own choice before it asks, so nothing depends on that. */
#include <string.h>

#include <cublasLt_calls.h>

enum { INVALID_VALUE = 7 };

/* An algorithm (64 bytes), its workspace (8), status (4), waves (4), reserved (16). */
enum { HEURISTIC_RESULT_BYTES = 96 };

int32_t cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                                       void *d, void *preference, int32_t wanted, void *results,
                                       int32_t *found)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (found == NULL || results == NULL || wanted < 1)
        return INVALID_VALUE;
    memset(results, 0, HEURISTIC_RESULT_BYTES);
    *found = 1;
    return 0;
}

/* Attributes are numbers and pointers. Longer ones are not asked back by anybody. */
static int32_t set_attribute(void *descriptor, int32_t attribute, const void *value, uint64_t bytes)
{
    uint64_t kept = 0;
    if (value == NULL || attribute < 0)
        return INVALID_VALUE;
    memcpy(&kept, value, bytes < sizeof kept ? (size_t)bytes : sizeof kept);
    frag_standin_set(descriptor, (unsigned)attribute, kept);
    return 0;
}

/* With no bytes to write to it only says how many there would be. */
static int32_t get_attribute(const void *descriptor, int32_t attribute, void *out, uint64_t bytes,
                             int64_t *written)
{
    uint64_t kept = frag_standin_get(descriptor, (unsigned)attribute);
    if (written != NULL)
        *written = bytes == 0 ? (int64_t)sizeof kept : (int64_t)bytes;
    if (out == NULL)
        return bytes == 0 ? 0 : INVALID_VALUE;
    memset(out, 0, (size_t)bytes);
    memcpy(out, &kept, bytes < sizeof kept ? (size_t)bytes : sizeof kept);
    return 0;
}

#define ATTRIBUTES(name)                                                                           \
    int32_t name##SetAttribute(void *descriptor, int32_t attribute, const void *value,             \
                               uint64_t bytes)                                                     \
    {                                                                                              \
        return set_attribute(descriptor, attribute, value, bytes);                                 \
    }                                                                                              \
    int32_t name##GetAttribute(void *descriptor, int32_t attribute, void *out, uint64_t bytes,     \
                               int64_t *written)                                                   \
    {                                                                                              \
        return get_attribute(descriptor, attribute, out, bytes, written);                          \
    }

ATTRIBUTES(cublasLtMatmulDesc)
ATTRIBUTES(cublasLtMatrixLayout)
ATTRIBUTES(cublasLtMatmulPreference)
ATTRIBUTES(cublasLtMatrixTransformDesc)
ATTRIBUTES(cublasLtEmulationDesc)
