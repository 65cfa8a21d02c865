/* What is answered to every message of tests/data/oom-messages, word for word, and to made messages
 * whose figures lie on and beside every border: a change of any rule shows here. What was changed
 * on purpose is pinned anew, and the difference read:
 *
 *   test_oom_answers            compares with tests/data/oom-messages/answers.txt.zst
 *   test_oom_answers --write    prints what that file should hold (make explain-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/bytes.h"
#include "base/formats/lines.h"
#include "studies/explain/advice.h"
#include "tests/support/pinned_lines.h"

#define FOLDER "tests/data/oom-messages/"

static void tell_amount(frag_text *out, const char *name, const frag_amount *amount)
{
    if (amount->is_known)
        frag_text_add(out, " %s=%" PRIu64 "/%" PRIu64, name, amount->bytes, amount->slack_bytes);
}

/* One line, or two and one for each advice. */
static void tell_answer(frag_text *out, const char *text, size_t length, bool is_short)
{
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_messages_read(&messages, text, length);
    const frag_message *best = frag_messages_best(&messages);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, best, &diagnosis, &advice);
    frag_text_add(out, "%s (%s)", frag_oom_verdict_name(diagnosis.verdict),
                  frag_confidence_name(diagnosis.confidence));
    tell_amount(out, "missing", &diagnosis.missing);
    if (!is_short) {
        for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
            tell_amount(out, frag_figure_field(i), &diagnosis.figures[i]);
        tell_amount(out, "outside", &diagnosis.outside);
        tell_amount(out, "context", &diagnosis.context);
        if (best != NULL)
            frag_text_add(out, " line %" PRIu64 ", %s, %zu", best->line,
                          best->release != NULL ? best->release : "-", messages.oom_count);
        frag_text_add(out, "\n  %s", diagnosis.because.bytes);
    }
    for (size_t i = 0; i < advice.count; i++)
        frag_text_add(out, is_short ? " %s" : "\n  - %s: %s", advice.steps[i].action,
                      advice.steps[i].text.bytes);
    frag_text_add(out, "\n");
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
}

typedef struct answer_output {
    frag_text *out;
    const char *name;
    unsigned number; /* of the row */
} answer_output;

static bool tell_row(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    answer_output *at = context;
    json_error_t reason;
    json_t *row = json_loadb(line, length, 0, &reason);
    const char *text = json_string_value(json_object_get(row, "message"));
    assert_non_null(text);
    frag_text_add(at->out, "%s %u: ", at->name, ++at->number);
    tell_answer(at->out, text, strlen(text), false);
    json_decref(row);
    return true;
}

static void tell_file(frag_text *out, const char *name)
{
    answer_output at = {.out = out, .name = name};
    char path[256];
    frag_error error = {0};
    snprintf(path, sizeof path, FOLDER "%s.jsonl.zst", name);
    frag_input *input = frag_input_open(path, &error);
    assert_non_null(input);
    assert_true(frag_each_line(input, tell_row, &at, &error));
    frag_input_close(input);
}

typedef struct figures { /* in MiB */
    unsigned requested;
    unsigned is_free;
    unsigned allocated;
    unsigned idle;
    unsigned others;
    unsigned in_graphs; /* idle in pools of graphs */
} figures;

enum { CARD = 8192 };

static void tell_case(frag_text *out, const figures *at)
{
    frag_text text = {0};
    frag_text_add(&text,
                  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %u.00 MiB. GPU 0 "
                  "has a total capacity of %u.00 MiB of which %u.00 MiB is free. ",
                  at->requested, (unsigned)CARD, at->is_free);
    if (at->others > 0)
        frag_text_add(&text, "Process 12 has %u.00 MiB memory in use. ", at->others);
    frag_text_add(&text,
                  "Including non-PyTorch memory, this process has %u.00 MiB memory in use. Of the "
                  "allocated memory %u.00 MiB is allocated by PyTorch, ",
                  CARD - at->is_free - at->others, at->allocated);
    if (at->in_graphs > 0)
        frag_text_add(&text, "with %u.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
                      at->in_graphs);
    frag_text_add(&text, "and %u.00 MiB is reserved by PyTorch but unallocated.", at->idle);
    frag_text_add(out, "asked %u, free %u, used %u, idle %u, others %u, graphs %u: ", at->requested,
                  at->is_free, at->allocated, at->idle, at->others, at->in_graphs);
    tell_answer(out, text.bytes, text.length, true);
    frag_text_destroy(&text);
}

/* Of a card of 8 GiB: figures on the borders of the rules (shares of the card, twice the request, a
 * segment of 20 MiB), and one beside each. */
static void tell_figures(frag_text *out)
{
    static const unsigned requested[] = {2, 20, 1024, 1640, 8192, 8194};
    static const unsigned shares[] = {0, 2, 20, 40, 820, 1024, 1640, 2048, 4096, 6552, 8192};
    static const unsigned besides[][2] = {{0, 0}, {1640, 0}, {0, 1024}}; /* others, in graphs */
    enum { SHARES = sizeof shares / sizeof shares[0], CASES = SHARES * SHARES * SHARES };
    for (size_t i = 0; i < sizeof requested / sizeof requested[0]; i++)
        for (size_t at = 0; at < CASES * sizeof besides / sizeof besides[0]; at++) {
            const unsigned *beside = besides[at / CASES];
            figures one = {requested[i],
                           shares[at % SHARES],
                           shares[at / SHARES % SHARES],
                           shares[at / SHARES / SHARES % SHARES],
                           beside[0],
                           beside[1]};
            if (one.is_free + one.allocated + one.idle + one.others <= CARD)
                tell_case(out, &one);
        }
}

/* Requests of the size from which on a size must be wrong, and a little less, in bytes. */
static void tell_huge(frag_text *out)
{
    static const uint64_t bytes[] = {((uint64_t)1 << 43) - 1, (uint64_t)1 << 43,
                                     ((uint64_t)1 << 43) + 1};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        frag_text text = {0};
        frag_text_add(&text,
                      "RuntimeError: [enforce fail at alloc.cpp] CUDA out of memory. Tried "
                      "to allocate %" PRIu64 " bytes",
                      bytes[i]);
        frag_text_add(out, "%" PRIu64 " bytes: ", bytes[i]);
        tell_answer(out, text.bytes, text.length, true);
        frag_text_destroy(&text);
    }
}

static void tell_all(frag_text *out)
{
    static const char *const names[] = {"threads", "more-threads", "programs", "made",   "pastes",
                                        "unseen",  "fresh",        "blind",    "sources"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        tell_file(out, names[i]);
    tell_figures(out);
    tell_huge(out);
}

static const pinned_lines pinned = {FOLDER "answers.txt.zst", tell_all, "explain-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
