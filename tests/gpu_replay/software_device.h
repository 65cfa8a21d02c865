/* The software CUDA of the build a test belongs to: both runtimes and the control interface, found
 * as a program would find them, and the calls that tests make most. */
#ifndef FRAG_GPU_REPLAY_SOFTWARE_DEVICE_H
#define FRAG_GPU_REPLAY_SOFTWARE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_replay/software/software_cuda.h"
#include "tests/gpu_replay/cuda_entries.h"

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)

enum { NOT_READY = 600, NOT_INITIALIZED = 3, OUT_OF_MEMORY = 2 };

typedef struct software_control {
    bool (*reset)(const char *, char *, size_t);
    bool (*set)(const char *, char *, size_t);
    void (*complete)(uint64_t);
    void (*set_capturing)(int);
    uint64_t (*call_count)(const char *);
    uint64_t (*failure_count)(const char *);
    void (*get_held)(frag_software_held *);
    bool (*get_usage)(int, frag_software_usage *);
    void (*flush)(void);
    void (*observe)(frag_software_observer *, void *);
} software_control;

extern cuda_entries cuda; /* of version 13 */
extern cuda_entries cuda12;
extern software_control software;

/* All below fail the test when something is not as it should be. */
void software_load(cuda_entries *entries, int major);
void software_load_all(void);
/* NULL: of the driver. */
void software_find(void *library, const char *name, void *function);
/* A fresh device; three calls have been made: two for the last errors, one for device 0. */
void software_start(const char *settings);

uint64_t software_take(size_t bytes); /* cudaMalloc; the address */
void software_give(uint64_t address);
uint64_t software_take_async(size_t bytes, void *stream);
void software_give_async(uint64_t address, void *stream);
size_t software_free_bytes(void);
void *software_stream(void);

#endif
