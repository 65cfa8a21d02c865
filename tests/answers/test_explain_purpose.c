/* Tests of explain_purpose.c: what a call stack says that its memory is for. */
#include "studies/explain/explain_purpose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/text_recording.h"

static void the_innermost_frame_that_tells_counts(void **state)
{
    (void)state;
    static const struct {
        const char *innermost; /* function and file */
        const char *outer;
        const char *purpose;
    } cases[] = {
        {"<lambda>\" \"torch/nn/modules/module.py", "cuda\" \"torch/nn/modules/module.py",
         "weights"},
        {"convert\" \"torch/nn/modules/module.py", "to\" \"torch/nn/modules/module.py", "weights"},
        {"__init__\" \"torch/nn/modules/linear.py", "<module>\" \"train.py", "weights"},
        {"forward\" \"torch/nn/modules/linear.py", "forward\" \"torch/nn/parallel/distributed.py",
         "activations"},
        {"_pre_forward\" \"torch/nn/parallel/distributed.py", "<module>\" \"train.py",
         "communication"},
        {"forward\" \"model.py", "backward\" \"torch/_functorch/_aot_autograd/wrappers.py",
         "backward"},
        {"__deepcopy__\" \"torch/nn/parameter.py", "deepcopy\" \"copy.py", "weights"},
        {"_allocate_kv_cache_tensors\" \"runner.py", "<module>\" \"serve.py", "cache"},
        {"_init_group\" \"torch/optim/adamw.py", "<module>\" \"train.py", "optimizer"},
        {"backward\" \"torch/_tensor.py", "<module>\" \"train.py", "backward"},
        {"autograd thread (no Python stack)\" \"", "autograd thread (no Python stack)\" \"",
         "backward"},
        {"load\" \"train.py", "backward\" \"torch/_tensor.py", "backward"},
        {"load\" \"train.py", "<module>\" \"train.py", "unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        char text[512];
        snprintf(text, sizeof text,
                 "frame \"%s\" 1\nframe \"%s\" 2\nsite 0 1\nalloc 0 512 site=1\n",
                 cases[i].innermost, cases[i].outer);
        frag_test_recording(text, &recording);
        assert_string_equal(frag_purpose_name(frag_purpose_of_site(&recording, 1)),
                            cases[i].purpose);
        frag_purpose *of_site = frag_purposes_of_sites(&recording);
        assert_string_equal(frag_purpose_name(of_site[1]), cases[i].purpose);
        assert_int_equal(of_site[0], FRAG_PURPOSE_UNKNOWN); /* no call stack */
        frag_free(of_site);
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_innermost_frame_that_tells_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
