/* `fraglab policies`: the list of policies, or one with its rules, options and source. */
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/help.h"
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
static void add_range(frag_text *text, const frag_option *option)
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

/* The choices in the order of the struct, under the names that pages and rows give them. */
typedef struct named_rule {
    const char *name;
    const char *text;
    const char *label; /* for people */
} named_rule;

enum { RULE_COUNT = 6, LABEL_COLUMNS = 8, RULE_COLUMNS = 13, OPTION_HELP_COLUMNS = 6 };

static void name_rules(const frag_policy_rules *rules, named_rule named[RULE_COUNT])
{
    const named_rule all[RULE_COUNT] = {
        {"rounding", rules->rounding, "rounding"}, {"takes", rules->takes, "takes"},
        {"cuts", rules->cuts, "splits"},           {"joins", rules->joins, "coalesces"},
        {"grows", rules->grows, "grows"},          {"streams", rules->streams, "streams"},
    };
    memcpy(named, all, sizeof all);
}

static void print_labelled(const char *label, const char *text)
{
    printf("%-*s", LABEL_COLUMNS, label);
    frag_help_print_wrapped(stdout, text, LABEL_COLUMNS, LABEL_COLUMNS);
}

/* Which library it is held against, if any; a policy from elsewhere may have the name of one of
 * ours. */
static void print_checked(const frag_policy_ops *policy)
{
    if (policy->checked != NULL) {
        frag_text text = {.bytes = NULL};
        frag_text_add(&text, "against %s", policy->checked);
        print_labelled("checked", text.bytes);
        frag_text_destroy(&text);
    } else if (frag_policy_find(policy->name) == policy) {
        print_labelled("checked", "not against a library, but as every policy against a slow "
                                  "checker that shares no code with it");
    } else {
        print_labelled("checked", "not by fraglab itself: make conformance POLICY=FILE.so does");
    }
}

static void print_rules(const frag_policy_rules *rules)
{
    named_rule named[RULE_COUNT];
    if (rules == NULL)
        return;
    name_rules(rules, named);
    printf("\nrules\n");
    for (size_t i = 0; i < RULE_COUNT; i++) {
        printf("  %-*s", RULE_COLUMNS - 2, named[i].label);
        frag_help_print_wrapped(stdout, named[i].text, RULE_COLUMNS, RULE_COLUMNS);
    }
}

static void print_page(const frag_policy_ops *policy)
{
    frag_text title = {.bytes = NULL};
    frag_text_add(&title, "%s - %s", policy->name, policy->summary);
    frag_help_print_wrapped(stdout, title.bytes, 0, 0);
    frag_text_destroy(&title);
    printf("\n");
    print_labelled("source", policy->source);
    print_labelled("bound", policy->bound[0] != '\0' ? policy->bound : "none proved");
    print_checked(policy);
    print_rules(policy->rules);
    bool has_options = policy->options != NULL && policy->options->key != NULL;
    printf("\n%s\n", has_options ? "options" : "no options");
    for (const frag_option *option = policy->options; has_options && option->key != NULL;
         option++) {
        frag_text range = {.bytes = NULL};
        add_range(&range, option);
        printf("  %s=%s  (%s)\n", option->key, option->default_text, range.bytes);
        frag_help_print_wrapped(stdout, option->help, OPTION_HELP_COLUMNS, 0);
        frag_text_destroy(&range);
    }
    if (frag_policy_engine_of(policy)->statistics != NULL)
        printf("\nstatistics  it keeps its own, under the framework's names: fraglab run "
               "--stats-at\n");
    if (policy->describe_oom != NULL)
        printf("%smessages    an OOM has the framework's words: fraglab run -v, oom.message\n",
               frag_policy_engine_of(policy)->statistics != NULL ? "" : "\n");
    printf("\nwrite it as --policy %s", policy->name);
    if (has_options)
        printf(" or --policy %s:%s=%s", policy->name, policy->options->key,
               policy->options->default_text);
    printf("\n");
}

static void print_list(void)
{
    size_t width = 0;
    for (const frag_policy_ops *const *policy = frag_policy_table; *policy != NULL; policy++)
        width = strlen((*policy)->name) > width ? strlen((*policy)->name) : width;
    for (const frag_policy_ops *const *policy = frag_policy_table; *policy != NULL; policy++)
        printf("%-*s  %s\n%*s  %s\n", (int)width, (*policy)->name, (*policy)->summary, (int)width,
               "", (*policy)->source);
}

static void add_rules_json(frag_json *json, const frag_policy_rules *rules)
{
    named_rule named[RULE_COUNT];
    if (rules == NULL) {
        frag_json_text(json, "rules", NULL);
        return;
    }
    name_rules(rules, named);
    for (size_t i = 0; i < RULE_COUNT; i++) {
        char path[32];
        snprintf(path, sizeof path, "rules.%s", named[i].name);
        frag_json_text(json, path, named[i].text);
    }
}

static void print_json(const frag_policy_ops *policy)
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
        add_range(&range, option);
        frag_json *item = frag_json_create();
        frag_json_text(item, "key", option->key);
        frag_json_text(item, "type", type_names[option->type]);
        frag_json_text(item, "default", option->default_text);
        frag_json_text(item, "range", range.bytes);
        frag_json_text(item, "help", option->help);
        frag_json_append(json, "options", item);
        frag_text_destroy(&range);
    }
    frag_json_write(json, stdout, false);
}

static const frag_command_option policies_options[] = {
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for people (the default), or one JSON object a line"},
    {.name = NULL},
};

static int run_policies(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    bool is_json = frag_arguments_is(arguments, "format", "jsonl");
    if (frag_arguments_operand_count(arguments) > 0) {
        const frag_policy_ops *policy =
            frag_policy_find_or_load(frag_arguments_operand(arguments, 0), &error);
        if (policy == NULL)
            return frag_report(&error);
        if (is_json)
            print_json(policy);
        else
            print_page(policy);
        return 0;
    }
    if (!is_json)
        print_list();
    for (const frag_policy_ops *const *policy = frag_policy_table; is_json && *policy != NULL;
         policy++)
        print_json(*policy);
    return 0;
}

const frag_command frag_command_policies = {
    .name = "policies",
    .operands = "[NAME|FILE.so]",
    .summary = "list the policies, or one with its rules, options and source",
    .description = "Lists every policy with the paper or program it follows. With a NAME it "
                   "prints one page on that policy: where the algorithm comes from and which "
                   "version it follows, the proved bound, whether it is tested against the "
                   "library itself, its rules, and each option with its default and range.",
    .examples = "fraglab policies\n"
                "fraglab policies best-fit\n"
                "fraglab policies --format jsonl | jq -r .name",
    .options = policies_options,
    .operand_max = 1,
    .run = run_policies,
};
