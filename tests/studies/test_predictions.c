/* One recording predicts how its program ends under other settings and on smaller devices: every
 * field of every row of the table is what the dry run gave.
 *
 *   test_predictions          checks the committed table
 *   test_predictions FOLDER   checks the runs of a folder and prints their table */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/studies/predictions.h"

#define FOLDER "build/predictions" /* tests/golden_logs.sh unpacks it */
#define TABLE "tests/data/predictions/predictions.csv.zst"

static void a_recording_predicts_the_other_runs_of_its_program(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_predictions predictions;
    if (!frag_predictions_read(TABLE, &predictions, &error))
        fail_msg("%s:%u: %s", TABLE, (unsigned)error.line, error.sentence);
    assert_true(predictions.count >= 250);
    size_t wrong = frag_predictions_check(FOLDER, &predictions, stderr, &error);
    if (wrong == SIZE_MAX)
        fail_msg("%s: %s", error.where, error.sentence);
    if (wrong > 0)
        fail_msg("%zu of %zu predictions are wrong", wrong, predictions.count);
    frag_predictions_destroy(&predictions);
}

static void a_wrong_prediction_is_seen_in_every_field(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_predictions predictions;
    assert_true(frag_predictions_read(TABLE, &predictions, &error));
    frag_predictions one = {.items = predictions.items, .count = 1, .capacity = 1};
    for (size_t i = 0; i < FRAG_OUTCOME_FIELDS; i++) {
        uint64_t kept = one.items->outcome[i];
        one.items->outcome[i] = 1234567891011;
        char *said = NULL;
        size_t bytes = 0;
        FILE *stream = open_memstream(&said, &bytes);
        assert_non_null(stream);
        assert_int_equal(frag_predictions_check(FOLDER, &one, stream, &error), 1);
        fclose(stream);
        assert_non_null(strstr(said, "was 1,234,567,891,011, predicted "));
        free(said);
        one.items->outcome[i] = kept;
    }
    frag_predictions_destroy(&predictions);
}

/* A folder with one result and no recording beside it. */
static void refuse_result(const char *name, const char *text, const char *expected)
{
    char folder[] = "/tmp/frag-predictions-XXXXXX";
    char path[128];
    frag_error error = {0};
    frag_predictions predictions;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
    assert_false(frag_predictions_from_folder(folder, &predictions, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_non_null(strstr(error.sentence, expected));
    frag_predictions_destroy(&predictions);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

static void a_folder_that_predicts_nothing_is_refused(void **state)
{
    (void)state;
    const char *name = "gpt__exp__1G__torch2.9.1.result.json";
    refuse_result("other.json", "{}", "holds no *.result.json");
    refuse_result(name, "{", "near end of file");
    refuse_result(name, "[]", "expected a JSON object");
    refuse_result(name, "{}", "\"torch\"");
    refuse_result(name, "{\"torch\":\"2.9.1\"}", "\"alloc_conf\"");
    refuse_result(name, "{\"torch\":\"2.9.1\",\"alloc_conf\":\"\"}", "\"capacity\"");
    refuse_result(name, "{\"torch\":\"2.9.1\",\"alloc_conf\":\"\",\"capacity\":1}",
                  "\"memory_stats\"");
    refuse_result(name,
                  "{\"torch\":\"2.9.1\",\"alloc_conf\":\"\",\"capacity\":1,"
                  "\"memory_stats\":[{}],\"oom_events\":[{\"device\":1}]}",
                  "\"device\"");
    const char *alone = "{\"torch\":\"2.9.1\",\"alloc_conf\":\"expandable_segments:True\","
                        "\"capacity\":1,\"memory_stats\":[{}]}";
    refuse_result(name, alone, "nothing can be predicted");
    refuse_result("gpt.result.json", alone, "expected the name PROGRAM__");
}

static int check_folder(const char *folder)
{
    frag_error error = {0};
    frag_predictions predictions;
    size_t wrong = SIZE_MAX;
    if (frag_predictions_from_folder(folder, &predictions, &error)) {
        frag_predictions_write(stdout, &predictions);
        wrong = frag_predictions_check(folder, &predictions, stderr, &error);
    }
    if (wrong == SIZE_MAX)
        fprintf(stderr, "test_predictions: %s: %s\n", error.where, error.sentence);
    else
        fprintf(stderr, "%zu of %zu predictions are exact\n", predictions.count - wrong,
                predictions.count);
    if (predictions.left_out > 0 && wrong != SIZE_MAX)
        fprintf(stderr,
                "%zu runs are left out: their programs have no run with default settings and no "
                "out of memory\n",
                predictions.left_out);
    frag_predictions_destroy(&predictions);
    return wrong == SIZE_MAX ? 3 : wrong > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return check_folder(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_predicts_the_other_runs_of_its_program),
        cmocka_unit_test(a_wrong_prediction_is_seen_in_every_field),
        cmocka_unit_test(a_folder_that_predicts_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
