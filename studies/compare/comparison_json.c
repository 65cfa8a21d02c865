#include "studies/compare/comparison_json.h"

#include <math.h>

#include "base/json.h"

static void add_json_value(frag_json *json, const char *path, bool has, double value)
{
    if (!has)
        frag_json_null(json, path);
    else if (value >= 0 && value < 0x1p53 && value == floor(value))
        frag_json_number(json, path, (uint64_t)value);
    else
        frag_json_ratio(json, path, value);
}

static void print_json_metric(FILE *stream, const frag_compared_row *row,
                              const frag_compared_metric *metric)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.compare/1");
    frag_json_text(json, "trace", row->trace);
    frag_json_text(json, "policy", row->policy);
    frag_json_text(json, "metric", metric->path);
    add_json_value(json, "base", metric->has_base, metric->base);
    add_json_value(json, "now", metric->has_now, metric->now);
    bool has_both = metric->has_base && metric->has_now;
    frag_json_ratio(json, "change_ratio", has_both ? metric->change_ratio : NAN);
    frag_json_text(json, "verdict", frag_verdict_name(metric->verdict));
    frag_json_write(json, stream, false);
}

void frag_comparison_print_json(FILE *stream, const frag_comparison *comparison)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        const frag_compared_row *row = &comparison->rows[i];
        for (size_t m = 0; m < row->metric_count; m++)
            print_json_metric(stream, row, &row->metrics[m]);
        if (row->problem == NULL && row->note == NULL)
            continue;
        frag_json *json = frag_json_create();
        frag_json_text(json, "schema", "fraglab.compare-row/1");
        frag_json_text(json, "trace", row->trace);
        frag_json_text(json, "policy", row->policy);
        frag_json_text(json, "device", row->device);
        frag_json_text(json, "problem", row->problem);
        frag_json_text(json, "note", row->note);
        frag_json_flag(json, "is_missing", row->is_missing);
        frag_json_flag(json, "is_new", row->is_new);
        frag_json_write(json, stream, false);
    }
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.compare-summary/1");
    frag_json_number(json, "rows.compared", comparison->compared);
    frag_json_number(json, "rows.not_compared", comparison->problems);
    frag_json_number(json, "rows.new", comparison->fresh);
    frag_json *metrics = frag_json_object(json, "metrics");
    for (size_t v = 0; v < FRAG_VERDICT_COUNT; v++)
        frag_json_number(metrics, frag_verdict_name((frag_verdict)v), comparison->verdicts[v]);
    frag_json_write(json, stream, false);
}
