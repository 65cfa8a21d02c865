/* Tests of job.c and world.c: a folder of recordings is a job, and its ranks side by side. */
#include "studies/ranks/job.h"
#include "studies/ranks/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/folder.h"
#include "base/text.h"
#include "tests/support/text_recording.h"

#define FOLDER "/tmp/fraglab-job-XXXXXX"

static char folder[] = FOLDER;
static const char *const files[] = {"rank2.fgt", "rank0.pickle",  "rank1.pkl",  "rank3.fgt",
                                    "notes.txt", "devices.trace", "rank10.fgt", "rank12.pkl"};
enum { FILES = sizeof files / sizeof *files, STEPS = 6 };

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, FOLDER);
    return mkdtemp(folder) == NULL;
}

static void in_folder(char path[512], const char *name)
{
    snprintf(path, 512, "%s/%s", folder, name);
}

static int remove_folder(void **state)
{
    (void)state;
    char path[512];
    for (size_t i = 0; i < FILES; i++) {
        in_folder(path, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void put(const char *name, const char *text)
{
    char path[512];
    in_folder(path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Weights, and steps that each take a block of so many MiB. */
static void put_rank(const char *name, unsigned mib)
{
    frag_text text = {0};
    frag_text_add(&text, "# fraglab trace 2\nalloc 0 8388608\n");
    for (int step = 1; step <= STEPS; step++)
        frag_text_add(&text, "mark \"step %d\"\nalloc 1 %u\nfree 1\n", step, mib << 20);
    put(name, text.bytes);
    free(text.bytes);
}

static bool measure(const char *const *operands, size_t count, frag_job *job, frag_error *error)
{
    static const frag_device_spec device = {.capacity_bytes = UINT64_MAX};
    frag_job_sources sources = {.operands = operands, .operand_count = count, .threads = 2};
    frag_world_options options = {.device = &device};
    *error = (frag_error){0};
    return frag_job_measure(&sources, &options, job, error);
}

static void measure_well(const char *operand, frag_job *job)
{
    frag_error error;
    if (!measure(&operand, 1, job, &error))
        fail_msg("%s: %s", error.where, error.sentence);
}

/* 12, 12, 28 and 12 MiB. */
static void put_four(void)
{
    put_rank("rank0.pickle", 4);
    put_rank("rank1.pkl", 4);
    put_rank("rank2.fgt", 20);
    put_rank("rank3.fgt", 4);
    put("notes.txt", "no recording\n");
}

static void a_folder_is_a_job_of_what_its_names_call_recordings(void **state)
{
    (void)state;
    put_four();
    char named[512];
    in_folder(named, "");
    const char *const ways[] = {folder, named}; /* without a slash behind it, and with one */
    for (size_t way = 0; way < 2; way++) {
        frag_job job;
        measure_well(ways[way], &job);
        assert_int_equal(job.count, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(job.ranks[i].number, i);
            assert_int_equal(job.ranks[i].requested_bytes, (i == 2 ? 28 : 12) << 20);
            /* Nothing ends the step of the last mark. */
            assert_int_equal(job.ranks[i].step_count, STEPS - 1);
        }
        frag_job_destroy(&job);
    }
}

static void ranks_in_no_stage_are_one_and_an_empty_one_is_none(void **state)
{
    (void)state;
    put_four();
    static const struct {
        const char *lists[2];
        size_t count;
        size_t stages;
        size_t least; /* ranks of the last stage */
        bool is_uneven;
    } cases[] = {
        {{NULL, NULL}, 0, 1, 4, true},
        {{"0-1", NULL}, 1, 2, 2, true},
        {{"0-1,3", "2"}, 2, 2, 1, false},
        {{"0-3", NULL}, 1, 1, 4, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_job job;
        measure_well(folder, &job);
        frag_error error = {0};
        frag_rank_list lists[2];
        for (size_t s = 0; s < cases[i].count; s++)
            assert_true(frag_rank_list_parse(cases[i].lists[s], &lists[s], &error));
        frag_world world;
        assert_true(frag_world_make(job.ranks, job.count, lists, cases[i].count, &world, &error));
        assert_int_equal(world.stage_count, cases[i].stages);
        assert_int_equal(world.stages[world.stage_count - 1].count, cases[i].least);
        assert_int_equal(frag_world_is_uneven(&world, &(frag_threshold){.ratio = 0.5}),
                         cases[i].is_uneven);
        /* 20 MiB in place of 4, where a stage has both. */
        assert_int_equal(world.stages[0].change_count, i == 0 || i == 3 ? 2 : 0);
        assert_int_equal(world.alike[3], 0);
        assert_int_equal(world.alike[2], 2);
        frag_text text = {0};
        frag_world_add_alike(&text, &world, 0);
        assert_string_equal(text.bytes, "0-1,3");
        free(text.bytes);
        frag_world_destroy(&world);
        for (size_t s = 0; s < cases[i].count; s++)
            frag_rank_list_destroy(&lists[s]);
        frag_job_destroy(&job);
    }
}

static void the_devices_of_one_recording_are_ranks_if_they_request_something(void **state)
{
    (void)state;
    put("devices.trace", "# fraglab trace 2\ndevice 0\nalloc 0 1048576\ndevice 1\n"
                         "mark \"idle\"\ndevice 3\nalloc 0 2097152\nalloc 1 512\n");
    char path[512];
    in_folder(path, "devices.trace");
    frag_job job;
    measure_well(path, &job);
    assert_int_equal(job.count, 2);
    assert_int_equal(job.ranks[0].number, 0);
    assert_int_equal(job.ranks[1].number, 3);
    assert_int_equal(job.ranks[1].requested_bytes, 2097152 + 512);
    frag_job_destroy(&job);
}

static void open_recordings_are_numbered_behind_all_files(void **state)
{
    (void)state;
    put_four();
    frag_recording opened;
    frag_test_recording("alloc 0 1000\n", &opened);
    char paths[2][512];
    in_folder(paths[0], "rank0.pickle");
    in_folder(paths[1], "rank3.fgt");
    const char *const operands[] = {paths[0], paths[1]};
    const frag_recording *const open[] = {&opened, &opened};
    frag_device_spec device = {.capacity_bytes = UINT64_MAX};
    frag_job_sources sources = {.operands = operands,
                                .operand_count = 2,
                                .recordings = open,
                                .recording_count = 2,
                                .threads = 1};
    frag_world_options options = {.device = &device};
    frag_job job;
    frag_error error = {0};
    assert_true(frag_job_measure(&sources, &options, &job, &error));
    static const uint32_t numbers[] = {0, 3, 4, 5};
    assert_int_equal(job.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(job.ranks[i].number, numbers[i]);
    frag_job_destroy(&job);
    frag_recording_destroy(&opened);
}

static void expect_refused(const char *const *operands, size_t count, const char *sentence)
{
    frag_job job;
    frag_error error;
    assert_false(measure(operands, count, &job, &error));
    if (strstr(error.sentence, sentence) == NULL)
        fail_msg("expected: %s\nfound: %s", sentence, error.sentence);
    frag_job_destroy(&job);
}

static void what_is_no_job_is_refused(void **state)
{
    (void)state;
    char path[512];
    char other[512];
    put("notes.txt", "no recording\n");
    expect_refused((const char *const[]){folder}, 1, "no recording is in the folder");
    put_rank("rank0.pickle", 4);
    expect_refused((const char *const[]){folder}, 1, "the recording is of one device");
    in_folder(path, "rank0.pickle");
    expect_refused((const char *const[]){path}, 1, "the recording is of one device");
    in_folder(path, "rank9.fgt");
    expect_refused((const char *const[]){path}, 1, "No such file");
    in_folder(other, "rank0.pickle");
    expect_refused((const char *const[]){other, path}, 2, "No such file");
    put("rank1.pkl", "# fraglab trace 2\nmark \"nothing\"\n");
    expect_refused((const char *const[]){folder}, 1, "requests nothing");
    put("rank1.pkl", "# fraglab trace 2\ndevice 0\n");
    expect_refused((const char *const[]){folder}, 1, "requests nothing");
    /* A file is named as people write it, with or without a slash behind the folder. */
    put("rank1.pkl", "# fraglab trace 2\nalloc\n");
    in_folder(path, "rank1.pkl");
    in_folder(other, "");
    const char *const ways[] = {folder, other};
    for (size_t way = 0; way < 2; way++) {
        frag_job job;
        frag_error error;
        assert_false(measure(&ways[way], 1, &job, &error));
        assert_string_equal(error.where, path);
        frag_job_destroy(&job);
    }
}

static void numbers_twice_and_stages_of_no_rank_are_refused(void **state)
{
    (void)state;
    put_four();
    frag_job job;
    measure_well(folder, &job);
    frag_error error = {0};
    frag_rank_list lists[2];
    assert_true(frag_rank_list_parse("2-4", &lists[0], &error));
    frag_world world;
    assert_false(frag_world_make(job.ranks, job.count, lists, 1, &world, &error));
    assert_non_null(strstr(error.sentence, "there is no rank 4"));
    frag_world_destroy(&world);
    frag_rank_list_destroy(&lists[0]);
    assert_true(frag_rank_list_parse("0-1", &lists[0], &error));
    assert_true(frag_rank_list_parse("1-2", &lists[1], &error));
    assert_false(frag_world_make(job.ranks, job.count, lists, 2, &world, &error));
    frag_world_destroy(&world);
    frag_rank_list_destroy(&lists[0]);
    frag_rank_list_destroy(&lists[1]);
    job.ranks[3].number = 0;
    assert_false(frag_world_make(job.ranks, job.count, NULL, 0, &world, &error));
    frag_world_destroy(&world);
    frag_job_destroy(&job);
}

static void recordings_of_a_folder_are_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"rank1.pkl", "rank2.fgt", "rank10.fgt", "rank12.pkl"};
    const size_t written[] = {3, 0, 2, 1};
    size_t count = 0;
    frag_error error = {0};
    for (size_t i = 0; i < 4; i++)
        put(names[written[i]], "");
    char **paths = frag_job_folder(folder, &count, &error);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(strrchr(paths[i], '/') + 1, names[i]);
    frag_folder_names_destroy(paths, count);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_folder_is_a_job_of_what_its_names_call_recordings),
        IN_FOLDER(ranks_in_no_stage_are_one_and_an_empty_one_is_none),
        IN_FOLDER(the_devices_of_one_recording_are_ranks_if_they_request_something),
        IN_FOLDER(open_recordings_are_numbered_behind_all_files),
        IN_FOLDER(recordings_of_a_folder_are_in_the_order_of_their_numbers),
        IN_FOLDER(what_is_no_job_is_refused),
        IN_FOLDER(numbers_twice_and_stages_of_no_rank_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
