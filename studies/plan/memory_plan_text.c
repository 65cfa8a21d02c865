/* A plan for a person. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text_table.h"
#include "studies/plan/fix_offload.h"
#include "studies/plan/memory_plan.h"
#include "workload/description/field_values.h"

enum { BAR_WIDTH = 40, LABEL_WIDTH = 18 };

/* " · up to 512 tokens" */
static void print_lengths(const frag_lengths *lengths, const char *what, FILE *stream)
{
    fprintf(stream, " · %s%s %s", lengths->count > 1 ? "up to " : "",
            FRAG_COUNT(frag_lengths_largest(lengths)), what);
}

static void print_batch(const frag_workload *workload, FILE *stream)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    if (family->has_images)
        fprintf(stream, " · %s x %s %s", FRAG_COUNT(workload->network.image),
                FRAG_COUNT(workload->network.image),
                family->has_patches    ? "patches of 16 x 16 pixels"
                : family->is_diffusion ? "latent pixels"
                                       : "pixels");
    if (frag_lengths_largest(&workload->lookups) > 1)
        print_lengths(&workload->lookups, "lookups", stream);
    if (frag_workload_has_tokens(workload))
        print_lengths(&workload->tokens, "tokens", stream);
    if (family->has_graphs) {
        print_lengths(&workload->nodes, "nodes", stream);
        print_lengths(&workload->edges, "edges", stream);
    }
}

static bool is_parallel(const frag_memory_plan *plan)
{
    return plan->base.setting.workload.parallel != FRAG_PARALLEL_NONE;
}

/* transformers 5 loads weights in the type that they are stored in, where no other is asked for. */
static void print_stored(const frag_workload *workload, FILE *stream)
{
    bool is_wide =
        workload->precision == FRAG_PRECISION_FP32 || workload->precision == FRAG_PRECISION_TF32;
    if (is_wide && workload->stored != FRAG_PRECISION_FP32)
        fprintf(stream,
                "         its weights are stored in %s, in which transformers 5 loads them unless "
                "another dtype is given: --precision %s\n",
                workload->stored == FRAG_PRECISION_BF16 ? "bfloat16" : "float16",
                workload->stored == FRAG_PRECISION_BF16 ? "bf16" : "fp16");
}

/* An encoder is pretrained with a head for masked words, and trained with another. */
static void print_pretrained(const frag_workload *workload, FILE *stream)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool has_others = family->is_encoder && frag_family_has_head(family, FRAG_HEAD_SEQUENCE);
    if (has_others && workload->head == FRAG_HEAD_LM && workload->task == FRAG_TASK_TRAIN)
        fprintf(stream, "         with its head for masked words, as it is pretrained; to train "
                        "classes, which needs less: --head sequence-classification --labels N\n");
}

static void print_head(const frag_workload *workload, FILE *stream)
{
    frag_text name = {0};
    if (workload->head == FRAG_HEAD_LM)
        return;
    fprintf(stream, " · %s",
            frag_choices_name(frag_workload_knob("head")->choices, workload->head, &name));
    if (workload->head != FRAG_HEAD_ANSWER)
        fprintf(stream, ", %s label%s", FRAG_COUNT(workload->labels),
                workload->labels == 1 ? "" : "s");
    frag_text_destroy(&name);
}

static void print_question(const frag_memory_plan *plan, FILE *stream)
{
    const frag_workload *workload = &plan->base.setting.workload;
    frag_text precision = {0};
    fprintf(stream, "model    %s · %s", plan->name, frag_families[workload->network.family].name);
    print_head(workload, stream);
    fprintf(stream, " · %s · batch %s",
            frag_choices_name(frag_field_find(frag_knobs, "precision")->choices,
                              workload->precision, &precision),
            FRAG_COUNT(workload->batch));
    frag_text_destroy(&precision);
    if (workload->accumulate > 1)
        fprintf(stream, ", %s accumulated", FRAG_COUNT(workload->accumulate));
    print_batch(workload, stream);
    if (is_parallel(plan)) {
        frag_text name = {0};
        const frag_field *knob = frag_field_find(frag_knobs, "parallel");
        fprintf(stream, " · %s on %s devices",
                frag_choices_name(knob->choices, workload->parallel, &name),
                FRAG_COUNT(workload->devices));
        frag_text_destroy(&name);
    }
    fprintf(stream, " · PyTorch %s\n", FRAG_PLAN_TORCH);
    print_stored(workload, stream);
    print_pretrained(workload, stream);
    fprintf(stream, "card     %s%s · %s, %s of them for PyTorch\n", plan->gpu.card.name,
            frag_device_description_mark(&plan->gpu.card),
            FRAG_BYTES(plan->gpu.memory.capacity_bytes), FRAG_BYTES(plan->usable_bytes));
}

static void print_margin(const frag_memory_plan *plan, const frag_plan_trial *trial, FILE *stream)
{
    int64_t margin = frag_plan_margin(plan, trial);
    if (trial->result.needed_bytes == FRAG_UNLIMITED)
        fprintf(stream, "needs more than any card has");
    else
        fprintf(stream, "needs %s: %s %s", FRAG_BYTES(trial->result.needed_bytes),
                FRAG_BYTES(margin >= 0 ? (uint64_t)margin : (uint64_t)-margin),
                margin >= 0 ? "left" : "missing");
}

/* What speaks against the verdict of a trial. */
static void print_doubts(const frag_memory_plan *plan, const frag_plan_trial *trial,
                         const frag_plan_verdict *verdict, FILE *stream)
{
    const char *doubt = frag_plan_doubt(plan, trial, verdict);
    if (verdict->draws > 0)
        fprintf(stream,
                "lengths are drawn: %s of %s draws fit; the longest every time, one of them, %s\n",
                FRAG_COUNT(verdict->draws_served), FRAG_COUNT(verdict->draws),
                verdict->is_longest_served ? "fits" : "does not");
    if (doubt != NULL)
        fprintf(stream, "not sure: %s\n", doubt);
}

static void print_verdict(const frag_memory_plan *plan, FILE *stream)
{
    static const char *const verdicts[] = {
        [FRAG_FITS_NO] = "does not fit", [FRAG_FITS_YES] = "fits", [FRAG_FITS_UNKNOWN] = "unsure"};
    fprintf(stream, "\n%s; ", verdicts[plan->verdict.fits]);
    if (is_parallel(plan))
        fprintf(stream, "device %s decides: it ", FRAG_COUNT(plan->as_is.result.rank));
    print_margin(plan, &plan->as_is, stream);
    fprintf(stream, "; peak allocated %s, reserved %s with no limit\n",
            FRAG_BYTES(plan->as_is.result.peak.allocated_bytes),
            FRAG_BYTES(plan->as_is.result.peak.reserved_bytes));
    print_doubts(plan, &plan->as_is, &plan->verdict, stream);
}

/* ---- where the bytes are */
static void print_part(const char *name, uint64_t bytes, uint64_t whole, FILE *stream)
{
    int width = whole > 0 ? (int)((double)bytes / (double)whole * BAR_WIDTH + 0.5) : 0;
    if (bytes == 0)
        return;
    fprintf(stream, "  %-*s%12s%s", LABEL_WIDTH, name, FRAG_BYTES(bytes), width > 0 ? "  " : "");
    for (int i = 0; i < width; i++)
        fputc('#', stream);
    fputc('\n', stream);
}

static void print_parts(const frag_memory_plan *plan, FILE *stream)
{
    static const struct {
        frag_request_kind kind;
        const char *name;
    } shown[] = {{FRAG_REQUEST_WEIGHT, "weights"},         {FRAG_REQUEST_CAST, "autocast's copies"},
                 {FRAG_REQUEST_GRADIENT, "gradients"},     {FRAG_REQUEST_OPTIMIZER, "optimizer"},
                 {FRAG_REQUEST_ACTIVATION, "activations"}, {FRAG_REQUEST_TEMPORARY, "temporaries"},
                 {FRAG_REQUEST_INPUT, "inputs"},           {FRAG_REQUEST_WORKSPACE, "workspaces"}};
    const frag_fit_parts *parts = &plan->parts;
    uint64_t whole = plan->as_is.result.peak.reserved_bytes + plan->gpu.memory.context_bytes;
    fprintf(stream, "\nat the peak, with no limit");
    if (is_parallel(plan))
        fprintf(stream, ", on device %s", FRAG_COUNT(plan->as_is.result.rank));
    fputc('\n', stream);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        print_part(shown[i].name, parts->bytes[shown[i].kind], whole, stream);
    print_part("rounding", parts->rounding_bytes, whole, stream);
    print_part("caching", parts->caching_bytes, whole, stream);
    print_part("context", plan->gpu.memory.context_bytes, whole, stream);
}

/* ---- fixes */
/* Bytes that were saved, or none: "1.20 GiB", "–", "+12.00 MiB". */
static void add_saving(frag_text *cell, uint64_t before, uint64_t after)
{
    if (before == after)
        frag_text_add(cell, "–");
    else
        frag_text_add(cell, "%s%s", after > before ? "+" : "-",
                      FRAG_BYTES(after > before ? after - before : before - after));
}

/* So that the table says it: what lengths are drawn makes of all rows alike is not. */
static bool is_unsure(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    bool has_copies = (trial->setting.workload.offload & FRAG_OFFLOAD_GRADIENTS) != 0;
    return frag_plan_is_close(plan, trial) || (trial->fits && has_copies);
}

static void print_fixes(const frag_memory_plan *plan, FILE *stream)
{
    static const char *const titles[] = {"fix",      "here",  "costs", "allocated",
                                         "reserved", "needs", "fits"};
    frag_text_table table = {.columns = sizeof titles / sizeof *titles, .is_last_text = true};
    const frag_fit_result *before = &plan->as_is.result;
    fprintf(stream, "\neach fix alone, the cheapest first\n");
    for (size_t i = 0; i < table.columns; i++)
        frag_text_add(frag_text_table_cell(&table), "%s", titles[i]);
    for (size_t i = 0; i < plan->fix_count; i++) {
        const frag_plan_fix *row = &plan->fixes[i];
        const frag_fix *fix = &frag_fixes[row->fix];
        const frag_fit_result *after = &row->trial.result;
        frag_text_add(frag_text_table_cell(&table), "%s", fix->name);
        frag_fix_describe(fix, &row->trial.setting, frag_text_table_cell(&table));
        frag_text_add(frag_text_table_cell(&table), "%s", frag_fix_price_name(fix->price));
        add_saving(frag_text_table_cell(&table), before->peak.allocated_bytes,
                   after->peak.allocated_bytes);
        add_saving(frag_text_table_cell(&table), before->peak.reserved_bytes,
                   after->peak.reserved_bytes);
        frag_text_add(frag_text_table_cell(&table), "%s", FRAG_BYTES(after->needed_bytes));
        frag_text_add(frag_text_table_cell(&table), "%s%s", row->trial.fits ? "yes" : "no",
                      is_unsure(plan, &row->trial) ? ", not sure" : "");
    }
    frag_text_table_print(&table, false, stream);
    if (frag_fix_is_host_left_out(&plan->base))
        fprintf(stream, "offload-weights is not tried with so many new tokens, as it takes long; "
                        "--offload parameters plans it\n");
}

static void print_lines(const frag_memory_plan *plan, const frag_fix *fix,
                        const frag_fit_setting *setting, FILE *stream)
{
    for (uint32_t place = 0; place < FRAG_FIX_PLACE_COUNT; place++) {
        frag_text text = {0};
        frag_fix_write_line(fix, &plan->base, setting, (frag_fix_place)place, &text);
        const char *name = frag_fix_place_name((frag_fix_place)place);
        for (const char *line = text.bytes; text.length > 0 && *line != '\0'; name = "") {
            size_t length = strcspn(line, "\n");
            fprintf(stream, "  %-14s%.*s\n", name, (int)length, line);
            line += length + (line[length] == '\n');
        }
        frag_text_destroy(&text);
    }
}

static bool has_fix(const frag_memory_plan *plan, size_t index)
{
    return plan->answer.choice.levels[index] > 0;
}

static void print_recomputing(const frag_memory_plan *plan, FILE *stream)
{
    double ratio = frag_fix_recomputing_ratio(&plan->base.setting.workload);
    if (!isnan(ratio))
        fprintf(stream,
                "  recomputing takes about %.0f %% more time a step (estimate from "
                "operations; docs/plan.md)\n",
                100 * ratio);
}

static void print_moving(const frag_memory_plan *plan, const frag_fix *fix, FILE *stream)
{
    const frag_workload *workload = &plan->base.setting.workload;
    uint64_t bytes = frag_fix_moved_bytes(fix->moves, workload, &plan->parts);
    if (bytes > 0)
        fprintf(stream,
                "  about %s cross the bus each time, which takes %.2f s at 25 GB/s (estimate; "
                "docs/plan.md)\n",
                FRAG_BYTES(bytes), frag_fix_moving_seconds(bytes));
}

static void print_time(const frag_memory_plan *plan, const frag_fix *fix, FILE *stream)
{
    if (fix->is_recomputing)
        print_recomputing(plan, stream);
    print_moving(plan, fix, stream);
}

static void print_combination(const frag_memory_plan *plan, FILE *stream)
{
    if (plan->as_is.fits)
        return;
    bool is_unknown = plan->fixed_verdict.fits == FRAG_FITS_UNKNOWN;
    fprintf(stream, "\n%s\n",
            !plan->answer.fits ? "all fixes together do not fit"
            : is_unknown       ? "the cheapest combination that may fit"
                               : "the cheapest combination that fits");
    for (size_t i = 0; i < frag_fix_count(); i++) {
        frag_text text = {0};
        if (!has_fix(plan, i))
            continue;
        frag_fix_describe(&frag_fixes[i], &plan->fixed.setting, &text);
        fprintf(stream, "%s: %s\n", frag_fixes[i].name, text.bytes);
        print_lines(plan, &frag_fixes[i], &plan->fixed.setting, stream);
        print_time(plan, &frag_fixes[i], stream);
        frag_text_destroy(&text);
    }
    if (is_parallel(plan))
        fprintf(stream, "together device %s, which decides, ", FRAG_COUNT(plan->fixed.result.rank));
    else
        fprintf(stream, "together it ");
    print_margin(plan, &plan->fixed, stream);
    fputc('\n', stream);
    if (plan->answer.fits)
        print_doubts(plan, &plan->fixed, &plan->fixed_verdict, stream);
}

static void print_one_largest(const char *what, const frag_memory_plan *plan,
                              const frag_plan_largest *largest, FILE *stream)
{
    fprintf(stream, "%s: ", what);
    if (largest->batch == 0)
        fprintf(stream, "no batch");
    else
        fprintf(stream, "batch %s%s", FRAG_COUNT(largest->batch),
                largest->is_batch_limited ? " (more is not generated)" : "");
    if (!frag_workload_has_tokens(&plan->base.setting.workload))
        fputc('\n', stream);
    else if (largest->tokens == 0)
        fprintf(stream, ", and no length\n");
    else
        fprintf(stream, ", or %s tokens%s\n", FRAG_COUNT(largest->tokens),
                largest->is_tokens_limited ? " (the model takes no more)" : "");
}

static void print_largest(const frag_memory_plan *plan, FILE *stream)
{
    fprintf(stream, "\nthe largest that fit\n");
    print_one_largest("as it is", plan, &plan->largest, stream);
    if (plan->has_largest_fixed)
        print_one_largest("with these fixes", plan, &plan->largest_fixed, stream);
}

static void print_change(const char *name, uint64_t before, uint64_t after, FILE *stream)
{
    frag_text text = {0};
    if (before == after)
        return;
    add_saving(&text, before, after);
    fprintf(stream, "  %-*s%12s  (%s before)\n", LABEL_WIDTH, name, text.bytes, FRAG_BYTES(before));
    frag_text_destroy(&text);
}

/* What changes of the bytes at the peak, by what they are for. */
static void print_changes(const frag_fit_parts *before, const frag_fit_parts *after, FILE *stream)
{
    for (uint32_t kind = 0; kind < FRAG_REQUEST_KIND_COUNT; kind++)
        print_change(frag_fit_part_name(kind), before->bytes[kind], after->bytes[kind], stream);
    print_change("rounding", before->rounding_bytes, after->rounding_bytes, stream);
    print_change("caching", before->caching_bytes, after->caching_bytes, stream);
}

static const frag_plan_fix *find_row(const frag_memory_plan *plan, const frag_fix *fix)
{
    for (size_t i = 0; i < plan->fix_count; i++)
        if (&frag_fixes[plan->fixes[i].fix] == fix)
            return &plan->fixes[i];
    return NULL;
}

void frag_memory_plan_explain(const frag_memory_plan *plan, const frag_fitter *fitter,
                              const frag_fix *fix, FILE *stream)
{
    const frag_plan_fix *row = find_row(plan, fix);
    frag_text text = {0};
    fprintf(stream, "%s\n%s\ncosts: %s\n", fix->name, fix->what, fix->cost);
    print_time(plan, fix, stream);
    if (row == NULL) {
        fprintf(stream, "\nhere: it does not apply, or the workload has it already\n");
        return;
    }
    const frag_fit_parts after = frag_fit_divide(fitter, &row->trial.setting, &plan->base.card);
    frag_fix_describe(fix, &row->trial.setting, &text);
    fprintf(stream, "\nhere: %s\n", text.bytes);
    print_changes(&plan->parts, &after, stream);
    fprintf(stream, "%s; ", row->trial.fits ? "fits" : "does not fit");
    print_margin(plan, &row->trial, stream);
    fputc('\n', stream);
    if (frag_plan_fix_doubt(plan, &row->trial) != NULL)
        fprintf(stream, "not sure: %s\n", frag_plan_fix_doubt(plan, &row->trial));
    print_lines(plan, fix, &row->trial.setting, stream);
    frag_text_destroy(&text);
}

void frag_memory_plan_print(const frag_memory_plan *plan, FILE *stream)
{
    print_question(plan, stream);
    print_verdict(plan, stream);
    print_parts(plan, stream);
    print_fixes(plan, stream);
    print_combination(plan, stream);
    print_largest(plan, stream);
}
