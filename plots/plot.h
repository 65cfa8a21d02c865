/* Drawing: every figure is a CSV of its data, and a gnuplot script that reads it.
 *
 * A kind of figure is a function that writes its rows to the plot's data and names what its script
 * needs to know with the frag_plot_define functions; frag_plot_draw or frag_plot_draw_trace does
 * all around it. With --format csv the rows are the output. */
#ifndef FRAG_PLOTS_PLOT_H
#define FRAG_PLOTS_PLOT_H

#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/inputs.h"

typedef enum frag_plot_format {
    FRAG_PLOT_SVG,
    FRAG_PLOT_PNG,
    FRAG_PLOT_PDF,
    FRAG_PLOT_TERMINAL,
    FRAG_PLOT_CSV
} frag_plot_format;

/* Options that every kind has. */
#define FRAG_PLOT_OPTIONS                                                                          \
    {"format", "FORMAT", .choices = "svg|png|pdf|terminal|csv",                                    \
     .help = "what is written: a figure, characters for a terminal, or the data it is drawn "      \
             "from (default: by the ending of the name after -o; without "                         \
             "-o: terminal)"},                                                                     \
        {"output", "FILE", .letter = 'o', .help = "write there instead of to stdout"},             \
        {"data", "FILE", .help = "also write the data of the figure there, as CSV"},               \
        {"script", "FILE",                                                                         \
         .help = "write the figure there as a gnuplot script with its data, to change and to "     \
                 "draw with 'gnuplot FILE'; without -o nothing else is written"},                  \
        {"force", .letter = 'f', .help = "overwrite the files written"},                           \
        {"title", "TEXT", .help = "title of the figure; '' for none"},                             \
        {"width", "N",                                                                             \
         .help = "pixels, for pdf at 96 an inch (default: 800; png: 1600), or columns of the "     \
                 "terminal"},                                                                      \
    {                                                                                              \
        "height", "N",                                                                             \
            .help = "pixels (default: in proportion to --width), or lines of "                     \
                    "the terminal"                                                                 \
    }

#define FRAG_PLOT_DEVICE_OPTION                                                                    \
    {                                                                                              \
        "trace-device", "N",                                                                       \
            .help = "draw this device of a recording that has several (default: that with the "    \
                    "greatest peak of requested bytes)"                                            \
    }

typedef struct frag_plot {
    const frag_arguments *arguments;
    const char *kind; /* names the script: plots/KIND.gp */
    frag_plot_format format;
    uint64_t width;
    uint64_t height;
    double scale;        /* of a figure that is 800 pixels wide */
    bool has_figure;     /* false: only the script is wanted */
    bool has_picture;    /* instead of data: see frag_plot_picture */
    frag_output *output; /* NULL: no figure */
    frag_output *kept;   /* --data; NULL: none */
    frag_output *script; /* --script; NULL: none */
    frag_output *kept_picture;
    FILE *data;
    char *folder;  /* temporary; NULL with --format csv */
    char *scripts; /* folder of the gnuplot scripts */
    char *gnuplot; /* the program */
    frag_text definitions;
    bool is_written; /* by the kind itself: gnuplot is not needed */
} frag_plot;

/* Reads the common options, opens what will be written, and looks for gnuplot and the script, so
 * that nothing is computed in vain. On failure everything is undone. */
bool frag_plot_begin(frag_plot *plot, const char *kind, const frag_arguments *arguments,
                     frag_error *error);

/* So many pixels of a figure that is 800 wide, at the width of this one. */
uint64_t frag_plot_pixels(const frag_plot *plot, uint64_t pixels);

/* How high letters of the figure are, in those of 12 pixels. */
double frag_plot_letter_scale(const frag_plot *plot);

/* Variables of the gnuplot script. Texts may hold anything. */
void frag_plot_define_text(frag_plot *plot, const char *name, const char *value);
void frag_plot_define_number(frag_plot *plot, const char *name, double value);
/* As arrays: name[1], name[2], ... */
void frag_plot_define_numbers(frag_plot *plot, const char *name, const uint64_t *values,
                              size_t count);
void frag_plot_define_texts(frag_plot *plot, const char *name, const char *const *values,
                            size_t count);
/* places[i], of each of count policies: its number among those drawn in colour, or 0 for the rest,
 * which is grey; named_count, how many have one. Where there are more than colours, those are the
 * first that the user named and the others with the least bytes (UINT64_MAX: it failed), in the
 * user's order. */
void frag_plot_define_places(frag_plot *plot, const uint64_t *bytes, size_t count);
/* --title, or what the figure would be called without it. */
void frag_plot_define_title(frag_plot *plot, const char *usual);
/* unit, unit_bytes: what bytes up to max_bytes are best shown in (GiB, MiB, KiB or B). */
void frag_plot_define_unit(frag_plot *plot, uint64_t max_bytes);

/* Where to write the picture that the script shows, whose path is its variable `picture`, instead
 * of drawing from the data. NULL on failure. */
FILE *frag_plot_picture(frag_plot *plot, frag_error *error);

/* Draws (or leaves it at the data), puts the output in place. Everything is freed either way. */
bool frag_plot_finish(frag_plot *plot, frag_error *error);
void frag_plot_abandon(frag_plot *plot);

/* Fills a plot that has begun with data and definitions. true too when ^C was pressed. */
typedef bool frag_plot_filler(void *state, frag_error *error);

/* A kind of figure once its own options are read: begins, fills, finishes; or reports what failed.
 * Returns the exit code. */
int frag_plot_draw(frag_plot *plot, const char *kind, const frag_arguments *arguments,
                   frag_plot_filler *fill, void *state);
/* The same for a kind that draws its only trace operand: loaded before it is filled, gone after. */
int frag_plot_draw_trace(frag_plot *plot, const char *kind, const frag_arguments *arguments,
                         bool with_columns, frag_recording *recording, const frag_trace **trace,
                         frag_plot_filler *fill, void *state);

/* Nanoseconds since the start of each event, never going back: recorded clocks may step back a
 * little between threads, an axis may not. The caller frees. NULL: the trace has no times. */
uint64_t *frag_plot_times(const frag_trace *trace, frag_error *error);

/* Seconds, or the event itself when times_ns is NULL. */
double frag_plot_x(const uint64_t *times_ns, uint64_t event);

extern const frag_command frag_command_plot_timeline;
extern const frag_command frag_command_plot_map;
extern const frag_command frag_command_plot_bars;
extern const frag_command frag_command_plot_survival;
extern const frag_command frag_command_plot_front;
extern const frag_command frag_command_plot_fragmentation;
extern const frag_command frag_command_plot_sites;
extern const frag_command frag_command_plot_heat;

#endif
