/* Names of points that do not cover one another: each stands beside its point, or as near as there
 * is room, with a line to it. */
#ifndef FRAG_CLI_PLOT_NAMES_H
#define FRAG_CLI_PLOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* All in pixels; y runs up. */
typedef struct frag_tag {
    double x; /* of the point */
    double y;
    size_t characters; /* of the name */
    bool is_important; /* chooses before others */
    /* Out: where the name begins (side 1), ends (-1) or has its middle (0); its line goes there
     * when it is apart from the point. */
    double name_x;
    double name_y;
    int side;
    bool is_apart;
} frag_tag;

typedef struct frag_tag_line {
    double from_x;
    double from_y;
    double to_x;
    double to_y;
} frag_tag_line;

typedef struct frag_tag_field {
    double width;
    double height;
    const frag_tag_line *lines; /* rather not covered */
    size_t line_count;
} frag_tag_field;

void frag_plot_place_names(frag_tag *tags, size_t count, const frag_tag_field *field);

#endif
