#include "cli/verify/verify_gpu.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/gpu_run.h"
#include "studies/verify/verify_json.h"

#define CONTEXT_ANSWERS 4 /* before the first difference */

/* The run on the simulated device, held against what the card answered. */
typedef struct answer_comparison {
    const frag_gpu_run *gpu;
    frag_device *device;
    frag_device_backing backing;
    size_t next; /* of the card's answers */
    bool is_different;
    uint64_t event;               /* of the first difference */
    frag_device_answer simulated; /* there */
    bool has_simulated;           /* false: the simulated run ended before */
    frag_answer_list grants;      /* one at a time */
} answer_comparison;

typedef struct verify_gpu_run {
    const frag_arguments *arguments;
    frag_gpu_choice choice;
    frag_device_spec device;
    bool is_json;
    bool is_different;
} verify_gpu_run;

static const frag_device_answer *card_answer(const answer_comparison *state)
{
    const frag_answer_list *answers = &state->gpu->answers;
    return state->next < answers->count ? &answers->items[state->next] : NULL;
}

static bool is_same(const frag_device_answer *a, const frag_device_answer *b)
{
    return a->kind == b->kind && a->call == b->call && a->result == b->result &&
           a->address == b->address && a->bytes == b->bytes;
}

static void compare_answer(void *context, const frag_device_answer *simulated)
{
    answer_comparison *state = context;
    if (state->is_different)
        return;
    const frag_device_answer *card = card_answer(state);
    if (card != NULL && is_same(card, simulated)) {
        state->next++;
        return;
    }
    state->is_different = true;
    state->has_simulated = true;
    state->simulated = *simulated;
    state->event = state->device->log.event;
    /* What comes after is of no interest: the run ends. */
    state->device->has_failed = true;
    state->device->has_changed = true;
}

static void compare_grant(void *context, const frag_request *request, const frag_grant *grant)
{
    answer_comparison *state = context;
    state->grants.count = 0;
    frag_gpu_keep_grant(&state->grants, request, grant);
    compare_answer(state, &state->grants.items[0]);
}

/* Only so that the replay goes event by event, and the device knows which. */
static void note_event(void *context, const frag_replay *replay, uint64_t event,
                       const frag_level *level)
{
    (void)context, (void)replay, (void)event, (void)level;
}

/* Where the card put it. */
static frag_device_result give_address(void *context, frag_device_call call, uint64_t bytes,
                                       uint64_t *address)
{
    const answer_comparison *state = context;
    const frag_device_answer *card = card_answer(state);
    if (call != FRAG_DEVICE_MAP && card != NULL && card->kind == FRAG_ANSWER_CALL &&
        card->call == (uint8_t)call && card->bytes == bytes)
        *address = card->address;
    return FRAG_DEVICE_OK;
}

static frag_device *open_beside(void *context, const frag_trace *trace,
                                const frag_sim_device_options *rule, frag_error *error)
{
    answer_comparison *state = context;
    (void)trace;
    (void)error;
    frag_sim_device_options options = *rule;
    if (state->gpu->address_rule == FRAG_ADDRESS_GIVEN) {
        options.address_rule = FRAG_ADDRESS_GIVEN;
        state->backing = (frag_device_backing){.context = state, .get = give_address};
        options.backing = &state->backing;
    }
    state->device = frag_sim_device_create(&options);
    state->device->watch.on_answer = compare_answer;
    state->device->watch.on_answer_context = state;
    return state->device;
}

/* false: the run itself failed. A difference is no failure. */
static bool compare(const verify_gpu_run *verify, const frag_recording *recording,
                    const frag_trace *trace, const frag_policy_spec *policy,
                    answer_comparison *state, frag_run_result *result, frag_error *error)
{
    frag_device_opener opener = {.open = open_beside, .context = state};
    frag_device_spec beside = frag_gpu_run_twin(state->gpu, &verify->device);
    beside.opener = &opener;
    frag_run_options options = {
        .observer = note_event,
        .on_grant = compare_grant,
        .on_grant_context = state,
        .context = frag_arguments_context(verify->arguments),
    };
    bool ok =
        frag_run_count(&(frag_run_setup){recording, trace, policy->ops, policy->values, &beside},
                       &options, result, error);
    if (!state->is_different && ok && card_answer(state) != NULL) {
        state->is_different = true;
        state->event = result->replay.events;
    }
    return ok || state->is_different;
}

/* ---- what is printed */

static const char *const result_words[] = {
    [FRAG_DEVICE_OK] = "ok",
    [FRAG_DEVICE_OUT_OF_MEMORY] = "out of memory",
    [FRAG_DEVICE_FAILED] = "failed",
};

static void print_answer(const frag_device_answer *answer)
{
    const char *what = answer->kind == FRAG_ANSWER_GRANT ? "grant"
                       : answer->kind == FRAG_ANSWER_ADOPT
                           ? "adopt"
                           : frag_device_call_name((frag_device_call)answer->call);
    printf("%s", what);
    if (answer->bytes > 0)
        printf(" of %s", FRAG_BYTES(answer->bytes));
    if (answer->address != 0)
        printf(" at 0x%" PRIx64, answer->address);
    printf(": %s\n", result_words[answer->result]);
}

static void print_difference(const answer_comparison *state)
{
    printf("different at event %s\n", FRAG_COUNT(state->event));
    size_t first = state->next > CONTEXT_ANSWERS ? state->next - CONTEXT_ANSWERS : 0;
    for (size_t i = first; i < state->next; i++) {
        fputs("  both       ", stdout);
        print_answer(&state->gpu->answers.items[i]);
    }
    fputs("  card       ", stdout);
    if (card_answer(state) != NULL)
        print_answer(card_answer(state));
    else
        puts("nothing more");
    fputs("  simulated  ", stdout);
    if (state->has_simulated)
        print_answer(&state->simulated);
    else
        puts("nothing more");
}

static uint64_t count_calls(const answer_comparison *state)
{
    uint64_t count = 0;
    for (size_t i = 0; i < state->next; i++)
        count += state->gpu->answers.items[i].kind == FRAG_ANSWER_CALL ? 1 : 0;
    return count;
}

static void print_text(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *policy, const answer_comparison *state,
                       const frag_run_result *result)
{
    const frag_oom *oom = &result->replay.oom;
    printf("%s", recording->name);
    if (recording->trace_count > 1)
        printf(" device %" PRIu32, trace->device);
    printf(" %s on %s: ", policy->text, state->gpu->facts.name);
    if (state->is_different) {
        print_difference(state);
        return;
    }
    printf("identical: %s requests, %s device calls", FRAG_COUNT(result->replay.requests),
           FRAG_COUNT(count_calls(state)));
    if (oom->has_happened)
        printf(", OOM at event %s", FRAG_COUNT(oom->event));
    fputs(state->gpu->address_rule == FRAG_ADDRESS_GIVEN
              ? "\n"
              : " (addresses by rule: the trace begins with memory held at recorded ones)\n",
          stdout);
}

static void print_json(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *policy, const answer_comparison *state,
                       const frag_run_result *result)
{
    frag_json *json = frag_json_create();
    frag_verify_row_head(json, recording, trace, policy);
    frag_json_text(json, "card.name", state->gpu->facts.name);
    frag_json_flag(json, "verify.is_identical", !state->is_different);
    frag_json_number(json, "verify.requests", result->replay.requests);
    frag_json_number(json, "verify.device_calls", count_calls(state));
    frag_json_number(json, "verify.first.event",
                     state->is_different ? state->event : FRAG_UNLIMITED);
    frag_json_write(json, stdout, false);
}

/* ---- one after the other */

static bool verify_one(verify_gpu_run *verify, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *policy, frag_error *error)
{
    frag_gpu_run gpu;
    frag_run_result on_card;
    frag_run_result simulated;
    frag_run_options options = {.context = frag_arguments_context(verify->arguments)};
    answer_comparison state = {.gpu = &gpu};
    bool ok = frag_gpu_run_count(&verify->choice, recording, trace, policy->ops, policy->values,
                                 &verify->device, &options, &on_card, &gpu, error) &&
              compare(verify, recording, trace, policy, &state, &simulated, error);
    if (ok && !frag_is_interrupted()) {
        verify->is_different = verify->is_different || state.is_different;
        if (verify->is_json)
            print_json(recording, trace, policy, &state, &simulated);
        else
            print_text(recording, trace, policy, &state, &simulated);
        fflush(stdout);
    }
    frag_answer_list_destroy(&state.grants);
    frag_gpu_run_destroy(&gpu);
    return ok;
}

static bool verify_all(verify_gpu_run *verify, const char *path, frag_trace_format format,
                       const frag_policy_list *policies, frag_error *error)
{
    frag_recording recording = {0};
    bool ok = frag_recording_load_plain(path, format, false, &recording, error);
    for (uint32_t t = 0; ok && t < recording.trace_count; t++)
        for (size_t p = 0; ok && p < policies->count && !frag_is_interrupted(); p++) {
            frag_policy_spec resolved;
            ok = frag_policy_resolve(frag_arguments_context(verify->arguments), &policies->specs[p],
                                     &recording, &resolved, error);
            if (ok) {
                ok = verify_one(verify, &recording, &recording.traces[t], &resolved, error);
                frag_policy_spec_destroy(&resolved);
            }
        }
    frag_recording_destroy(&recording);
    return ok || frag_error_in(error, path);
}

static bool read_card(const frag_arguments *arguments, frag_gpu_choice *choice, frag_error *error)
{
    frag_gpu_devices devices = {.has_gpu = true};
    if (frag_arguments_has(arguments, "device") &&
        !frag_gpu_devices_read(arguments, &devices, error))
        return false;
    if (devices.has_sim || !devices.has_gpu)
        return frag_fail(error, FRAG_E_USAGE,
                         "--against cuda compares the simulated device with a card; name that: "
                         "--device cuda:N");
    *choice = devices.gpu;
    choice->has_driver_addresses = true;
    choice->keeps_grants = true;
    return frag_gpu_choice_read(arguments, choice, error);
}

int frag_verify_gpu(const frag_arguments *arguments, const frag_policy_list *policies,
                    uint64_t capacity_bytes, frag_trace_format format, bool is_json)
{
    verify_gpu_run verify = {
        .arguments = arguments,
        .device = {.capacity_bytes = capacity_bytes},
        .is_json = is_json,
    };
    frag_error error = {0};
    frag_gpu_facts facts;
    if (!read_card(arguments, &verify.choice, &error) ||
        !frag_gpu_look(&verify.choice, &facts, &error))
        return frag_report(&error);
    int code = 0;
    size_t count = frag_arguments_operand_count(arguments);
    for (size_t i = 0; i < count && !frag_is_interrupted(); i++) {
        frag_error problem = {0};
        if (verify_all(&verify, frag_arguments_operand(arguments, i), format, policies, &problem) ||
            problem.code == FRAG_E_NONE)
            continue;
        int failure = frag_report(&problem);
        code = code != 0 ? code : failure;
    }
    if (frag_is_interrupted())
        return 130;
    return code != 0 ? code : verify.is_different ? 1 : 0;
}
