/* Tests of digest.c: XXH3-128, in one piece or several. */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_digest_is_xxh3_of_128_bits(void **state)
{
    (void)state;
    char text[FRAG_DIGEST_TEXT_BYTES];
    frag_digest_finish(frag_digest_create(), text);
    /* XXH3_128bits of nothing, seed 0, as the algorithm's specification gives it. */
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    assert_true(frag_hash_bytes("", 0) == 0x2d06800538d394c2u);
}

static void pieces_do_not_matter_order_does(void **state)
{
    (void)state;
    char whole[FRAG_DIGEST_TEXT_BYTES];
    char pieces[FRAG_DIGEST_TEXT_BYTES];
    char swapped[FRAG_DIGEST_TEXT_BYTES];
    frag_digest *digest = frag_digest_create();
    frag_digest_add(digest, "abcdef", 6);
    frag_digest_finish(digest, whole);
    digest = frag_digest_create();
    frag_digest_add(digest, "abc", 3);
    frag_digest_add(digest, "", 0);
    frag_digest_add(digest, "def", 3);
    frag_digest_finish(digest, pieces);
    digest = frag_digest_create();
    frag_digest_add(digest, "def", 3);
    frag_digest_add(digest, "abc", 3);
    frag_digest_finish(digest, swapped);
    assert_string_equal(whole, pieces);
    assert_string_not_equal(whole, swapped);
    assert_int_equal(strspn(whole, "0123456789abcdef"), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_is_xxh3_of_128_bits),
        cmocka_unit_test(pieces_do_not_matter_order_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
