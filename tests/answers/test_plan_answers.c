/* What the planner makes of random packing problems, step by step: its whole search and the exact
 * search alone, with and without enough steps, below, at and above the least height. What was
 * changed on purpose is pinned anew:
 *
 *   test_plan_answers            compares with tests/data/answers/plans.txt.zst
 *   test_plan_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "planner/exact.h"
#include "planner/plan.h"
#include "tests/support/instances.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { SMALL = 60, LARGE = 40, FOLDED = 300, MANY = 66000 };

static uint32_t sum_of(const uint64_t *offsets, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        pinned_add(&sum, offsets[i]);
    return (uint32_t)(sum >> 32);
}

static void tell_plan(frag_text *out, const instance *of, uint64_t capacity, uint64_t steps)
{
    frag_plan_options options = {.capacity_bytes = capacity, .steps = steps};
    frag_plan plan;
    frag_error error = {0};
    assert_true(frag_plan_make(of->buffers, of->count, &options, &plan, &error));
    frag_text_add(out, "  under %" PRIu64 " in %" PRIu64 " steps: %s, %" PRIu64, capacity, steps,
                  frag_plan_answer_name(plan.answer), plan.height_bytes);
    frag_text_add(out, " of %" PRIu64 " after %" PRIu64 ", %" PRIu32 " parts, %08" PRIx32 "\n",
                  plan.bound_bytes, plan.steps, plan.component_count,
                  sum_of(plan.offsets, of->count));
    frag_plan_destroy(&plan);
}

static void tell_exact(frag_text *out, const instance *of, const frag_sections *sections,
                       uint64_t capacity, const char *letters)
{
    uint64_t offsets[INSTANCE_MAX] = {0};
    uint64_t steps = 3000;
    frag_exact *exact = frag_exact_create(sections);
    frag_exact_answer answer = frag_exact_search(exact, capacity, letters, &steps, offsets);
    bool is_found = answer == FRAG_EXACT_FOUND;
    frag_text_add(out, "  exact %s under %" PRIu64 ": %d, %" PRIu64 " steps left, %08" PRIx32 "\n",
                  letters, capacity, (int)answer, steps, is_found ? sum_of(offsets, of->count) : 0);
    frag_exact_destroy(exact);
}

/* On both sides of the load, below which nothing is, and of the height that a search finds. */
static void tell_problem(frag_text *out, const instance *of, const char *name)
{
    static const uint64_t steps[] = {0, 100, 1000, 20000};
    frag_sections sections;
    frag_error error = {0};
    assert_true(frag_sections_create(&sections, of->buffers, of->count, &error));
    uint64_t load = sections.load_bytes;
    frag_text_add(out, "%s: %" PRIu32 " buffers in %" PRIu32 " sections, load %" PRIu64 "\n", name,
                  of->count, sections.count, load);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        tell_plan(out, of, FRAG_UNLIMITED, steps[i]);
    const uint64_t capacities[] = {load - 1, load, load + load / 16, load + load / 4};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        tell_plan(out, of, capacities[i], 2000);
        tell_exact(out, of, &sections, capacities[i], i % 2 == 0 ? "TWA" : "WAT");
        tell_exact(out, of, &sections, capacities[i], "AWT");
    }
    frag_sections_destroy(&sections);
}

/* So many that they are stacked where steps are few. */
static void tell_many(frag_text *out, uint64_t seed)
{
    frag_buffer *buffers = frag_alloc(MANY, sizeof *buffers);
    uint64_t bits = (seed + 1) * 0x9e3779b97f4a7c15u;
    uint64_t longest = seed == 0 ? 40 : 2000;
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t lower = xorshift_next(&bits) % 20000;
        uint64_t most = xorshift_next(&bits) % longest + 1;
        uint64_t length = 1 + xorshift_next(&bits) % most;
        buffers[i] = (frag_buffer){lower, lower + length, 1 + xorshift_next(&bits) % 500,
                                   seed == 2 ? 16 : 1};
    }
    for (uint64_t steps = 0; steps <= MANY + 1; steps += MANY + 1) {
        frag_plan_options options = {.capacity_bytes = seed == 1 ? 2000000 : FRAG_UNLIMITED,
                                     .steps = steps};
        frag_plan plan;
        frag_error error = {0};
        assert_true(frag_plan_make(buffers, MANY, &options, &plan, &error));
        frag_text_add(out,
                      "many: %s, %" PRIu64 " of %" PRIu64 " after %" PRIu64 ", %08" PRIx32 "\n",
                      frag_plan_answer_name(plan.answer), plan.height_bytes, plan.bound_bytes,
                      plan.steps, sum_of(plan.offsets, MANY));
        frag_plan_destroy(&plan);
    }
    frag_free(buffers);
}

static void tell_all(frag_text *out)
{
    instance *of = frag_alloc(1, sizeof *of);
    frag_text name = {0};
    for (uint32_t i = 0; i < SMALL + LARGE; i++) {
        uint32_t count = i < SMALL ? 2 + i % 12 : 20 + 5 * (i - SMALL);
        uint64_t alignment = i % 4 == 0 ? 8 : 1;
        instance_random(of, 1000 + i, count, 3 + count / (1 + i % 3), i % 5 == 0 ? 6 : 1000,
                        alignment);
        frag_text_add(&name, "random %" PRIu32, i);
        tell_problem(out, of, name.bytes);
        name.length = 0;
    }
    for (uint32_t i = 0; i < FOLDED; i++) {
        size_t from = out->length;
        instance_random(of, 9000 + i, 2 + i % 40, 2 + i % 29, i % 3 == 0 ? 5 : 300,
                        i % 6 == 0 ? 16 : 1);
        tell_problem(out, of, "folded");
        pinned_fold(out, from, "one more");
    }
    for (uint32_t i = 0; i < 12; i++) {
        instance_tile(of, 1 + i, 5 + 4 * i, 100, 1000);
        frag_text_add(&name, "tiles %" PRIu32, i);
        tell_problem(out, of, name.bytes);
        name.length = 0;
    }
    for (uint32_t i = 1; i < 4; i++) {
        instance_pinwheel(of, i, i, 90, 900);
        frag_text_add(&name, "pinwheel %" PRIu32, i);
        tell_problem(out, of, name.bytes);
        name.length = 0;
    }
    for (uint64_t seed = 0; seed < 3; seed++)
        tell_many(out, seed);
    frag_text_destroy(&name);
    free(of);
}

static const pinned_lines pinned = {"tests/data/answers/plans.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
