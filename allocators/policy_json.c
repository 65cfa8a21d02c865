#include "allocators/policy_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "sim/policy_engine.h"

static const char *const type_names[] = {
    [FRAG_OPTION_BYTES] = "bytes", [FRAG_OPTION_COUNT] = "count", [FRAG_OPTION_RATIO] = "ratio",
    [FRAG_OPTION_FLAG] = "flag",   [FRAG_OPTION_ENUM] = "enum",   [FRAG_OPTION_TEXT] = "text",
};

/* One end of the range of sizes or counts. */
static void add_limit(frag_text *text, const frag_option *option, uint64_t limit)
{
    if (limit == FRAG_UNLIMITED)
        frag_text_add(text, "unlimited");
    else if (option->type == FRAG_OPTION_BYTES)
        frag_text_add(text, "%s", FRAG_BYTES(limit));
    else
        frag_text_add(text, "%" PRIu64, limit);
}

/* What may be written: "1 to 64", "best|first". */
void frag_option_add_range(frag_text *text, const frag_option *option)
{
    switch (option->type) {
    case FRAG_OPTION_BYTES:
    case FRAG_OPTION_COUNT:
        add_limit(text, option, option->min);
        frag_text_add(text, " to ");
        add_limit(text, option, option->max);
        break;
    case FRAG_OPTION_RATIO:
        frag_text_add(text, "%g to %g", option->ratio_min, option->ratio_max);
        break;
    case FRAG_OPTION_FLAG:
        frag_text_add(text, "true|false");
        break;
    case FRAG_OPTION_ENUM:
        frag_text_add(text, "%s", option->choices);
        break;
    case FRAG_OPTION_TEXT:
        frag_text_add(text, "text");
        break;
    }
}

void frag_policy_name_rules(const frag_policy_rules *rules,
                            frag_named_rule named[FRAG_POLICY_RULE_COUNT])
{
    const frag_named_rule all[FRAG_POLICY_RULE_COUNT] = {
        {"rounding", rules->rounding, "rounding"}, {"takes", rules->takes, "takes"},
        {"cuts", rules->cuts, "splits"},           {"joins", rules->joins, "coalesces"},
        {"grows", rules->grows, "grows"},          {"streams", rules->streams, "streams"},
    };
    memcpy(named, all, sizeof all);
}

static void add_rules_json(frag_json *json, const frag_policy_rules *rules)
{
    frag_named_rule named[FRAG_POLICY_RULE_COUNT];
    if (rules == NULL) {
        frag_json_text(json, "rules", NULL);
        return;
    }
    frag_policy_name_rules(rules, named);
    for (size_t i = 0; i < FRAG_POLICY_RULE_COUNT; i++) {
        char path[32];
        snprintf(path, sizeof path, "rules.%s", named[i].name);
        frag_json_text(json, path, named[i].text);
    }
}

void frag_policy_write_json(const frag_policy_ops *policy, FILE *stream)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "name", policy->name);
    frag_json_text(json, "summary", policy->summary);
    frag_json_text(json, "source", policy->source);
    frag_json_text(json, "bound", policy->bound[0] != '\0' ? policy->bound : NULL);
    frag_json_text(json, "checked", policy->checked);
    add_rules_json(json, policy->rules);
    frag_json_flag(json, "keeps_statistics", frag_policy_engine_of(policy)->statistics != NULL);
    frag_json_flag(json, "describes_oom", policy->describe_oom != NULL);
    frag_json_array(json, "options");
    for (const frag_option *option = policy->options; option != NULL && option->key != NULL;
         option++) {
        frag_text range = {.bytes = NULL};
        frag_option_add_range(&range, option);
        frag_json *item = frag_json_add(json, "options");
        frag_json_text(item, "key", option->key);
        frag_json_text(item, "type", type_names[option->type]);
        frag_json_text(item, "default", option->default_text);
        frag_json_text(item, "range", range.bytes);
        frag_json_text(item, "help", option->help);
        frag_text_destroy(&range);
    }
    frag_json_write(json, stream, false);
}
