/* What the files of the driver share. */
#ifndef FRAG_DRIVER_SOFT_DRIVER_H
#define FRAG_DRIVER_SOFT_DRIVER_H

#include "gpu_replay/software/soft_entry.h"
#include "gpu_replay/software/soft_order.h"

#define FRAG_DRIVER_CONTEXT_BASE 0x1000u /* the context of device d is this + d */

enum { FRAG_DRIVER_INVALID_CONTEXT = 201 };

bool frag_driver_is_device(int32_t device);
/* As frag_soft_enter, for what is asked of a device. */
bool frag_driver_enter(int32_t device, int32_t *result);
void *frag_driver_context(uint32_t device);
/* What a CUDA_MEMCPY3D copies; not 0: it cannot be. */
int32_t frag_driver_area_of(const void *parameters, frag_soft_area *area);

#endif
