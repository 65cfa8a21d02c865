/* Rows before and after a change. */
#include <math.h>
#include <string.h>

#include "api/api_call.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "studies/compare/comparison_json.h"
#include "studies/compare/comparison_wishes.h"

struct fraglab_comparison {
    frag_scope *scope;
    frag_comparison comparison;
    bool has_finding;
    const char *lines;
};

typedef struct rows_source {
    const char *path; /* NULL: bytes */
    const void *bytes;
    size_t count;
    const char *name;
} rows_source;

typedef struct compare_call {
    rows_source base;
    rows_source now;
    const fraglab_compare_options *given;
    fraglab_comparison **made;
} compare_call;

static frag_input *open_rows(const rows_source *from, frag_error *error)
{
    return from->path != NULL ? frag_input_open(from->path, error)
                              : frag_input_from_memory(from->count > 0 ? from->bytes : "",
                                                       from->count, from->name);
}

static bool read_rows(const compare_call *call, const frag_comparison_wishes *wishes,
                      frag_comparison *comparison, frag_error *error)
{
    frag_input *base = open_rows(&call->base, error);
    frag_input *now = base != NULL ? open_rows(&call->now, error) : NULL;
    bool ok =
        now != NULL && frag_comparison_read_inputs(base, now, &wishes->options, comparison, error);
    frag_input_close(now);
    frag_input_close(base);
    return ok && frag_comparison_wishes_check(wishes, comparison, error);
}

static bool compare_work(void *arguments, frag_error *error)
{
    compare_call *call = arguments;
    fraglab_compare_options options;
    frag_comparison_wishes wishes;
    if (!frag_call_read(call->given, &options, sizeof options, "fraglab_compare_options", error))
        return false;
    const frag_wish_texts thresholds = {"thresholds", options.thresholds, options.threshold_count};
    const frag_wish_texts metrics = {"metrics", options.metrics, options.metric_count};
    fraglab_comparison *made = frag_alloc(1, sizeof *made);
    if (!frag_comparison_wishes_parse("fail_above", options.fail_above, &thresholds, &metrics,
                                      &wishes, error) ||
        !read_rows(call, &wishes, &made->comparison, error))
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    frag_comparison_print_json(frag_text_stream_file(stream), &made->comparison);
    made->lines = frag_text_stream_close(stream, NULL);
    made->has_finding = frag_comparison_has_finding(&made->comparison, options.allow_missing == 0);
    frag_comparison_wishes_destroy(&wishes);
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_compare_paths(const char *base, const char *now, const fraglab_compare_options *options,
                          fraglab_comparison **comparison, fraglab_error *error)
{
    compare_call call = {
        .base = {.path = base}, .now = {.path = now}, .given = options, .made = comparison};
    *comparison = NULL;
    return frag_call_new(compare_work, &call, error);
}

int fraglab_compare_memory(const void *base, size_t base_bytes, const void *now, size_t now_bytes,
                           const fraglab_compare_options *options, fraglab_comparison **comparison,
                           fraglab_error *error)
{
    compare_call call = {.base = {.bytes = base, .count = base_bytes, .name = "base"},
                         .now = {.bytes = now, .count = now_bytes, .name = "now"},
                         .given = options,
                         .made = comparison};
    *comparison = NULL;
    return frag_call_new(compare_work, &call, error);
}

void fraglab_comparison_destroy(fraglab_comparison *comparison)
{
    if (comparison != NULL)
        frag_scope_destroy(comparison->scope);
}

/* ---- what it says */

const char *fraglab_comparison_json(const fraglab_comparison *comparison)
{
    return comparison->lines;
}

int fraglab_comparison_has_finding(const fraglab_comparison *comparison)
{
    return comparison->has_finding;
}

size_t fraglab_comparison_rows(const fraglab_comparison *comparison, fraglab_compared_row *out,
                               size_t capacity)
{
    size_t count = comparison->comparison.row_count;
    for (size_t i = 0; out != NULL && i < count && i < capacity; i++) {
        const frag_compared_row *row = &comparison->comparison.rows[i];
        out[i] = (fraglab_compared_row){
            .trace = row->trace,
            .policy = row->policy,
            .device = row->device,
            .problem = row->problem,
            .note = row->note,
            .worse = row->verdicts[FRAG_VERDICT_WORSE],
            .better = row->verdicts[FRAG_VERDICT_BETTER],
            .is_missing = row->is_missing,
            .is_new = row->is_new,
        };
    }
    return count;
}

static fraglab_compared_metric metric_of(size_t row, const frag_compared_metric *metric)
{
    static const int32_t verdicts[FRAG_VERDICT_COUNT] = {
        [FRAG_VERDICT_SAME] = FRAGLAB_SAME,       [FRAG_VERDICT_WITHIN] = FRAGLAB_WITHIN,
        [FRAG_VERDICT_BETTER] = FRAGLAB_BETTER,   [FRAG_VERDICT_WORSE] = FRAGLAB_WORSE,
        [FRAG_VERDICT_UNKNOWN] = FRAGLAB_UNKNOWN,
    };
    return (fraglab_compared_metric){
        .row = row,
        .path = metric->path,
        .base = metric->has_base ? metric->base : NAN,
        .now = metric->has_now ? metric->now : NAN,
        .change = metric->has_base && metric->has_now ? metric->change_ratio : NAN,
        .verdict = verdicts[metric->verdict],
    };
}

size_t fraglab_comparison_metrics(const fraglab_comparison *comparison,
                                  fraglab_compared_metric *out, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->comparison.row_count; i++) {
        const frag_compared_row *row = &comparison->comparison.rows[i];
        for (size_t m = 0; m < row->metric_count; m++, count++)
            if (out != NULL && count < capacity)
                out[count] = metric_of(i, &row->metrics[m]);
    }
    return count;
}
