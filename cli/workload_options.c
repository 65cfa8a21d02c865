#include "cli/workload_options.h"

#include <stdio.h>
#include <string.h>

/* "lora-rank" of "lora_rank". NULL: it is not given. */
static const char *find_given(const frag_arguments *arguments, const frag_field *knob,
                              char option[64])
{
    snprintf(option, 64, "%s", knob->key);
    for (char *at = option; *at != '\0'; at++)
        *at = *at == '_' ? '-' : *at;
    return frag_arguments_has(arguments, option) ? frag_arguments_value(arguments, option) : NULL;
}

/* Knobs that the command line gives stand above those of the file. */
static bool set_knobs(const frag_arguments *arguments, frag_workload *workload, frag_error *error)
{
    for (const frag_field *knob = frag_knobs; knob->key != NULL; knob++) {
        char option[64];
        const char *value = find_given(arguments, knob, option);
        if (value != NULL && !frag_workload_set(workload, knob->key, value, error)) {
            error->code = FRAG_E_USAGE;
            snprintf(error->where, sizeof error->where, "--%s", option);
            return false;
        }
    }
    return true;
}

/* What a knob of the command line needs beside it. */
static bool check_knobs(const frag_arguments *arguments, const frag_workload *workload,
                        frag_error *error)
{
    for (const frag_field *knob = frag_knobs; knob->key != NULL; knob++) {
        char option[64];
        if (find_given(arguments, knob, option) != NULL &&
            !frag_workload_check_knob(workload, knob->key, error)) {
            snprintf(error->where, sizeof error->where, "--%s", option);
            return false;
        }
    }
    return true;
}

bool frag_workload_options_read(const frag_arguments *arguments, const char *path,
                                frag_workload *workload, frag_statistical *statistical,
                                frag_error *error)
{
    frag_workload_init(workload);
    if (!frag_workload_load(path, workload, statistical, error))
        return false;
    if (statistical != NULL && statistical->phase_count > 0)
        return true;
    return set_knobs(arguments, workload, error) && check_knobs(arguments, workload, error) &&
           (frag_workload_check(workload, error) || frag_error_in(error, path));
}

bool frag_workload_options_refuse(const frag_arguments *arguments, const char *what,
                                  const char *const *except, frag_error *error)
{
    for (const frag_field *knob = frag_knobs; knob->key != NULL; knob++) {
        char given[64];
        const char *const *allowed = except;
        while (*allowed != NULL && strcmp(*allowed, knob->key) != 0)
            allowed++;
        if (*allowed == NULL && find_given(arguments, knob, given) != NULL)
            return frag_fail(error, FRAG_E_USAGE, "%s; leave --%s out", what, given);
    }
    return true;
}
