/* What the driver's management library reports about the GPUs of this machine: memory, and who uses
 * it.
 *
 * The library is opened when the program runs; nothing of it is linked. It needs no CUDA context
 * and takes no memory on the GPU. */
#ifndef FRAG_MACHINE_NVML_H
#define FRAG_MACHINE_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A process as the driver lists it. What it is, the operating system is asked; it does not see
 * processes of other containers, nor what those of other users have loaded. */
typedef struct frag_gpu_process {
    uint32_t pid;
    uint64_t bytes;  /* FRAG_UNLIMITED: the driver does not say */
    char name[64];   /* "" where it is not seen from here */
    char user[64];   /* "" likewise */
    bool is_mine;    /* of the user who asks */
    bool is_pytorch; /* it has PyTorch's CUDA library loaded */
} frag_gpu_process;

/* A GPU, or one MIG instance of it. Bytes are FRAG_UNLIMITED where the driver does not say. */
typedef struct frag_gpu_view {
    char name[96];
    uint32_t index;
    uint32_t instance; /* of MIG; UINT32_MAX: the GPU itself */
    bool has_mig;      /* it is divided into instances; their memory is reported one by one */
    uint64_t total_bytes;
    uint64_t used_bytes;     /* without what is reserved, where that is known */
    uint64_t reserved_bytes; /* by driver and firmware */
    uint64_t free_bytes;
    frag_gpu_process *processes; /* ascending in pid */
    size_t process_count;
    bool has_processes; /* false: the driver does not list them */
    /* Sums over processes; what is used beyond them no listed process accounts for. */
    uint64_t pytorch_bytes;
    uint64_t other_bytes;
    uint64_t not_mine_bytes;
} frag_gpu_view;

typedef struct frag_nvml frag_nvml;

/* NULL: FRAG_E_SYSTEM, and the sentence says which of library, driver or permission is missing. */
frag_nvml *frag_nvml_open(frag_error *error);
void frag_nvml_close(frag_nvml *nvml);

/* "550.54.15"; 12040 for CUDA 12.4, 0 where not known. */
const char *frag_nvml_driver(const frag_nvml *nvml);
int frag_nvml_cuda(const frag_nvml *nvml);

/* All GPUs as they are now; each GPU is followed by its MIG instances. false: the driver refused.
 */
bool frag_nvml_look(frag_nvml *nvml, frag_gpu_view **views, size_t *count, frag_error *error);
void frag_nvml_views_destroy(frag_gpu_view *views, size_t count);

/* The number of the GPU at that PCI place ("0000:01:00.0"). false: it is not known. */
bool frag_nvml_find(const frag_nvml *nvml, const char *pci, uint32_t *index);

/* What no listed process accounts for, FRAG_UNLIMITED where that is not known. */
uint64_t frag_gpu_unlisted_bytes(const frag_gpu_view *view);

#endif
