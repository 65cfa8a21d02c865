/* Finds and opens the shared objects that are installed with the program: the libraries they are
 * linked to, the program itself then need not be. */
#ifndef FRAG_CLI_MODULE_LOAD_H
#define FRAG_CLI_MODULE_LOAD_H

#include <stdbool.h>

#include "base/error.h"

/* The file beside the program, or in ../lib/fraglab from there. It stays loaded. is_global: what it
 * brings may be needed by libraries that are opened later. without says why there may be none:
 * "this fraglab was built with CUDA=no". NULL: FRAG_E_SYSTEM with where it was looked for. */
void *frag_module_open(const char *file, bool is_global, const char *without, frag_error *error);

/* Its table, when the number that it begins with is abi. NULL: FRAG_E_SYSTEM. */
const void *frag_module_table(void *object, const char *file, const char *symbol, uint32_t abi,
                              frag_error *error);

#endif
