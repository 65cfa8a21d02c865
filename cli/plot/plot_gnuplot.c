#include "cli/plot/plot_gnuplot.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "plots/parts/gnuplot.h"
#include "plots/parts/plot_script.h"

typedef struct figure_drawing {
    const frag_arguments *arguments;
    frag_plot *plot;
    bool has_figure;     /* false: only the script is wanted */
    frag_output *output; /* NULL: no figure */
    frag_output *kept;   /* --data; NULL: none */
    frag_output *script; /* --script; NULL: none */
    frag_output *kept_picture;
    frag_gnuplot *gnuplot; /* NULL with --format csv */
} figure_drawing;

/* ---- options */

static bool find_format(figure_drawing *drawing, frag_error *error)
{
    const char *name = frag_arguments_value(drawing->arguments, "format");
    const char *path = frag_arguments_value(drawing->arguments, "output");
    if (name == NULL && (path == NULL || strcmp(path, "-") == 0)) {
        drawing->plot->format = drawing->has_figure ? FRAG_PLOT_TERMINAL : FRAG_PLOT_SVG;
        return true;
    }
    if (name == NULL) {
        const char *dot = strrchr(frag_path_name(path), '.');
        name = dot != NULL ? dot + 1 : "";
    }
    if (frag_plot_format_find(name, &drawing->plot->format))
        return true;
    return frag_fail_in(
        error, FRAG_E_USAGE, path,
        "the name says no format; end it in .svg, .png, .pdf or .csv, or add --format");
}

/* Characters fill the terminal. */
static bool read_size(figure_drawing *drawing, frag_error *error)
{
    frag_plot *plot = drawing->plot;
    frag_plot_usual_size(plot);
    struct winsize window;
    if (plot->format == FRAG_PLOT_TERMINAL && frag_is_terminal(1) &&
        ioctl(1, TIOCGWINSZ, &window) == 0 && window.ws_col >= 40 && window.ws_row >= 12) {
        plot->width = window.ws_col - 1u;
        plot->height = window.ws_row - 2u;
    }
    uint64_t width = plot->width;
    if (!frag_arguments_count(drawing->arguments, "width", frag_plot_width_min(plot),
                              FRAG_PLOT_SIDE_MAX, &width, error))
        return false;
    frag_plot_set_width(plot, width);
    return frag_arguments_count(drawing->arguments, "height", frag_plot_height_min(plot),
                                FRAG_PLOT_SIDE_MAX, &plot->height, error);
}

/* ---- what is written */

static bool open_outputs(figure_drawing *drawing, frag_error *error)
{
    bool may_overwrite = frag_arguments_has(drawing->arguments, "force");
    const char *kept = frag_arguments_value(drawing->arguments, "data");
    const char *script = frag_arguments_value(drawing->arguments, "script");
    bool is_text = drawing->plot->format != FRAG_PLOT_PNG && drawing->plot->format != FRAG_PLOT_PDF;
    return (!drawing->has_figure ||
            ((drawing->output = frag_inputs_output(drawing->arguments, error)) != NULL &&
             (is_text ||
              frag_inputs_spare_terminal(
                  drawing->output, drawing->plot->format == FRAG_PLOT_PNG ? "a png" : "a pdf",
                  "redirect stdout, name a file with -o, or leave --format out", error)))) &&
           (kept == NULL ||
            (drawing->kept = frag_output_open(kept, may_overwrite, error)) != NULL) &&
           (script == NULL ||
            (drawing->script = frag_output_open(script, may_overwrite, error)) != NULL);
}

static bool check_format(const figure_drawing *drawing, frag_error *error)
{
    const char *name = frag_plot_format_name(drawing->plot->format);
    if (drawing->plot->format == FRAG_PLOT_CSV && frag_arguments_has(drawing->arguments, "data"))
        return frag_fail_in(error, FRAG_E_USAGE, "--data",
                            "the output is the data already; leave one of both out");
    if (frag_arguments_has(drawing->arguments, "script") &&
        (drawing->plot->format == FRAG_PLOT_CSV || drawing->plot->format == FRAG_PLOT_TERMINAL))
        return frag_fail_in(error, FRAG_E_USAGE, "--script",
                            "a script draws svg, png or pdf, not %s; add --format svg", name);
    return true;
}

/* ---- what is kept beside the figure */

static FILE *open_picture(void *user, frag_plot *plot, frag_error *error)
{
    figure_drawing *drawing = user;
    (void)plot;
    if (drawing->script != NULL) {
        const char *name = frag_arguments_value(drawing->arguments, "script");
        bool may_overwrite = frag_arguments_has(drawing->arguments, "force");
        if (strcmp(name, "-") == 0) {
            frag_fail(error, FRAG_E_USAGE, "a picture goes beside the script; give it a name");
            frag_error_in(error, "--script");
            return NULL;
        }
        frag_text path = {0};
        frag_text_add(&path, "%s" FRAG_PLOT_PICTURE_ENDING, name);
        if (frag_inputs_beside(drawing->arguments, path.bytes, "picture of the script", error))
            drawing->kept_picture = frag_output_open(path.bytes, may_overwrite, error);
        frag_text_destroy(&path);
        if (drawing->kept_picture == NULL)
            return NULL;
    }
    return frag_gnuplot_picture(drawing->gnuplot, error);
}

static bool finish_kept(frag_output **kept, frag_error *error)
{
    frag_output *output = *kept;
    *kept = NULL;
    return frag_output_finish(output, error);
}

/* Copies the data for --data. */
static bool keep_data(figure_drawing *drawing, frag_error *error)
{
    if (drawing->kept == NULL)
        return true;
    frag_text text = {0};
    bool ok = frag_plot_read(drawing->plot->data, &text) ||
              frag_fail(error, FRAG_E_SYSTEM, "the data cannot be read back (%s)", strerror(errno));
    if (ok)
        fwrite(text.bytes, 1, text.length, frag_output_stream(drawing->kept));
    frag_text_destroy(&text);
    return ok && finish_kept(&drawing->kept, error);
}

/* Writes --script, and the picture it needs, if any. */
static bool keep_script(figure_drawing *drawing, frag_error *error)
{
    if (drawing->script == NULL)
        return true;
    if (drawing->kept_picture != NULL) {
        frag_text bytes = {0};
        bool is_read = frag_gnuplot_read_picture(drawing->gnuplot, &bytes, error);
        if (is_read)
            fwrite(bytes.bytes, 1, bytes.length, frag_output_stream(drawing->kept_picture));
        frag_text_destroy(&bytes);
        if (!is_read || !finish_kept(&drawing->kept_picture, error))
            return false;
    }
    frag_text text = {0};
    bool ok = frag_gnuplot_script(drawing->gnuplot, drawing->plot, &text, error);
    if (ok)
        fwrite(text.bytes, 1, text.length, frag_output_stream(drawing->script));
    frag_text_destroy(&text);
    return ok && finish_kept(&drawing->script, error);
}

/* ---- the host of the plot */

static void abandon(void *user, frag_plot *plot)
{
    figure_drawing *drawing = user;
    /* The data are a stream of gnuplot's, or of the output. */
    plot->data = NULL;
    frag_gnuplot_close(drawing->gnuplot);
    frag_output_abandon(drawing->output);
    frag_output_abandon(drawing->kept);
    frag_output_abandon(drawing->kept_picture);
    frag_output_abandon(drawing->script);
}

static bool begin(void *user, frag_plot *plot, frag_error *error)
{
    figure_drawing *drawing = user;
    drawing->plot = plot;
    drawing->has_figure = !frag_arguments_has(drawing->arguments, "script") ||
                          frag_arguments_has(drawing->arguments, "output");
    bool ok = find_format(drawing, error) && check_format(drawing, error) &&
              frag_inputs_places(drawing->arguments, drawing->has_figure, error) &&
              read_size(drawing, error);
    bool is_drawn = plot->format != FRAG_PLOT_CSV;
    if (ok && is_drawn) {
        drawing->gnuplot =
            frag_gnuplot_open(plot->request->context, plot->kind, drawing->has_figure, error);
        ok = drawing->gnuplot != NULL;
    }
    ok = ok && open_outputs(drawing, error) &&
         (!is_drawn || (plot->data = frag_gnuplot_data(drawing->gnuplot, error)) != NULL);
    if (!ok) {
        abandon(drawing, plot);
        return false;
    }
    if (drawing->output != NULL)
        plot->characters = frag_output_stream(drawing->output);
    if (!is_drawn)
        plot->data = frag_output_stream(drawing->output);
    return true;
}

static bool finish(void *user, frag_plot *plot, frag_error *error)
{
    figure_drawing *drawing = user;
    bool ok =
        (fflush(plot->data) == 0 && ferror(plot->data) == 0) ||
        frag_fail(error, FRAG_E_SYSTEM, "the data could not be written (%s)", strerror(errno));
    bool is_drawn = drawing->has_figure && plot->format != FRAG_PLOT_CSV && !plot->is_written;
    if (ok && is_drawn && plot->format == FRAG_PLOT_TERMINAL)
        frag_plot_define_number(plot, "has_colour", frag_has_colour(1) ? 1 : 0);
    if (!ok ||
        (is_drawn &&
         !frag_gnuplot_draw(drawing->gnuplot, plot, frag_output_stream(drawing->output), error)) ||
        !keep_data(drawing, error) || !keep_script(drawing, error)) {
        abandon(drawing, plot);
        return false;
    }
    if (frag_is_cancelled(plot->request->context)) {
        abandon(drawing, plot);
        return true;
    }
    frag_gnuplot_close(drawing->gnuplot);
    return drawing->output == NULL || frag_output_finish(drawing->output, error);
}

static const frag_plot_host host = {
    .begin = begin, .open_picture = open_picture, .finish = finish, .abandon = abandon};

bool frag_plot_with_gnuplot(const frag_arguments *arguments, frag_plot_request *request,
                            const frag_plot_kind *kind, frag_error *error)
{
    figure_drawing state = {.arguments = arguments};
    request->host = &host;
    request->user = &state;
    return kind->draw(request, error);
}
