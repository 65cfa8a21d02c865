/* Tests of json.c: reading and writing JSON. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static frag_json *parse(const char *text)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_json *json = frag_json_parse(text, strlen(text), &error);
    if (json == NULL)
        fail_msg("%s: %s", text, error.sentence);
    return json;
}

static void values_are_read_as_what_they_are(void **state)
{
    (void)state;
    frag_json *json = parse("{\"n\":7,\"m\":-7,\"r\":0.5,\"t\":\"x\",\"f\":true,\"z\":null,"
                            "\"a\":[1,[2,3],\"y\"],\"o\":{\"k\":9}}");
    uint64_t number = 99;
    int64_t value = 99;
    double ratio = 99;
    bool flag = false;
    const char *text = "unset";
    assert_true(frag_json_read_number(frag_json_at(json, "n"), &number) && number == 7);
    assert_true(frag_json_read_signed(frag_json_at(json, "m"), &value) && value == -7);
    assert_true(frag_json_read_ratio(frag_json_at(json, "r"), &ratio) && ratio == 0.5);
    assert_true(frag_json_read_ratio(frag_json_at(json, "n"), &ratio) && ratio == 7);
    assert_true(frag_json_read_flag(frag_json_at(json, "f"), &flag) && flag);
    assert_true(frag_json_read_text(frag_json_at(json, "t"), &text));
    assert_string_equal(text, "x");
    assert_true(frag_json_is_null(frag_json_at(json, "z")));
    assert_false(frag_json_is_null(frag_json_at(json, "nowhere")));
    const frag_json_value *array = frag_json_at(json, "a");
    assert_true(frag_json_is_array(array));
    assert_int_equal(frag_json_count(array), 3);
    assert_int_equal(frag_json_count(frag_json_item(array, 1)), 2);
    assert_null(frag_json_item(array, 3));
    frag_json_destroy(json);
}

static void what_is_of_another_kind_is_left_alone(void **state)
{
    (void)state;
    frag_json *json = parse("{\"m\":-7,\"r\":0.5,\"t\":\"x\"}");
    uint64_t number = 99;
    int64_t value = 99;
    bool flag = true;
    const char *text = "unset";
    assert_false(frag_json_read_number(frag_json_at(json, "m"), &number));
    assert_false(frag_json_read_number(frag_json_at(json, "r"), &number));
    assert_false(frag_json_read_number(NULL, &number));
    assert_false(frag_json_read_signed(frag_json_at(json, "r"), &value));
    assert_false(frag_json_read_flag(frag_json_at(json, "m"), &flag));
    assert_false(frag_json_read_text(frag_json_at(json, "m"), &text));
    assert_int_equal(number, 99);
    assert_int_equal(value, 99);
    assert_string_equal(text, "unset");
    assert_false(frag_json_is_array(frag_json_at(json, "t")));
    assert_int_equal(frag_json_count(frag_json_at(json, "t")), 0);
    assert_null(frag_json_item(NULL, 0));
    frag_json_destroy(json);
}

typedef struct seen {
    char keys[16];
    uint32_t left;
} seen;

static bool see(void *context, const char *key, const frag_json_value *value)
{
    seen *all = context;
    assert_non_null(value);
    strcat(all->keys, key);
    return all->left-- > 1;
}

static void what_was_found_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *found;
    } cases[] = {
        {"n", "is -7"},         {"r", "is 0.5"},
        {"w", "is 1000.0"},     {"t", "is \"x\""},
        {"f", "is false"},      {"z", "is null"},
        {"a", "is an array"},   {"o", "is an object"},
        {"o.k", "is 9"},        {"nowhere", "is missing"},
        {"o.no", "is missing"}, {"long", "is a text of 41 bytes"},
    };
    frag_json *json =
        parse("{\"n\":-7,\"r\":0.5,\"w\":1e3,\"t\":\"x\",\"f\":false,\"z\":null,\"a\":[1],"
              "\"o\":{\"k\":9},\"long\":\"12345678901234567890123456789012345678901\"}");
    char text[FRAG_JSON_FOUND_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(frag_json_found(frag_json_at_path(json, cases[i].path), text),
                            cases[i].found);
    frag_json_destroy(json);
}

static void members_come_in_order_until_enough_was_seen(void **state)
{
    (void)state;
    frag_json *json = parse("{\"c\":1,\"a\":2,\"b\":3}");
    seen all = {.left = 9};
    assert_true(frag_json_each(json, see, &all));
    assert_string_equal(all.keys, "cab");
    seen two = {.left = 2};
    assert_false(frag_json_each(json, see, &two));
    assert_string_equal(two.keys, "ca");
    frag_json_destroy(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_as_what_they_are),
        cmocka_unit_test(what_is_of_another_kind_is_left_alone),
        cmocka_unit_test(what_was_found_is_said),
        cmocka_unit_test(members_come_in_order_until_enough_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
