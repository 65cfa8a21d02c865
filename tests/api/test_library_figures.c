/* The figures of the library, as a program sees them. That the bytes are those of the commands says
 * library.bats; here, that calls end as the header says on wrong arguments, without gnuplot, when
 * they are told to, and without host memory, and that nothing stays of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define SMALL_SAMPLE "tests/data/snapshots/empty-with-gc.pickle"

/* ---- figures */

static int write_figure(const fraglab_context *context, const char *kind,
                        const fraglab_figure_setting *setting, fraglab_error *error)
{
    static const char *const paths[] = {SMALL_SAMPLE};
    fraglab_figure_options options = {
        .size = sizeof options, .settings = setting, .setting_count = setting != NULL};
    char *csv = NULL;
    int code = fraglab_figure_csv(context, kind, paths, 1, NULL, &options, &csv, error);
    assert_int_equal(csv != NULL, code == FRAGLAB_OK);
    fraglab_free(csv);
    return code;
}

static int call_figure(void *argument)
{
    (void)argument;
    const fraglab_figure_setting samples = {"samples", "20"};
    int code = write_figure(NULL, "timeline", &samples, NULL);
    return code != FRAGLAB_OK ? code : write_figure(NULL, "survival", NULL, NULL);
}

static void refuses_what_is_no_figure(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        fraglab_figure_setting setting;
        const char *where;
    } wrong[] = {
        {"pie", {"x", "time"}, "kind"},
        {"timeline", {"colour", "site"}, "colour"},
        {"timeline", {"x", "space"}, "x"},
        {"timeline", {"x", "tim"}, "x"},
        {"timeline", {"x", NULL}, "x"},
        {"timeline", {"output", "file"}, "output"},
        {"timeline", {"samples", "x"}, "--samples"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fraglab_error error = FRAGLAB_ERROR_INIT;
        assert_int_equal(write_figure(NULL, wrong[i].kind, &wrong[i].setting, &error),
                         FRAGLAB_E_USAGE);
        assert_string_equal(error.where, wrong[i].where);
    }
    assert_null(fraglab_figure_kind_at(11));
}

static char *table_of(const char *kind, const char *path, const fraglab_recording *recording)
{
    const fraglab_figure_options options = {
        .size = sizeof options, .recordings = &recording, .recording_count = recording != NULL};
    char *csv = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    if (fraglab_figure_csv(NULL, kind, &path, path != NULL, NULL, &options, &csv, &error) !=
        FRAGLAB_OK)
        fail_msg("%s: %s", kind, error.sentence);
    return csv;
}

/* The map is a picture and has no table. */
static void an_open_recording_gives_the_figures_of_its_file(void **state)
{
    (void)state;
    static const char *const kinds[] = {"timeline", "bars",          "survival", "front",
                                        "sites",    "fragmentation", "flame",    "treemap"};
    const fraglab_open_options with_sites = {.size = sizeof with_sites, .with_sites = 1};
    fraglab_recording *recording = NULL;
    assert_int_equal(fraglab_open_path(NULL, SMALL_SAMPLE, &with_sites, &recording, NULL),
                     FRAGLAB_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *of_file = table_of(kinds[i], SMALL_SAMPLE, NULL);
        char *of_recording = table_of(kinds[i], NULL, recording);
        assert_string_equal(of_recording, of_file);
        fraglab_free(of_file);
        fraglab_free(of_recording);
    }
    /* Files first, then what is open. */
    char *both = table_of("bars", SMALL_SAMPLE, recording);
    char *one = table_of("bars", SMALL_SAMPLE, NULL);
    const char *rows = strchr(one, '\n') + 1;
    assert_int_equal(strlen(both), strlen(one) + strlen(rows));
    assert_memory_equal(both, one, strlen(one));
    assert_string_equal(both + strlen(one), rows);
    fraglab_free(both);
    fraglab_free(one);
    /* As ranks of one job, which request the same. */
    char *ranks = table_of("ranks", SMALL_SAMPLE, recording);
    assert_non_null(strstr(ranks, "\nlevel,1,0-1,"));
    assert_null(strstr(ranks, "\nlevel,2,"));
    fraglab_free(ranks);
    fraglab_recording_close(recording);
}

static void recordings_are_refused_where_rows_or_one_trace_are_drawn(void **state)
{
    (void)state;
    static const char *const paths[] = {SMALL_SAMPLE};
    static const struct {
        const char *kind;
        size_t path_count;
        size_t recording_count;
        const char *where;
        const char *part;
    } wrong[] = {
        {"heat", 0, 1, "recordings", "drawn from rows"},
        {"timeline", 1, 1, "recordings", "2 recordings were given"},
        {"timeline", 0, 2, "recordings", "takes one"},
        {"bars", 0, 0, "paths", "0 paths were given"},
    };
    fraglab_recording *recording = NULL;
    assert_int_equal(fraglab_open_path(NULL, SMALL_SAMPLE, NULL, &recording, NULL), FRAGLAB_OK);
    const fraglab_recording *const twice[] = {recording, recording};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const fraglab_figure_options options = {.size = sizeof options,
                                                .recordings = twice,
                                                .recording_count = wrong[i].recording_count};
        char *csv = NULL;
        fraglab_error error = FRAGLAB_ERROR_INIT;
        assert_int_equal(fraglab_figure_csv(NULL, wrong[i].kind, paths, wrong[i].path_count, NULL,
                                            &options, &csv, &error),
                         FRAGLAB_E_USAGE);
        assert_string_equal(error.where, wrong[i].where);
        if (strstr(error.sentence, wrong[i].part) == NULL)
            fail_msg("%s: expected %s", error.sentence, wrong[i].part);
    }
    fraglab_recording_close(recording);
}

/* ---- drawings */

/* A program of that name that does so, as the only thing in PATH, and where drawings are made. */
typedef struct stand_in {
    char folder[64];
    char program[80];
} stand_in;

static const char *drawing_environment(void *user, const char *name)
{
    const stand_in *gnuplot = user;
    return strcmp(name, "PATH") == 0 || strcmp(name, "TMPDIR") == 0 ? gnuplot->folder : NULL;
}

static void make_stand_in(stand_in *gnuplot, const char *script)
{
    strcpy(gnuplot->folder, "/tmp/fraglab-test-drawing-XXXXXX");
    assert_non_null(mkdtemp(gnuplot->folder));
    snprintf(gnuplot->program, sizeof gnuplot->program, "%s/gnuplot", gnuplot->folder);
    if (script == NULL)
        return;
    FILE *file = fopen(gnuplot->program, "w");
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(gnuplot->program, 0700), 0);
}

/* Nothing else is left in the folder. */
static void remove_stand_in(const stand_in *gnuplot)
{
    unlink(gnuplot->program);
    assert_int_equal(rmdir(gnuplot->folder), 0);
}

static int draw(const fraglab_context *context, const char *kind,
                const fraglab_drawing_options *options, fraglab_error *error)
{
    static const char *const paths[] = {SMALL_SAMPLE};
    void *bytes = NULL;
    size_t count = 0;
    int code = fraglab_figure_draw_memory(context, kind, paths, 1, NULL, NULL, options, &bytes,
                                          &count, error);
    assert_int_equal(bytes != NULL, code == FRAGLAB_OK);
    assert_int_equal(count > 0, code == FRAGLAB_OK);
    fraglab_free(bytes);
    return code;
}

/* The map has a picture beside its data. */
static int call_drawing(void *argument)
{
    (void)argument;
    stand_in gnuplot;
    fraglab_context *context = NULL;
    make_stand_in(&gnuplot, "echo drawn");
    fraglab_context_options options = {
        .size = sizeof options, .user = &gnuplot, .environment = drawing_environment};
    int code = fraglab_context_create(&options, &context, NULL);
    if (code == FRAGLAB_OK)
        code = draw(context, "timeline", NULL, NULL);
    if (code == FRAGLAB_OK)
        code = draw(context, "map", NULL, NULL);
    fraglab_context_destroy(context);
    remove_stand_in(&gnuplot);
    return code;
}

static void refuses_what_cannot_be_drawn(void **state)
{
    (void)state;
    static const char *const paths[] = {SMALL_SAMPLE};
    static const struct {
        const char *script; /* of gnuplot; NULL: there is none */
        const char *kind;
        fraglab_drawing_options options;
        int code;
        const char *part;
    } wrong[] = {
        {NULL, "timeline", {.format = "svg"}, FRAGLAB_E_SYSTEM, "gnuplot is not installed"},
        {"echo 'line 3: no' >&2; exit 1", "timeline", {0}, FRAGLAB_E_SYSTEM, "failed: line 3: no"},
        {"exit 0", "timeline", {0}, FRAGLAB_E_SYSTEM, "gnuplot failed: it said nothing"},
        {"echo it", "timeline", {.format = "csv"}, FRAGLAB_E_USAGE, "expected svg, png, pdf"},
        {"echo it", "timeline", {.format = "jpeg"}, FRAGLAB_E_USAGE, "expected svg, png, pdf"},
        {"echo it", "timeline", {.width = 100001}, FRAGLAB_E_USAGE, "expected 200 to 100000"},
        {"echo it", "timeline", {.height = 99}, FRAGLAB_E_USAGE, "expected 100 to 100000"},
        {"echo it", "pie", {0}, FRAGLAB_E_USAGE, "not a kind of figure"},
        {"echo it", "timeline", {.size = 1}, FRAGLAB_E_USAGE, "size"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stand_in gnuplot;
        fraglab_context *context = NULL;
        fraglab_error error = FRAGLAB_ERROR_INIT;
        fraglab_drawing_options options = wrong[i].options;
        make_stand_in(&gnuplot, wrong[i].script);
        fraglab_context_options given = {
            .size = sizeof given, .user = &gnuplot, .environment = drawing_environment};
        assert_int_equal(fraglab_context_create(&given, &context, NULL), FRAGLAB_OK);
        options.size = options.size != 0 ? options.size : sizeof options;
        assert_int_equal(draw(context, wrong[i].kind, &options, &error), wrong[i].code);
        if (strstr(error.sentence, wrong[i].part) == NULL)
            fail_msg("%s: expected %s", error.sentence, wrong[i].part);
        assert_int_equal(fraglab_figure_draw(context, "timeline", paths, 1, NULL, NULL, NULL,
                                             "/tmp/a.folder/figure", &error),
                         FRAGLAB_E_USAGE);
        assert_string_equal(error.where, "format");
        fraglab_context_destroy(context);
        remove_stand_in(&gnuplot);
    }
}

/* From when gnuplot has begun. */
static int has_begun(void *user)
{
    const stand_in *gnuplot = user;
    char path[96];
    snprintf(path, sizeof path, "%s/begun", gnuplot->folder);
    return access(path, F_OK) == 0;
}

static void a_cancelled_drawing_ends_gnuplot(void **state)
{
    (void)state;
    stand_in gnuplot;
    char begun[96];
    fraglab_context *context = NULL;
    make_stand_in(&gnuplot, ": >\"${0%/*}/begun\"; exec /bin/sleep 1000");
    fraglab_context_options given = {.size = sizeof given,
                                     .user = &gnuplot,
                                     .is_cancelled = has_begun,
                                     .environment = drawing_environment};
    assert_int_equal(fraglab_context_create(&given, &context, NULL), FRAGLAB_OK);
    assert_int_equal(draw(context, "timeline", NULL, NULL), FRAGLAB_E_CANCELLED);
    fraglab_context_destroy(context);
    snprintf(begun, sizeof begun, "%s/begun", gnuplot.folder);
    assert_int_equal(unlink(begun), 0);
    remove_stand_in(&gnuplot);
}

/* ---- every call */

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    frag_expect_memory_may_fail("figure", call_figure, NULL);
    frag_expect_memory_may_fail("drawing", call_drawing, NULL);
}

static void *draw_on_thread(void *argument)
{
    int *code = argument;
    *code = call_drawing(NULL);
    return NULL;
}

static void threads_draw_side_by_side(void **state)
{
    (void)state;
    pthread_t threads[4];
    int codes[4] = {-1, -1, -1, -1};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_on_thread, &codes[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(codes[i], FRAGLAB_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_no_figure),
        cmocka_unit_test(an_open_recording_gives_the_figures_of_its_file),
        cmocka_unit_test(recordings_are_refused_where_rows_or_one_trace_are_drawn),
        cmocka_unit_test(refuses_what_cannot_be_drawn),
        cmocka_unit_test(a_cancelled_drawing_ends_gnuplot),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
        cmocka_unit_test(threads_draw_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
