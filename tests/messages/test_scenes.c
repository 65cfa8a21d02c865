/* Tests of what a text shows of the program around its messages. */
#include "messages/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void a_model_is_loaded_until_its_bar_is_full_or_a_step_is_told(void **state)
{
    (void)state;
    static const char oom[] = "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                              "7.42 GiB.\n";
    static const char bar[] = "Loading checkpoint shards: ";
    const struct {
        const char *before, *behind;
        bool is_loading;
    } cases[] = {
        {" 25%|##5   | 1/4 [00:02<00:05]", "", true},
        {"  0%|      | 0/4\rLoading checkpoint shards:  75%|### | 3/4", "", true},
        {"  0%|      | 0/4\nLoading checkpoint shards:  75%|### | 3/4", "", true},
        {"100%|######| 4/4 [00:07<00:00]", "", false},
        {"  0%|      | 0/4\rLoading checkpoint shards: 100%|####| 4/4", "", false},
        {"  0%|      | 0/4\nLoading checkpoint shards:  50%|##  | 2/4\n"
         "Loading checkpoint shards: 100%|####| 4/4",
         "", false},
        {"100%|######| 4/4\n    model.to(device)", "", true},
        {"100%|######| 4/4\nLoading checkpoint shards:  50%|##  | 1/2", "", true},
        {" 50%|###   | 2/4\nEpoch 1 step 30 loss 2.0", "", false},
        {" 50%|###   | 2/4\n{'loss': 2.31}\n  5%|# | 12/400", "", false},
        {" 50%|###   | 2/4\n    loss.backward()", "", false},
        {" 50%|###   | 2/4\n    loss.backward()\n    model.to(device)", "", true},
        {" 50%|###   | 2/4\nlossless, stepwise, 3 epochs", "", true},
        {" 50%|###   | 2/4", "Epoch 1 of the next run", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_text text = {0};
        frag_messages messages;
        frag_text_add(&text, "%s%s%s%s", bar, cases[i].before, oom, cases[i].behind);
        frag_messages_read(&messages, text.bytes, text.length);
        assert_int_equal(messages.oom_count, 1);
        bool is_loading = (messages.scenes & FRAG_SCENE_LOADING) != 0;
        if (is_loading != cases[i].is_loading)
            print_error("%s\n", cases[i].before);
        assert_int_equal(is_loading, cases[i].is_loading);
        assert_int_equal(messages.scenes & FRAG_SCENE_TRAINING, 0);
        frag_messages_destroy(&messages);
        frag_text_destroy(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_loaded_until_its_bar_is_full_or_a_step_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
