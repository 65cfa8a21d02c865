/* Generates every small case of tests/workload/cases, under sanitizers too. What comes out is
 * compared with dry runs elsewhere (generate.bats); here nothing may be read or written that is not
 * there, and every event has to be one that can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/device/card_table.h"
#include "workload/generate.h"
#include "workload/tape_card.h"

#define FOLDER "tests/workload/"

enum { LINE_BYTES = 1024, CASES_MIN = 700 };

static void read_card(const char *name, frag_tape_card *card)
{
    frag_device_description description = {0};
    frag_error error = {0};
    if (!frag_card_load(name, &description, NULL, &error) ||
        !frag_tape_card_read(&description, name, card, &error))
        fail_msg("%s: %s", name, error.sentence);
}

/* NAME CONFIG CARD KNOB=VALUE...; false: no small case. */
static bool generate_case(char *line)
{
    char *rest = NULL;
    const char *name = strtok_r(line, " \n", &rest);
    const char *config = strtok_r(NULL, " \n", &rest);
    const char *gpu = strtok_r(NULL, " \n", &rest);
    if (name == NULL || *name == '#' || config == NULL || strstr(config, "-tiny.") == NULL)
        return false;
    char path[LINE_BYTES];
    frag_tape_card card;
    frag_workload workload;
    frag_recording recording = {0};
    frag_error error = {0};
    snprintf(path, sizeof path, FOLDER "models/%s", config);
    read_card(gpu, &card);
    frag_workload_init(&workload);
    bool ok = frag_workload_load(path, &workload, NULL, &error);
    for (char *knob; ok && (knob = strtok_r(NULL, " \n", &rest)) != NULL;) {
        char *value = strchr(knob, '=');
        assert_non_null(value);
        *value = '\0';
        ok = frag_workload_set(&workload, knob, value + 1, &error);
    }
    if (!ok || !frag_workload_check(&workload, &error) ||
        !frag_workload_generate(&workload, &card, name, &recording, &error))
        fail_msg("%s: %s", name, error.sentence);
    for (uint32_t i = 0; i < recording.trace_count; i++)
        assert_true(recording.traces[i].stats.request_count > 0);
    frag_recording_destroy(&recording);
    return true;
}

static void every_small_case_is_generated(void **state)
{
    (void)state;
    char line[LINE_BYTES];
    uint32_t count = 0;
    FILE *cases = fopen(FOLDER "cases", "r");
    assert_non_null(cases);
    while (fgets(line, sizeof line, cases) != NULL)
        count += generate_case(line);
    fclose(cases);
    assert_true(count >= CASES_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_case_is_generated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
