/* Tests of replay_audit.c: what --check finds in the memory that a policy shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"

/* A policy that serves one request at 1 MiB, and shows the spans that a case asks for. */
struct frag_policy {
    int unused;
};

enum { SPANS_MAX = 4, GRANTED = 4096 };

static const frag_span *shown;

static size_t arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)limits;
    (void)values;
    return sizeof(frag_policy) + 128;
}

static frag_policy *create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    return frag_arena_take(setup->arena, 1, sizeof(frag_policy));
}

static bool alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    (void)policy;
    (void)request;
    *grant = (frag_grant){.address = FRAG_MIB, .block_bytes = GRANTED, .handle = 0};
    return true;
}

static void free_block(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)policy;
    (void)handle;
    (void)stream;
}

static void walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    (void)policy;
    for (const frag_span *span = shown; span->bytes > 0; span++)
        visit(context, span);
}

static const frag_policy_ops ops = {
    .name = "shown",
    .arena_bytes = arena_bytes,
    .create = create,
    .alloc = alloc,
    .free = free_block,
    .walk = walk,
};

/* What the audit says of these spans after one request. */
static void audit(const frag_span *spans, frag_error *error)
{
    frag_recording recording = {0};
    frag_test_recording("alloc 0 4096\n", &recording);
    frag_device_spec device = {.capacity_bytes = 16 * FRAG_MIB};
    frag_run_options options = {.check_every = 1, .is_layout_skipped = true};
    frag_run_result result;
    *error = (frag_error){0};
    shown = spans;
    (void)frag_run(&(frag_run_setup){&recording, &recording.traces[0], &ops, NULL, &device},
                   &options, &result, error);
    frag_recording_destroy(&recording);
}

#define SEGMENT(at, size)                                                                          \
    {                                                                                              \
        .kind = FRAG_SPAN_SEGMENT, .address = FRAG_MIB + (at), .bytes = (size)                     \
    }
#define BLOCK(at, size)                                                                            \
    {                                                                                              \
        .kind = FRAG_SPAN_BLOCK, .address = FRAG_MIB + (at), .bytes = (size)                       \
    }
#define HOLE(at, size)                                                                             \
    {                                                                                              \
        .kind = FRAG_SPAN_HOLE, .address = FRAG_MIB + (at), .bytes = (size)                        \
    }

static void what_a_policy_shows_is_looked_through(void **state)
{
    (void)state;
    static const struct {
        const char *expected;
        frag_span spans[SPANS_MAX + 1];
    } cases[] = {
        {"the walk leaves a gap", {SEGMENT(0, 8192), BLOCK(0, 4096), HOLE(4608, 3584)}},
        {"do not fill their segment", {SEGMENT(0, 8192), BLOCK(0, 4096)}},
        {"not live, or twice", {SEGMENT(0, 8192), BLOCK(0, 4096), BLOCK(4096, 4096)}},
        {"another block than was granted", {SEGMENT(0, 8192), HOLE(0, 4096), BLOCK(4096, 4096)}},
        {"another block than was granted", {SEGMENT(0, 8192), BLOCK(0, 8192)}},
        {"two segments overlap",
         {SEGMENT(0, 4096), BLOCK(0, 4096), SEGMENT(3584, 512), HOLE(3584, 512)}},
        /* Whichever is shown first. */
        {"two segments overlap",
         {SEGMENT(3584, 8192), HOLE(3584, 8192), SEGMENT(0, 4096), BLOCK(0, 4096)}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_error error;
        audit(cases[i].spans, &error);
        if (strstr(error.sentence, cases[i].expected) == NULL)
            fail_msg("case %zu: expected '%s', found '%s'", i, cases[i].expected, error.sentence);
    }
}

static void segments_that_touch_are_no_overlap(void **state)
{
    (void)state;
    static const frag_span spans[] = {
        SEGMENT(4096, 4096), HOLE(4096, 4096), SEGMENT(0, 4096), BLOCK(0, 4096), {.bytes = 0}};
    frag_error error;
    audit(spans, &error);
    assert_null(strstr(error.sentence, "overlap"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_policy_shows_is_looked_through),
        cmocka_unit_test(segments_that_touch_are_no_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
