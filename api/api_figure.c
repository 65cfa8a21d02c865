/* The data of figures, as CSV. */
#include <inttypes.h>
#include <string.h>

#include "api/api_run.h"
#include "api/api_target.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "plots/plot.h"

typedef struct figure_call {
    const char *name; /* of the kind */
    const char *const *paths;
    size_t path_count;
    const fraglab_figure_options *given;
    fraglab_figure_options options;
    frag_replay_call replay; /* its context and device */
    const frag_plot_kind *kind;
    frag_policy_list policies;
    frag_plot_request request;
    FILE *stream;
    frag_target target;
} figure_call;

/* ---- what a kind writes to */

static bool begin(void *user, frag_plot *plot, frag_error *error)
{
    figure_call *call = user;
    (void)error;
    plot->format = FRAG_PLOT_CSV;
    plot->width = 800;
    plot->height = 500;
    plot->data = call->stream;
    return true;
}

static FILE *open_picture(void *user, frag_plot *plot, frag_error *error)
{
    (void)user;
    frag_fail(error, FRAG_E_USAGE, "a %s is a picture and has no data as CSV", plot->kind);
    return NULL;
}

static bool finish(void *user, frag_plot *plot, frag_error *error)
{
    (void)user;
    (void)plot;
    (void)error;
    return true;
}

static void abandon(void *user, frag_plot *plot)
{
    (void)user;
    (void)plot;
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
    if (option == NULL) {
        frag_fail(error, FRAG_E_USAGE,
                  "a figure of this kind has no such setting; 'fraglab plot %s --help' lists them",
                  call->name);
        return frag_error_in(error, setting->name);
    }
    const char *value = setting->value != NULL ? setting->value : "";
    if ((option->argument == NULL) != (value[0] == '\0'))
        frag_fail(error, FRAG_E_USAGE,
                  option->argument == NULL ? "it takes no value; leave it NULL"
                                           : "it needs a value");
    else if (option->choices != NULL && option->argument != NULL &&
             !is_choice(option->choices, value))
        frag_fail(error, FRAG_E_USAGE, "'%s' is no choice; expected one of %s", value,
                  option->choices);
    else if (option->max == 0 || frag_count_parse(value, option->min, option->max, &count, error))
        return true;
    return frag_error_in(error, setting->name);
}

static bool read_settings(figure_call *call, frag_error *error)
{
    size_t count = call->options.setting_count;
    frag_plot_setting *settings = frag_alloc(count, sizeof *settings);
    for (size_t i = 0; i < count; i++) {
        const fraglab_figure_setting *given = &call->options.settings[i];
        if (!check_setting(call, given, error))
            return false;
        settings[i] = (frag_plot_setting){given->name, given->value != NULL ? given->value : ""};
    }
    call->request.settings = settings;
    call->request.setting_count = count;
    return true;
}

/* ---- */

static bool read_policies(figure_call *call, frag_error *error)
{
    const fraglab_figure_options *options = &call->options;
    frag_policy_list *policies = &call->policies;
    if (options->policy_count > 0 && call->kind->policies == NULL) {
        frag_fail(error, FRAG_E_USAGE, "a figure of this kind replays nothing; leave them out");
        return frag_error_in(error, "policies");
    }
    if (options->policy_count == 0)
        return call->kind->policies == NULL ||
               frag_policy_specs_parse(call->kind->policies, &policies->specs, &policies->count,
                                       error);
    policies->count = options->policy_count;
    policies->specs = frag_alloc(options->policy_count, sizeof *policies->specs);
    for (size_t i = 0; i < options->policy_count; i++)
        if (!frag_policy_check_environment(call->replay.below, &options->policies[i]->spec,
                                           error) ||
            !frag_policy_spec_copy(&options->policies[i]->spec, &policies->specs[i]))
            return false;
    return true;
}

static bool find_kind(figure_call *call, frag_error *error)
{
    call->kind = frag_plot_kind_find(call->name);
    if (call->kind == NULL) {
        frag_fail(error, FRAG_E_USAGE,
                  "'%s' is no kind of figure; fraglab_figure_kind_at names them", call->name);
        return frag_error_in(error, "kind");
    }
    const frag_command *command = &call->kind->command;
    if (call->path_count >= command->operand_min && call->path_count <= command->operand_max)
        return true;
    frag_fail(error, FRAG_E_USAGE, "%zu paths were given; a figure of this kind takes %s",
              call->path_count, command->operand_max > 1 ? "one or more" : "one");
    return frag_error_in(error, "paths");
}

static bool write_figure(void *state, FILE *stream, frag_error *error)
{
    figure_call *call = state;
    call->stream = stream;
    bool ok = call->kind->draw(&call->request, error);
    return frag_replay_call_goes_on(&call->replay, error) && ok;
}

static bool figure_work(void *arguments, frag_error *error)
{
    figure_call *call = arguments;
    frag_plot_request *request = &call->request;
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_figure_options",
                        error) ||
        !find_kind(call, error) || !frag_replay_call_device(&call->replay, error) ||
        !frag_call_format(call->options.format, &request->input_format, error) ||
        !read_settings(call, error) || !read_policies(call, error))
        return false;
    request->context = call->replay.below;
    request->operands = call->paths;
    request->operand_count = call->path_count;
    request->policies = &call->policies;
    request->device = &call->replay.device;
    request->host = &host;
    request->user = call;
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
                        .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(figure_work, &call, error);
    *csv = call.target.bytes;
    return code;
}

const char *fraglab_figure_kind_at(size_t index)
{
#define NAME(kind) #kind,
    static const char *const names[] = {FRAG_PLOT_KINDS(NAME)};
#undef NAME
    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}
