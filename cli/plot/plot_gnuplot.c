#include "cli/plot/plot_gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "plots/parts/plot_script.h"
#include "sim/data_folder.h"
#include "sim/version.h"

extern char **environ;

typedef struct figure_drawing {
    const frag_arguments *arguments;
    frag_plot *plot;
    bool has_figure;     /* false: only the script is wanted */
    frag_output *output; /* NULL: no figure */
    frag_output *kept;   /* --data; NULL: none */
    frag_output *script; /* --script; NULL: none */
    frag_output *kept_picture;
    char *folder;  /* temporary; NULL with --format csv */
    char *scripts; /* folder of the gnuplot scripts */
    char *gnuplot; /* the program */
} figure_drawing;

static char *join(const char *folder, const char *name)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", folder, name);
    return path.bytes;
}

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
        const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') : path;
        const char *dot = strrchr(base, '.');
        name = dot != NULL ? dot + 1 : "";
    }
    if (frag_plot_format_find(name, &drawing->plot->format))
        return true;
    frag_fail(error, FRAG_E_USAGE,
              "the name says no format; end it in .svg, .png, .pdf or .csv, or add --format");
    return frag_error_in(error, path);
}

/* A figure is 8 by 5 inches of 100 pixels, a png twice that fine; characters fill the terminal. */
static bool read_size(figure_drawing *drawing, frag_error *error)
{
    bool is_terminal = drawing->plot->format == FRAG_PLOT_TERMINAL;
    uint64_t scale = drawing->plot->format == FRAG_PLOT_PNG ? 2 : 1;
    drawing->plot->width = is_terminal ? 100 : 800 * scale;
    drawing->plot->height = is_terminal ? 30 : 500 * scale;
    struct winsize window;
    if (is_terminal && frag_is_terminal(1) && ioctl(1, TIOCGWINSZ, &window) == 0 &&
        window.ws_col >= 40 && window.ws_row >= 12) {
        drawing->plot->width = window.ws_col - 1u;
        drawing->plot->height = window.ws_row - 2u;
    }
    uint64_t usual = drawing->plot->width;
    if (!frag_arguments_count(drawing->arguments, "width", is_terminal ? 40 : 200,
                              FRAG_PLOT_SIDE_MAX, &drawing->plot->width, error))
        return false;
    drawing->plot->scale = is_terminal ? 1 : (double)drawing->plot->width / 800.0;
    if (!is_terminal && drawing->plot->width != usual)
        drawing->plot->height = frag_plot_pixels(drawing->plot, 500);
    return frag_arguments_count(drawing->arguments, "height", is_terminal ? 12 : 100,
                                FRAG_PLOT_SIDE_MAX, &drawing->plot->height, error);
}

/* ---- what is needed to draw */

static bool find_program(figure_drawing *drawing, frag_error *error)
{
    const char *path = getenv("PATH");
    char *folders = frag_copy_text(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    for (char *folder = strtok_r(folders, ":", &rest); folder != NULL && drawing->gnuplot == NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        char *program = join(folder, "gnuplot");
        if (access(program, X_OK) == 0)
            drawing->gnuplot = program;
        else
            frag_free(program);
    }
    frag_free(folders);
    return drawing->gnuplot != NULL ||
           frag_fail(error, FRAG_E_SYSTEM,
                     "gnuplot is not installed; install gnuplot-nox (apt install gnuplot-nox), or "
                     "write the data with --format csv");
}

static bool find_scripts(figure_drawing *drawing, frag_error *error)
{
    frag_text script = {0};
    frag_text_add(&script, "plots/%s.gp", drawing->plot->kind);
    drawing->scripts = frag_data_find(script.bytes);
    frag_text_destroy(&script);
    if (drawing->scripts == NULL)
        return frag_fail(error, FRAG_E_SYSTEM,
                         "%s.gp is neither beside the program nor in %s/plots; run 'make install'",
                         drawing->plot->kind, frag_data_folder());
    *strrchr(drawing->scripts, '/') = '\0';
    return true;
}

static bool make_folder(figure_drawing *drawing, frag_error *error)
{
    const char *place = getenv("TMPDIR");
    char *folder = join(place != NULL && place[0] == '/' ? place : "/tmp", "fraglab-plot-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be made (%s); set TMPDIR to a writable place",
                  strerror(errno));
        frag_error_in(error, folder);
        frag_free(folder);
        return false;
    }
    drawing->folder = folder;
    return true;
}

static FILE *open_file(const figure_drawing *drawing, const char *name, frag_error *error)
{
    char *path = join(drawing->folder, name);
    FILE *stream = fopen(path, "w+b");
    if (stream == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be written (%s)", strerror(errno));
        frag_error_in(error, path);
    }
    frag_free(path);
    return stream;
}

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
    if (drawing->plot->format == FRAG_PLOT_CSV && frag_arguments_has(drawing->arguments, "data")) {
        frag_fail(error, FRAG_E_USAGE, "the output is the data already; leave one of both out");
        return frag_error_in(error, "--data");
    }
    if (frag_arguments_has(drawing->arguments, "script") &&
        (drawing->plot->format == FRAG_PLOT_CSV || drawing->plot->format == FRAG_PLOT_TERMINAL)) {
        frag_fail(error, FRAG_E_USAGE, "a script draws svg, png or pdf, not %s; add --format svg",
                  name);
        return frag_error_in(error, "--script");
    }
    return true;
}

/* ---- files */

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
        drawing->kept_picture = frag_output_open(path.bytes, may_overwrite, error);
        frag_text_destroy(&path);
        if (drawing->kept_picture == NULL)
            return NULL;
    }
    return open_file(drawing, "picture", error);
}

/* ---- running gnuplot */

static void remove_folder(figure_drawing *drawing)
{
    static const char *const names[] = {"data.csv", "picture", "figure", "messages", "figure.gp"};
    for (size_t i = 0; drawing->folder != NULL && i < sizeof names / sizeof *names; i++) {
        char *path = join(drawing->folder, names[i]);
        unlink(path);
        frag_free(path);
    }
    if (drawing->folder != NULL)
        rmdir(drawing->folder);
}

/* The environment without what would change the figure from one place to another. */
static char **fixed_environment(void)
{
    static const char *const dropped[] = {"LC_", "LANG", "TZ=", "GNU", "SOURCE_DATE_EPOCH="};
    static const char *const added[] = {"LC_ALL=C", "TZ=UTC0", "SOURCE_DATE_EPOCH=0"};
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **fixed = frag_alloc(count + 4, sizeof *fixed);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_dropped = false;
        for (size_t j = 0; j < sizeof dropped / sizeof *dropped; j++)
            is_dropped = is_dropped || strncmp(environ[i], dropped[j], strlen(dropped[j])) == 0;
        if (!is_dropped)
            fixed[kept++] = frag_copy_text(environ[i]);
    }
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        fixed[kept++] = frag_copy_text(added[i]);
    return fixed;
}

static bool spawn(const figure_drawing *drawing, const char *script, const char *figure,
                  const char *messages, int *status, frag_error *error)
{
    char *arguments[4];
    size_t count = 0;
    arguments[count++] = frag_copy_text("gnuplot");
    arguments[count++] = frag_copy_text("--default-settings");
    arguments[count++] = frag_copy_text(script);
    arguments[count] = NULL;
    char **environment = fixed_environment();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, figure, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    int refused = posix_spawn(&child, drawing->gnuplot, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; i < count; i++)
        frag_free(arguments[i]);
    for (size_t i = 0; environment[i] != NULL; i++)
        frag_free(environment[i]);
    frag_free(environment);
    if (refused != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "%s does not start (%s)", drawing->gnuplot,
                         strerror(refused));
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return frag_fail(error, FRAG_E_SYSTEM, "gnuplot cannot be waited for (%s)",
                             strerror(errno));
    return true;
}

/* The whole of a file; the caller frees. NULL: it cannot be read. */
static char *read_whole(const char *path, size_t *length)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return NULL;
    frag_text text = {0};
    char piece[16384];
    size_t count = 0;
    frag_text_add_bytes(&text, "", 0);
    while ((count = fread(piece, 1, sizeof piece, stream)) > 0)
        frag_text_add_bytes(&text, piece, count);
    fclose(stream);
    *length = text.length;
    return text.bytes;
}

/* Gnuplot does not say that it could not write. */
static bool is_disk_full(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < 64 * FRAG_KIB;
}

/* Says what gnuplot said: its first line that is neither empty nor the echo of a command. */
static bool fail_drawing(const char *messages, frag_error *error)
{
    size_t length = 0;
    char *text = read_whole(messages, &length);
    char *rest = NULL;
    char *said = NULL;
    for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strstr(line, "line ") != NULL || (said == NULL && line[0] != ' '))
            said = line;
    frag_fail(error, FRAG_E_SYSTEM, "gnuplot failed: %.300s",
              said != NULL ? said : "it said nothing");
    frag_free(text);
    return false;
}

/* A pdf says when it was made, which would make equal figures differ. The digits stay as many. */
static void drop_date(char *bytes, size_t length)
{
    static const char mark[] = "/CreationDate (D:";
    size_t mark_length = sizeof mark - 1;
    for (size_t i = 0; i + mark_length + 14 <= length; i++) {
        if (bytes[i] != '/' || memcmp(bytes + i, mark, mark_length) != 0)
            continue;
        memcpy(bytes + i + mark_length, "19700101000000", 14);
        return;
    }
}

static void copy_figure(figure_drawing *drawing, char *bytes, size_t length)
{
    FILE *stream = frag_output_stream(drawing->output);
    size_t start = 0;
    if (drawing->plot->format == FRAG_PLOT_PDF)
        drop_date(bytes, length);
    if (drawing->plot->format == FRAG_PLOT_TERMINAL) {
        /* A page break comes first, which a terminal has no use for. */
        while (start < length && (bytes[start] == '\f' || bytes[start] == '\n'))
            start++;
    }
    fwrite(bytes + start, 1, length - start, stream);
}

static bool write_script(figure_drawing *drawing, const char *picture, frag_error *error)
{
    if (drawing->plot->format == FRAG_PLOT_TERMINAL)
        frag_plot_define_number(drawing->plot, "has_colour", frag_has_colour(1) ? 1 : 0);
    frag_text text = {0};
    bool ok = frag_plot_compose(drawing->plot, drawing->scripts, picture, &text, error);
    FILE *stream = ok ? open_file(drawing, "figure.gp", error) : NULL;
    if (stream != NULL)
        fwrite(text.bytes, 1, text.length, stream);
    frag_text_destroy(&text);
    return stream != NULL &&
           (fclose(stream) == 0 || frag_fail(error, FRAG_E_SYSTEM, "%s: writing failed (%s)",
                                             drawing->folder, strerror(errno)));
}

static bool draw(figure_drawing *drawing, frag_error *error)
{
    char *picture = join(drawing->folder, "picture");
    char *script = join(drawing->folder, "figure.gp");
    char *figure = join(drawing->folder, "figure");
    char *messages = join(drawing->folder, "messages");
    int status = 0;
    bool ok = write_script(drawing, picture, error) &&
              spawn(drawing, script, figure, messages, &status, error);
    size_t length = 0;
    char *bytes = NULL;
    if (ok) {
        bytes = read_whole(figure, &length);
        ok = (WIFEXITED(status) && WEXITSTATUS(status) == 0 && bytes != NULL && length > 0) ||
             (is_disk_full(drawing->folder)
                  ? frag_fail(error, FRAG_E_SYSTEM,
                              "the disk of %s is full; make room there, or set TMPDIR to another "
                              "place",
                              drawing->folder)
                  : fail_drawing(messages, error));
    }
    if (ok)
        copy_figure(drawing, bytes, length);
    frag_free(bytes);
    frag_free(messages);
    frag_free(figure);
    frag_free(script);
    frag_free(picture);
    return ok;
}

/* ---- what is kept beside the figure */

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
        char *path = join(drawing->folder, "picture");
        size_t length = 0;
        char *bytes = read_whole(path, &length);
        frag_free(path);
        if (bytes == NULL)
            return frag_fail(error, FRAG_E_SYSTEM, "the picture cannot be read back (%s)",
                             strerror(errno));
        fwrite(bytes, 1, length, frag_output_stream(drawing->kept_picture));
        frag_free(bytes);
        if (!finish_kept(&drawing->kept_picture, error))
            return false;
    }
    frag_text text = {0};
    bool ok = frag_plot_compose(drawing->plot, drawing->scripts, NULL, &text, error);
    if (ok)
        fwrite(text.bytes, 1, text.length, frag_output_stream(drawing->script));
    frag_text_destroy(&text);
    return ok && finish_kept(&drawing->script, error);
}

/* ---- the host of the plot */

static void release(figure_drawing *drawing)
{
    if (drawing->plot->data != NULL && drawing->plot->format != FRAG_PLOT_CSV)
        fclose(drawing->plot->data);
    remove_folder(drawing);
    frag_free(drawing->folder);
    frag_free(drawing->scripts);
    frag_free(drawing->gnuplot);
}

static void abandon(void *user, frag_plot *plot)
{
    figure_drawing *drawing = user;
    (void)plot;
    release(drawing);
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
    bool ok =
        find_format(drawing, error) && check_format(drawing, error) && read_size(drawing, error);
    bool is_drawn = plot->format != FRAG_PLOT_CSV;
    ok = ok && (!is_drawn || !drawing->has_figure || find_program(drawing, error)) &&
         (!is_drawn || find_scripts(drawing, error)) && open_outputs(drawing, error);
    ok = ok && (!is_drawn || (make_folder(drawing, error) &&
                              (plot->data = open_file(drawing, "data.csv", error)) != NULL));
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
    if (!ok || (is_drawn && !draw(drawing, error)) || !keep_data(drawing, error) ||
        !keep_script(drawing, error)) {
        abandon(drawing, plot);
        return false;
    }
    release(drawing);
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
