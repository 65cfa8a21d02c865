#include "studies/plan/memory_plan.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "workload/tape_card.h"

enum { SEEDS = 7 };

#define BATCH_MAX ((uint64_t)1 << 20)
#define TOKENS_MAX ((uint64_t)1 << 24)

/* A plan that is being made. */
typedef struct planner {
    frag_fitter *fitter;
    frag_memory_plan *plan;
    frag_error *error;
} planner;

static bool try_setting(planner *of, const frag_fit_setting *setting, frag_plan_trial *trial)
{
    frag_memory_plan *plan = of->plan;
    memcpy(&trial->setting, setting, sizeof *setting);
    return frag_fit_measure(of->fitter, setting, &plan->base.card, &trial->result, of->error) &&
           frag_fit_try(of->fitter, setting, &plan->base.card, plan->usable_bytes, &trial->fits,
                        of->error);
}

/* Is a choice of fixes none that is generated? With several devices some are not. */
static bool is_choice_refused(const frag_memory_plan *plan, const frag_fix_choice *choice)
{
    frag_fit_setting setting;
    frag_fix_apply_all(&plan->base, choice, &setting);
    return !frag_workload_check(&setting.workload, NULL);
}

static bool try_choice(planner *of, const frag_fix_choice *choice, frag_plan_trial *trial)
{
    frag_fit_setting setting;
    frag_fix_apply_all(&of->plan->base, choice, &setting);
    return try_setting(of, &setting, trial);
}

/* The most of a fix, or 0 where it does not apply. */
static uint32_t count_levels(const frag_memory_plan *plan, size_t fix)
{
    frag_fix_choice choice = {{0}};
    choice.levels[fix] = frag_fixes[fix].count_levels(&plan->base);
    while (choice.levels[fix] > 0 && is_choice_refused(plan, &choice))
        choice.levels[fix]--;
    return choice.levels[fix];
}

static bool judge(void *context, const frag_fix_choice *choice, frag_fix_score *score)
{
    const planner *of = context;
    frag_plan_trial trial;
    if (is_choice_refused(of->plan, choice)) {
        *score = (frag_fix_score){FRAG_UNLIMITED, false};
        return true;
    }
    if (!try_choice(context, choice, &trial))
        return false;
    *score = (frag_fix_score){trial.result.needed_bytes, trial.fits};
    return true;
}

/* ---- each fix alone */
static bool try_fixes(planner *of, const uint32_t *levels)
{
    frag_memory_plan *plan = of->plan;
    for (size_t i = 0; i < frag_fix_count(); i++) {
        frag_fix_choice choice = {{0}};
        frag_plan_fix *kept = &plan->fixes[plan->fix_count];
        kept->trial.fits = false;
        kept->fix = i;
        for (uint32_t level = 1; level <= levels[i] && !kept->trial.fits; level++) {
            choice.levels[i] = kept->level = level;
            if (!try_choice(of, &choice, &kept->trial))
                return false;
        }
        plan->fix_count += levels[i] > 0;
    }
    return true;
}

/* ---- lengths that are drawn */
static bool count_draw(planner *of, const frag_fit_setting *setting)
{
    frag_plan_trial trial;
    if (!try_setting(of, setting, &trial))
        return false;
    of->plan->draws++;
    of->plan->draws_served += trial.fits;
    return true;
}

/* Other seeds, and the longest batch every time. */
static bool try_draws(planner *of)
{
    const frag_workload *workload = &of->plan->base.setting.workload;
    frag_fit_setting setting;
    frag_workload longest;
    bool is_drawn = frag_workload_is_drawn(workload, &longest);
    for (uint64_t i = 0; is_drawn && i < SEEDS; i++) {
        memcpy(&setting, &of->plan->base.setting, sizeof setting);
        setting.workload.seed += i;
        if (!count_draw(of, &setting))
            return false;
    }
    if (!is_drawn)
        return true;
    memcpy(&setting, &of->plan->base.setting, sizeof setting);
    setting.workload = longest;
    return count_draw(of, &setting);
}

/* ---- workspaces of convolutions and singular value decompositions, taken at their most */
static bool try_no_workspaces(planner *of)
{
    frag_memory_plan *plan = of->plan;
    frag_tape_card card = plan->base.card;
    bool fits = plan->as_is.fits;
    card.has_no_workspaces = true;
    const frag_workload *workload = &plan->base.setting.workload;
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool has_galore = workload->optimizer == FRAG_OPTIMIZER_GALORE_ADAMW;
    if ((family->has_images || family->has_sounds || has_galore) &&
        !frag_fit_try(of->fitter, &plan->base.setting, &card, plan->usable_bytes, &fits, of->error))
        return false;
    plan->is_workspace_split = fits != plan->as_is.fits;
    return true;
}

static void conclude(frag_memory_plan *plan)
{
    int64_t margin = frag_plan_margin(plan, &plan->as_is);
    int64_t unsure = (int64_t)FRAG_PLAN_UNSURE_BYTES;
    bool is_split = plan->draws_served > 0 && plan->draws_served < plan->draws;
    bool is_unknown = is_split || plan->is_workspace_split;
    plan->fits = is_unknown ? FRAG_FITS_UNKNOWN : plan->as_is.fits ? FRAG_FITS_YES : FRAG_FITS_NO;
    plan->is_sure = !is_unknown && (plan->as_is.fits ? margin >= unsure : margin <= -unsure);
}

/* ---- the largest */
/* The largest value up to max that fits, if smaller ones do; 0: not even 1. */
typedef struct bisection {
    void (*set)(frag_fit_setting *setting, uint64_t value);
    const frag_fit_setting *from;
    uint64_t max;
    uint64_t first; /* where it is begun: what the setting has */
} bisection;

/* A value that was tried. */
typedef struct probe {
    uint64_t value;
    uint64_t needed_bytes; /* FRAG_UNLIMITED: not known */
    bool fits;
} probe;

/* false in fits where the generator does not take it. */
static bool try_value(planner *of, const bisection *over, bool is_measured, probe *tried)
{
    frag_fit_setting setting;
    frag_error refused = {0};
    frag_plan_trial trial;
    memcpy(&setting, over->from, sizeof setting);
    over->set(&setting, tried->value);
    tried->needed_bytes = FRAG_UNLIMITED;
    tried->fits = false;
    if (!frag_workload_check(&setting.workload, &refused))
        return true;
    if (!is_measured)
        return frag_fit_try(of->fitter, &setting, &of->plan->base.card, of->plan->usable_bytes,
                            &tried->fits, of->error);
    if (!try_setting(of, &setting, &trial))
        return false;
    tried->needed_bytes = trial.result.needed_bytes;
    tried->fits = trial.fits;
    return true;
}

/* What a value needs is about linear. Between two that were measured those whose need is far from
 * what there is are not tried. */
static bool is_plain(const planner *of, const probe *low, const probe *high, probe *between)
{
    double usable = (double)of->plan->usable_bytes;
    if (low->value == 0 || high->needed_bytes == FRAG_UNLIMITED)
        return false;
    double part = (double)(between->value - low->value) / (double)(high->value - low->value);
    double needed =
        (double)low->needed_bytes + part * ((double)high->needed_bytes - (double)low->needed_bytes);
    between->fits = needed < usable;
    return fabs(needed - usable) > usable / 4 + (double)FRAG_PLAN_UNSURE_BYTES;
}

/* Twice as much each time, or half as much, then by halves in between. Less than half of what fits
 * is held to fit too. */
static bool find_largest(planner *of, const bisection *over, uint64_t *largest)
{
    probe low = {.value = 0};
    probe high = {.value = over->max + 1, .needed_bytes = FRAG_UNLIMITED};
    probe tried = {.value = 1};
    while (tried.value <= over->first / 2 && tried.value <= over->max / 2)
        tried.value *= 2;
    while (tried.value > low.value && tried.value < high.value) {
        if (!try_value(of, over, true, &tried))
            return false;
        *(tried.fits ? &low : &high) = tried;
        tried.value = tried.fits ? tried.value * 2 : tried.value / 2;
    }
    uint64_t above = high.value;
    *largest = low.value;
    while (above - *largest > 1) {
        tried.value = *largest + (above - *largest) / 2;
        if (!is_plain(of, &low, &high, &tried) && !try_value(of, over, false, &tried))
            return false;
        *(tried.fits ? largest : &above) = tried.value;
    }
    return true;
}

/* What is dealt out takes so many sequences and multiples of them. */
static uint64_t find_batch_unit(const frag_workload *workload)
{
    if (workload->parallel == FRAG_PARALLEL_DATA)
        return workload->devices;
    return workload->parallel == FRAG_PARALLEL_PIPELINE ? frag_workload_microbatches(workload) : 1;
}

static uint64_t count_batches(const frag_workload *workload)
{
    uint64_t units = workload->batch / find_batch_unit(workload);
    return units > 0 ? units : 1;
}

static void set_batch(frag_fit_setting *setting, uint64_t value)
{
    setting->workload.batch = value * find_batch_unit(&setting->workload);
}

/* The longest batch becomes that long; what was longer or as long does too. */
static void set_tokens(frag_fit_setting *setting, uint64_t value)
{
    frag_workload *workload = &setting->workload;
    uint64_t longest = frag_fix_longest(workload);
    frag_fix_shorten(workload, value);
    for (uint32_t i = 0; i < workload->tokens.count; i++)
        if (workload->tokens.values[i] == longest)
            workload->tokens.values[i] = value;
}

static bool is_refused(const bisection *over, uint64_t value)
{
    frag_fit_setting setting;
    memcpy(&setting, over->from, sizeof setting);
    over->set(&setting, value);
    return value > over->max || !frag_workload_check(&setting.workload, NULL);
}

static bool find_both(planner *of, const frag_fit_setting *from, frag_plan_largest *largest)
{
    const frag_network *network = &from->workload.network;
    uint64_t positions = network->positions > 0 ? network->positions : TOKENS_MAX;
    const bisection batch = {set_batch, from, BATCH_MAX, count_batches(&from->workload)};
    const bisection tokens = {set_tokens, from, positions < TOKENS_MAX ? positions : TOKENS_MAX,
                              frag_fix_longest(&from->workload)};
    if (!find_largest(of, &batch, &largest->batch))
        return false;
    largest->is_batch_limited = is_refused(&batch, largest->batch + 1);
    largest->batch *= find_batch_unit(&from->workload);
    if (!frag_workload_has_tokens(&from->workload))
        return true;
    if (!find_largest(of, &tokens, &largest->tokens))
        return false;
    largest->is_tokens_limited = is_refused(&tokens, largest->tokens + 1);
    return true;
}

bool frag_plan_largest_batch(frag_fitter *fitter, const frag_fit_setting *setting,
                             const frag_dryrun_card *memory, uint64_t *batch, frag_error *error)
{
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    planner of = {fitter, plan, error};
    const bisection over = {set_batch, setting, BATCH_MAX, count_batches(&setting->workload)};
    plan->base.card = frag_tape_card_usual;
    plan->usable_bytes = memory->capacity_bytes - memory->context_bytes;
    bool ok = find_largest(&of, &over, batch);
    frag_free(plan);
    return ok;
}

/* What the combination is without the fixes that give a smaller batch or length. */
static bool find_fixed(planner *of)
{
    frag_memory_plan *plan = of->plan;
    frag_fix_choice choice = plan->answer.choice;
    frag_fit_setting setting;
    for (size_t i = 0; i < frag_fix_count(); i++) {
        const char *name = frag_fixes[i].name;
        if (strcmp(name, "accumulate") == 0 || strcmp(name, "batch") == 0 ||
            strcmp(name, "tokens") == 0)
            choice.levels[i] = 0;
        plan->has_largest_fixed = plan->has_largest_fixed || choice.levels[i] > 0;
    }
    frag_fix_apply_all(&plan->base, &choice, &setting);
    return !plan->has_largest_fixed || find_both(of, &setting, &plan->largest_fixed);
}

/* ---- the whole */
static bool search(planner *of, const uint32_t *levels)
{
    frag_memory_plan *plan = of->plan;
    frag_fix_search search = {.count = frag_fix_count(), .judge = judge, .context = of};
    memcpy(search.levels_max, levels, sizeof search.levels_max);
    if (!frag_fix_find(&search, &plan->answer) ||
        !try_choice(of, &plan->answer.choice, &plan->fixed))
        return false;
    for (size_t i = 0; i < plan->answer.step_count; i++)
        if (!try_choice(of, &plan->answer.steps[i].choice, &plan->steps[i]))
            return false;
    return true;
}

bool frag_memory_plan_make(frag_fitter *fitter, const frag_workload *workload, const char *conf,
                           const frag_dryrun_gpu *gpu, const char *name, frag_memory_plan *plan,
                           frag_error *error)
{
    planner of = {fitter, plan, error};
    uint32_t levels[FRAG_FIXES_MAX] = {0};
    memset(plan, 0, sizeof *plan);
    if (workload->task == FRAG_TASK_SERVE)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is serve, and a plan is of what repeats; expected another task "
                         "('fraglab trace generate' and 'fraglab run --capacity' say what fits)");
    plan->name = name;
    plan->gpu = *gpu;
    plan->base.conf = conf;
    memcpy(&plan->base.setting.workload, workload, sizeof *workload);
    plan->usable_bytes = gpu->memory.capacity_bytes > gpu->memory.context_bytes
                             ? gpu->memory.capacity_bytes - gpu->memory.context_bytes
                             : 0;
    if (!frag_tape_card_read(&gpu->card, gpu->card.name, &plan->base.card, error) ||
        !try_setting(&of, &plan->base.setting, &plan->as_is) || !try_draws(&of) ||
        !try_no_workspaces(&of) ||
        !frag_fit_divide(fitter, &plan->base.setting, &plan->base.card, &plan->parts, error))
        return false;
    conclude(plan);
    for (size_t i = 0; i < frag_fix_count(); i++)
        levels[i] = count_levels(plan, i);
    return try_fixes(&of, levels) && search(&of, levels) &&
           find_both(&of, &plan->base.setting, &plan->largest) && find_fixed(&of);
}

int64_t frag_plan_margin(const frag_memory_plan *plan, const frag_plan_trial *trial)
{
    return (int64_t)plan->usable_bytes - (int64_t)trial->result.needed_bytes;
}

const char *frag_plan_doubt(const frag_memory_plan *plan)
{
    if (plan->is_sure)
        return NULL;
    if (plan->is_workspace_split)
        return plan->base.setting.workload.optimizer == FRAG_OPTIMIZER_GALORE_ADAMW
                   ? "it hangs on the workspaces that cuSOLVER takes for decompositions"
                   : "it hangs on the workspaces that cuDNN takes for convolutions";
    if (plan->fits == FRAG_FITS_UNKNOWN)
        return "it hangs on the lengths that are drawn";
    if (!plan->as_is.fits && frag_plan_margin(plan, &plan->as_is) >= 0)
        return "on some smaller cards it fits: more memory lets PyTorch cache what then lies in "
               "the way";
    return "so little may be decided by the context of another driver, or a display";
}
