/* Finds and opens the module that drives a GPU. */
#ifndef FRAG_CLI_GPU_LOAD_H
#define FRAG_CLI_GPU_LOAD_H

#include "sim/device/gpu_module.h"

/* fraglab_cuda.so beside the program, or in ../lib/fraglab from there. It stays loaded. NULL:
 * FRAG_E_SYSTEM with where it was looked for. */
const frag_gpu_module *frag_gpu_module_load(frag_error *error);

#endif
