/* Result rows as figures read them: JSON Lines of 'fraglab run' and 'fraglab sweep', and fields
 * named the way a person does. */
#ifndef FRAG_PARTS_PLOT_ROWS_H
#define FRAG_PARTS_PLOT_ROWS_H

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

/* Parses each line that is not blank. take owns the row; false ends the reading, with an error to
 * which the line is added. */
bool frag_plot_each_row(frag_input *input,
                        bool (*take)(void *context, frag_json *row, frag_error *error),
                        void *context, frag_error *error);

typedef enum frag_field_kind {
    FRAG_FIELD_MISSING, /* the row has no such field */
    FRAG_FIELD_NULL,    /* not known, or without limit */
    FRAG_FIELD_NUMBER,
    FRAG_FIELD_FLAG, /* as a number: 0 or 1 */
    FRAG_FIELD_TEXT
} frag_field_kind;

typedef struct frag_field {
    frag_field_kind kind;
    double number;
    const char *text; /* the row's */
} frag_field;

/* The value at a dotted path. */
frag_field frag_plot_field(frag_json *row, const char *path);

/* Does a number at that path count bytes? Of an option the policy of the row knows. */
bool frag_plot_is_size(const frag_json *row, const char *path);

/* "4 GiB", "128", "true", "unlimited": as a person writes the value of a path. */
void frag_plot_field_text(const char *path, bool is_size, const frag_field *field, frag_text *text);

/* The path that a name means: the path itself; or without its unit, with '_' for '.', without what
 * stands before, as long as only one path of the rows ends so ("capacity" for
 * device.capacity_bytes, "policy.max_split_size_mb" for policy.options.max_split_size_mb). The
 * caller frees. NULL: none, or several; the sentence names them. */
char *frag_plot_find_path(frag_json *const *rows, size_t count, const char *name,
                          frag_error *error);

#endif
