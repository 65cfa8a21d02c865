/* The recordings of the ranks of one job: files and folders as people name them, and which rank
 * each is. */
#ifndef FRAG_RANKS_RANK_PATHS_H
#define FRAG_RANKS_RANK_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct frag_rank_paths {
    char **paths;
    uint32_t *numbers; /* of each path, as of frag_rank_numbers */
    size_t count;
} frag_rank_paths;

/* Of a folder those files that have .pickle, .pkl or .fgt in their names. false: a folder that
 * cannot be read, or holds none. The caller destroys, either way. */
bool frag_rank_paths_list(const char *const *operands, size_t count, frag_rank_paths *paths,
                          frag_error *error);
void frag_rank_paths_destroy(frag_rank_paths *paths);

#endif
