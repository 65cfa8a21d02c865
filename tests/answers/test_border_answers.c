/* What is decided where a figure lies on a border, or one byte beside it: the verdict and the
 * advice of out-of-memory messages whose figures are the shares of a card that the decisions name.
 * What was changed on purpose is pinned anew:
 *
 *   test_border_answers            compares with tests/data/answers/borders.txt.zst
 *   test_border_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <stdint.h>

#include "base/bytes.h"
#include "messages/message_text.h"
#include "studies/explain/advice.h"
#include "studies/explain/verdict.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { CARDS = 48, CASES = 1500 };

/* ---- messages */

/* Shares as they are worked out in whole bytes, and sizes that are borders on every card. */
static uint64_t draw_border(uint64_t total, uint64_t *bits)
{
    const uint64_t borders[] = {0,
                                total / 200 * 3,
                                total / 100,
                                total / 50,
                                total / 20,
                                total / 20 * 3,
                                total / 10,
                                total / 10 * 3,
                                total / 8,
                                total / 5,
                                total / 4,
                                total / 3,
                                total / 2,
                                total / 100 * 85,
                                total,
                                total + total / 50,
                                FRAG_MIB,
                                10 * FRAG_MIB,
                                64 * FRAG_MIB,
                                FRAG_GIB / 4,
                                FRAG_GIB / 2,
                                2 * FRAG_GIB + FRAG_GIB / 2};
    uint64_t border = borders[xorshift_next(bits) % (sizeof borders / sizeof borders[0])];
    return border + xorshift_next(bits) % 3 - (border > 0 ? 1 : 0);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A byte beside what would be enough, or enough exactly. */
static uint64_t draw_near(uint64_t bytes, uint64_t *bits)
{
    return less(bytes + xorshift_next(bits) % 3, 1);
}

static frag_amount some(uint64_t bytes, unsigned one_in, uint64_t *bits)
{
    bool is_known = xorshift_next(bits) % one_in != 0;
    return is_known ? (frag_amount){.is_known = true, .bytes = bytes} : (frag_amount){0};
}

/* Free, idle, and held by others are borders; what is left of the card is in use. */
static void draw_figures(uint64_t total, uint64_t *bits, frag_amount figures[FRAG_FIGURE_COUNT])
{
    uint64_t free = draw_border(total, bits), outside = draw_border(total, bits);
    uint64_t idle = draw_border(total, bits), held = less(total, free + outside);
    uint64_t in_use = xorshift_next(bits) % 4 == 0 ? draw_border(total, bits) : less(held, idle);
    const uint64_t wanted[] = {draw_border(total, bits),
                               idle,
                               free,
                               idle + free,
                               idle + free + outside,
                               idle / 8 * 7,
                               2 * idle,
                               free / 2,
                               free / 4,
                               less(total, held),
                               less(total - total / 8, in_use)};
    uint64_t requested =
        draw_near(wanted[xorshift_next(bits) % (sizeof wanted / sizeof wanted[0])], bits);
    uint64_t limit = draw_near(held + requested, bits);
    uint64_t others =
        xorshift_next(bits) % 2 == 0 ? draw_border(total, bits) : less(requested, idle + free);
    figures[FRAG_FIGURE_REQUESTED] = some(requested, 8, bits);
    figures[FRAG_FIGURE_TOTAL] = some(total, 16, bits);
    figures[FRAG_FIGURE_FREE] = some(free, 6, bits);
    figures[FRAG_FIGURE_ALLOCATED] = some(in_use, 8, bits);
    figures[FRAG_FIGURE_RESERVED] = some(held, 4, bits);
    figures[FRAG_FIGURE_IDLE] = some(idle, 8, bits);
    if (xorshift_next(bits) % 4 == 0)
        figures[FRAG_FIGURE_LIMIT] =
            some(xorshift_next(bits) % 2 == 0 ? limit : (limit / 99 + 1) * 100, 8, bits);
    if (xorshift_next(bits) % 3 == 0)
        figures[FRAG_FIGURE_OTHERS] = some(draw_near(others, bits), 8, bits);
    if (xorshift_next(bits) % 4 == 0)
        figures[FRAG_FIGURE_PRIVATE] = some(draw_near(less(requested, idle + free), bits), 8, bits);
    if (xorshift_next(bits) % 4 == 0)
        figures[FRAG_FIGURE_PROCESS] = some(draw_near(held + outside / 2, bits), 8, bits);
}

static void add_amount(uint64_t *sum, const frag_amount *amount)
{
    pinned_add(sum, amount->is_known ? amount->bytes : UINT64_MAX);
}

static void add_message(uint64_t *sum, const frag_message *message, frag_messages *messages)
{
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_diagnose(message, &diagnosis);
    frag_advise(messages, message, &diagnosis, &advice);
    pinned_add(sum, (uint64_t)diagnosis.verdict << 8 | diagnosis.confidence);
    pinned_add_text(sum, diagnosis.because.length > 0 ? diagnosis.because.bytes : "");
    add_amount(sum, &diagnosis.outside);
    add_amount(sum, &diagnosis.context);
    add_amount(sum, &diagnosis.missing);
    for (size_t i = 0; i < advice.count; i++) {
        pinned_add_text(sum, advice.steps[i].action);
        pinned_add_text(sum, advice.steps[i].setting != NULL ? advice.steps[i].setting : "");
        add_amount(sum, &advice.steps[i].gain);
    }
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
}

static void tell_card(frag_text *out, uint64_t total, frag_framework framework)
{
    uint64_t bits = total * 0x9e3779b97f4a7c15u + framework + 1;
    uint64_t sum = 0;
    for (unsigned i = 0; i < CASES; i++) {
        frag_message message = {.kind = FRAG_MESSAGE_OOM, .framework = framework};
        frag_messages messages = {.scenes = (uint32_t)xorshift_next(&bits) & 63};
        draw_figures(total, &bits, message.figures);
        add_message(&sum, &message, &messages);
    }
    frag_text_add(out, "%s, a card of %" PRIu64 ": %016" PRIx64 "\n",
                  frag_framework_name(framework), total, sum);
}

/* ---- texts */

/* "C:\\x" and what may stand before its letter, be its letter, and stand behind. */
static void tell_paths(frag_text *out)
{
    uint64_t sum = 0;
    for (unsigned before = 1; before < 256; before++)
        for (unsigned letter = 1; letter < 256; letter++) {
            const char text[] = {(char)before, (char)letter, ':', '\\', before % 2 ? 'n' : 'a'};
            for (size_t from = 0; from < 2; from++)
                for (size_t length = 3; length + from <= sizeof text; length++)
                    pinned_add(&sum, frag_message_text_has_windows_path(text + from, length));
        }
    frag_text_add(out, "paths of Windows: %016" PRIx64 "\n", sum);
}

static void tell_all(frag_text *out)
{
    static const uint64_t totals[] = {24 * FRAG_GIB, 84987740160, 6000000000, 200 * FRAG_MIB};
    static const frag_framework frameworks[] = {
        FRAG_FRAMEWORK_PYTORCH,     FRAG_FRAMEWORK_PYTORCH,       FRAG_FRAMEWORK_PYTORCH_HIP,
        FRAG_FRAMEWORK_PYTORCH_MPS, FRAG_FRAMEWORK_PYTORCH_ASYNC, FRAG_FRAMEWORK_CUDA_JL};
    for (unsigned i = 0; i < CARDS; i++)
        tell_card(out, totals[i % 4] + i / 4 * 4096, frameworks[i % 6]);
    tell_paths(out);
}

static const pinned_lines pinned = {"tests/data/answers/borders.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
