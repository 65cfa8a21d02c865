/* `fraglab compare`: which metrics got worse between two files of result rows. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/search/compare_views.h"
#include "studies/compare/comparison_json.h"
#include "studies/compare/comparison_wishes.h"

static const frag_command_option options[] = {
    {"fail-above", "AMOUNT",
     .help = "how much a metric may get worse before it is a finding: 1%, 16MiB, 3, or a share "
             "and an amount joined by a comma, of which both must be exceeded (default: 1%)"},
    {"threshold", "METRIC=AMOUNT",
     .help = "another amount for the metrics of that name; '*' stands for any text; may be "
             "repeated, and the last match counts"},
    {"metric", "METRIC",
     .help = "compare only these; '*' stands for any text; may be repeated (default: every "
             "metric but wall times)"},
    {"allow-missing",
     .help = "do not count rows of BASE that have no counterpart, or cannot be compared, as "
             "findings"},
    {"all", .help = "also print the metrics that did not change"},
    {"format", "FORMAT", .choices = "table|jsonl|markdown",
     .help = "how the differences are printed (default: table)"},
    {"annotate", "WHERE", .choices = "github",
     .help = "also print findings on stderr as annotations of the CI workflow"},
    {"junit", "FILE", .help = "also write a JUnit report there, with a test case for each metric",
     .writes = "JUnit report"},
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

/* Every value of an option that may be repeated; the caller frees the list. */
static const char **values_of(const frag_arguments *arguments, const char *option, size_t *count)
{
    *count = frag_arguments_value_count(arguments, option);
    const char **values = frag_alloc(*count, sizeof *values);
    for (size_t i = 0; i < *count; i++)
        values[i] = frag_arguments_value_at(arguments, option, i);
    return values;
}

typedef struct wish_lists {
    const char **thresholds;
    const char **metrics;
} wish_lists;

static bool read_wishes(const frag_arguments *arguments, wish_lists *lists,
                        frag_comparison_wishes *wishes, frag_error *error)
{
    frag_wish_texts thresholds = {.name = "--threshold"};
    frag_wish_texts metrics = {.name = "--metric"};
    thresholds.texts = lists->thresholds = values_of(arguments, "threshold", &thresholds.count);
    metrics.texts = lists->metrics = values_of(arguments, "metric", &metrics.count);
    return frag_comparison_wishes_parse("--fail-above",
                                        frag_arguments_value(arguments, "fail-above"), &thresholds,
                                        &metrics, wishes, error);
}

typedef struct places {
    frag_output *output;
    frag_output *junit;
} places;

static bool open_places(const frag_arguments *arguments, places *into, frag_error *error)
{
    const char *junit = frag_arguments_value(arguments, "junit");
    if (!frag_inputs_places(arguments, true, error))
        return false;
    if (junit != NULL) {
        into->junit = frag_output_open(junit, frag_arguments_has(arguments, "force"), error);
        if (into->junit == NULL)
            return frag_error_in(error, junit);
    }
    into->output = frag_inputs_output(arguments, error);
    return into->output != NULL;
}

static void print(const frag_arguments *arguments, const frag_comparison *comparison,
                  const frag_compare_view *view, const places *to)
{
    FILE *stream = frag_output_stream(to->output);
    if (frag_arguments_is(arguments, "format", "jsonl"))
        frag_comparison_print_json(stream, comparison);
    else if (frag_arguments_is(arguments, "format", "markdown"))
        frag_compare_print_markdown(stream, comparison, view);
    else
        frag_compare_print_table(stream, comparison, view);
    if (to->junit != NULL)
        frag_compare_print_junit(frag_output_stream(to->junit), comparison, view);
    if (frag_arguments_has(arguments, "annotate"))
        frag_compare_print_github(stderr, comparison, view);
}

static bool finish_places(places *to, frag_error *error)
{
    bool ok = frag_output_finish(to->output, error);
    ok = frag_output_end(to->junit, ok, error) && ok;
    *to = (places){0};
    return ok;
}

static int compare_command(const frag_arguments *arguments)
{
    frag_error error = {0};
    wish_lists lists = {0};
    frag_comparison_wishes wishes = {0};
    places to = {0};
    frag_comparison comparison = {0};
    frag_compare_view view = {
        .shows_all = frag_arguments_has(arguments, "all"),
        .is_missing_a_fault = !frag_arguments_has(arguments, "allow-missing"),
    };
    int code = 0;
    if (!read_wishes(arguments, &lists, &wishes, &error) || !open_places(arguments, &to, &error) ||
        !frag_comparison_read(frag_arguments_operand(arguments, 0),
                              frag_arguments_operand(arguments, 1), &wishes.options, &comparison,
                              &error) ||
        !frag_comparison_wishes_check(&wishes, &comparison, &error)) {
        code = frag_report(&error);
    } else {
        print(arguments, &comparison, &view, &to);
        bool has_finding = frag_comparison_has_finding(&comparison, view.is_missing_a_fault);
        code = !finish_places(&to, &error) ? frag_report(&error) : has_finding ? 1 : 0;
    }
    frag_output_abandon(to.output);
    frag_output_abandon(to.junit);
    if (comparison.kept != NULL)
        frag_comparison_destroy(&comparison);
    frag_comparison_wishes_destroy(&wishes);
    frag_free(lists.thresholds);
    frag_free(lists.metrics);
    return code;
}

const frag_command frag_command_compare = {
    .name = "compare",
    .operands = "BASE NEW",
    .summary = "compare result rows before and after a change, metric by metric; for CI",
    .description =
        "Reads two files of rows as 'fraglab run --format jsonl' and 'fraglab min-capacity "
        "--format jsonl' write them, and prints every metric that got worse or better by more "
        "than the threshold. Rows are matched by trace, policy label and device. A row of BASE "
        "without a counterpart, or whose trace or device differs, is named, and is a finding "
        "unless --allow-missing is given. Runs that end at different events are compared by their "
        "OOM point alone. docs/ci.md has the metrics and a workflow to copy.\n"
        "\n"
        "Exit: 0 nothing is worse; 1 a finding; 2 usage; 3 bad input; 4 the system refused.",
    .examples =
        "fraglab compare base.jsonl new.jsonl  # what changed?\n"
        "fraglab compare base.jsonl new.jsonl --fail-above 2% --annotate github  # in a workflow\n"
        "fraglab compare base.jsonl new.jsonl --threshold 'device_calls.*=5%,10'  # more than both",
    .options = options,
    .operand_min = 2,
    .operand_max = 2,
    .run = compare_command,
};
