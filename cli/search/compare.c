/* `fraglab compare`: which metrics got worse between two files of result rows. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/search/compare_views.h"

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
    {"junit", "FILE", .help = "also write a JUnit report there, with a test case for each metric"},
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

/* One part of an amount: "1%", "16MiB", "3". */
static bool parse_part(const char *part, frag_threshold *threshold, frag_error *error)
{
    size_t length = strlen(part);
    char *end = NULL;
    errno = 0;
    double number = strtod(part, &end);
    /* strtod knows more numbers than people write. */
    bool is_plain = length > 0 && strspn(part, "0123456789.") == (size_t)(end - part) &&
                    end != part && errno == 0 && isfinite(number);
    if (is_plain && strcmp(end, "%") == 0) {
        threshold->ratio = number / 100;
        return true;
    }
    if (is_plain && *end == '\0') {
        threshold->amount = number;
        return true;
    }
    uint64_t bytes = 0;
    frag_error unused = {0};
    if (is_plain && frag_bytes_parse(part, &bytes, &unused)) {
        threshold->amount = (double)bytes;
        return true;
    }
    return frag_fail(error, FRAG_E_USAGE, "'%s' is no amount; write 1%%, 16MiB or 3", part);
}

static bool parse_amount(const char *text, frag_threshold *threshold, frag_error *error)
{
    char *copy = frag_copy_text(text);
    char *comma = strchr(copy, ',');
    if (comma != NULL)
        *comma = '\0';
    bool ok = parse_part(copy, threshold, error) &&
              (comma == NULL || parse_part(comma + 1, threshold, error));
    frag_free(copy);
    return ok;
}

typedef struct wishes {
    frag_comparison_options options;
    frag_threshold *thresholds;
    const char **metrics;
    char **patterns; /* owned, of the thresholds */
    size_t pattern_count;
} wishes;

static bool read_wishes(const frag_arguments *arguments, wishes *into, frag_error *error)
{
    const char *general = frag_arguments_value(arguments, "fail-above");
    into->options.general = (frag_threshold){.pattern = "*"};
    if (!parse_amount(general != NULL ? general : "1%", &into->options.general, error))
        return frag_error_in(error, "--fail-above");
    size_t count = frag_arguments_value_count(arguments, "threshold");
    into->thresholds = frag_alloc(count, sizeof *into->thresholds);
    into->patterns = frag_alloc(count, sizeof *into->patterns);
    for (size_t i = 0; i < count; i++) {
        char *pattern = frag_copy_text(frag_arguments_value_at(arguments, "threshold", i));
        into->patterns[into->pattern_count++] = pattern;
        char *amount = strchr(pattern, '=');
        if (amount == NULL || amount == pattern) {
            frag_fail(error, FRAG_E_USAGE,
                      "'%s' names no metric and amount; write peak.reserved_bytes=2%%", pattern);
            return frag_error_in(error, "--threshold");
        }
        *amount++ = '\0';
        into->thresholds[i].pattern = pattern;
        if (!parse_amount(amount, &into->thresholds[i], error))
            return frag_error_in(error, "--threshold");
    }
    into->options.thresholds = into->thresholds;
    into->options.threshold_count = count;
    count = frag_arguments_value_count(arguments, "metric");
    into->metrics = frag_alloc(count, sizeof *into->metrics);
    for (size_t i = 0; i < count; i++)
        into->metrics[i] = frag_arguments_value_at(arguments, "metric", i);
    into->options.metrics = into->metrics;
    into->options.metric_count = count;
    return true;
}

static void free_wishes(wishes *from)
{
    for (size_t i = 0; i < from->pattern_count; i++)
        frag_free(from->patterns[i]);
    frag_free(from->patterns);
    frag_free(from->thresholds);
    frag_free(from->metrics);
}

/* A pattern that means nothing in these rows is a misspelling that would let everything pass. */
static bool check_patterns(const wishes *wanted, const frag_comparison *comparison,
                           frag_error *error)
{
    if (comparison->compared == 0)
        return true;
    for (size_t p = 0; p < wanted->options.metric_count + wanted->pattern_count; p++) {
        bool is_metric = p < wanted->options.metric_count;
        const char *pattern =
            is_metric ? wanted->metrics[p] : wanted->patterns[p - wanted->options.metric_count];
        bool is_met = false;
        for (size_t i = 0; i < comparison->row_count && !is_met; i++)
            for (size_t m = 0; m < comparison->rows[i].metric_count && !is_met; m++)
                is_met = frag_metric_matches(pattern, comparison->rows[i].metrics[m].path);
        /* Rows without an OOM have no such metric, which is no mistake. */
        if (!is_met && strncmp(pattern, "oom.", 4) != 0) {
            frag_fail(error, FRAG_E_USAGE,
                      "no row has a metric '%s'; --all --format jsonl shows their names", pattern);
            return frag_error_in(error, is_metric ? "--metric" : "--threshold");
        }
    }
    return true;
}

typedef struct places {
    frag_output *output;
    frag_output *junit;
} places;

static bool open_places(const frag_arguments *arguments, places *into, frag_error *error)
{
    const char *junit = frag_arguments_value(arguments, "junit");
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
        frag_compare_print_jsonl(stream, comparison);
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
    if (to->junit != NULL && ok)
        ok = frag_output_finish(to->junit, error);
    else if (to->junit != NULL)
        frag_output_abandon(to->junit);
    *to = (places){0};
    return ok;
}

static int compare_command(const frag_arguments *arguments)
{
    frag_error error = {0};
    wishes wanted = {0};
    places to = {0};
    frag_comparison comparison = {0};
    frag_compare_view view = {
        .shows_all = frag_arguments_has(arguments, "all"),
        .is_missing_a_fault = !frag_arguments_has(arguments, "allow-missing"),
    };
    int code = 0;
    if (!read_wishes(arguments, &wanted, &error) || !open_places(arguments, &to, &error) ||
        !frag_comparison_read(frag_arguments_operand(arguments, 0),
                              frag_arguments_operand(arguments, 1), &wanted.options, &comparison,
                              &error) ||
        !check_patterns(&wanted, &comparison, &error)) {
        code = frag_report(&error);
    } else {
        print(arguments, &comparison, &view, &to);
        bool has_finding = comparison.verdicts[FRAG_VERDICT_WORSE] > 0 ||
                           (view.is_missing_a_fault && comparison.problems > 0);
        code = !finish_places(&to, &error) ? frag_report(&error) : has_finding ? 1 : 0;
    }
    if (to.output != NULL)
        frag_output_abandon(to.output);
    if (to.junit != NULL)
        frag_output_abandon(to.junit);
    if (comparison.kept != NULL)
        frag_comparison_destroy(&comparison);
    free_wishes(&wanted);
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
