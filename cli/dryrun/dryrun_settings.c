#include "cli/dryrun/dryrun_settings.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"

/* Larger tensors take longer to compute on the host than a dry run should. */
#define FOLLOWED_BYTES FRAG_MIB
#define FOLLOWED_BYTES_MAX (64 * FRAG_MIB)

/* "torch:Tensor.backward=3": after that function has returned three times. */
static bool add_until(const frag_arguments *arguments, frag_json *json, frag_error *error)
{
    const char *text = frag_arguments_value(arguments, "until");
    if (text == NULL)
        return true;
    const char *colon = strchr(text, ':');
    const char *equals = strchr(text, '=');
    uint64_t count = 1;
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    if (colon == NULL || colon == text || colon + 1 >= text + length)
        return frag_fail_in(
            error, FRAG_E_USAGE, "--until",
            "'%s' names no function; write MODULE:FUNCTION or MODULE:FUNCTION=COUNT, such as "
            "torch:Tensor.backward=3",
            text);
    if (equals != NULL && !frag_count_parse(equals + 1, 1, UINT32_MAX, &count, error))
        return frag_error_in(error, "--until");
    frag_text part = {0};
    frag_text_add_bytes(&part, text, (size_t)(colon - text));
    frag_json_text(json, "until.module", part.bytes);
    frag_text_clear(&part);
    frag_text_add_bytes(&part, colon + 1, length - (size_t)(colon + 1 - text));
    frag_json_text(json, "until.function", part.bytes);
    frag_json_number(json, "until.count", count);
    frag_text_destroy(&part);
    return true;
}

/* "train.py:31=0.05". */
static bool add_value(const char *text, frag_json *json, frag_error *error)
{
    const char *equals = strrchr(text, '=');
    const char *colon = equals;
    uint64_t line = 0;
    double value = 0;
    bool is_negative = equals != NULL && equals[1] == '-';
    while (colon != NULL && colon > text && *colon != ':')
        colon--;
    if (equals == NULL || colon == text)
        return frag_fail_in(error, FRAG_E_USAGE, "--value",
                            "'%s' is not a value; write FILE:LINE=NUMBER, such as train.py:31=0.05",
                            text);
    frag_text part = {0};
    frag_text_add_bytes(&part, colon + 1, (size_t)(equals - colon - 1));
    bool ok = frag_count_parse(part.bytes != NULL ? part.bytes : "", 1, UINT32_MAX, &line, error) &&
              frag_ratio_parse(equals + 1 + is_negative, 0, 1e300, &value, error);
    if (ok) {
        frag_json *item = frag_json_add(json, "values");
        frag_text_clear(&part);
        frag_text_add_bytes(&part, text, (size_t)(colon - text));
        frag_json_text(item, "file", part.bytes);
        frag_json_number(item, "line", line);
        frag_json_ratio(item, "value", is_negative ? -value : value);
    }
    frag_text_destroy(&part);
    return ok || frag_error_in(error, "--value");
}

static bool write_file(frag_json *json, const char *folder, frag_error *error)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/settings.json", folder);
    FILE *stream = fopen(path.bytes, "w");
    frag_text_destroy(&path);
    if (stream == NULL) {
        frag_json_destroy(json);
        return frag_fail(error, FRAG_E_SYSTEM, "the settings cannot be written (%s)",
                         strerror(errno));
    }
    frag_json_write(json, stream, false);
    return fclose(stream) == 0 ||
           frag_fail(error, FRAG_E_SYSTEM, "the settings cannot be written (%s)", strerror(errno));
}

bool frag_dryrun_read_followed(const frag_arguments *arguments, uint64_t *bytes, frag_error *error)
{
    *bytes = FOLLOWED_BYTES;
    const char *text = frag_arguments_value(arguments, "follow");
    if (!frag_arguments_bytes(arguments, "follow", bytes, error))
        return false;
    if (text != NULL && (*bytes == 0 || *bytes > FOLLOWED_BYTES_MAX))
        return frag_fail_in(error, FRAG_E_USAGE, "--follow",
                            "'%s' is not a size from 1 byte to 64MiB", text);
    return true;
}

bool frag_dryrun_settings_write(const frag_arguments *arguments, const frag_dryrun_wishes *wishes,
                                const char *folder, frag_error *error)
{
    frag_json *json = frag_json_create();
    uint64_t steps = frag_arguments_number(arguments, "steps", 0);
    if (steps > 0)
        frag_json_number(json, "steps", steps);
    else
        frag_json_null(json, "steps");
    frag_json_flag(json, "stacks", wishes->has_stacks);
    frag_json_flag(json, "progress", wishes->has_progress);
    frag_json_flag(json, "defaults", !frag_arguments_has(arguments, "no-defaults"));
    frag_json_number(json, "selected", frag_arguments_number(arguments, "selected", 100));
    frag_json_number(json, "rounds", frag_arguments_number(arguments, "rounds", 1000));
    uint64_t followed_bytes = 0;
    bool ok = frag_dryrun_read_followed(arguments, &followed_bytes, error);
    frag_json_number(json, "follow", followed_bytes);
    frag_json_number(json, "ranks", frag_arguments_number(arguments, "ranks", 0));
    frag_json_array(json, "values");
    ok = ok && add_until(arguments, json, error);
    for (size_t i = 0; ok && i < frag_arguments_value_count(arguments, "value"); i++)
        ok = add_value(frag_arguments_value_at(arguments, "value", i), json, error);
    if (ok)
        return write_file(json, folder, error);
    frag_json_destroy(json);
    return false;
}
