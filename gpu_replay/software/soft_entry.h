/* How entry points are written: their names and types are NVIDIA's, declared here from their
 * documentation, so that no toolkit is needed. Codes are 32-bit, handles are pointers, device
 * addresses and sizes have 64 bits. */
#ifndef FRAG_SOFTWARE_SOFT_ENTRY_H
#define FRAG_SOFTWARE_SOFT_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_replay/software/soft_state.h"

/* A declaration before each definition: nobody else declares these functions. */
#define FRAG_ENTRY(type, name, parameters)                                                         \
    type name parameters;                                                                          \
    type name parameters

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
