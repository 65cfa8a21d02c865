/* Tests of message.c: finding and reading out-of-memory messages in text. */
#include "messages/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/text.h"
#include "messages/message_escape.h"
#include "messages/message_size.h"
#include "messages/message_text.h"
#include "studies/explain/verdict.h"

static const frag_message *read_best(frag_messages *messages, const char *text)
{
    frag_messages_read(messages, text, strlen(text));
    return frag_messages_best(messages);
}

static void assert_figure(const frag_message *message, frag_figure figure, uint64_t bytes)
{
    assert_true(message->figures[figure].is_known);
    assert_int_equal(message->figures[figure].bytes, bytes);
}

static void assert_size(const char *text, uint64_t bytes, size_t taken)
{
    frag_amount amount = {0};
    assert_int_equal(frag_message_size(text, &amount), taken);
    assert_true(amount.is_known);
    assert_int_equal(amount.bytes, bytes);
}

static void sizes_are_read_as_frameworks_print_them(void **state)
{
    (void)state;
    frag_amount amount = {0};
    assert_size("0bytesfree", 0, 6);
    assert_size("512.00kib", 512 * FRAG_KIB, 9);
    assert_size("1.50gibof", 3 * FRAG_GIB / 2, 7);
    assert_size("3.125000gbmemory", 3 * FRAG_GIB + FRAG_GIB / 8, 10);
    assert_size("25,600,000bytes", 25600000, 15);
    assert_size("1900,50mib", 1900 * FRAG_MIB + FRAG_MIB / 2, 10);
    assert_size("21.5gof", 21 * FRAG_GIB + FRAG_GIB / 2, 5);
    assert_size("22.\n50gib", 22 * FRAG_GIB + FRAG_GIB / 2, 9);
    assert_size("22.50\ngib", 22 * FRAG_GIB + FRAG_GIB / 2, 9);
    assert_size("1984585910/1.8gb", 1984585910, 10);
    assert_size("22.50g\nib", 22 * FRAG_GIB + FRAG_GIB / 2, 9);
    assert_int_equal(frag_message_size("17179869184.00gib", &amount), 17);
    assert_false(amount.is_known);
    assert_int_equal(frag_message_size("12", &amount), 0);
    assert_int_equal(frag_message_size("12\n5gib", &amount), 0);
    assert_int_equal(frag_message_size("12\n.5gib", &amount), 0);
    assert_int_equal(frag_message_size("12.5", &amount), 0);
    assert_int_equal(frag_message_size("gib", &amount), 0);
    assert_int_equal(frag_message_size("99999999999999999999999999999999999999bytes", &amount), 0);
}

static void a_rounded_size_knows_how_exact_it_is(void **state)
{
    (void)state;
    frag_amount amount = {0};
    frag_message_size("1.39gib", &amount);
    assert_int_equal(amount.slack_bytes, FRAG_GIB / 200);
    frag_message_size("12bytes", &amount);
    assert_int_equal(amount.slack_bytes, 0);
}

static void a_size_that_is_repeated_in_bytes_is_exact(void **state)
{
    (void)state;
    const struct {
        const char *text;
        char next; /* the byte behind what was read */
        uint64_t bytes, slack;
    } cases[] = {
        {"7.35g(7889485824bytes)fromdevice", '(', 7889485824, 0},
        {"7.4gib(7,889,485,824bytes)", '(', 7889485824, 0},
        {"2.99gib(3206250496b)ondevice", '(', 3206250496, 0},
        {"2.15gb(2147483648bytes)", '(', 2147483648, 0},
        {"1.00gib(1073741824elements)", '(', FRAG_GIB, FRAG_GIB / 200},
        {"1.00gib(900000000bytes)", '(', FRAG_GIB, FRAG_GIB / 200},
        {"1.00gib(1100000000bytes)", '(', FRAG_GIB, FRAG_GIB / 200},
        {"1.00gib1073741825bytes", '1', FRAG_GIB, FRAG_GIB / 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_amount amount = {0};
        assert_int_equal(cases[i].text[frag_message_size(cases[i].text, &amount)], cases[i].next);
        assert_int_equal(amount.bytes, cases[i].bytes);
        assert_int_equal(amount.slack_bytes, cases[i].slack);
    }
}

static void the_size_of_a_tensor_follows_from_its_shape(void **state)
{
    (void)state;
    frag_amount amount = {0};
    assert_true(frag_message_shape("[2,3,4]andtypefloaton", &amount) > 0);
    assert_int_equal(amount.bytes, 96);
    assert_true(frag_message_shape("[7]andtypehalf", &amount) > 0);
    assert_int_equal(amount.bytes, 14);
    assert_true(frag_message_shape("[4294967296,4294967296,2]andtypefloat", &amount) > 0);
    assert_false(amount.is_known);
    assert_int_equal(frag_message_shape("[]andtypefloat", &amount), 0);
    assert_int_equal(frag_message_shape("[2,]andtypefloat", &amount), 0);
    assert_int_equal(frag_message_shape("[2,3", &amount), 0);
}

/* Up to a half of what PyTorch holds, the memory of others leaves no doubt about who is short. */
static void much_held_by_others_makes_a_shortage_of_mps_less_sure(void **state)
{
    (void)state;
    static const struct {
        const char *others;
        frag_confidence confidence;
    } cases[] = {{"1.00", FRAG_CONFIDENCE_HIGH},
                 {"2.00", FRAG_CONFIDENCE_HIGH},
                 {"2.01", FRAG_CONFIDENCE_MEDIUM}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_messages messages;
        frag_diagnosis diagnosis;
        char text[256];
        snprintf(text, sizeof text,
                 "RuntimeError: MPS backend out of memory (MPS allocated: 4.00 GB, other "
                 "allocations: %s GB, max allowed: 6.80 GB). Tried to allocate 8.00 GB on private "
                 "pool.",
                 cases[i].others);
        frag_messages_read(&messages, text, strlen(text));
        frag_diagnose_text(&messages, &diagnosis);
        assert_int_equal(diagnosis.verdict, FRAG_OOM_VERDICT_SHORTAGE);
        assert_int_equal(diagnosis.confidence, cases[i].confidence);
        frag_diagnosis_destroy(&diagnosis);
        frag_messages_destroy(&messages);
    }
}

static void every_figure_of_a_message_is_found(void **state)
{
    (void)state;
    frag_messages messages;
    const frag_message *best = read_best(
        &messages,
        "first line\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 3 "
        "has a total capacity of 16.00 GiB of which 8.00 MiB is free. Process 12 has 2.00 GiB "
        "memory in use. Including non-PyTorch memory, this process has 13.50 GiB memory in use. "
        "12.00 GiB allowed; Of the allocated memory 11.00 GiB is allocated by PyTorch, with 64.00 "
        "MiB allocated in private pools (e.g., CUDA Graphs), and 2.00 GiB is reserved by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.");
    assert_non_null(best);
    assert_int_equal(messages.count, 1);
    assert_int_equal(best->kind, FRAG_MESSAGE_OOM);
    assert_int_equal(best->framework, FRAG_FRAMEWORK_PYTORCH);
    assert_string_equal(best->release, "PyTorch 2.10");
    assert_int_equal(best->line, 2);
    assert_int_equal(best->device, 3);
    assert_figure(best, FRAG_FIGURE_REQUESTED, FRAG_GIB);
    assert_figure(best, FRAG_FIGURE_TOTAL, 16 * FRAG_GIB);
    assert_figure(best, FRAG_FIGURE_FREE, 8 * FRAG_MIB);
    assert_figure(best, FRAG_FIGURE_PROCESS, 27 * FRAG_GIB / 2);
    assert_figure(best, FRAG_FIGURE_LIMIT, 12 * FRAG_GIB);
    assert_figure(best, FRAG_FIGURE_ALLOCATED, 11 * FRAG_GIB);
    assert_figure(best, FRAG_FIGURE_PRIVATE, 64 * FRAG_MIB);
    assert_figure(best, FRAG_FIGURE_IDLE, 2 * FRAG_GIB);
    assert_int_equal(best->process_count, 1);
    assert_int_equal(best->processes[0], 2 * FRAG_GIB);
    assert_false(messages.is_on[FRAG_SETTING_EXPANDABLE]);
    frag_messages_destroy(&messages);
}

static void a_log_gives_up_all_its_messages(void **state)
{
    (void)state;
    frag_messages messages;
    const frag_message *best = read_best(
        &messages, "RuntimeError: CUDA error: out of memory\n"
                   "step 1\n"
                   "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total "
                   "capacity; 6.00 GiB already allocated; 1.00 GiB free; 6.50 GiB "
                   "reserved in total by PyTorch)\n"
                   "retry\n"
                   "CUDA out of memory. Tried to allocate 3.00 GiB (GPU 1; 8.00 GiB total "
                   "capacity; 6.00 GiB already allocated; 1.00 GiB free; 6.50 GiB "
                   "reserved in total by PyTorch)\n");
    assert_int_equal(messages.oom_count, 3);
    assert_int_equal(best->line, 3);
    assert_figure(best, FRAG_FIGURE_REQUESTED, 2 * FRAG_GIB);
    assert_false(messages.items[0].figures[FRAG_FIGURE_REQUESTED].is_known);
    frag_messages_destroy(&messages);
}

static void of_a_flood_of_messages_the_best_is_kept(void **state)
{
    (void)state;
    enum { FLOOD = 3 * FRAG_MESSAGES_KEPT_MAX };
    frag_text text = {0};
    for (unsigned i = 0; i < FLOOD; i++)
        frag_text_add(&text, "%s",
                      i == FLOOD - 7
                          ? "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 "
                            "GiB total capacity; 6.00 GiB already allocated)\n"
                          : "RuntimeError: CUDA error: out of memory\n");
    frag_messages messages;
    const frag_message *best = read_best(&messages, text.bytes);
    assert_int_equal(messages.oom_count, FLOOD);
    assert_int_equal(messages.count, FRAG_MESSAGES_KEPT_MAX);
    assert_int_equal(best->line, FLOOD - 6);
    assert_figure(best, FRAG_FIGURE_TOTAL, 8 * FRAG_GIB);
    frag_messages_destroy(&messages);
    frag_text_destroy(&text);
}

static void settings_count_unless_a_hint_names_them(void **state)
{
    (void)state;
    frag_messages messages;
    read_best(&messages, "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid");
    assert_false(messages.is_on[FRAG_SETTING_EXPANDABLE]);
    frag_messages_destroy(&messages);
    read_best(&messages, "{'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True'}");
    assert_true(messages.is_on[FRAG_SETTING_EXPANDABLE]);
    frag_messages_destroy(&messages);
    read_best(&messages, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False,max_split_size_mb:64");
    assert_false(messages.is_on[FRAG_SETTING_EXPANDABLE]);
    assert_true(messages.is_on[FRAG_SETTING_MAX_SPLIT]);
    frag_messages_destroy(&messages);
}

static void a_path_of_windows_is_seen(void **state)
{
    (void)state;
    frag_messages messages;
    read_best(&messages, "  File \"C:\\Users\\me\\a.py\", line 3");
    assert_true(messages.is_windows);
    frag_messages_destroy(&messages);
    read_best(&messages, "File n:\\FramePack\\a.py");
    assert_true(messages.is_windows);
    frag_messages_destroy(&messages);
    read_best(&messages, "File Z:\\new\\a.py"); /* no escape: the letter is a capital */
    assert_true(messages.is_windows);
    frag_messages_destroy(&messages);
    read_best(&messages, "RuntimeError:\\nnothing a:\\nnothing ERROR:\\Users 1A:\\Users");
    assert_false(messages.is_windows);
    frag_messages_destroy(&messages);
}

static void lines_are_counted_through_what_is_taken_away(void **state)
{
    (void)state;
    frag_message_text text;
    static const char pasted[] = "> one\n\n \n\x1b[31m\x1b[0m\n| two\\nthree\n";
    frag_message_text_make(&text, pasted, sizeof pasted - 1);
    assert_string_equal(text.bytes, "one\ntwo\nthree\n");
    assert_int_equal(frag_message_text_line(&text, 0), 1);
    assert_int_equal(frag_message_text_line(&text, 4), 5);
    assert_int_equal(frag_message_text_line(&text, 9), 5);
    frag_message_text_destroy(&text);
}

static void messages_of_ranks_line_by_line_are_not_mixed(void **state)
{
    (void)state;
    frag_messages messages;
    read_best(&messages,
              "[rank0]: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total\n"
              "[rank1]: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 1 has a total\n"
              "[rank0]: capacity of 15.77 GiB of which 514.19 MiB is free. Of the allocated\n"
              "[rank1]: capacity of 15.77 GiB of which 1.00 GiB is free. Of the allocated\n"
              "[rank0]: memory 736.86 MiB is reserved by PyTorch but unallocated.\n"
              "[rank1]: memory 100.00 MiB is reserved by PyTorch but unallocated.\n");
    const frag_message *best = &messages.items[messages.best];
    assert_int_equal(messages.oom_count, 2);
    assert_int_equal(best->line, 2);
    assert_int_equal(best->figures[FRAG_FIGURE_FREE].bytes, (uint64_t)1 << 30);
    assert_int_equal(best->figures[FRAG_FIGURE_IDLE].bytes, (uint64_t)100 << 20);
    frag_messages_destroy(&messages);
}

static void assert_plain(const char *bytes, size_t length, const char *plain)
{
    frag_message_text text;
    frag_message_text_make(&text, bytes, length);
    assert_string_equal(text.bytes, plain);
    frag_message_text_destroy(&text);
}

static void what_loggers_and_pages_add_is_taken_away(void **state)
{
    (void)state;
#define ASSERT_PLAIN(bytes, plain) assert_plain(bytes, sizeof bytes - 1, plain)
    ASSERT_PLAIN("[rank0]: a\n[rank10]: b\n[rank0]: c", "[rank0]:a\nb\nc");
    ASSERT_PLAIN("2026-01-02 10:00:01 | x | one\n2026-01-02 10:00:02 | x | two",
                 "2026-01-0210:00:01|x|one\ntwo");
    ASSERT_PLAIN("a: CUDA error: x\na: CUDA error: x", "a:cudaerror:x\na:cudaerror:x");
    ASSERT_PLAIN("10%|#  |\r20%|## |\rdone", "10%|#\n20%|##\ndone");
    ASSERT_PLAIN("a &gt;&#62; &quot;b&#x27; <b>c</b><br/>d &lt;module&gt; e<f>",
                 "a>>\"b'\nc\nd<module>e<f>");
    /* Spaces of no width, marks of direction and quotation marks of other scripts. */
    ASSERT_PLAIN("a\xe2\x80\x80\xe2\x80\x8b\xe2\x80\x8f"
                 "b\xe2\x80\x98"
                 "c\xe2\x80\x99\xe2\x80\x9c\xc2\xa0",
                 "ab'c'\"");
    ASSERT_PLAIN("a\\\\\\\"b\\\\n\\u003ec\\td", "a\"b\n>cd");
#undef ASSERT_PLAIN
}

static void utf16_is_read(void **state)
{
    (void)state;
    static const char ascii[] = "\nCUDA out of memory. Tried to allocate 2.00 GiB";
    enum { UNITS = sizeof ascii };
    char bytes[2 * UNITS];
    frag_messages messages;
    for (int big = 0; big < 2; big++) {
        for (size_t i = 0; i < UNITS; i++) {
            bool is_mark = i == 0;
            bytes[2 * i + (size_t)big] = is_mark ? (char)0xff : ascii[i - 1];
            bytes[2 * i + 1 - (size_t)big] = is_mark ? (char)0xfe : 0;
        }
        frag_messages_read(&messages, bytes, sizeof bytes);
        assert_int_equal(messages.oom_count, 1);
        assert_int_equal(messages.items[0].line, 2);
        assert_figure(&messages.items[0], FRAG_FIGURE_REQUESTED, 2 * FRAG_GIB);
        frag_messages_destroy(&messages);
    }
}

static void bytes_that_are_no_text_are_welcome(void **state)
{
    (void)state;
    frag_messages messages;
    char bytes[512];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    frag_messages_read(&messages, bytes, sizeof bytes);
    assert_int_equal(messages.count, 0);
    frag_messages_destroy(&messages);
    frag_messages_read(&messages, "", 0);
    assert_null(frag_messages_best(&messages));
    frag_messages_destroy(&messages);
}

static void assert_read(const char *text, uint64_t requested, uint64_t is_free)
{
    frag_messages messages;
    const frag_message *best = read_best(&messages, text);
    assert_non_null(best);
    assert_int_equal(best->kind, FRAG_MESSAGE_OOM);
    assert_figure(best, FRAG_FIGURE_REQUESTED, requested);
    if (is_free > 0)
        assert_figure(best, FRAG_FIGURE_FREE, is_free);
    frag_messages_destroy(&messages);
}

static void messages_in_other_languages_are_read(void **state)
{
    (void)state;
    const uint64_t half = FRAG_GIB / 2;
    assert_read("显存不足：需要 2.50 GiB，可用 512 MiB", 5 * half, half);
    assert_read("CUDA エラー: メモリ不足です (要求 512 MiB)", half, 0);
    assert_read("오류: GPU 메모리 부족 (요청 2.50 GiB, 여유 512 MiB)", 5 * half, half);
    assert_read("ОШИБКА CUDA: недостаточно видеопамяти, требуется 512 МБ", half, 0);
    assert_read("НЕХВАТКА ПАМЯТИ CUDA: ТРЕБУЕТСЯ 512 МБ", half, 0);
    assert_read("CUDA-Fehler: NICHT GENÜGEND Grafikspeicher, benötigt 512 MB", half, 0);
    assert_read("Erreur CUDA : impossible d’allouer 512 Mo", half, 0);
    assert_read("Error: memoria de vídeo insuficiente, se necesitan 512 MB", half, 0);
    assert_read("Erro: não foi possível alocar 512 MB na placa de vídeo", half, 0);
    assert_read("ＣＵＤＡ out of memory． Tried to allocate ５１２．００ ＭｉＢ", half, 0);
    assert_read("{\"m\":\"CUDA: \\u043d\\u0435\\u0445\\u0432\\u0430\\u0442\\u043a\\u0430 "
                "\\u043f\\u0430\\u043c\\u044f\\u0442\\u0438 "
                "\\u0442\\u0440\\u0435\\u0431\\u0443\\u0435\\u0442\\u0441\\u044f 512 MiB\"}",
                half, 0);

    assert_read("{\"m\":\"\\u663e\\u5b58\\u4e0d\\u8db3: \\u9700\\u8981 512 MiB\"}", half, 0);
}

/* The lines below a message are its own, where they are not another rank's. */
static void figures_below_are_of_the_same_rank(void **state)
{
    (void)state;
    static const char own[] = "[rank0]: GPU allocation failed, out of memory\n"
                              "[rank0]:   requested: 4 GiB\n[rank0]:   free: 3 GiB\n";
    static const char others[] = "[rank0]: GPU allocation failed, out of memory\n"
                                 "[rank1]:   requested: 4 GiB\n[rank1]:   free: 3 GiB\n";
    frag_messages messages;
    assert_read(own, 4 * FRAG_GIB, 3 * FRAG_GIB);
    frag_messages_read(&messages, others, strlen(others));
    assert_int_equal(messages.oom_count, 1);
    assert_int_equal(messages.items[0].size_count, 0);
    frag_messages_destroy(&messages);
}

static void a_colour_of_a_terminal_ends_soon(void **state)
{
    (void)state;
    unsigned char text[400];
    memset(text, '1', sizeof text);
    memcpy(text, "\x1b[", 2);
    assert_int_equal(frag_escape_terminal(text, sizeof text), 2);
    text[300] = 'm';
    assert_int_equal(frag_escape_terminal(text, sizeof text), 2);
    text[200] = 'm';
    assert_int_equal(frag_escape_terminal(text, sizeof text), 201);
    memcpy(text, "\x1b]", 2);
    text[200] = 0x07;
    assert_int_equal(frag_escape_terminal(text, sizeof text), 201);
    text[200] = '1';
    text[300] = 0x07;
    assert_int_equal(frag_escape_terminal(text, sizeof text), 1);
}

static void a_letter_whose_number_is_cut_off_stays(void **state)
{
    (void)state;
    static const char bytes[] = "a\\u043f";
    frag_text text = {0};
    assert_true(frag_escape_unicode(bytes, 7, &text));
    assert_string_equal(text.bytes, "aп");
    frag_text_destroy(&text);
    assert_false(frag_escape_unicode(bytes, 6, &text));
    frag_text_destroy(&text);
}

static void a_head_that_is_cut_off_and_a_code_before_a_quote_are_no_loss(void **state)
{
    (void)state;
    frag_messages messages;
    const frag_message *message = read_best(
        &messages, "PU 0 has a total capacity of 14.56 GiB of which 15.12 MiB is free. Of "
                   "the allocated memory 13.98 GiB is allocated by PyTorch");
    assert_non_null(message);
    assert_int_equal(message->figures[FRAG_FIGURE_ALLOCATED].bytes / FRAG_MIB, 14315);
    frag_messages_destroy(&messages);
    assert_non_null(read_best(&messages, "return code 2: \"cudaMalloc failed: out of memory\""));
    frag_messages_destroy(&messages);
    assert_null(read_best(&messages, "return \"cudaMalloc failed: out of memory\""));
    frag_messages_destroy(&messages);
}

static void words_of_other_languages_are_whole_words(void **state)
{
    (void)state;
    frag_message_text text;
    static const char *const same[] = {"speicherbox", "5 go",      "xlibre",    "memoriam",
                                       "re_speicher", "ZSPEICHER", "zspeicher", "SPEICHERZ",
                                       "рпамять",     "áspeicher"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        frag_message_text_make(&text, same[i], strlen(same[i]));
        assert_null(strstr(text.bytes, "memory"));
        assert_null(strstr(text.bytes, "gb"));
        assert_null(strstr(text.bytes, "free"));
        frag_message_text_destroy(&text);
    }
    frag_message_text_make(&text, "Ошибка 5 ГБ", strlen("Ошибка 5 ГБ"));
    assert_string_equal(text.bytes, "error5gb");
    frag_message_text_destroy(&text);
}

/* XLA's allocator is TensorFlow's; where JAX speaks in the same text, the memory is JAX's. */
static void the_allocator_of_jax_is_not_tensorflows(void **state)
{
    (void)state;
    static const char bfc[] = "W external/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of "
                              "memory trying to allocate 8.00GiB (rounded to 8589934592)\n";
    static const char jax[] = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of "
                              "memory while trying to allocate 8589934592 bytes.\n";
    for (int order = 0; order < 3; order++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", order == 1 ? jax : bfc,
                 order == 0   ? jax
                 : order == 1 ? bfc
                              : "");
        frag_messages messages;
        frag_messages_read(&messages, text, strlen(text));
        assert_int_equal(messages.count, order == 2 ? 1 : 2);
        for (size_t i = 0; i < messages.count; i++)
            assert_int_equal(messages.items[i].framework,
                             order == 2 ? FRAG_FRAMEWORK_TENSORFLOW : FRAG_FRAMEWORK_JAX);
        frag_messages_destroy(&messages);
    }
}

static void the_text_around_a_bare_error_tells_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        frag_framework framework;
    } cases[] = {
        {"RuntimeError: CUDA error: out of memory", FRAG_FRAMEWORK_PYTORCH},
        {"Traceback: in /opt/lib/torch/cuda\nCUDA error: out of memory", FRAG_FRAMEWORK_PYTORCH},
        {"3 CUDA Error: out of memory\ndarknet: ./src/cuda.c:36: check_error",
         FRAG_FRAMEWORK_UNKNOWN},
        {"CUDA error: out of memory\n  in function alloc at ggml-cuda.cu:233", FRAG_FRAMEWORK_GGML},
        {"Error: llama runner process has terminated: CUDA error: out of memory\n  at ggml-cuda.cu",
         FRAG_FRAMEWORK_OLLAMA},
        {"Feb 21 01:41:02 host ollama[4]: ggml_backend_cuda_buffer_type_alloc_buffer: allocating "
         "81656.95 MiB on device 0: cudaMalloc failed: out of memory",
         FRAG_FRAMEWORK_OLLAMA},
        {"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 81656.95 MiB on device 0: "
         "cudaMalloc failed: out of memory",
         FRAG_FRAMEWORK_GGML},
        {"ollama is stopped\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 "
         "MiB. GPU 0 has a total capacity of 4.00 GiB of which 1.00 MiB is free.",
         FRAG_FRAMEWORK_PYTORCH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, cases[i].text);
        assert_non_null(best);
        assert_int_equal(best->framework, cases[i].framework);
        frag_messages_destroy(&messages);
    }
}

static void a_status_may_end_a_sentence_and_a_list_of_causes_is_none(void **state)
{
    (void)state;
    frag_messages messages;
    assert_non_null(read_best(&messages, "ERROR: vmaCreateImage failed with error -2.\n   at: x"));
    frag_messages_destroy(&messages);
    assert_non_null(read_best(&messages, "ERROR: vmaCreateImage failed with error -2."));
    frag_messages_destroy(&messages);
    assert_null(read_best(&messages, "ERROR: vmaMapMemory failed with error -5."));
    frag_messages_destroy(&messages);
    assert_null(read_best(&messages, "[Error] VkResult: ERROR_DEVICE_LOST\n"
                                     "[Error] A GPU crash occurred. Exiting the application...\n"
                                     "Reasons for the failure: a device lost, out of memory, or an "
                                     "unexpected bug."));
    frag_messages_destroy(&messages);
}

static void the_platform_is_read_around_a_message(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t scene;
    } cases[] = {
        {"err: DxvkMemoryAllocator: Memory allocation failed", FRAG_SCENE_GRAPHICS},
        {"llm_chat.ts: vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY", 0},
        {"ggml_metal_graph_compute: command buffer 0 failed with status 5\n"
         "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
         FRAG_SCENE_METAL},
        {"RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space "
         "hbm. Used 21.95G of 15.48G hbm.",
         FRAG_SCENE_TPU},
    };
    const uint32_t all = FRAG_SCENE_GRAPHICS | FRAG_SCENE_METAL | FRAG_SCENE_TPU;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_messages messages;
        assert_non_null(read_best(&messages, cases[i].text));
        assert_int_equal(messages.scenes & all, cases[i].scene);
        frag_messages_destroy(&messages);
    }
}

static void what_functions_can_return_is_no_message(void **state)
{
    (void)state;
    frag_messages messages;
    assert_null(read_best(&messages, "Functions can return `VK_ERROR_OUT_OF_HOST_MEMORY` and "
                                     "`VK_ERROR_OUT_OF_DEVICE_MEMORY`."));
    frag_messages_destroy(&messages);
    assert_null(read_best(&messages, "case VK_ERROR_OUT_OF_DEVICE_MEMORY:"));
    frag_messages_destroy(&messages);
    assert_null(read_best(&messages,
                          "- `VK_ERROR_OUT_OF_DEVICE_MEMORY`: Device memory was not enough.\n"
                          "- `VK_ERROR_INITIALIZATION_FAILED`: An object is not ready.\n"));
    frag_messages_destroy(&messages);
    assert_non_null(read_best(&messages, "cases.cpp: VK_ERROR_OUT_OF_DEVICE_MEMORY"));
    frag_messages_destroy(&messages);
    assert_non_null(read_best(&messages, "vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY"));
    frag_messages_destroy(&messages);
}

static void the_library_of_the_computer_lacks_its_own_memory(void **state)
{
    (void)state;
    static const char *const host[] = {
        "tool(400) malloc: *** mach_vm_map(size=193413120) failed (error code=3)",
        "Calloc returns null: len=193410720",
    };
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        frag_messages messages;
        frag_messages_guess(&messages, host[i], strlen(host[i]));
        const frag_message *best = frag_messages_best(&messages);
        assert_true(best != NULL && best->kind == FRAG_MESSAGE_HOST);
        frag_messages_destroy(&messages);
    }
}

static void figures_without_a_unit_are_read_beside_an_allocation(void **state)
{
    (void)state;
    frag_messages messages;
    const frag_message *best =
        read_best(&messages, "CUDA: reached memory limit while trying to allocate 414853888 bytes, "
                             "currently at 3317279728/4100456448");
    assert_non_null(best);
    assert_figure(best, FRAG_FIGURE_REQUESTED, 414853888);
    bool has_used = false;
    bool has_all = false;
    for (uint32_t i = 0; i < best->size_count; i++) {
        has_used |= best->sizes[i].amount.bytes == 3317279728;
        has_all |= best->sizes[i].amount.bytes == 4100456448;
    }
    assert_true(has_used && has_all);
    frag_messages_destroy(&messages);
    best = read_best(&messages, "CUDA: reached memory limit while trying to allocate 414853888 "
                                "bytes, currently at 3317279728/4 GiB");
    assert_non_null(best);
    for (uint32_t i = 0; i < best->size_count; i++)
        assert_true(best->sizes[i].amount.bytes != 3317279728); /* of what, it does not say */
    frag_messages_destroy(&messages);
    best = read_best(&messages, "Memory allocation failed on device: cuda for 120 bytes");
    assert_non_null(best);
    assert_figure(best, FRAG_FIGURE_REQUESTED, 120);
    frag_messages_destroy(&messages);
    best = read_best(&messages, "{\"error\":\"GPU OOM\", \"needed_gb\": 20.5, \"free_mib\": 512}");
    assert_non_null(best);
    assert_figure(best, FRAG_FIGURE_REQUESTED, (uint64_t)41 << 29);
    assert_figure(best, FRAG_FIGURE_FREE, 512 << 20);
    frag_messages_destroy(&messages);
    best = read_best(&messages, "insufficient space on /srv: 812MiB free, need 2048MiB");
    assert_null(best);
    assert_int_equal(messages.rest.size_count, 2);
    assert_int_equal(messages.rest.sizes[0].amount.bytes, 812 << 20);
    frag_messages_destroy(&messages);
}

static void memory_of_both_is_not_the_computers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        frag_message_kind kind;
        uint32_t says; /* beside FRAG_SAYS_GUESS */
    } cases[] = {
        {"failed to allocate GPU and shared host memory", FRAG_MESSAGE_OOM, 0},
        {"failed to allocate GPU or CPU memory", FRAG_MESSAGE_OOM, 0},
        {"failed to allocate host memory", FRAG_MESSAGE_HOST, 0},
        {"*Memory allocation on GPU failed*", FRAG_MESSAGE_OOM, 0},
        {"Failed to reserve page-locked memory", FRAG_MESSAGE_HOST, FRAG_SAYS_PINNED},
        {"GPU worker: failed to allocate pinned memory", FRAG_MESSAGE_HOST, FRAG_SAYS_PINNED},
        {"FATAL ERROR: CUDA kernel, maximum shared memory allocation exceeded", FRAG_MESSAGE_HOST,
         FRAG_SAYS_ON_CHIP},
        {"'renderer' process exited with 'oom' 0x7701e062", FRAG_MESSAGE_HOST, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, cases[i].text);
        assert_non_null(best);
        if (best->kind != cases[i].kind)
            fail_msg("%s: %d", cases[i].text, (int)best->kind);
        assert_int_equal(best->says & ~(uint32_t)FRAG_SAYS_GUESS, cases[i].says);
        frag_messages_destroy(&messages);
    }
}

static void a_size_ends_where_another_number_begins(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"ValueError: No available memory for the cache blocks. Free: -2 MiB", 0},
        {"ValueError: No available memory for the cache blocks. Free -2 MiB", 0},
        {"ValueError: No available memory for the cache blocks. Free - 2 MiB", 2 << 20},
        {"ValueError: No available memory for the cache blocks. Free 1-2 MiB", 2 << 20},
        {"GPU OOM: RTX 3060 12GB", (uint64_t)12 << 30},
        {"GPU OOM: RTX 3070, 7827/7982 MB", (uint64_t)7982 << 20},
        {"GPU OOM: 1 048 576 bytes", 1 << 20},
        {"GPU OOM: 700+MB", 700 << 20},
        {"GPU OOM: 40Gi", (uint64_t)40 << 30},
        {"GPU OOM: 131072(0x20000) KB", 128 << 20},
        {"GPU OOM (MB) | at most: 1.5", 3 << 19},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, cases[i].text);
        assert_non_null(best);
        assert_true(best->size_count > 0);
        assert_int_equal(best->sizes[best->size_count - 1].amount.bytes, cases[i].bytes);
        frag_messages_destroy(&messages);
    }
}

static void numbers_of_tokens_are_no_sizes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ("ValueError: The model's max seq len (60000) is larger than the maximum number of tokens "
         "that can be stored in KV cache (58384)."),
        "Server error: Not enough memory to handle 256 prefill tokens.",
        "CUDA out of memory, max_num_batched_tokens=8192",
        "CUDA out of memory, total process 8192",
        "buffer.hpp(360) 'cudaMalloc(&at, size)' returned 'out of memory'",
        "[h264_nvenc @ 0x6090380] InitializeEncoder failed: out of memory (10): ",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, texts[i]);
        assert_non_null(best);
        assert_int_equal(best->size_count, 0);
        frag_messages_destroy(&messages);
    }
    frag_messages messages;
    const frag_message *best = read_best(&messages, "CUDA out of memory, max_cache_bytes=8192");
    assert_non_null(best);
    assert_int_equal(best->size_count, 1);
    frag_messages_destroy(&messages);
}

typedef struct figure_case {
    const char *text;
    uint64_t requested; /* 0: it does not say */
    uint64_t is_free;
    uint64_t total;
} figure_case;

static void figures_belong_to_the_words_of_their_own_sentence(void **state)
{
    (void)state;
    static const figure_case cases[] = {
        {"MemoryError: GPU memory allocation failed for 2147483648 bytes on GPU 0", 2147483648, 0,
         0},
        {"[mtp] cudaMalloc failed for blk.61.nextn.weight (112.0 MiB)", 112 * FRAG_MIB, 0, 0},
        {"GPU: CreateResource failed 0x8007000E (805306368 bytes)", 805306368, 0, 0},
        {"GPU malloc failed (error 2) for 8589934592 bytes", 8589934592, 0, 0},
        {"exceeds available GPU memory. Estimated 6 GiB per job, but only 4 GiB free.",
         6 * FRAG_GIB, 4 * FRAG_GIB, 0},
        {"not enough free VRAM: 3 GiB free of 16 GiB, need 9 GiB", 9 * FRAG_GIB, 3 * FRAG_GIB,
         16 * FRAG_GIB},
        {"Failed to allocate on device 4294967296 bytes: only 812646400 of 8589934592 bytes are "
         "free",
         4294967296, 812646400, 8589934592},
        {"hipMalloc((void**)&buffer, 1073741824) = 2 (out of memory)", 1073741824, 0, 0},
        {"GPU 2: failed to create the buffer (5113 MByte): Memory Object Allocation Failure",
         5113 * FRAG_MIB, 0, 0},
        {"java.lang.OutOfMemoryError: no memory: GPU out of memory, could not allocate 805306368 "
         "bytes on the device",
         805306368, 0, 0},
        {"E_OUTOFMEMORY (0x8007000e) requested 805306368 bytes", 805306368, 0, 0},
        {"Failed to allocate 1879048192 bytes on device 0: only 1203765248 bytes remain",
         1879048192, 1203765248, 0},
        {"a working set (9 GB) exceeds free VRAM (5 GB) of the GPU", 9 * FRAG_GIB, 5 * FRAG_GIB, 0},
        {"Estimated memory (27 GB) exceeds GPU memory (24 GB)", 27 * FRAG_GIB, 0, 24 * FRAG_GIB},
        {"VRAM overflow: 13 GB exceeds 12 GB GPU VRAM", 13 * FRAG_GIB, 0, 12 * FRAG_GIB},
        {"Requires 9 GB of GPU memory, 7 GB is available\nInsufficient GPU memory, exiting",
         9 * FRAG_GIB, 7 * FRAG_GIB, 0},
        {"Requires 7 GB of GPU memory, 9 GB is available\nInsufficient GPU memory, exiting", 0, 0,
         0},
        {"Requires 9 GB of GPU memory, 9 GB is available\nInsufficient GPU memory, exiting", 0, 0,
         0},
        {"a boost at 7680\xc3\x97"
         "4320 is estimated to need 21 GB of VRAM, but the GPU has 9 GB free",
         21 * FRAG_GIB, 9 * FRAG_GIB, 0},
        {"I have a 3060 12GB VRAM and get a not enough VRAM message", 0, 0, 0},
        {"one 1080Ti(11G), and when I ran it, the video memory was exceeded", 0, 0, 0},
        {"GL Error: Out of memory(1285) @ uploadTextureMaxMips", 0, 0, 0},
        {"GPU out of memory: 322MB/8188MB in use", 0, 0, 8188 * FRAG_MIB},
        {"I have a 8GB card and get CUDA OOM", 0, 0, 8 * FRAG_GIB},
        {"CUDA: no memory is available (memory_management.py:444:cache)", 0, 0, 0},
        {"I run out of GPU memory using an A6000 with 48 GB of memory", 0, 0, 48 * FRAG_GIB},
        {"CUDA out of memory at request of 0.\n4m11s later", 0, 0, 0},
        {"CUDA out of memory, GPU free: 2 GB, system RAM free: 23 GB", 0, 2 * FRAG_GIB, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, cases[i].text);
        assert_non_null(best);
        const uint64_t expected[] = {cases[i].requested, cases[i].is_free, cases[i].total};
        const frag_figure figures[] = {FRAG_FIGURE_REQUESTED, FRAG_FIGURE_FREE, FRAG_FIGURE_TOTAL};
        for (size_t j = 0; j < sizeof figures / sizeof *figures; j++)
            if (best->figures[figures[j]].bytes != expected[j])
                fail_msg("%s of: %s", frag_figure_field(figures[j]), cases[i].text);
        frag_messages_destroy(&messages);
    }
    frag_messages messages;
    const frag_message *best = read_best(&messages, "not enough GPU memory8053063680/6442450944");
    assert_non_null(best);
    assert_int_equal(best->size_count, 2); /* the blank is missing */
    frag_messages_destroy(&messages);
    best = read_best(&messages, "GPU memory limit exceeded: 3758096384 + 1073741824 > 4294967296 "
                                "bytes");
    assert_non_null(best);
    assert_int_equal(best->size_count, 3);
    frag_messages_destroy(&messages);
    best = read_best(&messages, "KV pool exhausted on the GPU: 0 pages free of 18432");
    assert_non_null(best);
    assert_int_equal(best->size_count, 0);
    frag_messages_destroy(&messages);
    best = read_best(&messages, "Error allocating 6103.52 MBs on GPU.");
    assert_non_null(best);
    assert_int_equal(best->size_count, 1);
    frag_messages_destroy(&messages);
}

static void a_device_is_named_in_the_line_or_is_the_only_one_near(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int device; /* -1: none is told */
    } cases[] = {
        {"Failed to allocate 140713104 bytes from DEVICE [3] memory", 3},
        {"alloc fail type Flat dev 2 space Device size 512 bytes (cudaMalloc error out of memory)",
         2},
        {"E: out of memory on cuda:1", 1},
        {"deviceId: 4\nout of GPU memory", 4},
        {"Selected cuda device 1 : GTX\nCUDA error: out of memory", 1},
        {"device 0 ok\ndevice 1 ok\nCUDA error: out of memory", -1},
        {"num_gpu: 1\nCUDA error: out of memory", -1},
        {"CreateGPU:50: GPU out of memory", -1},
        {"out of memory on CUDA device 03:00.0", -1},
        {"GPU 1080 out of memory", -1},
        {"Failed to allocate host memory of device 1", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_messages messages;
        const frag_message *best = read_best(&messages, cases[i].text);
        assert_non_null(best);
        if ((best->has_device ? (int)best->device : -1) != cases[i].device)
            fail_msg("the device of: %s", cases[i].text);
        frag_messages_destroy(&messages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_frameworks_print_them),
        cmocka_unit_test(a_rounded_size_knows_how_exact_it_is),
        cmocka_unit_test(a_size_that_is_repeated_in_bytes_is_exact),
        cmocka_unit_test(the_size_of_a_tensor_follows_from_its_shape),
        cmocka_unit_test(much_held_by_others_makes_a_shortage_of_mps_less_sure),
        cmocka_unit_test(every_figure_of_a_message_is_found),
        cmocka_unit_test(a_log_gives_up_all_its_messages),
        cmocka_unit_test(of_a_flood_of_messages_the_best_is_kept),
        cmocka_unit_test(settings_count_unless_a_hint_names_them),
        cmocka_unit_test(a_path_of_windows_is_seen),
        cmocka_unit_test(lines_are_counted_through_what_is_taken_away),
        cmocka_unit_test(messages_of_ranks_line_by_line_are_not_mixed),
        cmocka_unit_test(what_loggers_and_pages_add_is_taken_away),
        cmocka_unit_test(utf16_is_read),
        cmocka_unit_test(messages_in_other_languages_are_read),
        cmocka_unit_test(figures_below_are_of_the_same_rank),
        cmocka_unit_test(a_colour_of_a_terminal_ends_soon),
        cmocka_unit_test(a_letter_whose_number_is_cut_off_stays),
        cmocka_unit_test(a_head_that_is_cut_off_and_a_code_before_a_quote_are_no_loss),
        cmocka_unit_test(words_of_other_languages_are_whole_words),
        cmocka_unit_test(bytes_that_are_no_text_are_welcome),
        cmocka_unit_test(the_allocator_of_jax_is_not_tensorflows),
        cmocka_unit_test(the_text_around_a_bare_error_tells_whose_it_is),
        cmocka_unit_test(a_status_may_end_a_sentence_and_a_list_of_causes_is_none),
        cmocka_unit_test(the_platform_is_read_around_a_message),
        cmocka_unit_test(what_functions_can_return_is_no_message),
        cmocka_unit_test(the_library_of_the_computer_lacks_its_own_memory),
        cmocka_unit_test(figures_without_a_unit_are_read_beside_an_allocation),
        cmocka_unit_test(memory_of_both_is_not_the_computers),
        cmocka_unit_test(a_size_ends_where_another_number_begins),
        cmocka_unit_test(numbers_of_tokens_are_no_sizes),
        cmocka_unit_test(figures_belong_to_the_words_of_their_own_sentence),
        cmocka_unit_test(a_device_is_named_in_the_line_or_is_the_only_one_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
