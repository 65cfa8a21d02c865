/* What the viewer's page calls of fraglab: the library's calls, with texts in and bytes out.
 *
 * Every function returns a code of fraglab.h, and stores its answer, or the sentence of the error,
 * where viewer_answer and viewer_answer_bytes find it until the next call. Texts are UTF-8 with a
 * zero at their end, in memory of viewer_alloc. One recording is open at a time; it is read from
 * descriptor 0, so that the host decides what the file is. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "include/fraglab.h"

#define EXPORT(name) __attribute__((export_name(#name), used))
#define POLICIES_MAX 32

/* The host: progress of a call, total 0 where it is not known; doubles, which a page can count
 * with. */
__attribute__((import_module("fraglab"), import_name("progress"))) extern void
host_progress(const char *what, double done, double total);
__attribute__((import_module("fraglab"), import_name("warn"))) extern void
host_warn(const char *sentence);

static char *owned; /* of the library, or NULL */
static char sentence[1200];
static const char *answer = sentence;
static size_t answer_bytes;
static fraglab_context *context;
static fraglab_recording *recording;

static void give(char *text, size_t bytes)
{
    fraglab_free(owned);
    owned = text;
    answer = text;
    answer_bytes = bytes;
}

/* Where there is no memory left, too. */
static void give_copy(const char *text)
{
    give(NULL, 0);
    snprintf(sentence, sizeof sentence, "%s", text);
    answer = sentence;
    answer_bytes = strlen(sentence);
}

/* Where memory ends the system's advice is of no use in a page. */
static int give_error(int code, const fraglab_error *error)
{
    char text[1024];
    bool is_memory = code == FRAGLAB_E_MEMORY || strstr(error->sentence, "address space") != NULL;
    if (is_memory)
        give_copy("the memory that a page can have (4 GB) is not enough for this recording; run "
                  "fraglab itself on it, or cut it with 'fraglab trace cut' and open the part");
    else
        give_copy(fraglab_error_text(error, text, sizeof text));
    return code;
}

/* What a function made, or why it made nothing. */
static int give_made(int code, void *made, size_t bytes, const fraglab_error *error)
{
    if (code != FRAGLAB_OK)
        return give_error(code, error);
    give(made, bytes);
    return FRAGLAB_OK;
}

static int give_text(int code, char *text, const fraglab_error *error)
{
    return give_made(code, text, text != NULL ? strlen(text) : 0, error);
}

static int refuse(const char *sentence)
{
    give_copy(sentence);
    return FRAGLAB_E_USAGE;
}

static void report_progress(void *user, const char *what, const char *unit, uint64_t done,
                            uint64_t total)
{
    (void)user, (void)unit;
    host_progress(what, (double)done, (double)total);
}

static void report_warning(void *user, const char *sentence)
{
    (void)user;
    host_warn(sentence);
}

static const char *no_environment(void *user, const char *name)
{
    (void)user, (void)name;
    return NULL;
}

static int make_context(fraglab_error *error)
{
    const fraglab_context_options options = {.size = sizeof options,
                                             .progress = report_progress,
                                             .warn = report_warning,
                                             .environment = no_environment};
    return context != NULL ? FRAGLAB_OK : fraglab_context_create(&options, &context, error);
}

/* ---- memory that the page writes texts into, and the answer */

EXPORT(viewer_alloc) void *viewer_alloc(size_t bytes)
{
    return malloc(bytes);
}

EXPORT(viewer_free) void viewer_free(void *memory)
{
    free(memory);
}

EXPORT(viewer_answer) const char *viewer_answer(void)
{
    return answer;
}

EXPORT(viewer_answer_bytes) size_t viewer_answer_bytes(void)
{
    return answer_bytes;
}

/* ---- the recording */

/* Reads descriptor 0 to its end; the name is for people and rows. Answer: what
 * fraglab_recording_json says of it. */
EXPORT(viewer_open) int viewer_open(const char *name)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    const fraglab_open_options options = {.size = sizeof options, .name = name, .with_sites = 1};
    fraglab_recording_close(recording);
    recording = NULL;
    int code = make_context(&error);
    if (code == FRAGLAB_OK)
        code = fraglab_open_descriptor(context, 0, &options, &recording, &error);
    if (code == FRAGLAB_OK)
        code = fraglab_recording_json(recording, &json, &error);
    return give_text(code, json, &error);
}

/* The recording in the project's own format, to be kept beside the original: a smaller file that
 * opens faster. */
EXPORT(viewer_convert) int viewer_convert(void)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    void *bytes = NULL;
    size_t count = 0;
    if (recording == NULL)
        return refuse("no recording is open");
    int code = fraglab_recording_write_memory(recording, "fgt", &bytes, &count, &error);
    return give_made(code, bytes, count, &error);
}

/* ---- sizes, cards and policies as they are written on the command line */

/* "": 0, which is unlimited. */
static int read_capacity(const char *text, uint64_t *bytes)
{
    frag_error problem = {0};
    *bytes = 0;
    if (text[0] == '\0' || frag_bytes_parse(text, bytes, &problem))
        return FRAGLAB_OK;
    give_copy(problem.sentence);
    return FRAGLAB_E_USAGE;
}

/* "24GiB" is a size; what is none, or has no unit, is a card: "rtx4090", "4090". */
static void read_device(const char *text, fraglab_run_options *options)
{
    frag_error none = {0};
    size_t length = strlen(text);
    bool is_size = length > 0 && text[length - 1] == 'B' &&
                   frag_bytes_parse(text, &options->capacity_bytes, &none);
    if (length > 0 && !is_size)
        options->gpu = text;
}

typedef struct policy_list {
    fraglab_policy *items[POLICIES_MAX];
    size_t count;
} policy_list;

static void destroy_policies(policy_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        fraglab_policy_destroy(list->items[i]);
    list->count = 0;
}

/* One a line; empty lines are skipped. */
static int read_policies(const char *lines, policy_list *list)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    int code = FRAGLAB_OK;
    char *copy = malloc(strlen(lines) + 1);
    char *rest = NULL;
    if (copy == NULL)
        return refuse("out of host memory");
    strcpy(copy, lines);
    for (char *line = strtok_r(copy, "\r\n", &rest); line != NULL && code == FRAGLAB_OK;
         line = strtok_r(NULL, "\r\n", &rest)) {
        line += strspn(line, " \t");
        for (size_t end = strlen(line); end > 0 && strchr(" \t", line[end - 1]) != NULL; end--)
            line[end - 1] = '\0';
        if (line[0] == '\0')
            continue;
        if (list->count == POLICIES_MAX) {
            code = refuse("more than 32 policies; give fewer");
            break;
        }
        code = fraglab_policy_parse(line, &list->items[list->count], &error);
        if (code == FRAGLAB_OK)
            list->count++;
        else
            give_error(code, &error);
    }
    free(copy);
    if (code != FRAGLAB_OK)
        destroy_policies(list);
    return code;
}

/* Names of all policies with their options, as JSON. */
EXPORT(viewer_policies) int viewer_policies(void)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    int code = fraglab_policies_json(NULL, &json, &error);
    return give_text(code, json, &error);
}

/* The bundled cards as JSON lines. */
EXPORT(viewer_cards) int viewer_cards(void)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    int code = fraglab_cards_json(&json, &error);
    return give_text(code, json, &error);
}

/* ---- answers */

/* Writes what is known of a trace under a policy. */
typedef int answer_one(FILE *lines, size_t trace, const fraglab_policy *policy,
                       const fraglab_run_options *options);

static int for_each_run(answer_one *one, const char *policies, const char *device,
                        fraglab_run_options *options)
{
    policy_list list = {.count = 0};
    char *text = NULL;
    size_t bytes = 0;
    if (recording == NULL)
        return refuse("no recording is open");
    read_device(device, options);
    int code = read_policies(policies, &list);
    if (code != FRAGLAB_OK)
        return code;
    FILE *lines = open_memstream(&text, &bytes);
    for (size_t trace = 0; trace < fraglab_recording_trace_count(recording); trace++)
        for (size_t i = 0; i < list.count && code == FRAGLAB_OK; i++)
            code = one(lines, trace, list.items[i], options);
    destroy_policies(&list);
    fclose(lines);
    if (code == FRAGLAB_OK)
        give(text, bytes);
    else
        free(text);
    return code;
}

static int run_one(FILE *lines, size_t trace, const fraglab_policy *policy,
                   const fraglab_run_options *options)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_result *result = NULL;
    int code = fraglab_run(context, recording, trace, policy, options, &result, &error);
    if (code != FRAGLAB_OK)
        return give_error(code, &error);
    fputs(fraglab_result_json(result), lines);
    fraglab_result_destroy(result);
    return FRAGLAB_OK;
}

/* Rows as `fraglab run --format jsonl` prints them: every trace, and for each every policy. */
EXPORT(viewer_run)
int viewer_run(const char *policies, const char *device, int with_bounds, int skip_oom)
{
    fraglab_run_options options = {
        .size = sizeof options, .with_bounds = with_bounds, .skip_oom = skip_oom};
    return for_each_run(run_one, policies, device, &options);
}

static int find_least(FILE *lines, size_t trace, const fraglab_policy *policy,
                      const fraglab_run_options *options)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_capacity least = {.size = sizeof least};
    int code = fraglab_min_capacity(context, recording, trace, policy, options, &least, &error);
    if (code != FRAGLAB_OK)
        return give_error(code, &error);
    fprintf(lines, "{\"trace\":%zu,\"capacity_bytes\":", trace);
    if (least.capacity_bytes != FRAGLAB_UNLIMITED)
        fprintf(lines, "%" PRIu64 "}\n", least.capacity_bytes);
    else
        fputs("null}\n", lines);
    return FRAGLAB_OK;
}

/* The least capacity that survives, as `fraglab min-capacity`: a JSON line for each trace and
 * policy, null where none does. */
EXPORT(viewer_least) int viewer_least(const char *policies)
{
    fraglab_run_options options = {.size = sizeof options};
    return for_each_run(find_least, policies, "", &options);
}

/* What is kept step after step, and in which step the device is full: the JSON object of
 * `fraglab leaks --format json` for the trace that requests most. */
EXPORT(viewer_leaks) int viewer_leaks(const char *device)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_run_options options = {.size = sizeof options};
    char *json = NULL;
    if (recording == NULL)
        return refuse("no recording is open");
    read_device(device, &options);
    int code = fraglab_leaks(context, recording, fraglab_recording_main_trace(recording), &options,
                             NULL, &json, &error);
    return give_text(code, json, &error);
}

/* What `fraglab explain` says: text for a person, or JSON lines. */
EXPORT(viewer_explain) int viewer_explain(const char *capacity, int as_text)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_explain_options options = {.size = sizeof options, .as_text = as_text};
    char *text = NULL;
    if (recording == NULL)
        return refuse("no recording is open");
    int code = read_capacity(capacity, &options.capacity_bytes);
    if (code != FRAGLAB_OK)
        return code;
    code = fraglab_explain_recording(context, recording, &options, &text, &error);
    return give_text(code, text, &error);
}

/* The page of `fraglab report`; no policies: those that it takes by itself. */
EXPORT(viewer_report)
int viewer_report(const char *policies, const char *device, int with_bounds, const char *command)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_run_options run_options = {.size = sizeof run_options, .with_bounds = with_bounds};
    policy_list list = {.count = 0};
    const fraglab_recording *shown[] = {recording};
    void *bytes = NULL;
    size_t count = 0;
    if (recording == NULL)
        return refuse("no recording is open");
    read_device(device, &run_options);
    int code = read_policies(policies, &list);
    if (code != FRAGLAB_OK)
        return code;
    const fraglab_report_options options = {.size = sizeof options,
                                            .command = command,
                                            .policies = (const fraglab_policy *const *)list.items,
                                            .policy_count = list.count,
                                            .recordings = shown,
                                            .recording_count = 1};
    code = fraglab_report_write_memory(context, NULL, 0, &run_options, &options, &bytes, &count,
                                       &error);
    destroy_policies(&list);
    return give_made(code, bytes, count, &error);
}

/* "0.1.0 (commit)". */
EXPORT(viewer_version) int viewer_version(void)
{
    char text[200];
    snprintf(text, sizeof text, "%s (%s)", fraglab_version(), fraglab_commit());
    give_copy(text);
    return FRAGLAB_OK;
}
