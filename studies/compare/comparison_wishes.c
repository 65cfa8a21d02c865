#include "studies/compare/comparison_wishes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

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
    return frag_fail(error, FRAG_E_USAGE, "'%s' is not an amount; write 1%%, 16MiB or 3", part);
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

/* METRIC=AMOUNT */
static bool parse_threshold(const char *text, char **pattern, frag_threshold *threshold,
                            frag_error *error)
{
    *pattern = frag_copy_text(text);
    char *amount = strchr(*pattern, '=');
    if (amount == NULL || amount == *pattern)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' names no metric and amount; write peak.reserved_bytes=2%%", text);
    *amount++ = '\0';
    threshold->pattern = *pattern;
    return parse_amount(amount, threshold, error);
}

bool frag_comparison_wishes_parse(const char *general_name, const char *general,
                                  const frag_wish_texts *thresholds, const frag_wish_texts *metrics,
                                  frag_comparison_wishes *wishes, frag_error *error)
{
    *wishes = (frag_comparison_wishes){.metrics = *metrics, .thresholds = *thresholds};
    wishes->amounts = frag_alloc(thresholds->count, sizeof *wishes->amounts);
    wishes->patterns = frag_alloc(thresholds->count, sizeof *wishes->patterns);
    wishes->options = (frag_comparison_options){.general = {.pattern = "*"},
                                                .thresholds = wishes->amounts,
                                                .threshold_count = thresholds->count,
                                                .metrics = metrics->texts,
                                                .metric_count = metrics->count};
    if (!parse_amount(general != NULL ? general : "1%", &wishes->options.general, error))
        return frag_error_in(error, general_name);
    for (size_t i = 0; i < thresholds->count; i++)
        if (!parse_threshold(thresholds->texts[i], &wishes->patterns[i], &wishes->amounts[i],
                             error))
            return frag_error_in(error, thresholds->name);
    return true;
}

void frag_comparison_wishes_destroy(frag_comparison_wishes *wishes)
{
    for (size_t i = 0; wishes->patterns != NULL && i < wishes->thresholds.count; i++)
        frag_free(wishes->patterns[i]);
    frag_free(wishes->patterns);
    frag_free(wishes->amounts);
    *wishes = (frag_comparison_wishes){0};
}

static bool is_met(const frag_comparison *comparison, const char *pattern)
{
    for (size_t i = 0; i < comparison->row_count; i++)
        for (size_t m = 0; m < comparison->rows[i].metric_count; m++)
            if (frag_metric_matches(pattern, comparison->rows[i].metrics[m].path))
                return true;
    /* Rows without an OOM have no such metric, which is no mistake. */
    return strncmp(pattern, "oom.", 4) == 0;
}

static bool check_patterns(const frag_comparison *comparison, const char *name,
                           const char *const *patterns, size_t count, frag_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!is_met(comparison, patterns[i]))
            return frag_fail_in(
                error, FRAG_E_USAGE, name,
                "no row has a metric '%s'; fraglab compare --format jsonl lists their names",
                patterns[i]);
    return true;
}

bool frag_comparison_wishes_check(const frag_comparison_wishes *wishes,
                                  const frag_comparison *comparison, frag_error *error)
{
    return comparison->compared == 0 ||
           (check_patterns(comparison, wishes->metrics.name, wishes->metrics.texts,
                           wishes->metrics.count, error) &&
            check_patterns(comparison, wishes->thresholds.name,
                           (const char *const *)wishes->patterns, wishes->thresholds.count, error));
}
