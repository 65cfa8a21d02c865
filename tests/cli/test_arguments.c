/* Tests of arguments.c: parsing the command line. */
#include "cli/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Parses words apart by one blank; they must outlive the arguments. */
static bool parse(char *line, frag_arguments *arguments, frag_error *error)
{
    static char *words[32];
    int count = 0;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    *error = (frag_error){.code = FRAG_E_NONE};
    return frag_arguments_parse(arguments, count, words, error);
}

static void options_and_operands_keep_their_order(void **state)
{
    (void)state;
    char line[] = "fraglab -q run --policy a t1 --label first -pb --policy=c t2 -v -- --t3 -";
    frag_arguments arguments;
    frag_error error;
    assert_true(parse(line, &arguments, &error));
    assert_string_equal(arguments.path[arguments.path_length - 1]->name, "run");
    assert_true(frag_arguments_is_quiet(&arguments));
    assert_true(frag_arguments_is_verbose(&arguments));
    assert_int_equal(frag_arguments_operand_count(&arguments), 4);
    assert_string_equal(frag_arguments_operand(&arguments, 0), "t1");
    assert_string_equal(frag_arguments_operand(&arguments, 1), "t2");
    assert_string_equal(frag_arguments_operand(&arguments, 2), "--t3");
    assert_string_equal(frag_arguments_operand(&arguments, 3), "-");
    assert_int_equal(frag_arguments_value_count(&arguments, "policy"), 3);
    assert_string_equal(frag_arguments_value_at(&arguments, "policy", 0), "a");
    assert_string_equal(frag_arguments_value_at(&arguments, "policy", 1), "b");
    assert_string_equal(frag_arguments_value_at(&arguments, "policy", 2), "c");
    assert_string_equal(frag_arguments_value(&arguments, "policy"), "c");
    assert_true(frag_arguments_is(&arguments, "policy", "c"));
    assert_false(frag_arguments_is(&arguments, "policy", "b"));
    assert_false(frag_arguments_is(&arguments, "capacity", "c"));
    size_t label = frag_arguments_value_position(&arguments, "label", 0);
    assert_true(frag_arguments_value_position(&arguments, "policy", 0) < label);
    assert_true(frag_arguments_value_position(&arguments, "policy", 1) > label);
    assert_false(frag_arguments_has(&arguments, "capacity"));
    assert_null(frag_arguments_value(&arguments, "capacity"));
    frag_arguments_destroy(&arguments);
}

static void typed_values_keep_their_default_or_are_read(void **state)
{
    (void)state;
    char line[] = "fraglab run t --capacity 1GiB --capacity 2GiB --jobs 3";
    frag_arguments arguments;
    frag_error error;
    uint64_t value = 7;
    assert_true(parse(line, &arguments, &error));
    assert_true(frag_arguments_bytes(&arguments, "used-by-others", &value, &error));
    assert_int_equal(value, 7);
    assert_true(frag_arguments_bytes(&arguments, "capacity", &value, &error));
    assert_int_equal(value, (uint64_t)2 << 30);
    assert_true(frag_arguments_count(&arguments, "jobs", 1, 3, &value, &error));
    assert_int_equal(value, 3);
    assert_false(frag_arguments_count(&arguments, "jobs", 1, 2, &value, &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
    assert_string_equal(error.where, "--jobs");
    frag_arguments_destroy(&arguments);
}

static void a_count_is_checked_by_its_line_of_the_table(void **state)
{
    (void)state;
    char good[] = "fraglab run t --plan-seconds 1000000";
    char bad[] = "fraglab run t --plan-seconds 0 --plan-seconds 2";
    frag_arguments arguments;
    frag_error error;
    assert_true(parse(good, &arguments, &error));
    assert_int_equal(frag_arguments_number(&arguments, "plan-seconds", 5), 1000000);
    assert_int_equal(frag_arguments_number(&arguments, "check", 5), 5);
    frag_arguments_destroy(&arguments);
    assert_false(parse(bad, &arguments, &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
    assert_string_equal(error.where, "--plan-seconds");
    frag_arguments_destroy(&arguments);
}

static void an_option_that_no_table_has_cannot_be_asked_for(void **state)
{
    (void)state;
    char line[] = "fraglab run t";
    frag_arguments arguments;
    frag_error error;
    assert_true(parse(line, &arguments, &error));
    assert_true(frag_arguments_knows(&arguments, "capacity"));
    assert_false(frag_arguments_knows(&arguments, "snapshots"));
    assert_true(frag_option_is_known("capacity"));
    assert_true(frag_option_is_known("verbose"));
    assert_false(frag_option_is_known("capacities"));
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        (void)frag_arguments_has(&arguments, "capacities");
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    frag_arguments_destroy(&arguments);
}

static void a_subcommand_is_found_behind_its_group(void **state)
{
    (void)state;
    char line[] = "fraglab trace -q info t";
    frag_arguments arguments;
    frag_error error;
    assert_true(parse(line, &arguments, &error));
    assert_int_equal(arguments.path_length, 3);
    assert_string_equal(arguments.path[1]->name, "trace");
    assert_string_equal(arguments.path[2]->name, "info");
    assert_true(arguments.is_quiet);
    assert_int_equal(arguments.operand_count, 1);
    frag_arguments_destroy(&arguments);
}

static void many_short_options_in_one_word_are_all_seen(void **state)
{
    (void)state;
    char line[300] = "fraglab run t -";
    memset(line + strlen(line), 'f', 200);
    frag_arguments arguments;
    frag_error error;
    assert_true(parse(line, &arguments, &error));
    assert_int_equal(frag_arguments_value_count(&arguments, "force"), 200);
    frag_arguments_destroy(&arguments);
}

static void usage_errors_leave_nothing_behind(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "fraglab run",
        "fraglab run t --format",
        "fraglab run t --nothing",
        "fraglab run t -Z",
        "fraglab",
        "fraglab trace",
        "fraglab trace nothing",
        "fraglab run t --format=x",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char line[64];
        strcpy(line, lines[i]);
        frag_arguments arguments;
        frag_error error;
        assert_false(parse(line, &arguments, &error));
        assert_int_equal(error.code, FRAG_E_USAGE);
        assert_true(error.sentence[0] != '\0');
        frag_arguments_destroy(&arguments);
    }
}

/* Every table keeps what help, completion and the parser rely on. has_run: a command above it runs
 * what has no function of its own. */
static void check_command(const frag_command *command, bool has_run)
{
    assert_true(command->name[0] != '\0' && command->summary[0] != '\0');
    has_run = has_run || command->run != NULL;
    assert_true(has_run || command->subcommands != NULL);
    assert_true(command->operand_min <= command->operand_max);
    for (const frag_command_option *a = command->options; a != NULL && a->name != NULL; a++) {
        assert_true(a->help != NULL && a->help[0] != '\0');
        assert_true(a->choices == NULL || a->argument != NULL);
        for (const frag_command_option *b = a + 1; b->name != NULL; b++) {
            assert_string_not_equal(a->name, b->name);
            assert_true(a->letter == 0 || a->letter != b->letter);
        }
        for (const frag_command_option *b = frag_global_options; b->name != NULL; b++) {
            assert_string_not_equal(a->name, b->name);
            assert_true(a->letter != b->letter);
        }
    }
    for (size_t i = 0; command->subcommands != NULL && command->subcommands[i] != NULL; i++)
        check_command(command->subcommands[i], has_run);
}

static void every_command_in_the_table_is_well_formed(void **state)
{
    (void)state;
    check_command(&frag_program, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_keep_their_order),
        cmocka_unit_test(typed_values_keep_their_default_or_are_read),
        cmocka_unit_test(a_count_is_checked_by_its_line_of_the_table),
        cmocka_unit_test(an_option_that_no_table_has_cannot_be_asked_for),
        cmocka_unit_test(a_subcommand_is_found_behind_its_group),
        cmocka_unit_test(many_short_options_in_one_word_are_all_seen),
        cmocka_unit_test(usage_errors_leave_nothing_behind),
        cmocka_unit_test(every_command_in_the_table_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
