/* Tests of codec.c: gzip and zstd, whole and damaged. */
#include "base/formats/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

/* "fraglab\n" as gzip -n writes it. */
static const unsigned char gzip_member[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x4b, 0x2b, 0x4a, 0x4c,
    0xcf, 0x49, 0x4c, 0xe2, 0x02, 0x00, 0x62, 0xc9, 0x10, 0x6f, 0x08, 0x00, 0x00, 0x00,
};

static void codecs_are_told_by_their_first_bytes(void **state)
{
    (void)state;
    assert_int_equal(frag_codec_detect((const unsigned char *)"\x28\xb5\x2f\xfd", 4),
                     FRAG_CODEC_ZSTD);
    assert_int_equal(frag_codec_detect((const unsigned char *)"\x28\xb5\x2f\xfd", 3),
                     FRAG_CODEC_PLAIN);
    assert_int_equal(frag_codec_detect(gzip_member, 4), FRAG_CODEC_GZIP);
    assert_int_equal(frag_codec_detect(gzip_member, 1), FRAG_CODEC_PLAIN);
    assert_int_equal(frag_codec_detect((const unsigned char *)"text", 4), FRAG_CODEC_PLAIN);
    assert_int_equal(frag_codec_detect((const unsigned char *)"", 0), FRAG_CODEC_PLAIN);
}

static size_t compressed_sample(unsigned char **out, unsigned char *plain, size_t count)
{
    for (size_t i = 0; i < count; i++)
        plain[i] = (unsigned char)(i * i >> 7);
    *out = frag_alloc(frag_compress_bound(count), 1);
    return frag_compress(*out, frag_compress_bound(count), plain, count);
}

static void a_piece_comes_back_as_it_was(void **state)
{
    (void)state;
    static unsigned char plain[50000];
    static unsigned char back[50000];
    unsigned char *packed = NULL;
    size_t count = compressed_sample(&packed, plain, sizeof plain);
    frag_unpacker *unpacker = frag_unpacker_create();
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(count < sizeof plain);
    assert_true(frag_decompress(unpacker, back, sizeof back, packed, count, &error));
    assert_memory_equal(plain, back, sizeof plain);
    unsigned char *again = NULL;
    assert_int_equal(compressed_sample(&again, plain, sizeof plain), count);
    assert_memory_equal(packed, again, count);
    free(packed);
    free(again);
    frag_unpacker_destroy(unpacker);
}

static void a_piece_of_another_size_or_damaged_is_refused(void **state)
{
    (void)state;
    static unsigned char plain[5000];
    static unsigned char back[6000];
    unsigned char *packed = NULL;
    size_t count = compressed_sample(&packed, plain, sizeof plain);
    frag_unpacker *unpacker = frag_unpacker_create();
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_decompress(unpacker, back, sizeof plain + 1, packed, count, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_false(frag_decompress(unpacker, back, sizeof plain - 1, packed, count, &error));
    for (size_t cut = 0; cut < count; cut++)
        assert_false(frag_decompress(unpacker, back, sizeof plain, packed, cut, &error));
    packed[0] ^= 1;
    assert_false(frag_decompress(unpacker, back, sizeof plain, packed, count, &error));
    packed[0] ^= 1;
    assert_true(frag_decompress(unpacker, back, sizeof plain, packed, count, &error));
    assert_memory_equal(plain, back, sizeof plain);
    frag_unpacker_destroy(unpacker);
    free(packed);
}

/* Decodes byte by byte into a small window, as a slow pipe would have it. */
static bool decode(frag_codec codec, const unsigned char *in, size_t count, unsigned char *out,
                   size_t *out_count, bool *is_at_end)
{
    frag_decoder *decoder = frag_decoder_create(codec);
    frag_error error = {.code = FRAG_E_NONE};
    bool ok = true;
    *out_count = 0;
    for (size_t at = 0; at < count && ok;) {
        size_t in_used = 0;
        size_t out_used = 0;
        ok = frag_decoder_step(decoder, in + at, 1, &in_used, out + *out_count, 3, &out_used,
                               is_at_end, &error);
        at += in_used;
        *out_count += out_used;
        if (ok && in_used == 0 && out_used == 0)
            ok = false;
    }
    for (size_t out_used = 1; ok && out_used > 0 && !*is_at_end; *out_count += out_used) {
        size_t in_used = 0;
        ok = frag_decoder_step(decoder, in, 0, &in_used, out + *out_count, 3, &out_used, is_at_end,
                               &error);
    }
    frag_decoder_destroy(decoder);
    return ok;
}

static void gzip_streams_are_read_even_several_in_a_row(void **state)
{
    (void)state;
    unsigned char twice[2 * sizeof gzip_member];
    memcpy(twice, gzip_member, sizeof gzip_member);
    memcpy(twice + sizeof gzip_member, gzip_member, sizeof gzip_member);
    unsigned char out[64];
    size_t count = 0;
    bool is_at_end = false;
    assert_true(decode(FRAG_CODEC_GZIP, twice, sizeof twice, out, &count, &is_at_end));
    assert_true(is_at_end);
    assert_int_equal(count, 16);
    assert_memory_equal(out, "fraglab\nfraglab\n", 16);
}

static void a_stream_that_is_cut_off_is_not_at_its_end(void **state)
{
    (void)state;
    unsigned char out[64];
    size_t count = 0;
    bool is_at_end = false;
    assert_true(
        decode(FRAG_CODEC_GZIP, gzip_member, sizeof gzip_member - 1, out, &count, &is_at_end));
    assert_false(is_at_end);
}

static void a_damaged_stream_is_refused(void **state)
{
    (void)state;
    unsigned char damaged[sizeof gzip_member];
    unsigned char out[64];
    size_t count = 0;
    bool is_at_end = false;
    memcpy(damaged, gzip_member, sizeof damaged);
    damaged[22] ^= 1; /* of the checksum */
    assert_false(decode(FRAG_CODEC_GZIP, damaged, sizeof damaged, out, &count, &is_at_end));
}

static void zstd_streams_are_read_even_several_in_a_row(void **state)
{
    (void)state;
    static unsigned char plain[3000];
    static unsigned char out[6010];
    unsigned char *packed = NULL;
    size_t count = compressed_sample(&packed, plain, sizeof plain);
    packed = frag_realloc(packed, 2 * count, 1);
    memcpy(packed + count, packed, count);
    size_t out_count = 0;
    bool is_at_end = false;
    assert_true(decode(FRAG_CODEC_ZSTD, packed, 2 * count, out, &out_count, &is_at_end));
    assert_true(is_at_end);
    assert_int_equal(out_count, 6000);
    assert_memory_equal(out + 3000, plain, sizeof plain);
    free(packed);
}

static void packed_files_unpack_to_what_they_were(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    static const frag_codec codecs[] = {FRAG_CODEC_ZSTD, FRAG_CODEC_GZIP};
    unsigned char *plain = frag_alloc(COUNT, 1);
    unsigned char *back = frag_alloc(COUNT + 1, 1);
    for (size_t i = 0; i < COUNT; i++)
        plain[i] = (unsigned char)(i * i * i >> 5);
    for (size_t i = 0; i < 2; i++) {
        size_t sizes[] = {COUNT, 1, 0};
        for (size_t k = 0; k < 3; k++) {
            size_t packed_count = 0;
            size_t used = 0;
            size_t given = 0;
            bool is_at_end = false;
            frag_error error = {0};
            unsigned char *packed = frag_codec_pack(codecs[i], plain, sizes[k], &packed_count);
            assert_int_equal(frag_codec_detect(packed, packed_count), codecs[i]);
            frag_decoder *decoder = frag_decoder_create(codecs[i]);
            assert_true(frag_decoder_step(decoder, packed, packed_count, &used, back, COUNT + 1,
                                          &given, &is_at_end, &error));
            assert_true(is_at_end);
            assert_int_equal(used, packed_count);
            assert_int_equal(given, sizes[k]);
            assert_memory_equal(back, plain, sizes[k]);
            frag_decoder_destroy(decoder);
            free(packed);
        }
    }
    free(plain);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs_are_told_by_their_first_bytes),
        cmocka_unit_test(a_piece_comes_back_as_it_was),
        cmocka_unit_test(a_piece_of_another_size_or_damaged_is_refused),
        cmocka_unit_test(gzip_streams_are_read_even_several_in_a_row),
        cmocka_unit_test(a_stream_that_is_cut_off_is_not_at_its_end),
        cmocka_unit_test(a_damaged_stream_is_refused),
        cmocka_unit_test(zstd_streams_are_read_even_several_in_a_row),
        cmocka_unit_test(packed_files_unpack_to_what_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
