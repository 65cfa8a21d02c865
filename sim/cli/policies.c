#include "sim/cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/registry.h"
#include "sim/base/bytes.h"
#include "sim/base/json.h"
#include "sim/base/text.h"

static const char *const type_names[] = {
    [FRAG_OPTION_BYTES] = "bytes", [FRAG_OPTION_COUNT] = "count", [FRAG_OPTION_RATIO] = "ratio",
    [FRAG_OPTION_FLAG] = "flag",   [FRAG_OPTION_ENUM] = "enum",   [FRAG_OPTION_TEXT] = "text",
};

/* One end of the range of sizes or counts. */
static void add_limit(frag_text *text, const frag_option *option, uint64_t limit)
{
    char bytes[FRAG_BYTES_TEXT_MAX];
    if (limit == FRAG_UNLIMITED)
        frag_text_add(text, "unlimited");
    else if (option->type == FRAG_OPTION_BYTES)
        frag_text_add(text, "%s", frag_bytes_text(limit, bytes));
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

static void print_page(const frag_policy_ops *policy)
{
    printf("%s - %s\n\nsource  %s\nbound   %s\n", policy->name, policy->summary, policy->source,
           policy->bound[0] != '\0' ? policy->bound : "none proved");
    if (policy->checked != NULL)
        printf("checked against %s\n", policy->checked);
    bool has_options = policy->options != NULL && policy->options->key != NULL;
    printf("\n%s\n", has_options ? "options" : "no options");
    for (const frag_option *option = policy->options; has_options && option->key != NULL;
         option++) {
        frag_text range = {.bytes = NULL};
        add_range(&range, option);
        printf("  %s=%s  (%s)\n      %s\n", option->key, option->default_text, range.bytes,
               option->help);
        frag_text_destroy(&range);
    }
    if (policy->stats != NULL)
        printf("\nstatistics  it keeps its own, under the framework's names: fraglab run "
               "--stats-at\n");
    if (policy->describe_oom != NULL)
        printf("%smessages    an OOM has the framework's words: fraglab run -v, oom.message\n",
               policy->stats != NULL ? "" : "\n");
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

static void print_json(const frag_policy_ops *policy)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "name", policy->name);
    frag_json_text(json, "summary", policy->summary);
    frag_json_text(json, "source", policy->source);
    frag_json_text(json, "bound", policy->bound[0] != '\0' ? policy->bound : NULL);
    frag_json_text(json, "checked", policy->checked);
    frag_json_flag(json, "keeps_statistics", policy->stats != NULL);
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
    {.name = "format",
     .argument = "FORMAT",
     .choices = "table|jsonl",
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
    .summary = "list the policies, or one with its options, source and bound",
    .description = "Lists every policy with the paper or program it follows. With a NAME it prints "
                   "one page on that "
                   "policy: each option with its default and range, where the algorithm comes "
                   "from, and the bound "
                   "that is proved for it.",
    .examples = "fraglab policies\n"
                "fraglab policies best-fit\n"
                "fraglab policies --format jsonl | jq -r .name",
    .options = policies_options,
    .operand_max = 1,
    .run = run_policies,
};
