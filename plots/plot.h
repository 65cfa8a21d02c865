/* Figures: every figure is a CSV of its data, and a gnuplot script that reads it.
 *
 * A kind of figure is a function that writes its rows to the plot's data and names what its script
 * needs to know with the frag_plot_define functions. Where the data goes, and whether gnuplot draws
 * it, is for the host that asked for the figure. */
#ifndef FRAG_PLOTS_PLOT_H
#define FRAG_PLOTS_PLOT_H

#include <stdio.h>

#include "base/context.h"
#include "base/text.h"
#include "sim/run.h"
#include "studies/command_table.h"
#include "studies/policy_settings.h"
#include "traces/load.h"

typedef enum frag_plot_format {
    FRAG_PLOT_SVG,
    FRAG_PLOT_PNG,
    FRAG_PLOT_PDF,
    FRAG_PLOT_TERMINAL,
    FRAG_PLOT_CSV
} frag_plot_format;

/* An option of a kind as it was typed: "x", "time"; a flag has the value "". */
typedef struct frag_plot_setting {
    const char *name;
    const char *value;
} frag_plot_setting;

typedef struct frag_plot frag_plot;

#define FRAG_PLOT_SIDE_MAX 100000u /* pixels */

/* What is done with the data of a figure. Each gets the user of the request. */
typedef struct frag_plot_host {
    /* Sets format, size and data of the plot, before anything is computed. */
    bool (*begin)(void *user, frag_plot *plot, frag_error *error);
    /* Where to write the picture that the script shows, whose path is its variable `picture`,
     * instead of drawing from the data; the host closes it. NULL on failure. */
    FILE *(*open_picture)(void *user, frag_plot *plot, frag_error *error);
    /* The data and definitions are whole. */
    bool (*finish)(void *user, frag_plot *plot, frag_error *error);
    void (*abandon)(void *user, frag_plot *plot);
} frag_plot_host;

/* What a figure is made of. Everything is borrowed. */
typedef struct frag_plot_request {
    const frag_context *context;
    const char *const *operands; /* paths of recordings or rows */
    size_t operand_count;
    const frag_recording *const *recordings; /* that are open, behind those of the operands */
    size_t recording_count;
    frag_trace_format input_format;
    const frag_policy_list *policies; /* kinds that replay need these two */
    const frag_device_spec *device;
    const frag_plot_setting *settings;
    size_t setting_count;
    const frag_plot_host *host;
    void *user; /* of the host */
} frag_plot_request;

struct frag_plot {
    const frag_plot_request *request;
    const char *kind;         /* names the script: plots/KIND.gp */
    frag_recording recording; /* of frag_plot_draw_trace, */
    const frag_trace *trace;  /* and what is drawn of it */
    frag_plot_format format;
    uint64_t width;
    uint64_t height;
    double scale;     /* of a figure that is 800 pixels wide */
    bool has_picture; /* instead of data */
    FILE *data;
    FILE *characters; /* where a kind that draws with characters itself does so, and sets is_written
                       */
    frag_text definitions;
    bool is_written; /* by the kind itself: gnuplot is not needed */
};

/* ---- the settings of a request */
/* The last value given, or NULL. */
const char *frag_plot_setting_text(const frag_plot_request *request, const char *name);
/* The value with that index among those of the name; NULL: there are fewer. */
const char *frag_plot_setting_at(const frag_plot_request *request, const char *name, size_t index);
/* *value keeps its default when the setting is absent; false: usage error filled. */
bool frag_plot_setting_count(const frag_plot_request *request, const char *name, uint64_t min,
                             uint64_t max, uint64_t *value, frag_error *error);

/* What the figure is drawn from, for messages: the first path, or the name of the first recording
 * where there is none. */
const char *frag_plot_source_name(const frag_plot_request *request);

/* Width, height and scale of a plot whose format is set: 8 by 5 inches of 100 pixels, a png twice
 * that fine, 100 by 30 characters. Then, where another width is wanted, that, and a height in
 * proportion; of characters the height stays. */
void frag_plot_usual_size(frag_plot *plot);
void frag_plot_set_width(frag_plot *plot, uint64_t width);
uint64_t frag_plot_width_min(const frag_plot *plot);
uint64_t frag_plot_height_min(const frag_plot *plot);

/* So many pixels of a figure that is 800 wide, at the width of this one. */
uint64_t frag_plot_pixels(const frag_plot *plot, uint64_t pixels);

/* How high letters of the figure are, in those of 12 pixels. */
double frag_plot_letter_scale(const frag_plot *plot);

/* How wide the figure is, in pixels of such letters; as good as endless where it is not drawn with
 * them. */
double frag_plot_text_room(const frag_plot *plot);

/* Variables of the gnuplot script. Texts may hold anything. */
void frag_plot_define_text(frag_plot *plot, const char *name, const char *value);
void frag_plot_define_number(frag_plot *plot, const char *name, double value);
/* As arrays: name[1], name[2], ... */
void frag_plot_define_numbers(frag_plot *plot, const char *name, const uint64_t *values,
                              size_t count);
void frag_plot_define_texts(frag_plot *plot, const char *name, const char *const *values,
                            size_t count);
/* Texts for the legend, shortened in the middle where the figure is not wide enough. */
void frag_plot_define_names(frag_plot *plot, const char *name, const char *const *values,
                            size_t count);
/* places[i], of each of count policies: its number among those drawn in colour, or 0 for the rest,
 * which is grey; named_count, how many have one. Where there are more than colours, those are the
 * first that the user named and the others with the least bytes (UINT64_MAX: it failed), in the
 * user's order. */
void frag_plot_define_places(frag_plot *plot, const uint64_t *bytes, size_t count);
/* The setting `title`, or what the figure would be called without it. */
void frag_plot_define_title(frag_plot *plot, const char *usual);
/* unit, unit_bytes: what bytes up to max_bytes are best shown in (GiB, MiB, KiB or B). */
void frag_plot_define_unit(frag_plot *plot, uint64_t max_bytes);

/* The host's open_picture. */
FILE *frag_plot_picture(frag_plot *plot, frag_error *error);

/* Fills a plot that has begun with data and definitions. true too when the context is cancelled. */
typedef bool frag_plot_filler(void *state, frag_error *error);

/* A kind of figure once its own settings are read: begins, fills, finishes. */
bool frag_plot_draw(frag_plot *plot, const char *kind, const frag_plot_request *request,
                    frag_plot_filler *fill, void *state, frag_error *error);
/* The same for a kind that draws one trace: that of its only operand, loaded before it is filled
 * and gone after, or of the only open recording. */
bool frag_plot_draw_trace(frag_plot *plot, const char *kind, const frag_plot_request *request,
                          bool with_columns, frag_plot_filler *fill, void *state,
                          frag_error *error);

/* With --x time the nanoseconds since the start of each event, never going back: recorded clocks
 * may step back a little between threads, an axis may not. The caller frees. Else *times is NULL.
 * false: the trace has no times. */
bool frag_plot_times(const frag_plot *plot, uint64_t **times, frag_error *error);
/* --on-oom skip: runs go on without a request that cannot be served. */
bool frag_plot_skips_oom(const frag_plot *plot);

/* Seconds, or the event itself when times_ns is NULL. */
double frag_plot_x(const uint64_t *times_ns, uint64_t event);

/* ---- the kinds: each is one file, plots/plot_NAME.c, with its script plots/NAME.gp, and one line
 * here, in order of the help */

#define FRAG_PLOT_KINDS(X)                                                                         \
    X(timeline)                                                                                    \
    X(ranks)                                                                                       \
    X(map)                                                                                         \
    X(bars)                                                                                        \
    X(survival)                                                                                    \
    X(front)                                                                                       \
    X(fragmentation)                                                                               \
    X(sites)                                                                                       \
    X(flame)                                                                                       \
    X(treemap)                                                                                     \
    X(heat)

typedef bool frag_plot_drawer(const frag_plot_request *request, frag_error *error);

typedef struct frag_plot_kind {
    /* What it is called, says of itself and takes; its options are the settings of a request. */
    frag_command command;
    const char *policies; /* what is replayed where none is named; NULL: it replays nothing */
    frag_plot_drawer *draw;
} frag_plot_kind;

#define FRAG_PLOT_DECLARE(name) extern const frag_plot_kind frag_plot_##name;
FRAG_PLOT_KINDS(FRAG_PLOT_DECLARE)
#undef FRAG_PLOT_DECLARE

/* NULL: there is none of that name. */
const frag_plot_kind *frag_plot_kind_find(const char *name);

#endif
