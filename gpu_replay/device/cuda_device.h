/* The real device: segments from cudaMalloc, the virtual-memory calls and the driver's pool.
 *
 * It keeps its count in a simulated device, so that a budget is kept and pages are rounded exactly
 * as there, and so that the policy sees the addresses it would see there: decisions that ties of
 * addresses take fall the same on both. Where the memory really is stands in a table. With
 * has_driver_addresses the policy sees the driver's own instead.
 *
 * A call that the driver refuses for another reason than memory fails the device for good; its
 * words are in frag_device.failure. */
#ifndef FRAG_DEVICE_CUDA_DEVICE_H
#define FRAG_DEVICE_CUDA_DEVICE_H

#include "gpu_replay/device/cuda_gpu.h"

/* Makes every kind of call once, fills the card if a ballast is wanted, and reads what is free.
 * NULL: the card refused (FRAG_E_SYSTEM), or there is less free than the ballast is to leave. The
 * card outlives the device. */
frag_device *frag_cuda_device_create(frag_gpu *gpu, const frag_gpu_device_options *options,
                                     frag_error *error);

/* Gives back all that is still held; frag_device_destroy does it too. */
void frag_cuda_device_finish(frag_device *device, frag_gpu_report *report);

/* The policy's stream of that number is this stream of the program. */
void frag_cuda_device_set_stream(frag_device *device, uint32_t stream, frag_cuda_stream handle);

#endif
