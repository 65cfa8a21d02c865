#include "cli/search/tune_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_table.h"

/* Names that a person reads in one figure. */
#define DRAWN_MAX 12

/* ---- cells */

static const char *change_text(double before, double after, char text[FRAG_BYTES_TEXT_MAX])
{
    if (before > 0)
        snprintf(text, FRAG_BYTES_TEXT_MAX, "%+.1f%%", (after / before - 1) * 100);
    else
        snprintf(text, FRAG_BYTES_TEXT_MAX, "-");
    return text;
}

static const char *outcome_text(const frag_tuned *tuned, const frag_tune_outcome *outcome,
                                char text[FRAG_BYTES_TEXT_MAX])
{
    if (!outcome->is_done || outcome->is_refused)
        snprintf(text, FRAG_BYTES_TEXT_MAX, "refused");
    else if (outcome->is_oom && tuned->goal == FRAG_TUNE_MIN_CAPACITY)
        snprintf(text, FRAG_BYTES_TEXT_MAX, "none is enough");
    else if (outcome->is_oom)
        snprintf(text, FRAG_BYTES_TEXT_MAX, "OOM at %s", FRAG_COUNT(outcome->oom_event));
    else
        frag_bytes_text(outcome->bytes, text);
    return text;
}

static void subject_name(const frag_tune_subject *subject, frag_text *name)
{
    frag_text_clear(name);
    frag_text_add(name, "%s", subject->recording->name);
    if (subject->recording->trace_count > 1)
        frag_text_add(name, " device %" PRIu32, subject->trace->device);
    if (subject->is_held_out)
        frag_text_add(name, ", held out");
}

/* ---- the table of traces */

static void add_compared(frag_text_table *table, const frag_tuned *tuned,
                         const frag_tune_subject *subject, frag_tune_role role)
{
    char text[FRAG_BYTES_TEXT_MAX];
    const frag_tune_outcome *before = &subject->outcomes[FRAG_TUNE_DEFAULT];
    const frag_tune_outcome *after = &subject->outcomes[role];
    frag_text_table_add(table, outcome_text(tuned, after, text));
    frag_text_table_add(table, frag_tune_has_bytes(before) && frag_tune_has_bytes(after)
                                   ? change_text((double)before->bytes, (double)after->bytes, text)
                                   : "-");
}

/* How far the tuned setting is above what no setting, or none that does not know the future, can go
 * under. */
static void add_bound(frag_text_table *table, const frag_tune_subject *subject, uint64_t bytes)
{
    char text[FRAG_BYTES_TEXT_MAX];
    const frag_tune_outcome *best = &subject->outcomes[FRAG_TUNE_BEST];
    frag_text_table_add(table, frag_bytes_text(bytes, text));
    frag_text_table_add(table, frag_tune_has_bytes(best)
                                   ? change_text((double)bytes, (double)best->bytes, text)
                                   : "-");
}

static void print_traces(FILE *stream, const frag_tuned *tuned)
{
    bool has_advised = tuned->space->has_advised;
    frag_text_table table = {.columns =
                                 5 + (has_advised ? 2u : 0u) + (tuned->has_bounds ? 3u : 0u)};
    frag_text name = {0};
    char text[FRAG_BYTES_TEXT_MAX];
    frag_text_table_add(&table, "trace");
    frag_text_table_add(&table, "default");
    frag_text_table_add(&table, "tuned");
    frag_text_table_add(&table, "change");
    if (has_advised) {
        frag_text_table_add(&table, "max_split_size_mb:128");
        frag_text_table_add(&table, "change");
    }
    frag_text_table_add(&table,
                        tuned->others_bytes > 0 ? "peak requested + others" : "peak requested");
    if (tuned->has_bounds) {
        frag_text_table_add(&table, "tuned over it");
        frag_text_table_add(&table, "offline packing");
        frag_text_table_add(&table, "tuned over it");
    }
    for (size_t i = 0; i < tuned->subject_count; i++) {
        const frag_tune_subject *subject = &tuned->subjects[i];
        uint64_t bound = frag_trace_bound_bytes(subject->trace) + tuned->others_bytes;
        subject_name(subject, &name);
        frag_text_table_add(&table, name.bytes);
        frag_text_table_add(&table,
                            outcome_text(tuned, &subject->outcomes[FRAG_TUNE_DEFAULT], text));
        add_compared(&table, tuned, subject, FRAG_TUNE_BEST);
        if (has_advised)
            add_compared(&table, tuned, subject, FRAG_TUNE_ADVISED);
        if (tuned->has_bounds) {
            add_bound(&table, subject, bound);
            add_bound(&table, subject, subject->packing.bytes + tuned->others_bytes);
        } else {
            frag_text_table_add(&table, frag_bytes_text(bound, text));
        }
    }
    frag_text_destroy(&name);
    frag_text_table_print(&table, false, stream);
}

/* ---- what each further option gains */

static void setting_with_fraction(const frag_tuned *tuned, const frag_tune_point *point,
                                  frag_text *setting)
{
    const char *fraction = frag_tune_space_fraction(tuned->space, point);
    frag_tune_space_setting(tuned->space, point, setting);
    if (fraction != NULL)
        frag_text_add(setting, "%sset_per_process_memory_fraction(%s)",
                      setting->length > 0 ? " and " : "", fraction);
    if (setting->length == 0)
        frag_text_add(setting, "(default)");
}

/* Over the bound and not over the default, which can have run out of memory. */
static void print_front(FILE *stream, const frag_tuned *tuned)
{
    bool has_calls = tuned->goal == FRAG_TUNE_PEAK;
    frag_text_table table = {.columns = 3 + (has_calls ? 1u : 0u) + (tuned->has_bounds ? 1u : 0u),
                             .is_last_text = true};
    frag_text setting = {0};
    char text[FRAG_BYTES_TEXT_MAX];
    frag_text_table_add(&table, "options");
    frag_text_table_add(&table, "over bound");
    if (tuned->has_bounds)
        frag_text_table_add(&table, "over packing");
    if (has_calls)
        frag_text_table_add(&table, "device calls");
    frag_text_table_add(&table, "setting");
    for (uint32_t changed = 0; changed <= frag_tune_most_changed(tuned); changed++) {
        const frag_tune_point *point;
        if (!frag_tune_find_step(tuned, changed, &point))
            continue;
        snprintf(text, sizeof text, "%" PRIu32, changed);
        frag_text_table_add(&table, text);
        if (point->score.failed > 0)
            snprintf(text, sizeof text, "%" PRIu32 " OOM", point->score.failed);
        else
            change_text(1, point->score.size, text);
        frag_text_table_add(&table, text);
        if (tuned->has_bounds)
            frag_text_table_add(&table, point->score.failed > 0
                                            ? "-"
                                            : change_text(1, point->score.over_packing, text));
        if (has_calls)
            frag_text_table_add(&table, frag_count_text(point->score.calls, text));
        setting_with_fraction(tuned, point, &setting);
        frag_text_table_add(&table, setting.bytes);
    }
    frag_text_destroy(&setting);
    frag_text_table_print(&table, false, stream);
}

/* ---- memory against its cost */

static const char *cost_text(const frag_tuned *tuned, const frag_tune_point *point,
                             char text[FRAG_BYTES_TEXT_MAX])
{
    if (!tuned->has_latency)
        return frag_count_text(point->score.calls, text);
    snprintf(text, FRAG_BYTES_TEXT_MAX, "%.2f ms", point->score.time_ns / 1e6);
    return text;
}

/* The command that draws these points and the default on the first trace. */
static void add_front_command(const frag_arguments *arguments, const frag_tuned *tuned,
                              const frag_tune_point *const *points, size_t count,
                              frag_text *command)
{
    static const char *const repeated[] = {
        "capacity", "gpu", "used-by-others", "address-rule", "fail-call", "latency", "from"};
    frag_text label = {0};
    frag_text_clear(command);
    frag_text_add(command, "fraglab plot front ");
    frag_text_add_word(command, frag_arguments_operand(arguments, 0));
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++)
        if (frag_arguments_has(arguments, repeated[i])) {
            frag_text_add(command, " --%s ", repeated[i]);
            frag_text_add_word(command, frag_arguments_value(arguments, repeated[i]));
        }
    if (tuned->has_bounds)
        frag_text_add(command, " --bounds");
    /* The ends of the front and some between; and the default, which the gain is over. */
    size_t drawn = count < DRAWN_MAX ? count : DRAWN_MAX;
    bool has_default = false;
    for (size_t i = 0; i < drawn; i++) {
        const frag_tune_point *point = points[drawn > 1 ? i * (count - 1) / (drawn - 1) : 0];
        has_default = has_default || point->changed == 0;
        frag_tune_space_label(tuned->space, point, &label);
        frag_text_add(command, " -p ");
        frag_text_add_word(command, label.bytes);
    }
    if (!has_default) {
        frag_tune_space_label(tuned->space, &tuned->found->points[0], &label);
        frag_text_add(command, " -p ");
        frag_text_add_word(command, label.bytes);
    }
    frag_text_destroy(&label);
}

/* One setting that is best in both says nothing more than the tables before. */
static void print_costs(FILE *stream, const frag_arguments *arguments, const frag_tuned *tuned)
{
    const frag_tune_point **points;
    size_t count = frag_tune_front(tuned->found, tuned->has_latency, &points);
    frag_text_table table = {.columns = tuned->has_bounds ? 4 : 3, .is_last_text = true};
    frag_text text = {0};
    char cell[FRAG_BYTES_TEXT_MAX];
    if (count > 1) {
        fprintf(stream,
                "\nless memory costs more %s: nothing that was tried is better in both than\n\n",
                tuned->has_latency ? "time" : "device calls");
        frag_text_table_add(&table, "over bound");
        if (tuned->has_bounds)
            frag_text_table_add(&table, "over packing");
        frag_text_table_add(&table, tuned->has_latency ? "modelled time" : "device calls");
        frag_text_table_add(&table, "setting");
        for (size_t i = 0; i < count; i++) {
            frag_text_table_add(&table, change_text(1, points[i]->score.size, cell));
            if (tuned->has_bounds)
                frag_text_table_add(&table, change_text(1, points[i]->score.over_packing, cell));
            frag_text_table_add(&table, cost_text(tuned, points[i], cell));
            setting_with_fraction(tuned, points[i], &text);
            frag_text_table_add(&table, text.bytes);
        }
        frag_text_table_print(&table, false, stream);
        add_front_command(arguments, tuned, points, count, &text);
        fprintf(stream, "\nto draw it: %s\n", text.bytes);
    }
    frag_text_destroy(&text);
    frag_free(points);
}

/* ---- sentences */

static void add_advised(frag_text *remarks, const frag_tune_subject *subject, const char *name)
{
    const frag_tune_outcome *before = &subject->outcomes[FRAG_TUNE_DEFAULT];
    const frag_tune_outcome *after = &subject->outcomes[FRAG_TUNE_ADVISED];
    if (frag_tune_has_bytes(before) && after->is_oom)
        frag_text_add(remarks,
                      "max_split_size_mb:128, which guides advise, makes it worse: out of memory, "
                      "where the default fits (%s)\n",
                      name);
    else if (frag_tune_has_bytes(before) && frag_tune_has_bytes(after) &&
             after->bytes > before->bytes)
        frag_text_add(remarks,
                      "max_split_size_mb:128, which guides advise, makes it worse: %s, %.2f times "
                      "the default (%s)\n",
                      FRAG_BYTES(after->bytes), (double)after->bytes / (double)before->bytes, name);
}

static bool is_worse(const frag_tune_outcome *before, const frag_tune_outcome *after)
{
    return (after->is_oom && !before->is_oom) ||
           (frag_tune_has_bytes(before) && frag_tune_has_bytes(after) &&
            after->bytes > before->bytes);
}

static void print_remarks(FILE *stream, const frag_tuned *tuned)
{
    frag_text remarks = {0};
    frag_text name = {0};
    if (tuned->found->points[tuned->found->best].score.failed > 0)
        frag_text_add(&remarks, "no setting that was tried serves every request\n");
    for (size_t i = 0; i < tuned->subject_count; i++) {
        const frag_tune_subject *subject = &tuned->subjects[i];
        subject_name(subject, &name);
        const frag_tune_outcome *best = &subject->outcomes[FRAG_TUNE_BEST];
        if (best->is_refused)
            frag_text_add(&remarks, "the tuned setting is refused on %s: %s\n", name.bytes,
                          best->error.sentence);
        else if (is_worse(&subject->outcomes[FRAG_TUNE_DEFAULT], best))
            frag_text_add(&remarks, "the tuned setting is worse than the default on %s\n",
                          name.bytes);
    }
    for (size_t i = 0; i < tuned->subject_count && tuned->space->has_advised; i++) {
        subject_name(&tuned->subjects[i], &name);
        add_advised(&remarks, &tuned->subjects[i], name.bytes);
    }
    if (remarks.length > 0)
        fprintf(stream, "\n%s", remarks.bytes);
    frag_text_destroy(&name);
    frag_text_destroy(&remarks);
}

static void print_setting(FILE *stream, const frag_tuned *tuned)
{
    const frag_tune_point *best = &tuned->found->points[tuned->found->best];
    const char *fraction = frag_tune_space_fraction(tuned->space, best);
    frag_text text = {0};
    frag_text word = {0}; /* what is to be pasted, as a shell reads it */
    frag_tune_space_setting(tuned->space, best, &text);
    if (best->changed == 0)
        fprintf(stream, "    nothing that was tried is better than the default\n");
    else if (!tuned->space->is_literal) {
        frag_tune_space_label(tuned->space, best, &text);
        frag_text_add_word(&word, text.bytes);
        fprintf(stream, "    --policy %s\n", word.bytes);
    } else {
        if (text.length > 0) {
            frag_text_add_word(&word, text.bytes);
            fprintf(stream, "    PYTORCH_CUDA_ALLOC_CONF=%s\n", word.bytes);
        }
        if (fraction != NULL)
            fprintf(stream, "    torch.cuda.set_per_process_memory_fraction(%s)\n", fraction);
    }
    frag_text_destroy(&word);
    frag_text_destroy(&text);
}

void frag_tune_print_table(FILE *stream, const frag_arguments *arguments, const frag_tuned *tuned)
{
    const frag_tune_point *best = &tuned->found->points[tuned->found->best];
    size_t searched = 0;
    for (size_t i = 0; i < tuned->subject_count; i++)
        searched += tuned->subjects[i].is_held_out ? 0 : 1;
    fprintf(stream, "%s for the least %s", tuned->space->base->text,
            tuned->goal == FRAG_TUNE_PEAK ? "peak reserved" : "capacity");
    if (tuned->goal == FRAG_TUNE_PEAK && tuned->capacity_bytes != FRAG_UNLIMITED)
        fprintf(stream, " on %s", FRAG_BYTES(tuned->capacity_bytes));
    fprintf(stream, ": %s setting%s tried on %zu trace%s, seed %" PRIu64 "%s\n\n",
            FRAG_COUNT(tuned->found->count), tuned->found->count == 1 ? "" : "s", searched,
            searched == 1 ? "" : "s", tuned->seed, tuned->is_timed ? ", ended by --seconds" : "");
    print_setting(stream, tuned);
    fputc('\n', stream);
    print_traces(stream, tuned);
    if (best->changed > 0) {
        fputc('\n', stream);
        print_front(stream, tuned);
    }
    if (tuned->goal == FRAG_TUNE_PEAK)
        print_costs(stream, arguments, tuned);
    print_remarks(stream, tuned);
}
