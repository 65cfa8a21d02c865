/* What the reader of messages makes of every kept message with one thing changed, what is decided
 * and advised of figures drawn at random, and what it takes for an escape among all short texts of
 * the bytes that escapes are made of. What was changed on purpose is pinned anew:
 *
 *   test_message_answers            compares with tests/data/answers/messages.txt.zst
 *   test_message_answers --write    prints what that file should hold (make answers-golden);
 *                                   with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/bytes.h"
#include "base/formats/lines.h"
#include "studies/explain/explain_text.h"
#include "messages/message_escape.h"
#include "messages/message_size.h"
#include "tests/support/changed_bytes.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

#define FOLDER "tests/data/oom-messages/"

enum { CHANGES = 10, WORD_CHANGES = 10, FIGURE_CHANGES = 30, LONG_CHANGES = 10, ESCAPE_MAX = 6 };

enum { DRAWN_MESSAGES = 4000, SAYS_BITS = 14 };

/* ---- messages */

static void add_amount(uint64_t *sum, const frag_amount *amount)
{
    pinned_add(sum, amount->is_known);
    if (amount->is_known) {
        pinned_add(sum, amount->bytes);
        pinned_add(sum, amount->slack_bytes);
    }
}

static void add_sentence(uint64_t *sum, const frag_text *text)
{
    pinned_add_text(sum, text->length > 0 ? text->bytes : "");
}

static uint64_t sum_of(const frag_messages *messages, const frag_diagnosis *diagnosis,
                       const frag_advice *advice)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < messages->count; i++) {
        const frag_message *message = &messages->items[i];
        pinned_add(&sum, message->kind);
        pinned_add(&sum, message->line);
        pinned_add(&sum, message->says);
        pinned_add(&sum, message->framework);
        pinned_add(&sum, message->has_device ? message->device : UINT64_MAX);
        pinned_add_text(&sum, message->release != NULL ? message->release : "");
        for (uint32_t j = 0; j < message->process_count; j++)
            pinned_add(&sum, message->processes[j] ^ message->process_ids[j] << 48);
        for (size_t j = 0; j < message->size_count; j++)
            add_amount(&sum, &message->sizes[j].amount);
    }
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
        add_amount(&sum, &diagnosis->figures[i]);
    add_amount(&sum, &diagnosis->outside);
    add_amount(&sum, &diagnosis->context);
    add_amount(&sum, &diagnosis->missing);
    pinned_add(&sum, diagnosis->confidence);
    add_sentence(&sum, &diagnosis->because);
    for (size_t i = 0; i < advice->count; i++) {
        const frag_advice_step *step = &advice->steps[i];
        pinned_add_text(&sum, step->action);
        pinned_add_text(&sum, step->setting != NULL ? step->setting : "");
        add_amount(&sum, &step->gain);
        add_sentence(&sum, &step->text);
    }
    return sum;
}

/* The explanation in words and as JSON. */
static void add_printed(uint64_t *sum, const frag_messages *messages,
                        const frag_diagnosis *diagnosis, const frag_advice *advice)
{
    const frag_explained explained = {messages, frag_messages_best(messages), diagnosis, advice};
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    frag_explain_print_text(stream, &explained);
    fputc('\0', stream);
    frag_explain_print_json(stream, &explained);
    fclose(stream);
    pinned_add_text(sum, bytes);
    const char *json = bytes + strlen(bytes) + 1;
    const char *tool = strstr(json, "\"tool\":{"); /* which has the commit */
    pinned_add_text(sum, tool != NULL ? strchr(tool, '}') : json);
    free(bytes);
}

static void tell_text(frag_text *out, const char *text, size_t length, bool is_printed)
{
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_messages_read(&messages, text, length);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, frag_messages_best(&messages), &diagnosis, &advice);
    uint64_t sum = sum_of(&messages, &diagnosis, &advice);
    if (is_printed)
        add_printed(&sum, &messages, &diagnosis, &advice);
    frag_text_add(out, "%zu, %s, %04" PRIx64 "\n", messages.count,
                  frag_oom_verdict_name(diagnosis.verdict), sum >> 48);
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
}

/* Lines are read near a failure only: one is made longer before it or behind it, by lengths about
 * those that are read. */
static void add_long(frag_text *out, const char *text, uint64_t seed)
{
    static const char *const fillers[] = {"step ", "a|b ", "x->y ", "`f` ",     "0.5 ",    "k=v ",
                                          ". ",    "\"",   "Z",     "9",        "/tmp/a ", "(",
                                          "for ",  "MiB ", "[1] ",  "warning ", "# ",      "not "};
    static const size_t lengths[] = {1, 8, 64, 120, 160, 240, 320, 480, 640, 1024};
    uint64_t bits = (seed + 1) * 0x9e3779b97f4a7c15u;
    size_t length = strlen(text);
    size_t at = xorshift_next(&bits) % (length + 1);
    while (at > 0 && text[at - 1] != '\n' && (text[at - 1] != ' ' || seed % 4 == 0))
        at--;
    const char *filler = fillers[xorshift_next(&bits) % (sizeof fillers / sizeof *fillers)];
    size_t wanted = lengths[xorshift_next(&bits) % (sizeof lengths / sizeof *lengths)];
    wanted += xorshift_next(&bits) % 24;
    frag_text_add(out, "%.*s", (int)at, text);
    for (size_t added = 0; added < wanted; added += strlen(filler))
        frag_text_add(out, "%s", filler);
    frag_text_add(out, "%s", text + at);
}

static void tell_long(frag_text *out, const char *text, uint64_t seed)
{
    size_t from = out->length;
    for (uint64_t i = 0; i < LONG_CHANGES; i++) {
        frag_text changed = {0};
        add_long(&changed, text, seed + i);
        frag_text_add(out, "long %" PRIu64 ": ", i);
        tell_text(out, changed.bytes, changed.length, false);
        frag_text_destroy(&changed);
    }
    pinned_fold(out, from, "  longer lines");
}

/* The first so many bytes with a zero before or behind each, without a mark at the start. */
static void tell_wide(frag_text *out, const char *text)
{
    static const size_t taken[] = {2, 31, 32, 33, 4000};
    size_t from = out->length;
    for (size_t i = 0; i < 2 * sizeof taken / sizeof *taken; i++) {
        frag_text wide = {0};
        for (size_t at = 0; text[at] != '\0' && at < taken[i / 2]; at++) {
            const char pair[] = {i % 2 == 0 ? text[at] : '\0', i % 2 == 0 ? '\0' : text[at]};
            frag_text_add_bytes(&wide, pair, sizeof pair);
        }
        tell_text(out, wide.length > 0 ? wide.bytes : "", wide.length, false);
        frag_text_destroy(&wide);
    }
    pinned_fold(out, from, "  in UTF-16");
}

typedef struct told_file {
    frag_text *out;
    const char *name;
    unsigned row;
} told_file;

static bool tell_row(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    told_file *at = context;
    json_error_t reason;
    json_t *row = json_loadb(line, length, 0, &reason);
    const char *text = json_string_value(json_object_get(row, "message"));
    assert_non_null(text);
    changed_file file = {(const unsigned char *)text, strlen(text), false};
    at->row++;
    frag_text_add(at->out, "%s %u\n", at->name, at->row);
    size_t from = at->out->length;
    for (uint64_t i = 0; i < CHANGES + WORD_CHANGES; i++) {
        frag_text changed = {0};
        if (i < CHANGES)
            changed_bytes(&file, 1000 * at->row + i, &changed, at->out);
        else
            changed_words(&file, 1000 * at->row + i, &changed, at->out);
        frag_text_add(at->out, ": ");
        tell_text(at->out, changed.length > 0 ? changed.bytes : "", changed.length, i % 5 == 0);
        frag_text_destroy(&changed);
    }
    pinned_fold(at->out, from, "  words");
    from = at->out->length;
    for (uint64_t i = 0; i < FIGURE_CHANGES; i++) {
        frag_text changed = {0};
        changed_figures(&file, 1000 * at->row + i, &changed, at->out);
        frag_text_add(at->out, ": ");
        tell_text(at->out, changed.length > 0 ? changed.bytes : "", changed.length, false);
        frag_text_destroy(&changed);
    }
    pinned_fold(at->out, from, "  figures");
    tell_long(at->out, text, 1000 * at->row);
    if (at->row % 16 == 1)
        tell_wide(at->out, text);
    json_decref(row);
    return true;
}

static void tell_messages(frag_text *out, const char *name)
{
    told_file at = {.out = out, .name = name};
    frag_text path = {0};
    frag_error error = {0};
    frag_text_add(&path, FOLDER "%s.jsonl.zst", name);
    frag_input *input = frag_input_open(path.bytes, &error);
    assert_non_null(input);
    assert_true(frag_each_line(input, tell_row, &at, &error));
    frag_input_close(input);
    frag_text_destroy(&path);
}

/* ---- verdicts and advice by figures alone */

/* An eighth of the card, or a byte beside one; small ones, too, and some of them rounded. */
static frag_amount draw_amount(uint64_t *bits)
{
    static const uint64_t small[] = {0, 1, 64 * FRAG_MIB, FRAG_GIB / 2};
    uint64_t draw = xorshift_next(bits);
    frag_amount amount = {.is_known = draw % 4 != 0};
    uint64_t share = draw >> 2 & 15;
    if (!amount.is_known)
        return amount;
    amount.bytes = share < 12 ? share * FRAG_GIB : small[share - 12];
    amount.bytes += draw >> 8 & 1;
    amount.bytes -= amount.bytes > 0 ? draw >> 9 & 1 : 0;
    amount.slack_bytes = (draw >> 10 & 3) == 0 ? FRAG_MIB : 0;
    return amount;
}

static frag_message draw_message(uint64_t *bits, frag_framework framework)
{
    static const char *const releases[] = {
        NULL,          "PyTorch 1.0 to 1.3", "PyTorch 1.4 to 2.0",   "PyTorch 1.10 to 2.0",
        "PyTorch 2.1", "PyTorch 2.10",       "PyTorch 2.11 or later"};
    uint64_t draw = xorshift_next(bits);
    frag_message message = {
        .kind = draw % 8 == 0 ? FRAG_MESSAGE_HOST : FRAG_MESSAGE_OOM,
        .framework = framework,
        .release = releases[(draw >> 3) % (sizeof releases / sizeof releases[0])],
        .says = (draw >> 8 & 1) != 0 ? 1u << (draw >> 9) % SAYS_BITS : 0,
    };
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
        message.figures[i] = draw_amount(bits);
    return message;
}

/* What is decided of figures that no text need have, and what is advised then. */
static void tell_figures(frag_text *out, frag_framework framework)
{
    uint64_t bits = framework + 1;
    size_t from = out->length;
    for (unsigned i = 0; i < DRAWN_MESSAGES; i++) {
        frag_message message = draw_message(&bits, framework);
        frag_messages messages = {.scenes = (uint32_t)xorshift_next(&bits) & 63,
                                  .is_windows = xorshift_next(&bits) % 8 == 0};
        for (frag_setting j = 0; j < FRAG_SETTING_COUNT; j++)
            messages.is_on[j] = xorshift_next(&bits) % 4 == 0;
        frag_diagnosis diagnosis;
        frag_diagnose(&message, &diagnosis);
        frag_text_add(out, "%s %u", frag_framework_name(framework), i);
        if (i % 4 == 0) /* what no figures lead to */
            diagnosis.verdict = (frag_oom_verdict)(xorshift_next(&bits) % FRAG_OOM_VERDICT_COUNT);
        frag_advice advice;
        frag_advise(&messages, &message, &diagnosis, &advice);
        frag_text_add(out, ": %s, %016" PRIx64 "\n", frag_oom_verdict_name(diagnosis.verdict),
                      sum_of(&messages, &diagnosis, &advice));
        frag_advice_destroy(&advice);
        frag_diagnosis_destroy(&diagnosis);
    }
    pinned_fold(out, from, "  figures that were drawn");
}

/* ---- escapes */

typedef size_t escape_reader(const unsigned char *bytes, size_t length, char *plain);

static size_t read_terminal(const unsigned char *bytes, size_t length, char *plain)
{
    *plain = 0;
    return frag_escape_terminal(bytes, length);
}

static size_t add_read(char *plain, size_t taken, const frag_amount *amount)
{
    uint64_t sum = 0;
    if (taken > 0)
        add_amount(&sum, amount);
    *plain = (char)(sum >> 32);
    return taken;
}

static size_t read_size(const unsigned char *bytes, size_t length, char *plain)
{
    frag_amount amount = {0};
    (void)length;
    return add_read(plain, frag_message_size((const char *)bytes, &amount), &amount);
}

static size_t read_number(const unsigned char *bytes, size_t length, char *plain)
{
    frag_amount amount = {0};
    (void)length;
    return add_read(plain, frag_message_number((const char *)bytes, &amount), &amount);
}

static size_t read_shape(const unsigned char *bytes, size_t length, char *plain)
{
    frag_amount amount = {0};
    (void)length;
    return add_read(plain, frag_message_shape((const char *)bytes, &amount), &amount);
}

/* All texts of these letters behind a beginning, which are counted by what is made of them. */
static void tell_escapes(frag_text *out, escape_reader *read, const char *begin,
                         const char *letters)
{
    size_t start = strlen(begin);
    uint64_t letter_count = strlen(letters);
    uint64_t sum = 0;
    uint64_t count = 1;
    unsigned char text[32];
    memcpy(text, begin, start);
    for (size_t length = 0; length <= ESCAPE_MAX; length++, count *= letter_count)
        for (uint64_t number = 0; number < count && count < 300000; number++) {
            uint64_t rest = number;
            for (size_t i = 0; i < length; i++, rest /= letter_count)
                text[start + i] = (unsigned char)letters[rest % letter_count];
            text[start + length] = '\0';
            char plain = 0;
            pinned_add(&sum, read(text, start + length, &plain));
            pinned_add(&sum, (unsigned char)plain);
        }
    frag_text_add(out, "%" PRIu64 " letters behind %zu: %016" PRIx64 "\n", letter_count, start,
                  sum);
}

static void tell_all(frag_text *out)
{
    static const char *const names[] = {"threads", "more-threads", "programs", "pastes",
                                        "made",    "ordinary",     "unseen",   "fresh"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        tell_messages(out, names[i]);
    for (frag_framework i = 0; i < FRAG_FRAMEWORK_COUNT; i++)
        tell_figures(out, i);
    tell_escapes(out, read_terminal, "\x1b", "[]3m@~\x07\x1f\x7f x");
    tell_escapes(out, read_terminal, "",
                 "^[3\x1b"
                 "A");
    tell_escapes(out, read_terminal, "\\", "u001bxB[");
    tell_escapes(out, frag_escape_backslash, "\\", "u079aFn\"\\/r");
    tell_escapes(out, frag_escape_backslash, "\\u00", "0178afgG/:@`\x1f");
    tell_escapes(out, frag_escape_html, "&", "#x39a;gF");
    tell_escapes(out, frag_escape_html, "&#", "0127xX8;f:/");
    tell_escapes(out, frag_escape_html, "&#x", "0127fFgG;:/@`");
    tell_escapes(out, frag_escape_html, "<", "b/r >a\n<z{`");
    tell_escapes(out, frag_escape_html, "</", "bri >/\n");
    tell_escapes(out, read_size, "1", "05.,gib\n ");
    tell_escapes(out, read_size, "16777216", "05.,bk");
    tell_escapes(out, read_size, "1.5", "09gmkbti");
    tell_escapes(out, read_number, "", "019.,\n ");
    tell_escapes(out, read_number, "18446744073709551", "0156,");
    tell_escapes(out, read_shape, "[12,3]andtypefloat", "163248,x");
    tell_escapes(out, read_shape, "[12,3]andtype", "floatin");
}

static const pinned_lines pinned = {"tests/data/answers/messages.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
