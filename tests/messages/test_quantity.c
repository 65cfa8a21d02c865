/* Tests of message_quantity.c: which numbers of a message are sizes, and of what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "messages/message.h"

/* Smaller ones are counts, lines and statuses. */
static void a_bare_number_is_one_of_bytes_from_a_mebibyte_on(void **state)
{
    (void)state;
    static const struct {
        frag_figure figure;
        const char *text;
    } cases[] = {
        {FRAG_FIGURE_FREE, "CUDA out of memory: requested 9 MB (%u) free"},
        {FRAG_FIGURE_FREE, "CUDA out of memory: only %u of 9000000 are free"},
        {FRAG_FIGURE_TOTAL, "CUDA out of memory: the gpu only has %u bytes"},
        {FRAG_FIGURE_REQUESTED, "CUDA out of memory [alloc:%u]"},
        {FRAG_FIGURE_REQUESTED, "CUDA out of memory, requested context %u"},
        {FRAG_FIGURE_REQUESTED, "cudaMalloc(p, %u) failed: out of memory"},
        {FRAG_FIGURE_REQUESTED, "CUDA out of memory: used 3000000 + %u > 4000000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned bytes = (1 << 20) - 1; bytes <= 1 << 20; bytes++) {
            char text[128];
            frag_messages messages;
            snprintf(text, sizeof text, cases[i].text, bytes);
            frag_messages_read(&messages, text, strlen(text));
            const frag_amount *found = &frag_messages_best(&messages)->figures[cases[i].figure];
            if ((found->is_known && found->bytes == bytes) != (bytes == 1 << 20))
                fail_msg("%s", text);
            frag_messages_destroy(&messages);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_number_is_one_of_bytes_from_a_mebibyte_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
