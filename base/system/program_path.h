/* Where the running program lies: what is installed beside it is found from there. */
#ifndef FRAG_SYSTEM_PROGRAM_PATH_H
#define FRAG_SYSTEM_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The path of the program into path, which has room for size bytes, with its ending zero. False,
 * and path is "", where the system does not say (Linux without /proc) or it has no room. A path as
 * long as the room may be cut. */
bool frag_program_path(char *path, size_t size);

#endif
