/* Tests of site_names.c: which frame names a call stack. */
#include "sim/trace/site_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

#define NODE "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"
#define ENGINE "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask>)"

/* By number, innermost frames of real recordings first. */
static const char *const frames[] = {
    "\"torch::unwind::unwind()\" \"??\" 0",                                                  /* 0 */
    "\"c10::cuda::CUDACachingAllocator::malloc\" \"CUDACachingAllocator.cpp\" 0",            /* 1 */
    "\"at::_ops::mm::call(at::Tensor const&)\" \"??\" 0",                                    /* 2 */
    "\"" NODE "\" \"??\" 0",                                                                 /* 3 */
    "\"" ENGINE "\" \"\" 0",                                                                 /* 4 */
    "\"execute_native_thread_routine\" \"thread48.o\" 0",                                    /* 5 */
    "\"cfunction_call\" \"/usr/local/src/conda/python-3.10.14/Objects/methodobject.c\" 543", /* 6 */
    "\"linear\" \"/e/lib/python3.12/site-packages/torch/nn/functional.py\" 2",               /* 7 */
    "\"_call_impl\" \"/e/lib/python3.12/site-packages/torch/nn/modules/module.py\" 9",       /* 8 */
    "\"rearrange\" \"/e/lib/python3.12/site-packages/einops/einops.py\" 5",                  /* 9 */
    "\"generate\" \"/e/lib/python3.12/site-packages/transformers/utils.py\" 6",        /* 10 */
    "\"call\" \"/tmp/torchinductor_me/qa/cqau263.py\" 12",                             /* 11 */
    "\"run\" \"/usr/lib/python3.12/threading.py\" 7",                                  /* 12 */
    "\"forward\" \"/home/me/model.py\" 3",                                             /* 13 */
    "\"main\" \"C:\\\\work\\\\train.py\" 4",                                           /* 14 */
    "\"<module>\" \"/tmp/ipykernel_114/3105.py\" 21",                                  /* 15 */
    "\"setup\" \"/home/me/net/__init__.py\" 8",                                        /* 16 */
    "\"torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)\" \"??\" 0",  /* 17 */
    "\"torch::autograd::CppNode<my::Op>::apply(std::vector<at::Tensor>&&)\" \"??\" 0", /* 18 */
    "\"train\" \"/home/me/app/main.cpp\" 77",                                          /* 19 */
    "\"_PyEval_EvalFrameDefault\" \"/croot/python-split/work/Python/bytecodes.c\" 1",  /* 20 */
    "\"größe\" \"/home/me/模型.py\" 5",                                                /* 21 */
    "\"a\\x01b\" \"x.py\" 6",                                                          /* 22 */
    "\"caf\xe9 bar\" \"/u/y.py\" 7",       /* no UTF-8 */
    "\"a\xc2\x85\xc2\xa9\" \"/u/z.py\" 8", /* a control character of two bytes */
};

/* What the only request's stack, given innermost first, is called; "": nothing. Is it a place? */
static void check_place(const char *stack, const char *expected, bool is_place)
{
    frag_recording recording;
    frag_text text = {0};
    frag_text name = {0};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        frag_text_add(&text, "frame %s\n", frames[i]);
    frag_text_add(&text, "%s\nalloc 0 100%s\n", stack, *stack != '\0' ? " site=1" : "");
    frag_test_recording(text.bytes, &recording);
    const frag_trace *trace = &recording.traces[0];
    uint32_t frame = frag_site_frame(&recording, trace->sites != NULL ? trace->sites[0] : 0);
    frag_text_add(&name, "%s", "");
    if (frame != 0)
        frag_frame_add(&recording, frame - 1, &name);
    assert_string_equal(name.bytes, expected);
    assert_int_equal(frag_site_has_place(&recording, *stack != '\0' ? trace->sites[0] : 0),
                     is_place);
    frag_text_destroy(&name);
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

static void check_name(const char *stack, const char *expected)
{
    check_place(stack, expected, true);
}

static void a_stack_is_named_by_the_innermost_frame_of_the_program(void **state)
{
    (void)state;
    check_name("site 0 1 7 8 13 14", "model.py:3 forward");
    check_name("site 0 1 2 6 9 20 14", "train.py:4 main");
    check_name("site 11 8 13", "model.py:3 forward");
    check_name("site 6 5 12 13", "model.py:3 forward");
    check_name("site 3 4 13", "model.py:3 forward");
    check_name("site 7 15 10", "ipykernel_114/3105.py:21 <module>");
    check_name("site 16 13", "net/__init__.py:8 setup");
}

static void else_by_the_innermost_package_or_generated_code(void **state)
{
    (void)state;
    check_name("site 0 7 8 9 8 10 12", "einops.py:5 rearrange");
    check_name("site 0 11 8", "cqau263.py:12 call");
    check_name("site 3 11 8 4", "cqau263.py:12 call");
}

static void a_stack_of_the_framework_alone_by_its_innermost_frame_in_python(void **state)
{
    (void)state;
    check_place("site 0 1 7 8 12", "functional.py:2 linear", false);
}

static void a_stack_of_the_autograd_thread_by_what_runs_backward(void **state)
{
    (void)state;
    check_place("site 0 1 2 3 4 5", "backward of Mm", false);
    check_place("site 0 17 4 5", "accumulation of gradients", false);
    check_place("site 0 18 4 5", "backward of CppNode<my::Op>", false);
    check_place("site 0 1 4 5", "autograd thread", false);
    check_place("site 0 4 12", "autograd thread", false);
}

static void check_node(const char *node, const char *expected)
{
    frag_recording recording;
    frag_text text = {0}, name = {0};
    frag_text_add(&text, "frame \"torch::autograd::generated::%s::apply(x)\" \"??\" 0\n", node);
    frag_text_add(&text, "frame \"" ENGINE "\" \"\" 0\nsite 0 1\nalloc 0 100 site=1\n");
    frag_test_recording(text.bytes, &recording);
    uint32_t frame = frag_site_frame(&recording, recording.traces[0].sites[0]);
    assert_int_not_equal(frame, 0);
    frag_frame_add(&recording, frame - 1, &name);
    assert_string_equal(name.bytes, expected);
    frag_text_destroy(&name);
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

/* Without "Backward", an "s" and a number behind it, unless that is all there is. */
static void nodes_are_called_as_their_operators(void **state)
{
    (void)state;
    check_node("MmBackward9", "backward of Mm");
    check_node("MmBackward120", "backward of Mm");
    check_node("MmBackward", "backward of Mm");
    check_node("CopyBackwards", "backward of Copy");
    check_node("XBackward", "backward of X");
    check_node("Backward", "backward of Backward");
    check_node("Backward0", "backward of Backward0");
    check_node("MmBackward0a", "backward of MmBackward0a");
    check_node("s", "backward of s");
    check_node("7", "backward of 7");
    check_node("My<a::B>", "backward of My<a::B>");
}

static void any_other_stack_by_what_says_most(void **state)
{
    (void)state;
    check_name("site 0 1 2 19 5", "main.cpp:77 train");
    check_place("site 0 1 2 5 12", "threading.py:7 run", false);
    check_place("site 0 1 2 5", "operator mm", false);
    check_place("site 1 5", "thread48.o execute_native_thread_routine", false);
    check_place("site 0 1", "torch::unwind::unwind()", false);
}

/* Source of PyTorch, of Python and of the system says less than the program's own. */
static void native_frames_of_libraries_are_not_the_programs(void **state)
{
    (void)state;
    static const char *const libraries[] = {
        "/w/pytorch/x.cpp",   "/w/torch/x.cpp",    "/w/aten/x.cpp",  "/w/c10/x.cpp",
        "/usr/src/x.cpp",     "/w/glibc-2.31/x.c", "/w/build/x.cpp", "/w/csu/x.c",
        "/w/nptl/x.c",        "/w/sysdeps/x.c",    "/w/gcc-12/x.c",  "/w/Python/x.c",
        "/w/Objects/x.c",     "/w/Modules/x.c",    "/w/Include/x.h", "/croot/p/x.c",
        "/w/python-3.12/x.c",
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        frag_recording recording;
        frag_text text = {0};
        frag_text_add(&text,
                      "frame \"inner\" \"%s\" 1\nframe \"train\" \"/home/me/app/main.cpp\" 2\n"
                      "site 0 1\nalloc 0 100 site=1\n",
                      libraries[i]);
        frag_test_recording(text.bytes, &recording);
        if (frag_site_frame(&recording, 1) != 2)
            fail_msg("%s", libraries[i]);
        frag_text_destroy(&text);
        frag_recording_destroy(&recording);
    }
}

/* With the file where the name is the frame's own; shortened in the middle of a path or a name. */
static void a_frame_is_written_in_so_many_characters(void **state)
{
    (void)state;
    static const struct {
        unsigned frame;
        size_t characters;
        const char *text;
    } cases[] = {
        {13, 40, "forward (model.py:3)"},
        {13, 12, "for… (…py:3)"},
        {7, 40, "linear (functional.py:2)"},
        {7, 20, "linear (…ional.py:2)"},
        {17, 40, "accumulation of gradients"},
        {17, 12, "accumulatio…"},
        {3, 40, "backward of Mm"},
        {1, 40, "c10::cuda::CUDACac… (…hingAllocator.cpp)"},
        {19, 40, "train (main.cpp:77)"},
        {21, 40, "größe (模型.py:5)"},
        {21, 14, "größe (….py:5)"},
        {21, 12, "grö… (…py:5)"},
        {22, 40, "a b (x.py:6)"},
        {23, 40, "caf? bar (y.py:7)"},
        {24, 40, "a © (z.py:8)"},
    };
    frag_recording recording;
    frag_text text = {0};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        frag_text_add(&text, "frame %s\n", frames[i]);
    frag_test_recording(text.bytes, &recording);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_text_clear(&text);
        frag_frame_text(&recording, cases[i].frame, cases[i].characters, &text);
        assert_string_equal(text.bytes, cases[i].text);
    }
    frag_text_destroy(&text);
    frag_recording_destroy(&recording);
}

static void no_stack_has_no_name(void **state)
{
    (void)state;
    check_place("", "", false);
    frag_recording recording;
    frag_test_recording("alloc 0 100\n", &recording);
    assert_int_equal(frag_site_frame(&recording, recording.site_count), 0);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_is_named_by_the_innermost_frame_of_the_program),
        cmocka_unit_test(else_by_the_innermost_package_or_generated_code),
        cmocka_unit_test(a_stack_of_the_framework_alone_by_its_innermost_frame_in_python),
        cmocka_unit_test(a_stack_of_the_autograd_thread_by_what_runs_backward),
        cmocka_unit_test(nodes_are_called_as_their_operators),
        cmocka_unit_test(any_other_stack_by_what_says_most),
        cmocka_unit_test(native_frames_of_libraries_are_not_the_programs),
        cmocka_unit_test(a_frame_is_written_in_so_many_characters),
        cmocka_unit_test(no_stack_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
