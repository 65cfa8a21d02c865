#include "cli/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "studies/device_settings.h"

/* A label names the policy before it; one that covers several rows would be no name. */
static bool apply_labels(const frag_arguments *arguments, frag_policy_list *policies,
                         const size_t *positions, const size_t *ends, size_t given,
                         frag_error *error)
{
    for (size_t i = 0; i < frag_arguments_value_count(arguments, "label"); i++) {
        size_t at = frag_arguments_value_position(arguments, "label", i);
        size_t owner = given;
        for (size_t j = 0; j < given && positions[j] < at; j++)
            owner = j;
        const char *label = frag_arguments_value_at(arguments, "label", i);
        size_t first = owner == given ? 0 : owner > 0 ? ends[owner - 1] : 0;
        if (owner == given || ends[owner] - first != 1)
            return frag_fail_in(
                error, FRAG_E_USAGE, "--label",
                "'%s' labels no single policy; write it behind the --policy it names", label);
        if (*label == '\0')
            return frag_fail_in(error, FRAG_E_USAGE, "--label",
                                "the label is empty; write a name for the row");
        for (const char *c = label; *c != '\0'; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f)
                return frag_fail_in(error, FRAG_E_USAGE, "--label",
                                    "'%s' holds a control character; write one line of text",
                                    label);
        frag_policy_spec_label(&policies->specs[first], label);
    }
    return true;
}

bool frag_inputs_policies(const frag_arguments *arguments, const char *fallback,
                          frag_policy_list *policies, frag_error *error)
{
    *policies = (frag_policy_list){0};
    size_t given = frag_arguments_value_count(arguments, "policy");
    if (given == 0 && fallback == NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "no policy is named; add --policy NAME ('fraglab policies' lists them)");
    size_t *positions = frag_alloc(given, sizeof *positions);
    size_t *ends = frag_alloc(given, sizeof *ends);
    bool ok =
        given > 0 || frag_policy_specs_parse(fallback, &policies->specs, &policies->count, error);
    for (size_t i = 0; ok && i < given; i++) {
        positions[i] = frag_arguments_value_position(arguments, "policy", i);
        ok = frag_policy_specs_parse(frag_arguments_value_at(arguments, "policy", i),
                                     &policies->specs, &policies->count, error);
        ends[i] = policies->count;
    }
    ok = ok && apply_labels(arguments, policies, positions, ends, given, error);
    for (size_t i = 0; ok && i < policies->count; i++)
        ok = frag_policy_check_environment(frag_arguments_context(arguments), &policies->specs[i],
                                           error);
    frag_free(positions);
    frag_free(ends);
    if (!ok)
        frag_policy_list_destroy(policies);
    return ok;
}

/* A bare number is bytes, which few mean who write a small one. Problems of MiniMalloc, which
 * --placement is for, have a unit of their own. */
static bool check_bare_capacity(const frag_arguments *arguments, uint64_t bytes, frag_error *error)
{
    const char *typed = frag_arguments_value(arguments, "capacity");
    if (typed == NULL || bytes >= FRAG_KIB || typed[strspn(typed, "0123456789")] != '\0' ||
        frag_arguments_has(arguments, "placement"))
        return true;
    return frag_fail_in(
        error, FRAG_E_USAGE, "--capacity",
        "%s means %s bytes, less than any device has; did you mean %sGiB? (%sB says bytes)", typed,
        typed, typed, typed);
}

bool frag_inputs_one_policy(const frag_arguments *arguments, frag_policy_list *policies,
                            frag_error *error)
{
    if (!frag_arguments_has(arguments, "policy"))
        return true;
    if (!frag_inputs_policies(arguments, NULL, policies, error))
        return false;
    if (policies->count == 1)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--policy", "one policy is enough; %zu were given",
                        policies->count);
}

bool frag_inputs_trace(const frag_arguments *arguments, const frag_recording *recording,
                       const frag_trace **trace, frag_error *error)
{
    bool is_named = frag_arguments_has(arguments, "trace-device");
    uint64_t device = frag_arguments_number(arguments, "trace-device", 0);
    *trace = is_named ? frag_recording_device_trace(recording, device)
                      : frag_recording_main_trace(recording);
    if (*trace != NULL)
        return true;
    if (is_named)
        frag_fail(error, FRAG_E_USAGE, "the recording has no device %" PRIu64, device);
    else
        frag_fail(error, FRAG_E_INPUT, "the recording holds no trace");
    return frag_error_in(error, recording->name);
}

bool frag_inputs_window(const frag_arguments *arguments, const char *device_option,
                        frag_window *window, frag_error *error)
{
    const frag_window_texts texts = {
        .events = frag_arguments_value(arguments, "events"),
        .time = frag_arguments_value(arguments, "time"),
        .marks = frag_arguments_value(arguments, "marks"),
        .device = frag_arguments_value(arguments, device_option + strlen("--")),
        .device_option = device_option,
    };
    return frag_window_parse(&texts, window, error);
}

bool frag_inputs_device(const frag_arguments *arguments, frag_device_spec *device,
                        frag_device_description *gpu, frag_error *error)
{
    uint64_t others = 0;
    const frag_device_settings settings = {.gpu = frag_arguments_value(arguments, "gpu"),
                                           .latency = frag_arguments_value(arguments, "latency"),
                                           .has_capacity =
                                               frag_arguments_has(arguments, "capacity"),
                                           .gpu_option = "--gpu",
                                           .latency_hint = "to --latency"};
    if (!frag_device_settings_read(&settings, frag_arguments_context(arguments), device, gpu,
                                   error) ||
        !frag_arguments_bytes(arguments, "capacity", &device->capacity_bytes, error) ||
        !frag_arguments_bytes(arguments, "used-by-others", &others, error) ||
        !frag_arguments_count(arguments, "fail-call", 1, UINT64_MAX, &device->fail_call, error))
        return false;
    if (device->capacity_bytes == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "--capacity",
                            "a device without memory serves nothing; write a size such as 24GiB");
    if (!check_bare_capacity(arguments, device->capacity_bytes, error))
        return false;
    if (others > (uint64_t)1 << 46)
        return frag_fail_in(
            error, FRAG_E_USAGE, "--used-by-others",
            "more than 64 TiB cannot be used by others; write a size such as 500MiB");
    device->used_by_others_bytes += others;
    const char *rule = frag_arguments_value(arguments, "address-rule");
    /* The driver's own addresses are no rule: see frag_gpu_devices_read. */
    if (rule != NULL && strcmp(rule, "driver") != 0) {
        device->is_rule_given = true;
        device->address_rule = strcmp(rule, "lowest") == 0 ? FRAG_ADDRESS_LOWEST
                               : strcmp(rule, "bump") == 0 ? FRAG_ADDRESS_BUMP
                                                           : FRAG_ADDRESS_RECORDED;
    }
    return true;
}

bool frag_inputs_format(const frag_arguments *arguments, frag_trace_format *format,
                        frag_error *error)
{
    const char *name = frag_arguments_value(arguments, "from");
    *format = FRAG_FORMAT_AUTO;
    if (name != NULL && !frag_trace_format_find(name, format))
        return frag_fail_in(error, FRAG_E_USAGE, "--from",
                            "'%s' is not a trace format; expected " FRAG_FORMAT_LIST, name);
    return true;
}

bool frag_inputs_spare_one(const char *input, const char *path, frag_error *error)
{
    struct stat from;
    struct stat to;
    if (path == NULL || stat(path, &to) != 0 || !S_ISREG(to.st_mode) || stat(input, &from) != 0 ||
        from.st_dev != to.st_dev || from.st_ino != to.st_ino)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, path,
                        "this is an input, and would be lost; name another file");
}

static bool is_output(const frag_command_option *option)
{
    return option->writes != NULL || strcmp(option->name, "output") == 0;
}

/* --latency FILE, --held-out TRACE and the like. */
static bool names_input(const frag_command_option *option)
{
    return option->argument != NULL && !is_output(option) &&
           (strstr(option->argument, "FILE") != NULL || strstr(option->argument, "TRACE") != NULL ||
            strstr(option->argument, "RECORDING") != NULL);
}

bool frag_inputs_spare(const frag_arguments *arguments, const char *path, frag_error *error)
{
    for (size_t i = 0; i < frag_arguments_operand_count(arguments); i++)
        if (!frag_inputs_spare_one(frag_arguments_operand(arguments, i), path, error))
            return false;
    const frag_command_option *option = frag_arguments_command(arguments)->options;
    for (; option != NULL && option->name != NULL; option++)
        for (size_t i = 0;
             names_input(option) && i < frag_arguments_value_count(arguments, option->name); i++)
            if (!frag_inputs_spare_one(frag_arguments_value_at(arguments, option->name, i), path,
                                       error))
                return false;
    return true;
}

/* Where an output goes; NULL: nowhere. */
static const char *place_of(const frag_arguments *arguments, const frag_command_option *option,
                            bool uses_stdout)
{
    const char *place = is_output(option) ? frag_arguments_value(arguments, option->name) : NULL;
    return place == NULL && uses_stdout && strcmp(option->name, "output") == 0 ? "-" : place;
}

/* "a" and "./a" are one place, whether the file is there or not. */
static bool is_same_place(const char *one, const char *other)
{
    struct stat a;
    struct stat b;
    while (strncmp(one, "./", 2) == 0)
        one += 2;
    while (strncmp(other, "./", 2) == 0)
        other += 2;
    return strcmp(one, other) == 0 ||
           (stat(one, &a) == 0 && S_ISREG(a.st_mode) && stat(other, &b) == 0 &&
            a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

bool frag_inputs_places(const frag_arguments *arguments, bool uses_stdout, frag_error *error)
{
    const frag_command_option *options = frag_arguments_command(arguments)->options;
    for (const frag_command_option *one = options; one->name != NULL; one++) {
        const char *place = place_of(arguments, one, uses_stdout);
        if (place == NULL || strcmp(place, "/dev/null") == 0)
            continue;
        if (!frag_inputs_spare(arguments, place, error))
            return false;
        for (const frag_command_option *other = one + 1; other->name != NULL; other++) {
            const char *second = place_of(arguments, other, uses_stdout);
            if (second != NULL && is_same_place(place, second))
                return frag_fail(error, FRAG_E_USAGE,
                                 "the %s and the %s cannot both go to %s; name a file for one",
                                 other->writes, one->writes,
                                 strcmp(place, "-") == 0 ? "stdout" : place);
        }
    }
    return true;
}

bool frag_inputs_beside(const frag_arguments *arguments, const char *path, const char *writes,
                        frag_error *error)
{
    if (!frag_inputs_spare(arguments, path, error))
        return false;
    const frag_command_option *option = frag_arguments_command(arguments)->options;
    for (; option->name != NULL; option++) {
        const char *place = place_of(arguments, option, false);
        if (place != NULL && is_same_place(place, path))
            return frag_fail(error, FRAG_E_USAGE,
                             "the %s and the %s cannot both go to %s; name a file for one", writes,
                             option->writes, path);
    }
    return true;
}

frag_output *frag_inputs_output(const frag_arguments *arguments, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "output");
    if (!frag_inputs_spare(arguments, path, error))
        return NULL;
    return frag_output_open(path != NULL ? path : "-", frag_arguments_has(arguments, "force"),
                            error);
}

bool frag_inputs_spare_terminal(frag_output *output, const char *what, const char *otherwise,
                                frag_error *error)
{
    return isatty(fileno(frag_output_stream(output))) != 1 ||
           frag_fail(error, FRAG_E_USAGE, "a terminal cannot show %s; %s", what, otherwise);
}
