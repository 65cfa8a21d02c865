/* Numbers of ranks: out of the names of their recordings, and lists as people write them. */
#ifndef FRAG_RANKS_RANK_NUMBERS_H
#define FRAG_RANKS_RANK_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The number behind the last "rank" of each path ("rank3.pickle", "rank_3/run.pickle"); where one
 * has none, the digits in which alone the paths differ ("run.0.pickle", "run.1.pickle"); where they
 * differ in more, their order, from 0. */
void frag_rank_numbers(const char *const *paths, size_t count, uint32_t *numbers);

/* The number behind the last "rank" of a path that has one behind it. */
bool frag_rank_number_named(const char *path, uint32_t *number);

typedef struct frag_rank_list {
    uint32_t (*ranges)[2]; /* first and last */
    size_t count;
} frag_rank_list;

/* "0-3,8". false: FRAG_E_USAGE. The caller destroys, either way. */
bool frag_rank_list_parse(const char *text, frag_rank_list *list, frag_error *error);
void frag_rank_list_destroy(frag_rank_list *list);
bool frag_rank_list_has(const frag_rank_list *list, uint32_t number);

#endif
