/* Tests of what the software CUDA offers those who build a dry run on it: the card, the report of
 * what it cannot know, sizes that are uncertain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

static struct {
    void (*unknown)(const char *, const char *, const void *);
    uint64_t (*uncertain)(const char *, const char *, uint64_t, uint64_t);
    void (*note)(const char *, const char *);
    void (*value)(const char *);
    const frag_software_card *(*card)(int);
} told;

static char path[64];

static void start_with_report(const char *more)
{
    char settings[256];
    snprintf(path, sizeof path, "/tmp/fraglab-report-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(settings, sizeof settings, "report=%s%s", path, more);
    software_start(settings);
}

static size_t read_report(char *text, size_t text_bytes)
{
    software.flush();
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t used = fread(text, 1, text_bytes - 1, file);
    text[used] = '\0';
    fclose(file);
    return used;
}

static void reports_each_thing_once_with_its_count(void **state)
{
    char text[4096];
    (void)state;
    start_with_report("");
    told.unknown("libcublas.so.12", "cublasNew", (const void *)(uintptr_t)&malloc);
    told.unknown("libcublas.so.12", "cublasNew", (const void *)(uintptr_t)&malloc);
    told.note("ranks", "a \"quoted\" sentence\n");
    told.note("ranks", "a \"quoted\" sentence\n");
    told.value("train.py:17");
    told.value("train.py:17");
    told.value("train.py:18");
    read_report(text, sizeof text);
    assert_non_null(strstr(text, "{\"kind\":\"unknown\",\"library\":\"libcublas.so.12\","
                                 "\"function\":\"cublasNew\",\"caller\":\"lib"));
    assert_non_null(strstr(text, "\",\"count\":2}\n{\"kind\":\"note\",\"about\":\"ranks\",\"text\":"
                                 "\"a \\\"quoted\\\" sentence\\u000a\"}\n"));
    assert_non_null(strstr(text, "{\"kind\":\"value\",\"where\":\"train.py:17\",\"count\":2}\n"
                                 "{\"kind\":\"value\",\"where\":\"train.py:18\",\"count\":1}\n"));
    size_t before = strlen(text);
    told.note("ranks", "a \"quoted\" sentence\n");
    assert_int_equal(read_report(text, sizeof text), before);
    told.value("train.py:18");
    assert_true(read_report(text, sizeof text) > before);
    assert_non_null(strstr(text + before, "\"train.py:18\",\"count\":1}"));
    unlink(path);
}

static void answers_the_end_that_was_chosen_recognisably(void **state)
{
    char text[4096];
    (void)state;
    start_with_report("");
    uint64_t high = told.uncertain("cudnnGet", "workspace", 512, 4096);
    assert_int_equal(high, 4095);
    assert_int_equal(told.uncertain("cudnnGet", "workspace", 512, 4096), high);
    uint64_t other = told.uncertain("cudnnGet", "workspace", 1024, 4096);
    assert_true(other != high && other % 512 != 0 && other > 4096 - 512 && other < 4096);
    assert_int_equal(told.uncertain("cudnnGet", "workspace", 0, 0), 0);
    assert_int_equal(told.uncertain("cudnnGet", "workspace", 0, 8), 511);
    read_report(text, sizeof text);
    assert_non_null(strstr(text, "{\"kind\":\"uncertain\",\"function\":\"cudnnGet\",\"what\":"
                                 "\"workspace\",\"low\":512,\"high\":4096,\"answered\":4095,"
                                 "\"count\":2}\n"));
    unlink(path);
    start_with_report(",workspaces=low");
    assert_int_equal(told.uncertain("cudnnGet", "workspace", 512, 4096), 511);
    assert_int_equal(told.uncertain("cudnnGet", "workspace", 0, 4096), 0);
    unlink(path);
}

/* More ranges with one end than a block has odd sizes: answers stay within the block. */
static void answers_within_the_block_when_all_sizes_are_taken(void **state)
{
    (void)state;
    software_start("");
    for (uint64_t low = 0; low < 600; low++) {
        uint64_t got = told.uncertain("f", "w", low, 1 << 20);
        assert_true(got > (1 << 20) - 512 && got < 1 << 20);
    }
}

static void a_card_is_what_was_set_and_usual_in_the_rest(void **state)
{
    (void)state;
    software_start("name=NVIDIA GeForce RTX 4090,compute-capability=8.9,multiprocessors=128,"
                   "threads-per-multiprocessor=1536,shared=99KiB,l2=72MiB,capacity=24207MiB,"
                   "context=500MiB,devices=2");
    const frag_software_card *card = told.card(1);
    assert_string_equal(card->name, "NVIDIA GeForce RTX 4090");
    assert_int_equal(card->compute_capability, 89);
    assert_int_equal(card->multiprocessor_count, 128);
    assert_int_equal(card->blocks_per_multiprocessor, 24);
    assert_int_equal(card->shared_bytes_per_block_opt_in, 101376);
    assert_int_equal(card->shared_bytes_per_multiprocessor, 102400);
    assert_int_equal(card->capacity_bytes, 24207 * MIB);
    assert_int_equal(card->context_bytes, 500 * MIB);
    assert_memory_not_equal(card->uuid, told.card(0)->uuid, 16);
    assert_null(told.card(2));
    assert_null(told.card(-1));
    int value = 0;
    assert_int_equal(cuda.device_attribute(&value, 16, 0), 0);
    assert_int_equal(value, 128);
    assert_int_equal(cuda12.device_attribute(&value, 75, 1), 0);
    assert_int_equal(value, 8);
    software_start("compute-capability=75");
    assert_int_equal(told.card(0)->threads_per_multiprocessor, 1024);
}

static int load_all(void **state)
{
    (void)state;
    software_load_all();
    software_find(NULL, "frag_software_note_unknown", &told.unknown);
    software_find(NULL, "frag_software_note_uncertain", &told.uncertain);
    software_find(NULL, "frag_software_note", &told.note);
    software_find(NULL, "frag_software_note_value", &told.value);
    software_find(NULL, "frag_software_get_card", &told.card);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_each_thing_once_with_its_count),
        cmocka_unit_test(answers_the_end_that_was_chosen_recognisably),
        cmocka_unit_test(answers_within_the_block_when_all_sizes_are_taken),
        cmocka_unit_test(a_card_is_what_was_set_and_usual_in_the_rest),
    };
    return cmocka_run_group_tests_name("what a dry run asks of the software CUDA", tests, load_all,
                                       NULL);
}
