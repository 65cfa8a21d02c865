/* Calls functions of the installed library with each allocation of the process refused in turn,
 * those of the libraries below it too: every call ends with the code for it and gives all memory
 * back. Prints what did not; glibc alone (its malloc has other names to be reached by). */
#define _GNU_SOURCE 1
#include <fraglab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t item_bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

static long calls_left; /* until one fails; 0: none does */
static long live_count;

static int fails(void)
{
    return calls_left > 0 && calls_left-- == 1;
}

static void *count(void *memory)
{
    live_count += memory != NULL;
    return memory;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : count(__libc_malloc(bytes));
}

void *calloc(size_t items, size_t item_bytes)
{
    return fails() ? NULL : count(__libc_calloc(items, item_bytes));
}

void *realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    void *moved = __libc_realloc(memory, bytes);
    return memory == NULL ? count(moved) : moved;
}

void free(void *memory)
{
    live_count -= memory != NULL;
    __libc_free(memory);
}

static fraglab_recording *recording;
static fraglab_policy *policy;

static int call_open(const char *path)
{
    fraglab_recording *opened = NULL;
    fraglab_open_options options = {.size = sizeof options, .with_sites = 1};
    int code = fraglab_open_path(NULL, path, &options, &opened, NULL);
    fraglab_recording_close(opened);
    return code;
}

static int call_json(const char *unused)
{
    char *json = NULL;
    (void)unused;
    int code = fraglab_recording_json(recording, &json, NULL);
    fraglab_free(json);
    return code;
}

static int call_write(const char *unused)
{
    void *bytes = NULL;
    size_t length = 0;
    (void)unused;
    int code = fraglab_recording_write_memory(recording, "fgt", &bytes, &length, NULL);
    fraglab_free(bytes);
    return code;
}

static int call_run(const char *card)
{
    fraglab_result *result = NULL;
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    options.gpu = card;
    options.with_bounds = 1;
    int code = fraglab_run(NULL, recording, 0, policy, &options, &result, NULL);
    fraglab_result_destroy(result);
    return code;
}

static int call_policies(const char *name)
{
    char *json = NULL;
    int code = fraglab_policies_json(name, &json, NULL);
    fraglab_free(json);
    return code;
}

static int call_explain(const char *message)
{
    char *json = NULL;
    int code = fraglab_explain_text(message, strlen(message), &json, NULL);
    fraglab_free(json);
    return code;
}

static int call_explain_recording(const char *unused)
{
    char *json = NULL;
    fraglab_explain_options options = {.size = sizeof options, .capacity_bytes = 24u << 20};
    (void)unused;
    int code = fraglab_explain_recording(NULL, recording, &options, &json, NULL);
    fraglab_free(json);
    return code;
}

/* Of a row with itself: what is read without a character, since memory failed, is a finding. */
static int call_compare(const char *rows)
{
    fraglab_comparison *comparison = NULL;
    int code =
        fraglab_compare_memory(rows, strlen(rows), rows, strlen(rows), NULL, &comparison, NULL);
    if (code == FRAGLAB_OK && fraglab_comparison_has_finding(comparison))
        code = -1;
    fraglab_comparison_destroy(comparison);
    return code;
}

static int call_tune(const char *unused)
{
    fraglab_tuned *tuned = NULL;
    const fraglab_recording *const recordings[] = {recording};
    fraglab_tune_options options = {.size = sizeof options, .settings = 2, .with_bounds = 1};
    (void)unused;
    int code = fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, NULL);
    fraglab_tuned_destroy(tuned);
    return code;
}

static int call_sweep(const char *experiment)
{
    char *rows = NULL;
    int code = fraglab_sweep_memory(NULL, experiment, strlen(experiment), NULL, &rows, NULL, NULL);
    fraglab_free(rows);
    return code;
}

/* What the file holds from the call before is read. */
static int call_sweep_on(const char *path)
{
    static const char experiment[] = "{traces: [tests/data/snapshots/empty-with-gc.pickle], "
                                     "policies: [buddy, {policy: best-fit}]}";
    fraglab_sweep_options options = {.size = sizeof options, .output = path};
    return fraglab_sweep_memory(NULL, experiment, strlen(experiment), &options, NULL, NULL, NULL);
}

static int try_all(int call(const char *), const char *argument)
{
    int problems = 0;
    int code = call(argument);
    code = code == FRAGLAB_OK ? call(argument) : code; /* what is made once is there */
    long before = live_count;
    for (long n = 1; code == FRAGLAB_OK; n += 1 + n / 50) {
        calls_left = n;
        code = call(argument);
        int has_failed = calls_left == 0;
        calls_left = 0;
        if ((code != FRAGLAB_OK && code != FRAGLAB_E_MEMORY) || live_count != before) {
            printf("%s: code %d, %ld pieces left, when allocation %ld failed\n", argument, code,
                   live_count - before, n);
            problems++;
            before = live_count;
        }
        code = FRAGLAB_OK;
        if (!has_failed)
            break;
    }
    if (code != FRAGLAB_OK)
        printf("%s: code %d with all memory there\n", argument, code);
    return problems + (code != FRAGLAB_OK);
}

int main(void)
{
    static const char *const paths[] = {
        "tests/data/snapshots/empty-with-gc.pickle", "tests/data/exchange/snapshot.json.gz",
        "tests/data/exchange/nsys.sqlite", "tests/data/exchange/kineto.json",
        "traces/samples/truncated.pickle.zst"};
    int problems = 0;
    if (fraglab_open_path(NULL, paths[0], NULL, &recording, NULL) != FRAGLAB_OK ||
        fraglab_policy_parse("pytorch", &policy, NULL) != FRAGLAB_OK)
        return 2;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        problems += try_all(call_open, paths[i]);
    problems +=
        try_all(call_json, "json") + try_all(call_write, "write") + try_all(call_run, "l4") +
        try_all(call_policies, "pytorch") +
        try_all(call_explain, "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 "
                              "GiB total capacity; 20.00 GiB already allocated)");
    fraglab_result *result = NULL;
    if (fraglab_run(NULL, recording, 0, policy, NULL, &result, NULL) != FRAGLAB_OK)
        return 2;
    problems += try_all(call_compare, fraglab_result_json(result)) +
                try_all(call_explain_recording, "explain a recording") +
                try_all(call_tune, "tune") +
                try_all(call_sweep, "{traces: [tests/data/snapshots/empty-with-gc.pickle], "
                                    "policies: [pytorch, {policy: buddy}], "
                                    "capacities: [1MiB, unlimited], bounds: true}");
    char path[] = "/tmp/fraglab-sweep-XXXXXX";
    close(mkstemp(path));
    problems += try_all(call_sweep_on, path);
    unlink(path);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    return problems > 0;
}
