/* What a described model needs of a card. */
#include <string.h>

#include "api/api_call.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "studies/plan/memory_plan.h"

typedef struct plan_call {
    const fraglab_context *context;
    const char *path;
    const fraglab_plan_options *given;
    char *json;
} plan_call;

/* "batch=4" */
static bool set_knob(frag_workload *workload, const char *text, frag_error *error)
{
    const char *names[64];
    size_t count = 0;
    size_t length = strcspn(text, "=");
    char key[64];
    if (text[length] != '=' || length >= sizeof key)
        return frag_fail_in(error, FRAG_E_USAGE, "knobs",
                            "'%.64s' is not a knob and its value; expected one such as "
                            "batch=4",
                            text);
    memcpy(key, text, length);
    key[length] = '\0';
    for (const frag_field *knob = frag_knobs; knob->key != NULL; knob++) {
        if (strcmp(knob->key, key) == 0) {
            if (frag_workload_set(workload, key, text + length + 1, error))
                return true;
            error->code = FRAG_E_USAGE;
            return frag_error_in(error, "knobs");
        }
        names[count++] = knob->key;
    }
    const char *nearest = frag_nearest_name(key, names, count);
    return frag_fail_in(error, FRAG_E_USAGE, "knobs", "'%s' is not a knob%s%s", key,
                        nearest != NULL ? "; did you mean " : "; docs/workloads.md lists them",
                        nearest != NULL ? nearest : "");
}

/* text: of a knob that was set */
static bool check_knob(const frag_workload *workload, const char *text, frag_error *error)
{
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(text, "="), text);
    return frag_workload_check_knob(workload, key, error) || frag_error_in(error, key);
}

static bool read_workload(const plan_call *call, const fraglab_plan_options *options,
                          frag_workload *workload, frag_error *error)
{
    frag_workload_init(workload);
    if (!frag_workload_load(call->path, workload, NULL, error))
        return false;
    for (size_t i = 0; i < options->knob_count; i++)
        if (!set_knob(workload, options->knobs[i], error))
            return false;
    for (size_t i = 0; i < options->knob_count; i++)
        if (!check_knob(workload, options->knobs[i], error))
            return false;
    return frag_workload_check(workload, error) || frag_error_in(error, call->path);
}

static bool plan_work(void *arguments, frag_error *error)
{
    plan_call *call = arguments;
    const frag_context *below = frag_call_context(call->context);
    fraglab_plan_options options;
    frag_workload workload;
    frag_dryrun_gpu gpu;
    if (!frag_call_read(call->given, &options, sizeof options, "fraglab_plan_options", error))
        return false;
    if (options.gpu == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "gpu",
                            "no card is named; expected a card such as rtx3060, or a "
                            "size such as 12GiB");
    if (!read_workload(call, &options, &workload, error) ||
        !frag_dryrun_gpu_find(options.gpu, &gpu, NULL, error))
        return false;
    frag_fitter *fitter = frag_fitter_create(below, options.conf, error);
    if (fitter == NULL)
        return false;
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    bool ok = frag_memory_plan_make(fitter, &workload, options.conf, &gpu,
                                    frag_path_name(call->path), plan, error);
    frag_fitter_destroy(fitter);
    if (!frag_call_goes_on(below, error) || !ok)
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    frag_memory_plan_print_json(plan, frag_text_stream_file(stream));
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_plan(const fraglab_context *context, const char *path,
                 const fraglab_plan_options *options, char **json, fraglab_error *error)
{
    plan_call call = {.context = context, .path = path, .given = options};
    int code = frag_call_once(plan_work, &call, error);
    *json = call.json;
    return code;
}
