/* The part of 'fraglab doctor' that looks at GPUs. */
#ifndef FRAG_MACHINE_DOCTOR_GPU_H
#define FRAG_MACHINE_DOCTOR_GPU_H

#include "cli/command.h"

/* A line for each GPU and each process on it; one that says why where there is nothing to see. */
void frag_doctor_gpus(void);

/* One JSON object for each GPU, once. Returns the exit code. */
int frag_doctor_gpu_objects(void);

/* A line (an object) for each GPU every so many seconds, until an interrupt. Returns the exit
 * code. */
int frag_doctor_watch(double seconds, bool is_json);

#endif
