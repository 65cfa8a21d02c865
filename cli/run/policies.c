/* `fraglab policies`: the list of policies, or one with its rules, options and source. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "allocators/policy_json.h"
#include "allocators/registry.h"
#include "base/text.h"
#include "cli/help.h"
#include "sim/policy_engine.h"

enum { LABEL_COLUMNS = 8, RULE_COLUMNS = 13, OPTION_HELP_COLUMNS = 6 };

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
    frag_named_rule named[FRAG_POLICY_RULE_COUNT];
    if (rules == NULL)
        return;
    frag_policy_name_rules(rules, named);
    printf("\nrules\n");
    for (size_t i = 0; i < FRAG_POLICY_RULE_COUNT; i++) {
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
        frag_option_add_range(&range, option);
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
            frag_policy_write_json(policy, stdout);
        else
            print_page(policy);
        return 0;
    }
    if (!is_json)
        print_list();
    for (const frag_policy_ops *const *policy = frag_policy_table; is_json && *policy != NULL;
         policy++)
        frag_policy_write_json(*policy, stdout);
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
