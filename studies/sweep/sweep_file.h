/* The file that a sweep appends its rows to.
 *
 * Rows stand in the order of the experiment, so the file of a sweep that was killed holds the first
 * rows of the whole, and perhaps a piece of one more. The next sweep cuts that piece off, checks
 * that the rows are its own, and goes on behind them. */
#ifndef FRAG_SWEEP_SWEEP_FILE_H
#define FRAG_SWEEP_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

/* Takes rows, whole ones; false: nothing more is to be written, and error says why. */
typedef bool frag_sweep_put(void *user, const char *rows, size_t length, frag_error *error);

typedef struct frag_sweep_file {
    FILE *stream;        /* NULL: none */
    frag_sweep_put *put; /* takes the rows too; NULL: nobody does */
    void *user;
    char *path;      /* NULL: stdout */
    char **names;    /* of the rows found, as frag_sweep_row_name */
    bool has_layout; /* the rows that have counts have the layout at the peak too, or none has */
    bool has_bounds; /* likewise the packing of their trace */
    size_t count;
    size_t next; /* the first that was not asked for yet */
} frag_sweep_file;

/* path NULL or "-": stdout, nothing is found there. is_fresh: what is there is thrown away. The
 * file comes with has_layout and has_bounds of the rows that will be written: they must not stand
 * beside rows that differ in that. No other process may have the file open for a sweep. */
bool frag_sweep_file_open(const char *path, bool is_fresh, frag_sweep_file *file,
                          frag_error *error);

/* Is the next row of the sweep there already? false with an error filled: another row is. */
bool frag_sweep_file_has(frag_sweep_file *file, const char *name, bool *has, frag_error *error);

bool frag_sweep_file_write(frag_sweep_file *file, const char *rows, size_t length,
                           frag_error *error);

/* All rows asked for: nothing may be left. */
bool frag_sweep_file_finish(frag_sweep_file *file, frag_error *error);
void frag_sweep_file_close(frag_sweep_file *file);

/* What tells one row of a sweep from all others. */
void frag_sweep_row_name(frag_text *text, const char *commit, const char *trace, const char *digest,
                         uint32_t device, const char *label, uint64_t capacity_bytes);

#endif
