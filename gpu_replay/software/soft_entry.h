/* How entry points are written: their names and types are NVIDIA's, declared here from their
 * documentation, so that no toolkit is needed. Codes are 32-bit, handles are pointers, device
 * addresses and sizes have 64 bits. */
#ifndef FRAG_SOFTWARE_SOFT_ENTRY_H
#define FRAG_SOFTWARE_SOFT_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu_replay/software/soft_state.h"

/* A declaration before each definition: nobody else declares these functions. */
#define FRAG_ENTRY(type, name, parameters)                                                         \
    type name parameters;                                                                          \
    type name parameters

/* ---- functions that do nothing but write what they give back: a table says which of their first
 * six arguments, all of them words in registers, point to how many bytes. */
typedef struct frag_soft_out {
    uint8_t place;
    uint16_t bytes; /* 0: nothing */
} frag_soft_out;

typedef struct frag_soft_rest_call {
    const char *name;
    void *arguments[6];
    const frag_soft_out *outs;
    size_t out_count;
    int32_t code;
    bool gives_handle; /* in the first of outs, instead of 0 */
    const void *caller;
} frag_soft_rest_call;

/* Writes, notes a refusal in the report, and returns the code. */
int32_t frag_soft_rest(frag_soft_rest_call call);

#define FRAG_REST_PARAMETERS void *a, void *b, void *c, void *d, void *e, void *f
#define FRAG_REST(function, writes, result, gives)                                                 \
    (frag_soft_rest_call)                                                                          \
    {                                                                                              \
        .name = #function, .arguments = {a, b, c, d, e, f}, .outs = (writes),                      \
        .out_count = sizeof(writes) / sizeof(writes)[0], .code = (result),                         \
        .gives_handle = (gives), .caller = FRAG_CALLER()                                           \
    }

/* What pointers of the interface are here: numbers. */
static inline uint64_t frag_soft_number(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static inline void *frag_soft_pointer(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

#endif
