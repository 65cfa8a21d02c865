/* Requests are laid out in memory as an allocator would that rounds them so, and the rounding is
 * read off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "base/bytes.h"
#include "studies/verify/verify_rounding.h"
#include "tests/support/text_recording.h"

#define BASE ((uint64_t)0x200000000000)

/* As the option reads a value in a release; "": multiples of 512. */
static void settings_of(uint32_t version, const char *divisions, frag_pytorch_settings *settings)
{
    char conf[128];
    frag_error error = {0};
    frag_pytorch_settings_reset(settings, version);
    snprintf(conf, sizeof conf, "roundup_power2_divisions:%s", divisions);
    if (divisions[0] != '\0')
        assert_true(frag_pytorch_conf_parse(settings, conf, &error));
}

static void put(frag_text *text, uint64_t slot, uint64_t bytes, uint64_t address)
{
    frag_text_add(text, "alloc %llu %llu addr=0x%llx\n", (unsigned long long)slot,
                  (unsigned long long)bytes, (unsigned long long)address);
}

/* Odd sizes from 4 KiB to 890 MiB, one behind the other. */
static void lay_out(const frag_pytorch_settings *settings, frag_text *text)
{
    uint64_t address = BASE;
    uint64_t slot = 0;
    frag_text_add(text, "segment_alloc 1099511627776 addr=0x%llx\n", (unsigned long long)BASE);
    put(text, slot++, 512, address);
    address += 512;
    for (uint64_t octave = 4096; octave <= FRAG_GIB; octave *= 2)
        for (uint64_t part = 0; part < 8; part++) {
            uint64_t bytes = octave * 3 / 4 + octave / 64 * part + 1234;
            put(text, slot++, bytes, address);
            address += frag_pytorch_round(settings, bytes);
        }
}

static void expect(uint32_t version, const char *divisions, const char *read)
{
    frag_pytorch_settings settings;
    frag_recording recording;
    frag_rounding rounding;
    frag_text text = {0};
    char found[FRAG_ROUNDING_TEXT_BYTES];
    settings_of(version, divisions, &settings);
    lay_out(&settings, &text);
    frag_test_recording(text.bytes, &recording);
    frag_rounding_read(&recording.traces[0], &rounding);
    frag_rounding_text(&rounding, found);
    assert_string_equal(found, read);
    assert_int_equal(frag_rounding_is_old(&rounding), strcmp(divisions, "1") == 0 && version < 204);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void reads_what_all_octaves_share(void **state)
{
    (void)state;
    expect(215, "", "");
    expect(215, "1", "");
    expect(215, "2", "2");
    expect(215, "8", "8");
    expect(215, "32", "32");
}

static void reads_lists_octave_by_octave(void **state)
{
    (void)state;
    expect(215, "[256:1,512:2]", "[256:1,512:2]");
    expect(215, "[4:4,16:2,64:8]", "[4:4,8:1,16:2,32:1,64:8,128:1,256:1,512:1]");
    expect(209, "[16:1,32:4,>:8]", "[16:1,32:8,64:8,128:8,256:8,512:8]");
}

static void knows_the_sizes_that_old_releases_did_not_round(void **state)
{
    (void)state;
    expect(203, "1", "1");
}

/* A block that was not split is larger than its request, and looks rounded up further. */
static void passes_over_what_was_not_split(void **state)
{
    (void)state;
    frag_text text = {0};
    frag_recording recording;
    frag_rounding rounding;
    char found[FRAG_ROUNDING_TEXT_BYTES];
    uint64_t address = BASE;
    for (uint64_t i = 0; i < 12; i++) {
        frag_text_add(&text, "segment_alloc 12582912 addr=0x%llx\n", (unsigned long long)address);
        put(&text, i, 11 * FRAG_MIB + 700 + i * 4096, address);
        address += 12 * FRAG_MIB;
    }
    frag_test_recording(text.bytes, &recording);
    frag_rounding_read(&recording.traces[0], &rounding);
    frag_rounding_text(&rounding, found);
    assert_string_equal(found, "");
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void says_nothing_without_addresses(void **state)
{
    (void)state;
    frag_recording recording;
    frag_rounding rounding;
    char found[FRAG_ROUNDING_TEXT_BYTES];
    frag_test_recording("alloc 0 5000\nalloc 1 70000\n", &recording);
    frag_rounding_read(&recording.traces[0], &rounding);
    frag_rounding_text(&rounding, found);
    assert_string_equal(found, "");
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_all_octaves_share),
        cmocka_unit_test(reads_lists_octave_by_octave),
        cmocka_unit_test(knows_the_sizes_that_old_releases_did_not_round),
        cmocka_unit_test(passes_over_what_was_not_split),
        cmocka_unit_test(says_nothing_without_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
