/* Figures: their data as CSV, or drawn by gnuplot. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/api_run.h"
#include "api/api_target.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "plots/parts/gnuplot.h"
#include "plots/parts/plot_script.h"

typedef struct figure_call {
    const char *name; /* of the kind */
    const char *const *paths;
    size_t path_count;
    const fraglab_figure_options *given;
    fraglab_figure_options options;
    const fraglab_drawing_options *given_drawing;
    fraglab_drawing_options drawing;
    frag_plot_format format;
    frag_gnuplot *gnuplot;   /* NULL: nothing is drawn */
    frag_replay_call replay; /* its context and device */
    const frag_plot_kind *kind;
    frag_policy_list policies;
    frag_plot_request request;
    FILE *stream;
    frag_target target;
} figure_call;

/* ---- what a kind writes to */

static bool take_side(uint64_t given, uint64_t min, const char *name, uint64_t *side,
                      frag_error *error)
{
    if (given == 0)
        return true;
    *side = given;
    if (given >= min && given <= FRAG_PLOT_SIDE_MAX)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, name,
                        "%" PRIu64 " is out of range; expected %" PRIu64 " to %u", given, min,
                        FRAG_PLOT_SIDE_MAX);
}

static bool begin(void *user, frag_plot *plot, frag_error *error)
{
    figure_call *call = user;
    uint64_t width = 0;
    plot->format = call->format;
    frag_plot_usual_size(plot);
    plot->data = plot->characters = call->stream;
    if (plot->format == FRAG_PLOT_CSV)
        return true;
    width = plot->width;
    if (!take_side(call->drawing.width, frag_plot_width_min(plot), "width", &width, error))
        return false;
    frag_plot_set_width(plot, width);
    if (!take_side(call->drawing.height, frag_plot_height_min(plot), "height", &plot->height,
                   error))
        return false;
    call->gnuplot = frag_gnuplot_open(plot->request->context, plot->kind, true, error);
    return call->gnuplot != NULL && (plot->data = frag_gnuplot_data(call->gnuplot, error)) != NULL;
}

static FILE *open_picture(void *user, frag_plot *plot, frag_error *error)
{
    figure_call *call = user;
    if (call->gnuplot != NULL)
        return frag_gnuplot_picture(call->gnuplot, error);
    frag_fail(error, FRAG_E_USAGE, "a %s is a picture and has no data as CSV", plot->kind);
    return NULL;
}

static bool finish(void *user, frag_plot *plot, frag_error *error)
{
    figure_call *call = user;
    if (call->gnuplot == NULL)
        return true;
    if (plot->format == FRAG_PLOT_TERMINAL)
        frag_plot_define_number(plot, "has_colour", 0);
    bool ok =
        fflush(plot->data) == 0 ||
        frag_fail(error, FRAG_E_SYSTEM, "the data could not be written (%s)", strerror(errno));
    ok = ok && (plot->is_written || frag_gnuplot_draw(call->gnuplot, plot, call->stream, error));
    frag_gnuplot_close(call->gnuplot);
    return ok;
}

static void abandon(void *user, frag_plot *plot)
{
    figure_call *call = user;
    (void)plot;
    frag_gnuplot_close(call->gnuplot);
}

static const frag_plot_host host = {begin, open_picture, finish, abandon};

/* ---- settings: the kind's own options, without those that other members say or that are about a
 * drawing */

static const frag_command_option *find_option(const figure_call *call, const char *name)
{
    static const char *const others[] = {
        "policy",    "label",   "device", "capacity", "gpu",   "used-by-others", "address-rule",
        "fail-call", "latency", "from",   "jobs",     "data",  "format",         "output",
        "script",    "force",   "title",  "width",    "height"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i], name) == 0)
            return NULL;
    for (const frag_command_option *at = call->kind->command.options; at->name != NULL; at++)
        if (strcmp(at->name, name) == 0)
            return at;
    return NULL;
}

/* Is value one of "a|b|c"? */
static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, value, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    }
    return false;
}

static bool check_setting(const figure_call *call, const fraglab_figure_setting *setting,
                          frag_error *error)
{
    uint64_t count = 0;
    const frag_command_option *option = find_option(call, setting->name);
    if (option == NULL)
        return frag_fail_in(
            error, FRAG_E_USAGE, setting->name,
            "a figure of this kind has no such setting; 'fraglab plot %s --help' lists them",
            call->name);
    const char *value = setting->value != NULL ? setting->value : "";
    if ((option->argument == NULL) != (value[0] == '\0'))
        frag_fail(error, FRAG_E_USAGE,
                  option->argument == NULL ? "it takes no value; leave it NULL"
                                           : "it needs a value");
    else if (option->choices != NULL && option->argument != NULL &&
             !is_choice(option->choices, value))
        frag_fail(error, FRAG_E_USAGE, "'%s' is not a choice; expected one of %s", value,
                  option->choices);
    else if (option->max == 0 || frag_count_parse(value, option->min, option->max, &count, error))
        return true;
    return frag_error_in(error, setting->name);
}

static bool read_settings(figure_call *call, frag_error *error)
{
    size_t count = call->options.setting_count;
    frag_plot_setting *settings = frag_alloc(count + 1, sizeof *settings);
    for (size_t i = 0; i < count; i++) {
        const fraglab_figure_setting *given = &call->options.settings[i];
        if (!check_setting(call, given, error))
            return false;
        settings[i] = (frag_plot_setting){given->name, given->value != NULL ? given->value : ""};
    }
    if (call->drawing.title != NULL)
        settings[count++] = (frag_plot_setting){"title", call->drawing.title};
    call->request.settings = settings;
    call->request.setting_count = count;
    return true;
}

/* ---- */

static bool read_policies(figure_call *call, frag_error *error)
{
    const fraglab_figure_options *options = &call->options;
    frag_policy_list *policies = &call->policies;
    if (options->policy_count > 0 && call->kind->policies == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "policies",
                            "a figure of this kind replays nothing; leave them out");
    if (options->policy_count == 0)
        return call->kind->policies == NULL ||
               frag_policy_specs_parse(call->kind->policies, &policies->specs, &policies->count,
                                       error);
    return frag_call_policies(call->replay.below, options->policies, options->policy_count,
                              policies, error);
}

static bool find_kind(figure_call *call, frag_error *error)
{
    call->kind = frag_plot_kind_find(call->name);
    if (call->kind == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "kind",
                            "'%s' is not a kind of figure; fraglab_figure_kind_at names them",
                            call->name);
    const frag_command *command = &call->kind->command;
    size_t recordings = call->options.recording_count;
    size_t sources = call->path_count + recordings;
    const char *place = recordings > 0 ? "recordings" : "paths";
    if (recordings > 0 && strstr(command->operands, "TRACE") == NULL)
        frag_fail(error, FRAG_E_USAGE,
                  "a figure of this kind is drawn from rows; give their paths");
    else if (sources >= command->operand_min && sources <= command->operand_max)
        return true;
    else
        frag_fail(error, FRAG_E_USAGE, "%zu %s were given; a figure of this kind takes %s", sources,
                  place, command->operand_max > 1 ? "one or more" : "one");
    return frag_error_in(error, place);
}

static bool write_figure(void *state, FILE *stream, frag_error *error)
{
    figure_call *call = state;
    call->stream = stream;
    bool ok = call->kind->draw(&call->request, error);
    return frag_replay_call_goes_on(&call->replay, error) && ok;
}

/* The format of a drawing: named, or by the ending of its file. */
static bool find_format(figure_call *call, frag_error *error)
{
    const char *name = call->drawing.format;
    const char *path = call->target.path;
    if (name == NULL && path == NULL)
        name = "svg";
    if (name == NULL) {
        const char *dot = strrchr(frag_path_name(path), '.');
        name = dot != NULL ? dot + 1 : NULL;
    }
    if (name != NULL && frag_plot_format_find(name, &call->format) && call->format != FRAG_PLOT_CSV)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "format",
                        "'%s' is not a format of drawings; expected svg, png, pdf or terminal",
                        name != NULL ? name : path);
}

static bool figure_work(void *arguments, frag_error *error)
{
    figure_call *call = arguments;
    frag_plot_request *request = &call->request;
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_figure_options",
                        error) ||
        (call->format != FRAG_PLOT_CSV &&
         (!frag_call_read(call->given_drawing, &call->drawing, sizeof call->drawing,
                          "fraglab_drawing_options", error) ||
          !find_format(call, error))) ||
        !find_kind(call, error) || !frag_replay_call_device(&call->replay, error) ||
        !frag_call_format(call->options.format, &request->input_format, error) ||
        !read_settings(call, error) || !read_policies(call, error))
        return false;
    request->context = call->replay.below;
    request->operands = call->paths;
    request->operand_count = call->path_count;
    request->recordings =
        frag_call_recordings(call->options.recordings, call->options.recording_count);
    request->recording_count = call->options.recording_count;
    request->policies = &call->policies;
    request->device = &call->replay.device;
    request->host = &host;
    request->user = call;
    call->target.may_overwrite = call->drawing.overwrite != 0;
    return frag_target_write(&call->target, write_figure, call, error);
}

int fraglab_figure_csv(const fraglab_context *context, const char *kind, const char *const *paths,
                       size_t path_count, const fraglab_run_options *run_options,
                       const fraglab_figure_options *options, char **csv, fraglab_error *error)
{
    figure_call call = {.name = kind,
                        .paths = paths,
                        .path_count = path_count,
                        .given = options,
                        .format = FRAG_PLOT_CSV,
                        .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(figure_work, &call, error);
    *csv = call.target.bytes;
    return code;
}

int fraglab_figure_draw(const fraglab_context *context, const char *kind, const char *const *paths,
                        size_t path_count, const fraglab_run_options *run_options,
                        const fraglab_figure_options *options,
                        const fraglab_drawing_options *drawing, const char *path,
                        fraglab_error *error)
{
    figure_call call = {.name = kind,
                        .paths = paths,
                        .path_count = path_count,
                        .given = options,
                        .given_drawing = drawing,
                        .replay = {.context = context, .given = run_options},
                        .target = {.path = path}};
    return frag_call_once(figure_work, &call, error);
}

int fraglab_figure_draw_memory(const fraglab_context *context, const char *kind,
                               const char *const *paths, size_t path_count,
                               const fraglab_run_options *run_options,
                               const fraglab_figure_options *options,
                               const fraglab_drawing_options *drawing, void **bytes, size_t *count,
                               fraglab_error *error)
{
    figure_call call = {.name = kind,
                        .paths = paths,
                        .path_count = path_count,
                        .given = options,
                        .given_drawing = drawing,
                        .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(figure_work, &call, error);
    *bytes = call.target.bytes;
    *count = call.target.count;
    return code;
}

const char *fraglab_figure_kind_at(size_t index)
{
#define NAME(kind) #kind,
    static const char *const names[] = {FRAG_PLOT_KINDS(NAME)};
#undef NAME
    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}
