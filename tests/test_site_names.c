#include "sim/site_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_recording.h"

#define FRAMES                                                                                     \
    "frame \"allocate\" \"allocator.cpp\" 1\n"                                                     \
    "frame \"linear\" \"site-packages/torch/nn/linear.py\" 2\n"                                    \
    "frame \"forward\" \"home/model.py\" 3\n"                                                      \
    "frame \"main\" \"train.py\" 4\n"                                                              \
    "frame \"unwind\" \"??\" 0\n"

/* What the only request's stack, given innermost first, is called; "": nothing. */
static void check_name(const char *stack, const char *expected)
{
    frag_recording recording;
    frag_text text = {0};
    frag_text name = {0};
    frag_text_add(&text, FRAMES "%s\nalloc 0 100%s\n", stack, *stack != '\0' ? " site=1" : "");
    frag_test_recording(text.bytes, &recording);
    const frag_trace *trace = &recording.traces[0];
    uint32_t frame = frag_site_frame(&recording, trace->sites != NULL ? trace->sites[0] : 0);
    frag_text_add(&name, "%s", "");
    if (frame != 0)
        frag_frame_add(&recording, frame - 1, &name);
    assert_string_equal(name.bytes, expected);
    frag_text_destroy(&name);
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

static void a_stack_is_named_by_the_innermost_frame_of_the_program(void **state)
{
    (void)state;
    check_name("site 0 1 2 3", "model.py:3 forward");
}

static void a_stack_of_the_framework_alone_by_its_innermost_frame_in_python(void **state)
{
    (void)state;
    check_name("site 0 1", "linear.py:2 linear");
}

static void any_other_stack_by_its_innermost_frame(void **state)
{
    (void)state;
    check_name("site 4 0", "??:0 unwind");
}

static void no_stack_has_no_name(void **state)
{
    (void)state;
    check_name("", "");
    frag_recording recording;
    frag_test_recording("alloc 0 100\n", &recording);
    assert_int_equal(frag_site_frame(&recording, recording.site_count), 0);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_is_named_by_the_innermost_frame_of_the_program),
        cmocka_unit_test(a_stack_of_the_framework_alone_by_its_innermost_frame_in_python),
        cmocka_unit_test(any_other_stack_by_its_innermost_frame),
        cmocka_unit_test(no_stack_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
