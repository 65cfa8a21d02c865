#include "tests/support/checked_policy.h"

#include <string.h>

#include "base/memory.h"
#include "sim/policy_engine.h"

/* The engine holds the checker where it expects the policy. */
static checked_policy *from_policy(const frag_policy *policy)
{
    return (checked_policy *)(uintptr_t)policy;
}

static frag_policy *inner(const frag_policy *policy)
{
    return from_policy(policy)->checker.policy;
}

static const frag_policy_ops *inner_ops(const frag_policy *policy)
{
    return from_policy(policy)->checker.ops;
}

static void audit_sometimes(checked_policy *checked)
{
    if (++checked->step_count % checked->audit_every == 0)
        (void)slow_checker_audit(&checked->checker);
}

static void complete(void *context, frag_handle handle)
{
    checked_policy *checked = context;
    slow_checker_complete(&checked->checker, handle);
    checked->on_complete(checked->on_complete_context, handle);
}

static frag_policy *checked_create(const frag_policy_setup *setup, frag_error *error)
{
    checked_policy *checked = (checked_policy *)(void *)setup->device;
    frag_policy_setup own = *setup;
    checked->on_complete = setup->on_complete;
    checked->on_complete_context = setup->on_complete_context;
    own.on_complete = complete;
    own.on_complete_context = checked;
    checked->checker.policy = checked->checker.ops->create(&own, error);
    return checked->checker.policy != NULL ? (frag_policy *)(void *)checked : NULL;
}

static bool checked_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    checked_policy *checked = from_policy(policy);
    if (checked->checker.problem[0] != '\0')
        return false;
    bool is_served = slow_checker_grant(&checked->checker, request, grant);
    audit_sometimes(checked);
    return is_served;
}

static size_t find_block(slow_checker *checker, frag_handle handle)
{
    size_t i = 0;
    while (i < checker->block_count && checker->blocks[i].handle != handle)
        i++;
    FRAG_ASSERT(i < checker->block_count);
    return i;
}

static void checked_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    checked_policy *checked = from_policy(policy);
    slow_checker_free(&checked->checker, find_block(&checked->checker, handle), stream);
    audit_sometimes(checked);
}

static bool checked_use(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    slow_checker *checker = &from_policy(policy)->checker;
    size_t block = find_block(checker, handle);
    if (!checker->ops->use(checker->policy, handle, stream))
        return false;
    checker->blocks[block].is_shared = true;
    return true;
}

static void checked_defer(frag_policy *policy, frag_handle handle)
{
    inner_ops(policy)->defer(inner(policy), handle);
}

static void checked_empty_cache(frag_policy *policy, uint32_t pool)
{
    inner_ops(policy)->empty_cache(inner(policy), pool);
}

static void checked_set_limit(frag_policy *policy, uint64_t limit_bytes)
{
    inner_ops(policy)->set_limit(inner(policy), limit_bytes);
}

static void checked_set_share(frag_policy *policy, double share)
{
    inner_ops(policy)->set_share(inner(policy), share);
}

static void checked_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                                uint32_t stream)
{
    inner_ops(policy)->pool_change(inner(policy), change, pool, stream);
}

static void checked_capture(frag_policy *policy, bool begins)
{
    inner_ops(policy)->capture(inner(policy), begins);
}

static void checked_sync(frag_policy *policy, uint32_t stream)
{
    inner_ops(policy)->sync(inner(policy), stream);
}

static bool checked_configure(frag_policy *policy, const char *text, frag_error *error)
{
    return inner_ops(policy)->configure(inner(policy), text, error);
}

static bool checked_describe_oom(const frag_policy *policy, const frag_request *request, char *text,
                                 size_t size)
{
    return inner_ops(policy)->describe_oom(inner(policy), request, text, size);
}

static void checked_keep_stats(frag_policy *policy)
{
    frag_policy_engine_of(inner_ops(policy))->statistics->keep(inner(policy));
}

static void checked_stats(const frag_policy *policy, frag_stat_visitor *visit, void *context)
{
    frag_policy_engine_of(inner_ops(policy))->statistics->visit(inner(policy), visit, context);
}

static void checked_reset_stats(frag_policy *policy, bool resets_peaks, bool resets_sums)
{
    frag_policy_engine_of(inner_ops(policy))
        ->statistics->reset(inner(policy), resets_peaks, resets_sums);
}

static uint64_t checked_rounded(const frag_policy *policy, uint64_t bytes)
{
    return inner_ops(policy)->rounded(inner(policy), bytes);
}

static void checked_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    inner_ops(policy)->walk(inner(policy), visit, context);
}

static bool checked_check(const frag_policy *policy, frag_error *error)
{
    return inner_ops(policy)->check(inner(policy), error);
}

static const frag_policy_statistics checked_statistics = {
    .keep = checked_keep_stats,
    .visit = checked_stats,
    .reset = checked_reset_stats,
};

static void checked_place(frag_policy *policy, uint64_t address)
{
    frag_policy_engine_of(inner_ops(policy))->place(inner(policy), address);
}

static bool checked_shows_all(const frag_policy *policy)
{
    return frag_policy_engine_of(inner_ops(policy))->shows_all(inner(policy));
}

static void checked_visit_memories(const frag_policy *policy, frag_memory_visitor *visit,
                                   void *context)
{
    frag_policy_engine_of(inner_ops(policy))->memories->visit(inner(policy), visit, context);
}

static uint64_t checked_clock(const frag_policy *policy)
{
    return frag_policy_engine_of(inner_ops(policy))->memories->clock(inner(policy));
}

static void checked_pass(frag_policy *policy, uint64_t since, uint64_t by)
{
    frag_policy_engine_of(inner_ops(policy))->memories->pass(inner(policy), since, by);
}

static const frag_policy_memories checked_memories = {
    .visit = checked_visit_memories, .clock = checked_clock, .pass = checked_pass};

/* Plans are asked of the policy directly; small requests that are left out would not be checked. */
static frag_policy_engine engine_passed_on(const frag_policy_ops *ops)
{
    const frag_policy_engine *engine = frag_policy_engine_of(ops);
    return (frag_policy_engine){
        .planner = engine->planner,
        .statistics = engine->statistics != NULL ? &checked_statistics : NULL,
        .place = engine->place != NULL ? checked_place : NULL,
        .shows_all = engine->shows_all != NULL ? checked_shows_all : NULL,
        .memories = engine->memories != NULL ? &checked_memories : NULL,
    };
}

_Static_assert(FRAG_POLICY_ABI == 13, "each new function of the table must be passed on as well");

/* What the policy does not have stays NULL. */
static frag_policy_ops passed_on(const frag_policy_ops *ops)
{
    frag_policy_ops own = *ops;
    own.create = checked_create;
    own.alloc = checked_alloc;
    own.free = checked_free;
    own.use = ops->use != NULL ? checked_use : NULL;
    own.defer = ops->defer != NULL ? checked_defer : NULL;
    own.empty_cache = ops->empty_cache != NULL ? checked_empty_cache : NULL;
    own.set_limit = ops->set_limit != NULL ? checked_set_limit : NULL;
    own.set_share = ops->set_share != NULL ? checked_set_share : NULL;
    own.pool_change = ops->pool_change != NULL ? checked_pool_change : NULL;
    own.capture = ops->capture != NULL ? checked_capture : NULL;
    own.sync = ops->sync != NULL ? checked_sync : NULL;
    own.configure = ops->configure != NULL ? checked_configure : NULL;
    own.describe_oom = ops->describe_oom != NULL ? checked_describe_oom : NULL;
    own.rounded = ops->rounded != NULL ? checked_rounded : NULL;
    own.walk = checked_walk;
    own.check = checked_check;
    own.adopt = NULL;
    own.adopts_ranges = NULL;
    return own;
}

static frag_device *open_slow_device(void *context, const frag_trace *trace,
                                     const frag_sim_device_options *rule, frag_error *error)
{
    checked_policy *checked = context;
    (void)trace;
    (void)error;
    checked->checker.device.base.capacity_bytes = rule->capacity_bytes;
    checked->checker.device.base.page_bytes = rule->page_bytes;
    return &checked->checker.device.base;
}

static void close_slow_device(void *context, frag_device *device)
{
    (void)context;
    (void)device;
}

void checked_policy_create(checked_policy *checked, const frag_policy_ops *ops,
                           uint64_t refuse_every, uint64_t audit_every)
{
    *checked = (checked_policy){
        .ops = passed_on(ops), .engine = engine_passed_on(ops), .audit_every = audit_every};
    checked->ops.engine = &checked->engine;
    slow_checker_create(&checked->checker, UINT64_MAX, 1);
    checked->checker.ops = ops;
    checked->checker.align = 1;
    checked->checker.device.refuse_every = refuse_every;
    checked->opener = (frag_device_opener){
        .open = open_slow_device, .close = close_slow_device, .context = checked};
}

const char *checked_policy_problem(const checked_policy *checked)
{
    return checked->checker.problem;
}

void checked_policy_destroy(checked_policy *checked)
{
    slow_checker_destroy(&checked->checker);
}
