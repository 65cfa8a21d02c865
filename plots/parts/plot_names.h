/* Names of points that cover neither one another nor a point: each stands beside its point, or as
 * near as there is room, with a line to it. */
#ifndef FRAG_PARTS_PLOT_NAMES_H
#define FRAG_PARTS_PLOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* All in pixels of a figure whose letters are 12 pixels high; y runs up. */
typedef struct frag_tag {
    double x; /* of the point */
    double y;
    double radius;     /* of the mark that is drawn there */
    double width;      /* of the name */
    bool is_important; /* chooses before others */
    /* Out: where the name begins (side 1), ends (-1) or has its middle (0). */
    double name_x;
    double name_y;
    int side;
    /* Out: a line leads from the point to the name, which stands FRAG_TAG_GAP beyond its end. */
    bool is_apart;
    /* Out: there is no room; the name would cover another one or a point, or the edge. Those that
     * are important are never left out. */
    bool is_left_out;
} frag_tag;

#define FRAG_TAG_GAP 3.0

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

/* The line of a tag that is apart. */
frag_tag_line frag_tag_leader(const frag_tag *tag);

/* How wide a text is in Helvetica, and a little more. */
double frag_plot_text_width(const char *text);

/* The text, or where it is wider its begin and its end with "…" between: settings differ in their
 * last words. The caller frees. */
char *frag_plot_text_within(const char *text, double width);

/* What is_left_out says of a tag's name is exact, but for the widths of letters. */
void frag_plot_place_names(frag_tag *tags, size_t count, const frag_tag_field *field);

#endif
