/* The names in a folder. */
#ifndef FRAG_BASE_FOLDER_H
#define FRAG_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Those that take says yes to, which may shorten them, in order; names that begin with a dot are
 * passed over. The caller destroys. NULL: there is no such folder, or it cannot be read; errno says
 * why. */
char **frag_folder_names(const char *path, bool (*take)(char *name), size_t *count);
void frag_folder_names_destroy(char **names, size_t count);

bool frag_is_folder(const char *path);

/* Makes the folder if there is none; the one above it must be there. */
bool frag_folder_make(const char *path, frag_error *error);

#endif
