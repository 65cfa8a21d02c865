#include "api/api_policy.h"

#include "allocators/policy_json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "sim/device/card_json.h"
#include "sim/device/card_table.h"

typedef struct parse_call {
    const char *text;
    fraglab_policy **made;
} parse_call;

static bool parse_work(void *arguments, frag_error *error)
{
    parse_call *call = arguments;
    fraglab_policy *made = frag_alloc(1, sizeof *made);
    if (!frag_policy_spec_parse(call->text, &made->spec, error))
        return false;
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_policy_parse(const char *text, fraglab_policy **policy, fraglab_error *error)
{
    parse_call call = {text, policy};
    *policy = NULL;
    return frag_call_new(parse_work, &call, error);
}

bool frag_call_policies(const frag_context *below, const fraglab_policy *const *given, size_t count,
                        frag_policy_list *policies, frag_error *error)
{
    policies->count = count;
    policies->specs = frag_alloc(count, sizeof *policies->specs);
    for (size_t i = 0; i < count; i++)
        if (!frag_policy_check_environment(below, &given[i]->spec, error) ||
            !frag_policy_spec_copy(&given[i]->spec, &policies->specs[i]))
            return false;
    return true;
}

const char *fraglab_policy_name(const fraglab_policy *policy)
{
    return policy->spec.ops->name;
}

void fraglab_policy_destroy(fraglab_policy *policy)
{
    if (policy != NULL)
        frag_scope_destroy(policy->scope);
}

size_t fraglab_policy_count(void)
{
    size_t count = 0;
    while (frag_policy_table[count] != NULL)
        count++;
    return count;
}

const char *fraglab_policy_name_at(size_t index)
{
    return index < fraglab_policy_count() ? frag_policy_table[index]->name : NULL;
}

typedef struct json_call {
    const char *name; /* NULL: all */
    char *json;
} json_call;

static bool policies_work(void *arguments, frag_error *error)
{
    json_call *call = arguments;
    frag_text_stream *stream = frag_text_stream_open();
    const frag_policy_ops *one = NULL;
    if (call->name != NULL && (one = frag_policy_find_or_load(call->name, error)) == NULL)
        return frag_error_in(error, call->name);
    for (size_t i = 0; one == NULL && frag_policy_table[i] != NULL; i++)
        frag_policy_write_json(frag_policy_table[i], frag_text_stream_file(stream));
    if (one != NULL)
        frag_policy_write_json(one, frag_text_stream_file(stream));
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_policies_json(const char *name, char **json, fraglab_error *error)
{
    json_call call = {name, NULL};
    int code = frag_call_once(policies_work, &call, error);
    *json = call.json;
    return code;
}

static bool cards_work(void *arguments, frag_error *error)
{
    json_call *call = arguments;
    size_t count = 0;
    char **names = frag_card_names(&count, error);
    if (names == NULL)
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    for (size_t i = 0; i < count; i++) {
        frag_device_description card;
        if (!frag_card_load(names[i], &card, NULL, error))
            return false;
        frag_card_write_json(names[i], &card, frag_text_stream_file(stream));
    }
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_cards_json(char **json, fraglab_error *error)
{
    json_call call = {NULL, NULL};
    int code = frag_call_once(cards_work, &call, error);
    *json = call.json;
    return code;
}
