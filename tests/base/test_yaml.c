/* Tests of yaml.c: reading YAML with positions. */
#include "base/formats/yaml.h"

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

static frag_yaml_node *parse(const char *text, frag_error *error)
{
    *error = (frag_error){.code = FRAG_E_NONE};
    return frag_yaml_parse(text, strlen(text), error);
}

static void assert_refused(const char *text, uint64_t line, uint64_t column, const char *sentence)
{
    frag_error error;
    frag_yaml_node *root = parse(text, &error);
    if (root != NULL)
        fail_msg("accepted: %s", text);
    assert_int_equal(error.code, FRAG_E_INPUT);
    if (error.line != line || error.column != column || strstr(error.sentence, sentence) == NULL)
        fail_msg("%s\ngave %llu:%llu: %s", text, (unsigned long long)error.line,
                 (unsigned long long)error.column, error.sentence);
}

static void a_document_is_a_tree_with_positions(void **state)
{
    (void)state;
    frag_error error;
    frag_yaml_node *root =
        parse("# comment\nname: x\nlist:\n  - 1\n  - \"two\"\ncalls: {a: 0.5, b: 64KiB}\n", &error);
    assert_non_null(root);
    assert_int_equal(root->kind, FRAG_YAML_MAPPING);
    assert_int_equal(root->count, 3);
    const frag_yaml_node *list = frag_yaml_find(root, "list");
    assert_int_equal(list->kind, FRAG_YAML_SEQUENCE);
    assert_int_equal(list->key_line, 3);
    assert_int_equal(list->line, 4);
    assert_int_equal(list->column, 3);
    assert_string_equal(list->first->text, "1");
    assert_false(list->first->is_quoted);
    assert_true(list->first->next->is_quoted);
    assert_null(list->first->next->next);
    const frag_yaml_node *b = frag_yaml_find(frag_yaml_find(root, "calls"), "b");
    assert_int_equal(b->line, 6);
    assert_int_equal(b->column, 20);
    assert_int_equal(b->key_column, 17);
    uint64_t bytes = 0;
    assert_true(frag_yaml_bytes(b, &bytes, &error));
    assert_int_equal(bytes, 65536);
    assert_null(frag_yaml_find(root, "nothing"));
    frag_yaml_destroy(root);
    frag_yaml_destroy(NULL);
}

static void refuses_what_we_do_not_read(void **state)
{
    (void)state;
    assert_refused("", 1, 1, "empty");
    assert_refused("# only a comment\n", 2, 1, "empty");
    assert_refused("a: &x 1\n", 1, 4, "anchors");
    assert_refused("a: 1\nb: *x\n", 2, 4, "aliases");
    assert_refused("a: !!int 1\n", 1, 4, "tags");
    assert_refused("a: !own [1]\n", 1, 4, "tags");
    assert_refused("a: 1\nb: 2\na: 3\n", 3, 1, "'a' is given twice");
    assert_refused("[a, b]: 1\n", 1, 1, "not a plain word");
    assert_refused("a: 1\n---\nb: 2\n", 2, 1, "second document");
    assert_refused("a: \"x\\0y\"\n", 1, 4, "zero byte");
}

static void broken_text_is_refused_where_it_breaks(void **state)
{
    (void)state;
    assert_refused("a: [1, 2\nb: 3\n", 2, 2, "not YAML");
    assert_refused("a: 1\n  b: 2\n", 2, 4, "not YAML");
    assert_refused("a: 1\n\tb: 2\n", 2, 1, "not YAML");
    frag_error error = {.code = FRAG_E_NONE};
    assert_null(frag_yaml_parse("a: \xff\xff", 5, &error));
    assert_true(error.has_offset);
    assert_int_equal(error.offset, 3);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    frag_text text = {.bytes = NULL};
    frag_error error;
    for (int i = 0; i < 31; i++)
        frag_text_add(&text, "[");
    frag_text_add(&text, "1");
    for (int i = 0; i < 31; i++)
        frag_text_add(&text, "]");
    frag_yaml_node *root = parse(text.bytes, &error);
    assert_non_null(root);
    frag_yaml_destroy(root);
    frag_text_clear(&text);
    for (int i = 0; i < 100000; i++)
        frag_text_add(&text, "[");
    assert_refused(text.bytes, 1, 33, "levels");
    frag_text_destroy(&text);
}

static void many_keys_do_not_take_long(void **state)
{
    (void)state;
    frag_text text = {.bytes = NULL};
    frag_error error;
    for (int i = 0; i < 60000; i++)
        frag_text_add(&text, "k%d: 1\n", i);
    frag_yaml_node *root = parse(text.bytes, &error);
    assert_non_null(root);
    assert_int_equal(root->count, 60000);
    frag_yaml_destroy(root);
    frag_text_destroy(&text);
}

static void values_are_typed_and_wrong_ones_have_a_place(void **state)
{
    (void)state;
    frag_error error;
    frag_yaml_node *root =
        parse("size: 64K\ncount: 12\nratio: 0.5\nflag: true\nno: maybe\nlist: [1]\n", &error);
    assert_non_null(root);
    uint64_t number = 0;
    double ratio = 0;
    bool flag = false;
    const char *text = NULL;
    assert_true(frag_yaml_count(frag_yaml_find(root, "count"), 0, 20, &number, &error));
    assert_int_equal(number, 12);
    assert_true(frag_yaml_ratio(frag_yaml_find(root, "ratio"), 0, 1, &ratio, &error));
    assert_true(ratio > 0.49 && ratio < 0.51);
    assert_true(frag_yaml_flag(frag_yaml_find(root, "flag"), &flag, &error));
    assert_true(flag);
    assert_true(frag_yaml_text(frag_yaml_find(root, "no"), &text, &error));
    assert_string_equal(text, "maybe");

    assert_false(frag_yaml_bytes(frag_yaml_find(root, "size"), &number, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_int_equal(error.line, 1);
    assert_int_equal(error.column, 7);
    assert_non_null(strstr(error.sentence, "size: '64K' could mean"));
    assert_false(frag_yaml_count(frag_yaml_find(root, "count"), 0, 11, &number, &error));
    assert_false(frag_yaml_flag(frag_yaml_find(root, "no"), &flag, &error));
    assert_int_equal(error.line, 5);
    assert_false(frag_yaml_text(frag_yaml_find(root, "list"), &text, &error));
    assert_string_equal(error.sentence, "'list' is a list; expected a single value");
    frag_yaml_destroy(root);
}

static void unknown_keys_are_refused_with_the_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"name", "calls", NULL};
    frag_error error;
    frag_yaml_node *root = parse("name: x\ncals: 1\n", &error);
    assert_false(frag_yaml_check_keys(root, names, &error));
    assert_int_equal(error.line, 2);
    assert_int_equal(error.column, 1);
    assert_string_equal(error.sentence, "unknown key 'cals'; did you mean calls");
    frag_yaml_destroy(root);
    root = parse("elsewhere: 1\n", &error);
    assert_false(frag_yaml_check_keys(root, names, &error));
    assert_string_equal(error.sentence, "unknown key 'elsewhere'; expected one of name, calls");
    frag_yaml_destroy(root);
}

static void a_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/fraglab-yaml-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "wb");
    for (size_t i = 0; i <= FRAG_MIB; i++)
        fputc('#', file);
    fclose(file);
    frag_error error = {.code = FRAG_E_NONE};
    assert_null(frag_yaml_load(path, &error));
    assert_non_null(strstr(error.sentence, "1 MiB"));
    assert_string_equal(error.where, path);
    remove(path);
    error = (frag_error){.code = FRAG_E_NONE};
    assert_null(frag_yaml_load(path, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_a_tree_with_positions),
        cmocka_unit_test(refuses_what_we_do_not_read),
        cmocka_unit_test(broken_text_is_refused_where_it_breaks),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(many_keys_do_not_take_long),
        cmocka_unit_test(values_are_typed_and_wrong_ones_have_a_place),
        cmocka_unit_test(unknown_keys_are_refused_with_the_nearest),
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
