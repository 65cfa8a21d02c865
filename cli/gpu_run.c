#include "cli/gpu_run.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/child.h"
#include "cli/gpu_load.h"

/* What the child sends; the answers follow. Both are the same program, so its bytes are enough. */
typedef struct message {
    bool is_ok;
    frag_error error;
    frag_run_result result;
    frag_gpu_run run;
} message;

typedef struct child_replay {
    const frag_gpu_choice *choice;
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_policy_ops *ops;
    const frag_option_value *values;
    const frag_device_spec *spec;
    const frag_run_options *options;
    const frag_gpu_module *module;
    frag_gpu *gpu;
    frag_device *device;
    message message;
} child_replay;

/* ---- the command line */

/* "sim", "cuda" or "cuda:1" */
static bool read_device(const char *text, size_t length, frag_gpu_devices *devices,
                        frag_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
             text);
    uint64_t ordinal = 0;
    bool is_sim = strcmp(name, "sim") == 0;
    bool is_gpu = strncmp(name, "cuda", 4) == 0 && (name[4] == '\0' || name[4] == ':');
    if (!is_sim && !is_gpu)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is not a device; expected sim, cuda, cuda:N or both as sim,cuda",
                         name);
    if (is_gpu && name[4] == ':' && !frag_count_parse(name + 5, 0, 1023, &ordinal, error))
        return false;
    if (is_sim ? devices->has_sim : devices->has_gpu)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s is named twice; name one simulated device, one "
                         "card, or one of each",
                         is_sim ? "sim" : "cuda");
    devices->has_sim = devices->has_sim || is_sim;
    devices->has_gpu = devices->has_gpu || is_gpu;
    devices->gpu.ordinal = is_gpu ? (uint32_t)ordinal : devices->gpu.ordinal;
    return true;
}

static bool read_device_list(const char *text, frag_gpu_devices *devices, frag_error *error)
{
    bool is_end = false;
    while (!is_end) {
        size_t length = strcspn(text, ",");
        if (!read_device(text, length, devices, error))
            return frag_error_in(error, "--device");
        is_end = text[length] == '\0';
        text += length + 1;
    }
    return true;
}

static bool refuse_without_gpu(const frag_arguments *arguments, const frag_gpu_devices *devices,
                               frag_error *error)
{
    static const char *const options[] = {"ballast", "touch", "cudart"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (frag_arguments_has(arguments, options[i]))
            return frag_fail(error, FRAG_E_USAGE,
                             "--%s is about a real card; add --device cuda, or leave it out",
                             options[i]);
    if (devices->gpu.has_driver_addresses)
        return frag_fail(error, FRAG_E_USAGE,
                         "the simulated device has no driver that gives addresses; add --device "
                         "cuda, or name another --address-rule");
    return true;
}

bool frag_gpu_choice_read(const frag_arguments *arguments, frag_gpu_choice *choice,
                          frag_error *error)
{
    choice->has_ballast = frag_arguments_has(arguments, "ballast");
    choice->is_touched = frag_arguments_has(arguments, "touch");
    choice->cudart = frag_arguments_value(arguments, "cudart");
    if (choice->has_ballast && !frag_arguments_has(arguments, "capacity"))
        return frag_fail(error, FRAG_E_USAGE,
                         "--ballast leaves a capacity; say which with --capacity");
    return true;
}

bool frag_gpu_devices_read(const frag_arguments *arguments, frag_gpu_devices *devices,
                           frag_error *error)
{
    *devices = (frag_gpu_devices){0};
    const char *list = frag_arguments_value(arguments, "device");
    devices->gpu.has_driver_addresses = frag_arguments_is(arguments, "address-rule", "driver");
    if (!read_device_list(list != NULL ? list : "sim", devices, error))
        return false;
    if (!devices->has_gpu)
        return refuse_without_gpu(arguments, devices, error);
    if (frag_arguments_has(arguments, "used-by-others") &&
        !frag_arguments_has(arguments, "capacity"))
        return frag_fail(error, FRAG_E_USAGE,
                         "what others use of a card is as it is; give --capacity too, or leave "
                         "--used-by-others out");
    return frag_gpu_choice_read(arguments, &devices->gpu, error);
}

/* ---- in the child */

typedef struct facts_query {
    const frag_gpu_choice *choice;
    frag_gpu_facts facts;
    frag_error error;
    bool is_ok;
} facts_query;

static void look(void *context, FILE *stream)
{
    facts_query *state = context;
    const frag_gpu_choice *choice = state->choice;
    const frag_gpu_module *module = frag_gpu_module_load(&state->error);
    frag_gpu *gpu =
        module != NULL ? module->open(choice->cudart, choice->ordinal, &state->error) : NULL;
    if (gpu != NULL) {
        state->is_ok = module->facts(gpu, &state->facts, &state->error);
        module->close(gpu);
    }
    fwrite(state, sizeof *state, 1, stream);
}

/* Its addresses are of another process; they cannot stand among those of this one. */
static bool has_start_state(const frag_trace *trace)
{
    return trace->event_count > 0 && (trace->events[0].flags & FRAG_EVENT_INITIAL) != 0;
}

static frag_device *open_device(void *context, const frag_trace *trace,
                                const frag_sim_device_options *rule, frag_error *error)
{
    child_replay *state = context;
    const frag_gpu_choice *choice = state->choice;
    frag_gpu_run *run = &state->message.run;
    frag_gpu_device_options options = {
        .capacity_bytes = rule->capacity_bytes,
        .used_by_others_bytes = rule->used_by_others_bytes,
        .page_bytes = rule->page_bytes,
        .has_ballast = choice->has_ballast,
        .is_touched = choice->is_touched,
        .has_driver_addresses = choice->has_driver_addresses && !has_start_state(trace),
        .rule = *rule,
    };
    frag_device *device = state->module->device_create(state->gpu, &options, error);
    if (device == NULL)
        return NULL;
    run->capacity_bytes = device->capacity_bytes;
    run->page_bytes = device->page_bytes;
    run->address_rule = options.has_driver_addresses ? FRAG_ADDRESS_GIVEN : rule->address_rule;
    device->times.clock_ns = frag_clock_ns;
    device->watch.on_answer = frag_answer_list_keep;
    device->watch.on_answer_context = &run->answers;
    state->device = device;
    return device;
}

static void close_device(void *context, frag_device *device)
{
    child_replay *state = context;
    state->module->device_finish(device, &state->message.run.report);
    frag_device_destroy(device);
}

void frag_gpu_keep_grant(frag_answer_list *answers, const frag_request *request,
                         const frag_grant *grant)
{
    frag_device_answer answer = {
        .kind = FRAG_ANSWER_GRANT,
        .result = grant != NULL ? FRAG_DEVICE_OK : FRAG_DEVICE_OUT_OF_MEMORY,
        .address = grant != NULL ? grant->address : 0,
        .bytes = grant != NULL ? grant->block_bytes : request->bytes,
    };
    frag_answer_list_keep(answers, &answer);
}

static void see_grant(void *context, const frag_request *request, const frag_grant *grant)
{
    child_replay *state = context;
    if (state->choice->keeps_grants)
        frag_gpu_keep_grant(&state->message.run.answers, request, grant);
    if (state->choice->is_touched && grant != NULL)
        frag_device_touch(state->device, grant->address, request->bytes, request->stream);
}

static bool replay(child_replay *state)
{
    message *to = &state->message;
    const frag_gpu_choice *choice = state->choice;
    state->module = frag_gpu_module_load(&to->error);
    if (state->module == NULL)
        return false;
    state->gpu = state->module->open(choice->cudart, choice->ordinal, &to->error);
    if (state->gpu == NULL)
        return false;
    frag_device_opener opener = {.open = open_device, .close = close_device, .context = state};
    frag_device_spec spec = *state->spec;
    spec.opener = &opener;
    frag_run_options options = *state->options;
    if (choice->is_touched || choice->keeps_grants) {
        options.on_grant = see_grant;
        options.on_grant_context = state;
    }
    bool ok = state->module->facts(state->gpu, &to->run.facts, &to->error) &&
              frag_run_count(&(frag_run_setup){state->recording, state->trace, state->ops,
                                               state->values, &spec},
                             &options, &to->result, &to->error);
    state->module->close(state->gpu);
    return ok;
}

static void replay_and_tell(void *context, FILE *stream)
{
    child_replay *state = context;
    state->message.is_ok = replay(state);
    const frag_answer_list *answers = &state->message.run.answers;
    fwrite(&state->message, sizeof state->message, 1, stream);
    if (answers->count > 0)
        fwrite(answers->items, sizeof *answers->items, answers->count, stream);
}

/* ---- in the parent */

static bool fail_short(frag_error *error)
{
    return frag_fail(error, FRAG_E_SYSTEM,
                     "the process that used the GPU did not finish its answer");
}

bool frag_gpu_look(const frag_gpu_choice *choice, frag_gpu_facts *facts, frag_error *error)
{
    facts_query state = {.choice = choice};
    unsigned char *bytes = NULL;
    size_t count = 0;
    bool ok = frag_child_run(look, &state, &bytes, &count, error);
    if (ok && count == sizeof state) {
        memcpy(&state, bytes, sizeof state);
        *facts = state.facts;
        ok = state.is_ok;
        if (!ok)
            *error = state.error;
    } else if (ok) {
        ok = fail_short(error);
    }
    frag_free(bytes);
    return ok;
}

/* Takes what the child sent. */
static bool take(const unsigned char *bytes, size_t count, frag_run_result *result,
                 frag_gpu_run *run, frag_error *error)
{
    message from;
    if (count < sizeof from)
        return fail_short(error);
    memcpy(&from, bytes, sizeof from);
    size_t answer_count = from.run.answers.count;
    if ((count - sizeof from) / sizeof(frag_device_answer) != answer_count)
        return fail_short(error);
    *run = from.run;
    run->answers = (frag_answer_list){
        .items = frag_alloc(answer_count, sizeof(frag_device_answer)),
        .count = answer_count,
        .capacity = answer_count,
    };
    if (answer_count > 0)
        memcpy(run->answers.items, bytes + sizeof from, answer_count * sizeof(frag_device_answer));
    *result = from.result;
    if (!from.is_ok)
        *error = from.error;
    return from.is_ok;
}

bool frag_gpu_run_count(const frag_gpu_choice *choice, const frag_recording *recording,
                        const frag_trace *trace, const frag_policy_ops *ops,
                        const frag_option_value *values, const frag_device_spec *device,
                        const frag_run_options *options, frag_run_result *result, frag_gpu_run *run,
                        frag_error *error)
{
    child_replay state = {
        .choice = choice,
        .recording = recording,
        .trace = trace,
        .ops = ops,
        .values = values,
        .spec = device,
        .options = options,
    };
    unsigned char *bytes = NULL;
    size_t count = 0;
    *run = (frag_gpu_run){0};
    bool ok = frag_child_run(replay_and_tell, &state, &bytes, &count, error) &&
              take(bytes, count, result, run, error);
    frag_free(bytes);
    if (ok)
        result->address_rule = run->address_rule;
    return ok;
}

void frag_gpu_run_destroy(frag_gpu_run *run)
{
    frag_answer_list_destroy(&run->answers);
}

static frag_device *open_echo(void *context, const frag_trace *trace,
                              const frag_sim_device_options *rule, frag_error *error)
{
    const frag_gpu_run *run = context;
    (void)error;
    uint64_t others = rule->used_by_others_bytes;
    frag_echo_options options = {
        .answers = &run->answers,
        .capacity_bytes = run->capacity_bytes,
        .free_bytes = rule->capacity_bytes == FRAG_UNLIMITED ? run->report.free_start_bytes
                      : rule->capacity_bytes > others        ? rule->capacity_bytes - others
                                                             : 0,
        .page_bytes = run->page_bytes,
        .ordinal = trace->device,
    };
    return frag_echo_device_create(&options);
}

frag_device_spec frag_gpu_run_echo(const frag_gpu_run *run, const frag_device_spec *device,
                                   frag_device_opener *opener)
{
    frag_device_spec echo = *device;
    *opener = (frag_device_opener){.open = open_echo, .context = (void *)(uintptr_t)run};
    echo.opener = opener;
    echo.driver_log = NULL;
    return echo;
}

frag_device_spec frag_gpu_run_twin(const frag_gpu_run *run, const frag_device_spec *device)
{
    frag_device_spec twin = *device;
    twin.driver_log = NULL;
    twin.page_bytes = run->page_bytes;
    if (device->capacity_bytes == FRAG_UNLIMITED) {
        twin.capacity_bytes = run->facts.total_bytes;
        twin.used_by_others_bytes = run->facts.total_bytes - run->report.free_before_bytes;
    }
    return twin;
}
