/* Tests of sweep_ranks.c, and of what a sweep concludes from other runs: ranks that are threads of
 * this process and send each other what others would send through MPI. */
#include "studies/sweep/sweep_ranks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"

enum { RANKS = 3, FILES = 2, WINDOW = 8 };

#define FOLDER "/tmp/fraglab-sweep-XXXXXX"

static char folder[sizeof FOLDER + 1]; /* with a slash behind it */

/* ---- messages between threads */

typedef struct letter {
    uint32_t from;
    uint32_t to;
    size_t count;
    char *bytes;
    struct letter *next;
} letter;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static letter *letters;             /* the oldest first */
static uint32_t sent[RANKS][RANKS]; /* from, to */
static _Thread_local uint32_t self;
static _Thread_local bool is_leader; /* the thread that rank 0 speaks from */

static void post(uint32_t to, const void *bytes, size_t count)
{
    letter *one = frag_alloc(1, sizeof *one);
    *one = (letter){.from = self, .to = to, .count = count, .bytes = frag_alloc(count, 1)};
    memcpy(one->bytes, bytes, count);
    pthread_mutex_lock(&lock);
    letter **end = &letters;
    while (*end != NULL)
        end = &(*end)->next;
    *end = one;
    sent[self][to]++;
    pthread_mutex_unlock(&lock);
}

static bool poll_letters(uint32_t *from, size_t *count)
{
    pthread_mutex_lock(&lock);
    const letter *one = letters;
    while (one != NULL && one->to != self)
        one = one->next;
    if (one != NULL) {
        *from = one->from;
        *count = one->count;
    }
    pthread_mutex_unlock(&lock);
    return one != NULL;
}

static void receive(uint32_t from, void *bytes, size_t count)
{
    pthread_mutex_lock(&lock);
    letter **at = &letters;
    while ((*at)->from != from || (*at)->to != self)
        at = &(*at)->next;
    letter *one = *at;
    *at = one->next;
    pthread_mutex_unlock(&lock);
    assert_int_equal(one->count, count);
    memcpy(bytes, one->bytes, count);
    frag_free(one->bytes);
    frag_free(one);
}

static const frag_rank_module module = {
    .abi = FRAG_RANK_MODULE_ABI, .send = post, .poll = poll_letters, .receive = receive};

static frag_ranks ranks_of(uint32_t rank)
{
    frag_ranks ranks = {.module = &module, .facts = {.rank = rank, .count = RANKS}};
    snprintf(ranks.facts.host, sizeof ranks.facts.host, "host%u", rank);
    return ranks;
}

/* ---- sweeps */

static void put_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_files(void **state)
{
    (void)state;
    strcpy(folder, FOLDER);
    if (mkdtemp(folder) == NULL)
        return -1;
    strcat(folder, "/");
    put_file("a", "# fraglab trace 2\nalloc 0 3000000\nalloc 1 30000000\nfree 1\n"
                  "alloc 2 25000000\nalloc 3 700\nfree 2\nalloc 4 23000000\nalloc 5 90000000\n"
                  "free 0\n");
    put_file("b", "# fraglab trace 2\nalloc 0 1300\ndevice 1\nalloc 0 1300\nalloc 1 70000000\n"
                  "free 1\nalloc 2 60000000\nalloc 3 12000000\nfree 2\nalloc 4 50000000\n");
    memset(sent, 0, sizeof sent);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    char path[512];
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s%c", folder, (char)('a' + i));
        unlink(path);
    }
    return rmdir(folder);
}

/* Two policies ask for the settings first, so that rank 0, which works on one unit at a time and
 * waits there, leaves a unit of the first file to each other rank. */
static const char experiment[] = "traces: [a, b]\n"
                                 "policies:\n"
                                 "  - pytorch:env\n"
                                 "  - policy: pytorch:env\n"
                                 "    label: again\n"
                                 "  - policy: pytorch\n"
                                 "    options:\n"
                                 "      max_split_size_mb: [unlimited, 24, 26, 40, 200]\n"
                                 "      roundup_power2_divisions: [1, 8]\n"
                                 "  - best-fit\n"
                                 "  - policy: size-class\n"
                                 "  - policy: best-fit:align=256\n"
                                 "    label: other\n"
                                 "capacities: [unlimited, 60MiB, 120MiB, 150MiB, 4GiB]\n"
                                 "bounds: true\n";

static void open_job(const char *text, const frag_context *context, frag_sweep_job *job)
{
    frag_error error = {0};
    *job = (frag_sweep_job){.context = context};
    if (!frag_sweep_job_parse(text, strlen(text), folder, job, &error))
        fail_msg("%s", error.sentence);
}

static const char *settings(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "PYTORCH_CUDA_ALLOC_CONF") == 0 ? "max_split_size_mb:40" : NULL;
}

/* Of rank 0: a unit that asks for the settings waits until the others have done one. */
static const char *settings_after_others(void *user, const char *name)
{
    bool has_waited = is_leader;
    while (!has_waited) {
        pthread_mutex_lock(&lock);
        has_waited = sent[1][0] > 1 && sent[2][0] > 1;
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return settings(user, name);
}

static bool keep_rows(void *user, const char *rows, size_t length, frag_error *error)
{
    (void)error;
    frag_text_add_bytes(user, rows, length);
    return true;
}

/* What other ranks do. */
typedef struct follower {
    uint32_t rank;
    uint32_t threads;
    const char *experiment;
    const frag_error *problem;
    bool has_loaded; /* what the first file held before rank 0 began */
    pthread_barrier_t *start;
} follower;

static void *follow(void *context)
{
    const follower *of = context;
    const frag_ranks ranks = ranks_of(of->rank);
    const frag_context own = {.threads = of->threads, .environment = settings};
    frag_sweep_job job;
    frag_error error = {0};
    self = of->rank;
    open_job(of->experiment, &own, &job);
    if (of->has_loaded)
        assert_non_null(frag_sweep_hold(&job, 0, &error));
    pthread_barrier_wait(of->start);
    frag_sweep_follow(&ranks, &job, of->problem);
    assert_ptr_equal(job.context, &own);
    if (of->has_loaded)
        frag_sweep_let_go(&job, 0);
    for (uint32_t i = 0; i < job.experiment.trace_count; i++)
        assert_false(job.recordings[i].is_loaded);
    frag_sweep_job_close(&job);
    return NULL;
}

typedef struct outcome {
    bool ok;
    frag_text rows;
    frag_sweep_totals totals;
    frag_error error;
} outcome;

static void run_order(frag_sweep_job *job, frag_sweep_crew *crew, outcome *found)
{
    frag_error refused = {0};
    frag_sweep_file file = {.put = keep_rows, .user = &found->rows, .has_layout = true};
    frag_sweep_order *order = frag_sweep_order_create(job, &file, WINDOW);
    if (crew == NULL)
        frag_sweep_work_alone(job, order);
    else
        assert_true(frag_sweep_crew_work(crew, job, order, &refused));
    found->ok = frag_sweep_order_finish(order, &found->totals, &found->error);
    for (uint32_t i = 0; i < job->experiment.trace_count; i++)
        assert_false(job->recordings[i].is_loaded);
}

static outcome sweep_alone(uint32_t threads, bool is_all_replayed)
{
    const frag_context context = {.threads = threads, .environment = settings};
    frag_sweep_job job;
    outcome found = {0};
    open_job(experiment, &context, &job);
    job.is_all_replayed = is_all_replayed;
    run_order(&job, NULL, &found);
    frag_sweep_job_close(&job);
    return found;
}

static bool is_over(void *user)
{
    return *(const bool *)user;
}

/* With the others; is_cancelled: from before they come. between: done when they have loaded. */
static outcome sweep_together(follower others[RANKS - 1], bool is_cancelled, void (*between)(void))
{
    const frag_ranks ranks = ranks_of(0);
    const frag_context context = {.threads = 1,
                                  .is_cancelled = is_over,
                                  .environment = settings_after_others,
                                  .user = &is_cancelled};
    pthread_barrier_t start;
    pthread_t threads[RANKS - 1];
    frag_sweep_job job;
    outcome found = {0};
    pthread_barrier_init(&start, NULL, RANKS);
    for (uint32_t i = 0; i + 1 < RANKS; i++) {
        others[i].rank = i + 1;
        others[i].start = &start;
        assert_int_equal(pthread_create(&threads[i], NULL, follow, &others[i]), 0);
    }
    self = 0;
    is_leader = true;
    open_job(experiment, &context, &job);
    pthread_barrier_wait(&start);
    if (between != NULL)
        between();
    frag_sweep_crew *crew = frag_sweep_crew_create(&ranks);
    found.ok = frag_sweep_crew_gather(crew, &job, &found.error);
    if (found.ok && !is_cancelled)
        run_order(&job, crew, &found);
    frag_sweep_crew_dismiss(crew);
    for (uint32_t i = 0; i + 1 < RANKS; i++)
        pthread_join(threads[i], NULL);
    assert_null(letters);
    frag_sweep_job_close(&job);
    pthread_barrier_destroy(&start);
    return found;
}

static void expect_error(outcome *found, const char *text)
{
    char all[1024];
    assert_false(found->ok);
    frag_error_text(&found->error, all, sizeof all);
    assert_string_equal(all, text);
    frag_text_destroy(&found->rows);
}

/* ---- tests */

static void what_is_concluded_has_the_rows_of_a_replay(void **state)
{
    (void)state;
    outcome all = sweep_alone(1, true);
    outcome one = sweep_alone(1, false);
    outcome many = sweep_alone(5, false);
    assert_true(all.ok && one.ok && many.ok);
    assert_string_equal(one.rows.bytes, all.rows.bytes);
    assert_string_equal(many.rows.bytes, all.rows.bytes);
    assert_int_equal(all.totals.rows, 3 * 15 * 5);
    assert_int_equal(all.totals.replayed, 3 * 15 * 5);
    assert_int_equal(one.totals.rows, 3 * 15 * 5);
    assert_int_equal(one.totals.replayed, 71);
    frag_text_destroy(&all.rows);
    frag_text_destroy(&one.rows);
    frag_text_destroy(&many.rows);
}

/* The rows in a file that has the first so many bytes of them; FRAG_UNLIMITED: of all. The sweep's
 * error, if it has one. */
static outcome sweep_on(const frag_text *rows, size_t bytes, const char *text, size_t *found_rows)
{
    const frag_context context = {.threads = 2, .environment = settings};
    char path[512];
    frag_sweep_job job;
    outcome found = {0};
    snprintf(path, sizeof path, "%srows", folder);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fwrite(rows->bytes, 1, bytes, stream);
    fclose(stream);
    frag_sweep_file file = {.has_layout = true, .has_bounds = true};
    open_job(text, &context, &job);
    found.ok = frag_sweep_file_open(path, false, &file, &found.error);
    *found_rows = file.count;
    if (found.ok) {
        frag_sweep_order *order = frag_sweep_order_create(&job, &file, WINDOW);
        frag_sweep_work_alone(&job, order);
        found.ok = frag_sweep_order_finish(order, &found.totals, &found.error);
    }
    frag_sweep_file_close(&file);
    frag_sweep_job_close(&job);
    char *read = frag_alloc(2 * rows->length + 1, 1);
    stream = fopen(path, "r");
    assert_non_null(stream);
    frag_text_add_bytes(&found.rows, read, fread(read, 1, 2 * rows->length, stream));
    fclose(stream);
    frag_free(read);
    unlink(path);
    return found;
}

static void a_sweep_goes_on_behind_its_rows_and_not_behind_others(void **state)
{
    (void)state;
    outcome all = sweep_alone(1, false);
    size_t found_rows = 0;
    char expected[64];
    for (size_t cut = 0; cut <= all.rows.length; cut += cut < 3000 ? 991 : all.rows.length / 7) {
        outcome found = sweep_on(&all.rows, cut, experiment, &found_rows);
        if (!found.ok)
            fail_msg("%s", found.error.sentence);
        assert_string_equal(found.rows.bytes, all.rows.bytes);
        assert_int_equal(found.totals.rows + found_rows, all.totals.rows);
        frag_text_destroy(&found.rows);
    }
    /* The second row is of 60 MiB. */
    frag_text other = {0};
    const char *at = strstr(experiment, "60MiB");
    frag_text_add(&other, "%.*s61%s", (int)(at - experiment), experiment, at + 2);
    outcome found = sweep_on(&all.rows, all.rows.length, other.bytes, &found_rows);
    assert_false(found.ok);
    assert_int_equal(found.error.line, 2);
    snprintf(expected, sizeof expected, "%srows", folder);
    assert_string_equal(found.error.where, expected);
    assert_non_null(strstr(found.error.sentence, "is the row of another experiment"));
    frag_text_destroy(&found.rows);
    frag_text_destroy(&other);
    /* An experiment of the first five rows alone. */
    frag_text_add(&other, "%s%s", "traces: [a]\npolicies: [pytorch:env]\n",
                  strstr(experiment, "capacities"));
    found = sweep_on(&all.rows, all.rows.length, other.bytes, &found_rows);
    assert_false(found.ok);
    assert_int_equal(found.error.line, 6);
    assert_non_null(strstr(found.error.sentence, "is a row that the experiment does not have"));
    assert_string_equal(found.rows.bytes, all.rows.bytes);
    frag_text_destroy(&found.rows);
    frag_text_destroy(&other);
    frag_text_destroy(&all.rows);
}

static void several_ranks_write_the_rows_of_one(void **state)
{
    (void)state;
    outcome one = sweep_alone(1, false);
    follower others[RANKS - 1] = {{.threads = 1, .experiment = experiment},
                                  {.threads = 3, .experiment = experiment}};
    outcome found = sweep_together(others, false, NULL);
    if (!found.ok)
        fail_msg("%s", found.error.sentence);
    assert_string_equal(found.rows.bytes, one.rows.bytes);
    assert_int_equal(found.totals.rows, one.totals.rows);
    for (uint32_t i = 1; i < RANKS; i++) {
        /* Besides its first and last message each answers what it was handed. */
        assert_true(sent[i][0] > 2);
        assert_int_equal(sent[0][i], sent[i][0] - 1);
    }
    frag_text_destroy(&one.rows);
    frag_text_destroy(&found.rows);
}

static void a_rank_with_another_experiment_is_named(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"[a, b]", "[a, c]"}, {"4GiB", "5GiB"}, {"label: other", "label: more"}, {"true", "false"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        frag_text text = {0};
        const char *at = strstr(experiment, changes[i][0]);
        frag_text_add(&text, "%.*s%s%s", (int)(at - experiment), experiment, changes[i][1],
                      at + strlen(changes[i][0]));
        follower others[RANKS - 1] = {{.threads = 1, .experiment = experiment},
                                      {.threads = 1, .experiment = text.bytes}};
        outcome found = sweep_together(others, false, NULL);
        assert_int_equal(found.error.code, FRAG_E_INPUT);
        expect_error(&found, "rank 2 on host2 has another experiment, other paths or another build "
                             "of fraglab; all ranks need the same");
        frag_text_destroy(&text);
    }
}

static void what_keeps_a_rank_away_is_reported(void **state)
{
    (void)state;
    frag_error problem = {0};
    frag_fail(&problem, FRAG_E_SYSTEM, "has no memory");
    follower others[RANKS - 1] = {{.threads = 1, .experiment = experiment, .problem = &problem},
                                  {.threads = 1, .experiment = experiment}};
    outcome found = sweep_together(others, false, NULL);
    assert_int_equal(found.error.code, FRAG_E_SYSTEM);
    expect_error(&found, "rank 1 on host1: has no memory");
}

static void change_file(void)
{
    put_file("a", "# fraglab trace 2\nalloc 0 3000000\n");
}

static void another_recording_ends_the_sweep(void **state)
{
    (void)state;
    char expected[600];
    follower others[RANKS - 1] = {{.threads = 1, .experiment = experiment},
                                  {.threads = 2, .experiment = experiment, .has_loaded = true}};
    outcome found = sweep_together(others, false, change_file);
    assert_int_equal(found.error.code, FRAG_E_INPUT);
    snprintf(expected, sizeof expected,
             "rank 2 on host2: %sa: is not the recording that rank 0 has; all ranks need the same",
             folder);
    expect_error(&found, expected);
}

static void all_go_home_when_it_is_cancelled(void **state)
{
    (void)state;
    follower others[RANKS - 1] = {{.threads = 1, .experiment = experiment},
                                  {.threads = 1, .experiment = experiment}};
    outcome found = sweep_together(others, true, NULL);
    assert_true(found.ok);
    assert_int_equal(sent[0][1], 1);
    assert_int_equal(sent[1][0], 2);
    frag_text_destroy(&found.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_concluded_has_the_rows_of_a_replay, make_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(a_sweep_goes_on_behind_its_rows_and_not_behind_others,
                                        make_files, remove_files),
        cmocka_unit_test_setup_teardown(several_ranks_write_the_rows_of_one, make_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(a_rank_with_another_experiment_is_named, make_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(what_keeps_a_rank_away_is_reported, make_files,
                                        remove_files),
        cmocka_unit_test_setup_teardown(another_recording_ends_the_sweep, make_files, remove_files),
        cmocka_unit_test_setup_teardown(all_go_home_when_it_is_cancelled, make_files, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
