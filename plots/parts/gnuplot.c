#include "plots/parts/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/scope.h"
#include "plots/parts/plot_script.h"
#include "sim/data_folder.h"
#include "sim/version.h"

extern char **environ;

enum { DATA, PICTURE, SCRIPT, FIGURE, MESSAGES, STREAM_COUNT };
static const char *const names[STREAM_COUNT] = {"data.csv", "picture", "figure.gp", "figure",
                                                "messages"};

struct frag_gnuplot {
    const frag_context *context;
    char *program; /* NULL: not needed */
    char *scripts; /* folder of the gnuplot scripts */
    char *folder;  /* temporary; NULL: not made yet */
    FILE *streams[STREAM_COUNT];
    pid_t child; /* 0: none */
};

static char *join(const char *folder, const char *name)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", folder, name);
    return path.bytes;
}

/* ---- what is needed to draw */

static bool find_program(frag_gnuplot *gnuplot, frag_error *error)
{
    const char *path = frag_context_environment(gnuplot->context, "PATH");
    char *folders = frag_copy_text(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    for (char *folder = strtok_r(folders, ":", &rest); folder != NULL && gnuplot->program == NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        char *program = join(folder, "gnuplot");
        if (access(program, X_OK) == 0)
            gnuplot->program = program;
        else
            frag_free(program);
    }
    frag_free(folders);
    return gnuplot->program != NULL ||
           frag_fail(error, FRAG_E_SYSTEM,
                     "gnuplot is not installed; install gnuplot-nox (apt install gnuplot-nox), "
                     "write the data as CSV (--format csv), or look at timelines and maps in the "
                     "page that 'fraglab report' writes without it");
}

static bool find_scripts(frag_gnuplot *gnuplot, const char *kind, frag_error *error)
{
    frag_text script = {0};
    frag_text_add(&script, "plots/%s.gp", kind);
    gnuplot->scripts = frag_data_find(script.bytes);
    frag_text_destroy(&script);
    if (gnuplot->scripts == NULL)
        return frag_fail(error, FRAG_E_SYSTEM,
                         "%s.gp is neither beside the program nor in %s/plots; run 'make install'",
                         kind, frag_data_folder());
    *strrchr(gnuplot->scripts, '/') = '\0';
    return true;
}

static bool make_folder(frag_gnuplot *gnuplot, frag_error *error)
{
    const char *place = frag_context_environment(gnuplot->context, "TMPDIR");
    char *folder = join(place != NULL && place[0] == '/' ? place : "/tmp", "fraglab-plot-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be made (%s); set TMPDIR to a writable place",
                  strerror(errno));
        frag_error_in(error, folder);
        frag_free(folder);
        return false;
    }
    gnuplot->folder = folder;
    return true;
}

/* What goes not with memory. No memory may be left when it runs. */
static void release(void *thing, size_t bytes)
{
    frag_gnuplot *gnuplot = thing;
    (void)bytes;
    if (gnuplot->child != 0) {
        kill(gnuplot->child, SIGKILL);
        while (waitpid(gnuplot->child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    for (size_t i = 0; i < STREAM_COUNT; i++)
        if (gnuplot->streams[i] != NULL)
            fclose(gnuplot->streams[i]);
    int folder = gnuplot->folder != NULL ? open(gnuplot->folder, O_RDONLY | O_DIRECTORY) : -1;
    for (size_t i = 0; folder >= 0 && i < STREAM_COUNT; i++)
        unlinkat(folder, names[i], 0);
    if (folder >= 0)
        close(folder);
    if (gnuplot->folder != NULL)
        rmdir(gnuplot->folder);
}

frag_gnuplot *frag_gnuplot_open(const frag_context *context, const char *kind, bool wants_figure,
                                frag_error *error)
{
    frag_gnuplot *gnuplot = frag_alloc(1, sizeof *gnuplot);
    *gnuplot = (frag_gnuplot){.context = context};
    frag_scope_own(gnuplot, 0, release);
    if ((!wants_figure || find_program(gnuplot, error)) && find_scripts(gnuplot, kind, error) &&
        make_folder(gnuplot, error))
        return gnuplot;
    frag_gnuplot_close(gnuplot);
    return NULL;
}

void frag_gnuplot_close(frag_gnuplot *gnuplot)
{
    if (gnuplot == NULL)
        return;
    frag_scope_disown(gnuplot);
    release(gnuplot, 0);
    frag_free(gnuplot->folder);
    frag_free(gnuplot->scripts);
    frag_free(gnuplot->program);
    frag_free(gnuplot);
}

/* ---- files */

static FILE *open_stream(frag_gnuplot *gnuplot, unsigned which, frag_error *error)
{
    char *path = join(gnuplot->folder, names[which]);
    FILE *stream = fopen(path, "w+be");
    if (stream == NULL && errno == ENOMEM)
        frag_scope_fail(1, BUFSIZ);
    if (stream == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be written (%s)", strerror(errno));
        frag_error_in(error, path);
    }
    gnuplot->streams[which] = stream;
    frag_free(path);
    return stream;
}

FILE *frag_gnuplot_data(frag_gnuplot *gnuplot, frag_error *error)
{
    return open_stream(gnuplot, DATA, error);
}

FILE *frag_gnuplot_picture(frag_gnuplot *gnuplot, frag_error *error)
{
    return open_stream(gnuplot, PICTURE, error);
}

bool frag_gnuplot_read_picture(const frag_gnuplot *gnuplot, frag_text *bytes, frag_error *error)
{
    return frag_plot_read(gnuplot->streams[PICTURE], bytes) ||
           frag_fail(error, FRAG_E_SYSTEM, "the picture cannot be read back (%s)", strerror(errno));
}

/* ---- the program */

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

static bool spawn(frag_gnuplot *gnuplot, frag_error *error)
{
    char *script = join(gnuplot->folder, names[SCRIPT]);
    char name[] = "gnuplot";
    char option[] = "--default-settings";
    char *arguments[] = {name, option, script, NULL};
    char **environment = fixed_environment();
    posix_spawn_file_actions_t actions;
    int refused = posix_spawn_file_actions_init(&actions);
    if (refused == 0) {
        refused = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        for (int i = 1; i <= 2 && refused == 0; i++)
            refused = posix_spawn_file_actions_adddup2(
                &actions, fileno(gnuplot->streams[i == 1 ? FIGURE : MESSAGES]), i);
        if (refused == 0)
            refused = posix_spawn(&gnuplot->child, gnuplot->program, &actions, NULL, arguments,
                                  environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (refused != 0)
        gnuplot->child = 0;
    for (size_t i = 0; environment[i] != NULL; i++)
        frag_free(environment[i]);
    frag_free(environment);
    frag_free(script);
    if (refused == ENOMEM)
        frag_scope_fail(1, BUFSIZ);
    return refused == 0 || frag_fail(error, FRAG_E_SYSTEM, "%s does not start (%s)",
                                     gnuplot->program, strerror(refused));
}

/* *is_well: it ended with status 0, as far as one can tell: where SIGCHLD is ignored, nobody can.
 */
static bool wait_for_end(frag_gnuplot *gnuplot, bool *is_well, frag_error *error)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(gnuplot->child, &status, WNOHANG)) == 0 ||
           (ended < 0 && errno == EINTR)) {
        if (frag_is_cancelled(gnuplot->context))
            kill(gnuplot->child, SIGKILL);
        nanosleep(&pause, NULL);
    }
    gnuplot->child = 0;
    *is_well = ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return ended >= 0 || errno == ECHILD ||
           frag_fail(error, FRAG_E_SYSTEM, "gnuplot cannot be waited for (%s)", strerror(errno));
}

/* Gnuplot does not say that it could not write. */
static bool is_disk_full(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < 64 * FRAG_KIB;
}

/* Says what gnuplot said: its first line that is neither empty nor the echo of a command. */
static bool fail_drawing(const frag_gnuplot *gnuplot, frag_error *error)
{
    frag_text text = {0};
    char *rest = NULL;
    char *said = NULL;
    if (is_disk_full(gnuplot->folder))
        return frag_fail(error, FRAG_E_SYSTEM,
                         "the disk of %s is full; make room there, or set TMPDIR to another place",
                         gnuplot->folder);
    frag_plot_read(gnuplot->streams[MESSAGES], &text);
    for (char *line = strtok_r(text.bytes, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strstr(line, "line ") != NULL || (said == NULL && line[0] != ' '))
            said = line;
    frag_fail(error, FRAG_E_SYSTEM, "gnuplot failed: %.300s",
              said != NULL ? said : "it said nothing");
    frag_text_destroy(&text);
    return false;
}

/* ---- drawing */

bool frag_gnuplot_script(const frag_gnuplot *gnuplot, const frag_plot *plot, frag_text *script,
                         frag_error *error)
{
    return frag_plot_compose(plot, gnuplot->scripts, NULL, script, error);
}

static bool write_script(frag_gnuplot *gnuplot, const frag_plot *plot, frag_error *error)
{
    frag_text text = {0};
    char *picture = join(gnuplot->folder, names[PICTURE]);
    FILE *stream = open_stream(gnuplot, SCRIPT, error);
    bool ok = stream != NULL && frag_plot_compose(plot, gnuplot->scripts, picture, &text, error);
    if (ok)
        fwrite(text.bytes, 1, text.length, stream);
    frag_text_destroy(&text);
    frag_free(picture);
    return ok && (fflush(stream) == 0 || frag_fail(error, FRAG_E_SYSTEM, "%s: writing failed (%s)",
                                                   gnuplot->folder, strerror(errno)));
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

static void copy_figure(const frag_plot *plot, const frag_text *figure, FILE *stream)
{
    size_t start = 0;
    if (plot->format == FRAG_PLOT_PDF)
        drop_date(figure->bytes, figure->length);
    if (plot->format == FRAG_PLOT_TERMINAL) {
        /* A page break comes first, which a terminal has no use for. */
        while (start < figure->length &&
               (figure->bytes[start] == '\f' || figure->bytes[start] == '\n'))
            start++;
    }
    fwrite(figure->bytes + start, 1, figure->length - start, stream);
}

bool frag_gnuplot_draw(frag_gnuplot *gnuplot, const frag_plot *plot, FILE *stream,
                       frag_error *error)
{
    frag_text figure = {0};
    bool is_well = false;
    FILE *picture = gnuplot->streams[PICTURE];
    if (picture != NULL && fflush(picture) != 0)
        return fail_drawing(gnuplot, error);
    bool ok = write_script(gnuplot, plot, error) && open_stream(gnuplot, FIGURE, error) != NULL &&
              open_stream(gnuplot, MESSAGES, error) != NULL && spawn(gnuplot, error) &&
              wait_for_end(gnuplot, &is_well, error);
    if (ok && !frag_is_cancelled(gnuplot->context)) {
        ok = (frag_plot_read(gnuplot->streams[FIGURE], &figure) && is_well && figure.length > 0) ||
             fail_drawing(gnuplot, error);
        if (ok)
            copy_figure(plot, &figure, stream);
    }
    frag_text_destroy(&figure);
    return ok;
}
