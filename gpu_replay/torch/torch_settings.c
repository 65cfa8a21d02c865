#include "gpu_replay/torch/torch_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "gpu_replay/torch/torch_policy.h"
#include "sim/policy_engine.h"

#define TRIAL_BYTES (8 * FRAG_GIB) /* of the card on which the policy is tried */

/* An empty variable is one that is not set. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* What parsers below have named (an option, a file) gives way to the variable it came from. */
static bool fail_in(frag_error *error, const char *name)
{
    snprintf(error->where, sizeof error->where, "%s", name);
    return false;
}

/* "job-%p.fgt" with the number of the process, for programs that start several. */
static char *path_of(const char *name)
{
    const char *pattern = variable(name);
    if (pattern == NULL)
        return NULL;
    frag_text path = {0};
    for (const char *at = pattern; *at != '\0'; at++) {
        bool is_process = at[0] == '%' && at[1] == 'p';
        if (is_process)
            frag_text_add(&path, "%ld", (long)getpid());
        else
            frag_text_add_bytes(&path, at, 1);
        at += is_process ? 1 : 0;
    }
    char *copy = frag_copy_text(path.bytes);
    frag_text_destroy(&path);
    return copy;
}

/* "2.9" of "2.9.1+cu128", which is all that decides how the library behaves. */
static char *short_version(const char *text)
{
    char *copy = frag_copy_text(text != NULL ? text : "");
    char *dot = strchr(copy, '.');
    if (dot != NULL)
        dot[1 + strspn(dot + 1, "0123456789")] = '\0';
    return copy;
}

static const char *environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

/* Where nothing is set PyTorch has its defaults, and so has the policy. */
static bool take_conf(frag_torch_settings *settings, frag_error *error)
{
    uint32_t version = 0;
    if (!frag_pytorch_version(frag_policy_spec_text(&settings->policy, "version"),
                              settings->torch_version, &version, error))
        return false;
    const frag_context context = {.environment = environment};
    const char *conf = frag_pytorch_conf_of(version, &context);
    if (conf != NULL)
        frag_policy_spec_take(&settings->policy, conf);
    return true;
}

/* What only creating a policy finds out is found out now, not in the middle of a program. */
static bool try_policy(const frag_torch_settings *settings, frag_error *error)
{
    frag_sim_device_options options = {
        .capacity_bytes =
            settings->capacity_bytes == FRAG_UNLIMITED ? TRIAL_BYTES : settings->capacity_bytes,
    };
    frag_device *device = frag_sim_device_create(&options);
    frag_torch_policy policy = {0};
    bool ok = frag_torch_policy_create(&policy, &settings->policy, settings->torch_version, device,
                                       error);
    frag_torch_policy_destroy(&policy);
    frag_device_destroy(device);
    return ok;
}

static bool read_policy(frag_torch_settings *settings, frag_error *error)
{
    const char *text = variable("FRAGLAB_POLICY");
    if (!frag_policy_spec_parse(text != NULL ? text : "pytorch:env", &settings->policy, error))
        return false;
    if (settings->policy.wants_recorded)
        return frag_fail(error, FRAG_E_USAGE,
                         "'recorded' stands for the settings of a recording; a running program "
                         "has none");
    if (frag_policy_engine_of(settings->policy.ops)->planner != NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s plans with the whole trace at hand; a running program has none",
                         settings->policy.ops->name);
    return (!settings->policy.wants_env || take_conf(settings, error)) &&
           try_policy(settings, error);
}

static bool read_capacity(frag_torch_settings *settings, frag_error *error)
{
    const char *text = variable("FRAGLAB_CAPACITY");
    settings->capacity_bytes = FRAG_UNLIMITED;
    if (text == NULL)
        return true;
    if (!frag_bytes_parse(text, &settings->capacity_bytes, error))
        return false;
    return settings->capacity_bytes > 0 ||
           frag_fail(error, FRAG_E_USAGE, "nothing fits into 0 bytes; write a size such as 8GiB");
}

/* Can such a file be written? Nothing is left behind. */
static bool try_path(const char *path, frag_error *error)
{
    if (path == NULL || strcmp(path, "stderr") == 0)
        return true;
    frag_output *output = frag_output_open(path, true, error);
    if (output == NULL)
        return false;
    frag_output_abandon(output);
    return true;
}

static bool read_all(frag_torch_settings *settings, frag_error *error)
{
    settings->torch_version = short_version(variable("FRAGLAB_TORCH_VERSION"));
    settings->stats_path = path_of("FRAGLAB_STATS");
    settings->record_path = path_of("FRAGLAB_RECORD");
    const char *runtime = variable("FRAGLAB_CUDART");
    settings->runtime_path = runtime != NULL ? frag_copy_text(runtime) : NULL;
    if (!read_capacity(settings, error))
        return fail_in(error, "FRAGLAB_CAPACITY");
    if (!read_policy(settings, error))
        return fail_in(error, "FRAGLAB_POLICY");
    if (!try_path(settings->stats_path, error))
        return fail_in(error, "FRAGLAB_STATS");
    return try_path(settings->record_path, error) || fail_in(error, "FRAGLAB_RECORD");
}

bool frag_torch_settings_read(frag_torch_settings *settings, frag_error *error)
{
    *settings = (frag_torch_settings){0};
    if (read_all(settings, error))
        return true;
    frag_torch_settings_destroy(settings);
    return false;
}

void frag_torch_settings_destroy(frag_torch_settings *settings)
{
    if (settings->policy.ops != NULL)
        frag_policy_spec_destroy(&settings->policy);
    free(settings->stats_path);
    free(settings->record_path);
    free(settings->runtime_path);
    free(settings->torch_version);
    *settings = (frag_torch_settings){0};
}
