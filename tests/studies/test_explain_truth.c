/* The settings that explain says would have fitted are those that did:
 *
 *   test_explain_truth           by the committed table of dry runs
 *   test_explain_truth FOLDER    by the runs of a folder that ran out of memory */
#include "tests/studies/explain_truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

#define FOLDER "build/predictions" /* tests/golden_logs.sh unpacks it */
#define TABLE "tests/data/predictions/predictions.csv.zst"

/* A part of the table is enough for every build; a folder is checked whole. */
enum { EVERY = 4 };

static void what_is_said_to_fit_did_fit(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_predictions predictions;
    frag_explain_truth truth;
    assert_true(frag_predictions_read(TABLE, &predictions, &error));
    frag_predictions some = {.items = frag_alloc(predictions.count, sizeof *some.items)};
    for (size_t i = 0; i < predictions.count; i += EVERY)
        some.items[some.count++] = predictions.items[i];
    if (!frag_explain_predictions(FOLDER, &some, stderr, &truth, &error))
        fail_msg("%s: %s", error.where, error.sentence);
    assert_int_equal(truth.wrong, 0);
    assert_true(truth.fits_right >= 3);
    assert_true(truth.fails_right >= 10);
    free(some.items);
    frag_predictions_destroy(&predictions);
}

static void a_wrong_outcome_is_seen(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_predictions predictions;
    frag_explain_truth truth;
    assert_true(frag_predictions_read(TABLE, &predictions, &error));
    size_t at = 0;
    while (predictions.items[at].outcome[FRAG_OUTCOME_OOM_BYTES] == FRAG_PREDICTION_NONE ||
           *predictions.items[at].settings != '\0')
        at++;
    predictions.items[at].outcome[FRAG_OUTCOME_OOM_BYTES] = FRAG_PREDICTION_NONE;
    frag_predictions one = {.items = &predictions.items[at], .count = 1, .capacity = 1};
    char *said = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&said, &bytes);
    assert_true(frag_explain_predictions(FOLDER, &one, stream, &truth, &error));
    fclose(stream);
    assert_int_equal(truth.wrong, 1);
    assert_non_null(strstr(said, "said to fail"));
    free(said);
    frag_predictions_destroy(&predictions);
}

static int check_folder(const char *folder)
{
    frag_error error = {0};
    frag_explain_truth truth;
    if (!frag_explain_folder(folder, stderr, &truth, &error)) {
        fprintf(stderr, "test_explain_truth: %s: %s\n", error.where, error.sentence);
        return 3;
    }
    printf("%zu recordings ran out of memory, %zu fail at the same request in replay\n",
           truth.explained, truth.reproduced);
    printf("with the rest known: %zu said to fit did, %zu said to fail did, %zu wrong\n",
           truth.fits_right, truth.fails_right, truth.wrong);
    printf("without it: of those said to get past the failure %zu fitted, %zu failed later\n",
           truth.past_fits, truth.past_fails);
    return truth.wrong > 0 || truth.reproduced < truth.explained;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return check_folder(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_to_fit_did_fit),
        cmocka_unit_test(a_wrong_outcome_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
