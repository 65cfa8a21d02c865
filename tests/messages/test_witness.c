/* Tests of the rules that hear a person who tells that memory ran out, and pass over what explains,
 * advises or supposes. */
#include "messages/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_oom(const char *text)
{
    frag_messages messages;
    frag_messages_read(&messages, text, strlen(text));
    const frag_message *best = frag_messages_best(&messages);
    bool is_oom = best != NULL && best->kind == FRAG_MESSAGE_OOM;
    frag_messages_destroy(&messages);
    return is_oom;
}

static void assert_each(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++)
        if (is_oom(texts[i]) != expected)
            fail_msg("expected %s: %s", expected ? "an out of memory" : "none", texts[i]);
}

static void how_it_ended_is_told(void **state)
{
    (void)state;
    static const char *const out[] = {
        "GPU memory keeps rising until OOM, any idea?",
        "usage climbs from 5G to 11G and finally OOM",
        "it grows by 3 MB every step and eventually runs out of memory",
        "It loads for a minute and then prompts out of memory on my 3080.",
        "My 2070 is experiencing a VRAM overflow with the second sample",
    };
    static const char *const not_out[] = {
        "Increase the batch size until OOM, then halve it.",
        "Raise num_ctx until you run out of VRAM.",
        "GPU memory usage is growing by about 2MiB and never decreasing",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_complaint_is_told_whatever_was_asked_before(void **state)
{
    (void)state;
    static const char *const out[] = {
        "I had to go down to batch 4 because 8 would give CUDA out of memory",
        "I have two 3090s and use only one, so why is there not enough memory?",
        "Why do I still get out of memory with 24 GB?",
        "How much does it need, I can't run the 13B model on a 4080, memory is not enough",
        "What can I do, I get OOM on the second image",
    };
    static const char *const not_out[] = {
        "A batch of 16 would cause an out of memory on smaller cards",
        "Why does CUDA run out of memory? Because activations are kept.",
        "Why is there not enough memory on consumer cards?",
        "If it can't run, the video memory is insufficient",
        "I only have 12GB VRAM, is it enough?",
    };
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void what_happens_to_many_happened_to_nobody(void **state)
{
    (void)state;
    static const char *const not_out[] = {
        "Large contexts lead to 'CUDA out of memory' errors on small cards.",
        "Without it the server suffers from frequent Out of Memory (OOM) crashes under load.",
        "When you ask for a tensor of 2 GB, the allocation fails.",
        "The holes are small. You have, say, 4 GB in all, so a 2 GB allocation fails.",
    };
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

static void chinese_says_it_without_blanks(void **state)
{
    (void)state;
    static const char *const out[] = {"推理时报OOM", "训练第3个epoch报oom", "一跑就OOM"};
    static const char *const not_out[] = {"如何避免OOM", "会不会OOM？", "不会OOM",
                                          "12GB显存够不够？"};
    assert_each(out, sizeof out / sizeof *out, true);
    assert_each(not_out, sizeof not_out / sizeof *not_out, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_it_ended_is_told),
        cmocka_unit_test(a_complaint_is_told_whatever_was_asked_before),
        cmocka_unit_test(what_happens_to_many_happened_to_nobody),
        cmocka_unit_test(chinese_says_it_without_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
