/* Every policy with its options over random traces, for so many events:
 *
 *     policy_fuzzer [--events N] [--seed N] [--check N] [--policy POLICY] [--keep FILE]
 *     policy_fuzzer --trace FILE --policy POLICY [--capacity BYTES] [--page BYTES] [--skip]
 *                   [--fail N] [--refuse N] [--check N]
 *
 * Each trace runs in a process of its own, so that a crash is a failure like any other. What fails
 * is made as small as can be, kept in FILE, and printed with the command that repeats it. The same
 * seed makes the same cases. The second form runs one case, and ends as it ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/policy_engine.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "traces/load.h"

enum {
    CASES_MAX = 128,
    SECONDS_MAX = 20, /* of processor time for one case, after which it hangs */
    TRIES_MAX = 4000, /* to make a failure smaller */
    PLANNED_EVENTS_MAX = 400
};

#define HANGS "takes more than"

/* What a child has come to, in memory that its parent sees. */
typedef struct progress {
    uint64_t events;
    uint64_t refused_count;
    uint32_t case_index; /* being run */
    bool has_ended;
    char problem[POLICY_PROBLEM_BYTES];
} progress;

typedef struct fuzzer {
    const char *program;
    uint64_t seed;
    uint64_t events_max;
    uint64_t check_every;
    const char *policy; /* only this one, with any options; NULL: all */
    const char *keep;
    progress *shared;
    uint64_t events;
    uint64_t run_count;
    uint64_t refused_count;
    uint64_t trace_count;
    uint32_t try_count;
} fuzzer;

typedef struct case_list {
    policy_case cases[CASES_MAX];
    uint32_t count;
} case_list;

static _Noreturn void fail_usage(const char *what, const char *about)
{
    fprintf(stderr, "policy_fuzzer: %s '%s'\n", what, about);
    exit(2);
}

static bool load_text(const char *bytes, size_t length, frag_recording *recording)
{
    frag_load_options options = {.format = FRAG_FORMAT_AUTO, .with_columns = true};
    frag_findings findings = {0};
    frag_error error = {0};
    frag_input *input = frag_input_from_memory(bytes, length, "random");
    *recording = (frag_recording){0};
    bool ok = frag_recording_load_input(input, &options, recording, &findings, &error);
    frag_input_close(input);
    if (!ok)
        fprintf(stderr, "policy_fuzzer: line %llu: %s\n", (unsigned long long)error.line,
                error.sentence);
    return ok;
}

static void load_trace(const random_trace *trace, frag_recording *recording)
{
    frag_text text = {0};
    random_trace_write(trace, &text);
    if (!load_text(text.bytes, text.length, recording))
        exit(2);
    frag_text_destroy(&text);
}

/* ---- children */

static void limit_processor_time(void)
{
    struct itimerval limit = {.it_value = {.tv_sec = SECONDS_MAX}};
    (void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static _Noreturn void run_child(const fuzzer *fuzz, const case_list *list,
                                const frag_recording *recording, bool is_quiet)
{
    progress *shared = fuzz->shared;
    if (is_quiet && freopen("/dev/null", "w", stderr) == NULL)
        _exit(3);
    for (uint32_t i = 0; i < list->count; i++) {
        policy_outcome outcome;
        shared->case_index = i;
        limit_processor_time();
        policy_case_run(&list->cases[i], recording, fuzz->check_every, &outcome);
        shared->events += outcome.events;
        shared->refused_count += outcome.is_refused ? 1 : 0;
        if (outcome.problem[0] != '\0') {
            memcpy(shared->problem, outcome.problem, sizeof shared->problem);
            _exit(1);
        }
    }
    shared->has_ended = true;
    _exit(0);
}

/* false: a case failed; the shared memory tells which and how. */
static bool run_cases(fuzzer *fuzz, const case_list *list, const frag_recording *recording,
                      bool is_quiet)
{
    progress *shared = fuzz->shared;
    *shared = (progress){0};
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(fuzz, list, recording, is_quiet);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail_usage("cannot start a child of", fuzz->program);
    fuzz->events += shared->events;
    fuzz->refused_count += shared->refused_count;
    if (shared->has_ended)
        return true;
    if (shared->problem[0] != '\0')
        return false;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
        snprintf(shared->problem, sizeof shared->problem, HANGS " %d s", SECONDS_MAX);
    else if (WIFSIGNALED(status))
        snprintf(shared->problem, sizeof shared->problem, "crashed: %s",
                 strsignal(WTERMSIG(status)));
    else
        snprintf(shared->problem, sizeof shared->problem, "ended with exit code %d",
                 WEXITSTATUS(status));
    return false;
}

/* ---- smaller failures */

static bool still_fails(fuzzer *fuzz, const random_trace *trace, const policy_case *what)
{
    if (fuzz->try_count++ >= TRIES_MAX)
        return false;
    case_list one = {.cases = {*what}, .count = 1};
    frag_recording recording;
    load_trace(trace, &recording);
    bool fails = !run_cases(fuzz, &one, &recording, true);
    frag_recording_destroy(&recording);
    return fails;
}

/* Takes out pieces, large ones first, as long as the rest fails. */
static void drop_events(fuzzer *fuzz, random_trace *trace, const policy_case *what)
{
    random_trace fewer = {0};
    for (size_t piece = (trace->count + 1) / 2; piece > 0; piece /= 2) {
        for (size_t from = 0; from < trace->count;) {
            size_t left = trace->count - from < piece ? trace->count - from : piece;
            fewer.events =
                frag_grow(fewer.events, &fewer.capacity, trace->count + 1, sizeof *fewer.events);
            memcpy(fewer.events, trace->events, from * sizeof *fewer.events);
            memcpy(fewer.events + from, trace->events + from + left,
                   (trace->count - from - left) * sizeof *fewer.events);
            fewer.count = trace->count - left;
            if (still_fails(fuzz, &fewer, what)) {
                random_trace larger = *trace;
                *trace = fewer;
                fewer = larger;
            } else {
                from += left;
            }
        }
    }
    random_trace_destroy(&fewer);
}

/* Streams and pools that do not matter become the first, sizes become round. */
static void plain_events(fuzzer *fuzz, random_trace *trace, const policy_case *what)
{
    for (size_t i = 0; i < trace->count; i++) {
        random_event *event = &trace->events[i];
        random_event before = *event;
        event->stream = 0;
        if (before.stream != 0 && !still_fails(fuzz, trace, what))
            *event = before;
        before = *event;
        event->pool = 0;
        if (event->op == FRAG_OP_ALLOC && before.pool != 0 && !still_fails(fuzz, trace, what))
            *event = before;
        event->pool = event->op == FRAG_OP_ALLOC ? event->pool : before.pool;
        for (uint64_t unit = FRAG_GIB; event->op == FRAG_OP_ALLOC && unit > 1; unit /= 1024) {
            before = *event;
            event->bytes -= event->bytes > unit ? event->bytes % unit : 0;
            if (event->bytes == before.bytes)
                continue;
            if (still_fails(fuzz, trace, what))
                break;
            *event = before;
        }
    }
}

static void plain_number(fuzzer *fuzz, const random_trace *trace, policy_case *what,
                         uint64_t *number, uint64_t plain)
{
    uint64_t before = *number;
    *number = plain;
    if (before != plain && !still_fails(fuzz, trace, what))
        *number = before;
}

/* What of the case does not matter becomes as usual. */
static void plain_case(fuzzer *fuzz, const random_trace *trace, policy_case *what)
{
    plain_number(fuzz, trace, what, &what->fail_call, 0);
    plain_number(fuzz, trace, what, &what->refuse_every, 0);
    plain_number(fuzz, trace, what, &what->capacity_bytes, FRAG_UNLIMITED);
    plain_number(fuzz, trace, what, &what->page_bytes, FRAG_DEVICE_PAGE_BYTES);
}

static void print_command(const fuzzer *fuzz, const policy_case *what)
{
    frag_text text = {0};
    frag_text_add(&text, "%s --trace ", fuzz->program);
    frag_text_add_word(&text, fuzz->keep);
    frag_text_add(&text, " --policy ");
    frag_text_add_word(&text, what->policy);
    if (what->capacity_bytes != FRAG_UNLIMITED)
        frag_text_add(&text, " --capacity %llu", (unsigned long long)what->capacity_bytes);
    frag_text_add(&text, " --page %llu", (unsigned long long)what->page_bytes);
    if (what->fail_call != 0)
        frag_text_add(&text, " --fail %llu", (unsigned long long)what->fail_call);
    if (what->refuse_every != 0)
        frag_text_add(&text, " --refuse %llu", (unsigned long long)what->refuse_every);
    frag_text_add(&text, "%s --check %llu", what->is_oom_skipped ? " --skip" : "",
                  (unsigned long long)fuzz->check_every);
    printf("again: %s\n", text.bytes);
    frag_text_destroy(&text);
}

static void report(fuzzer *fuzz, random_trace *trace, policy_case what)
{
    printf("seed %llu, trace %llu, --policy '%s': %s\n", (unsigned long long)fuzz->seed,
           (unsigned long long)fuzz->trace_count, what.policy, fuzz->shared->problem);
    /* Where it hangs, each try would take as long. */
    bool hangs = strncmp(fuzz->shared->problem, HANGS, strlen(HANGS)) == 0;
    fuzz->try_count = hangs ? TRIES_MAX : 0;
    fuzz->check_every = hangs ? fuzz->check_every : 1;
    drop_events(fuzz, trace, &what);
    plain_case(fuzz, trace, &what);
    plain_events(fuzz, trace, &what);
    drop_events(fuzz, trace, &what);
    frag_text text = {0};
    random_trace_write(trace, &text);
    FILE *file = fopen(fuzz->keep, "w");
    if (file == NULL || fwrite(text.bytes, 1, text.length, file) != text.length ||
        fclose(file) != 0)
        fail_usage("cannot write", fuzz->keep);
    printf("the smallest trace that was found, %zu events, is in %s:\n%s", trace->count, fuzz->keep,
           text.bytes);
    frag_text_destroy(&text);
    print_command(fuzz, &what);
}

/* ---- all cases */

static bool is_planner(const frag_policy_ops *ops)
{
    return frag_policy_engine_of(ops)->planner != NULL;
}

static void draw_cases(const fuzzer *fuzz, const frag_trace *trace, case_list *list)
{
    uint64_t bits = (fuzz->seed * 1000003 + fuzz->trace_count + 1) * 0x9e3779b97f4a7c15u;
    bits = bits != 0 ? bits : 1;
    list->count = 0;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        bool is_wanted = fuzz->policy == NULL || strcmp(fuzz->policy, ops->name) == 0;
        if (!is_wanted || (is_planner(ops) && trace->event_count > PLANNED_EVENTS_MAX))
            continue;
        FRAG_ASSERT(list->count < CASES_MAX);
        list->cases[list->count++] = policy_case_draw(ops, trace, &bits);
    }
}

static void fuzz_all(fuzzer *fuzz, bool *has_failed)
{
    random_trace trace = {0};
    case_list list;
    *has_failed = false;
    for (; fuzz->events < fuzz->events_max && !*has_failed; fuzz->trace_count++) {
        random_trace_draw(&trace, fuzz->seed * 1000003 + fuzz->trace_count);
        frag_recording recording;
        load_trace(&trace, &recording);
        draw_cases(fuzz, &recording.traces[0], &list);
        fuzz->run_count += list.count;
        *has_failed = !run_cases(fuzz, &list, &recording, true);
        if (*has_failed)
            report(fuzz, &trace, list.cases[fuzz->shared->case_index]);
        for (uint32_t i = 0; i < list.count; i++)
            free(list.cases[i].policy);
        frag_recording_destroy(&recording);
    }
    random_trace_destroy(&trace);
}

/* ---- one case */

static int run_file(const fuzzer *fuzz, const char *path, policy_case *what)
{
    frag_load_options options = {.format = FRAG_FORMAT_AUTO, .with_columns = true};
    frag_recording recording = {0};
    frag_findings findings = {0};
    frag_error error = {0};
    policy_outcome outcome;
    if (fuzz->policy == NULL)
        fail_usage("expected --policy beside", path);
    if (!frag_recording_load(path, &options, &recording, &findings, &error))
        fail_usage(error.sentence, path);
    what->policy = frag_copy_text(fuzz->policy);
    policy_case_run(what, &recording, fuzz->check_every, &outcome);
    printf("%llu events%s%s%s\n", (unsigned long long)outcome.events,
           outcome.is_refused ? ", refused" : "", outcome.problem[0] != '\0' ? ": " : "",
           outcome.problem);
    free(what->policy);
    frag_recording_destroy(&recording);
    return outcome.problem[0] != '\0' ? 1 : 0;
}

/* ---- the command line */

static const char *value_after(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc)
        fail_usage("expected a value after", argv[*at]);
    return argv[++*at];
}

/* Whole numbers, also as 1e8. */
static uint64_t number_after(int argc, char **argv, int *at)
{
    const char *text = value_after(argc, argv, at);
    frag_error error = {0};
    uint64_t bytes = 0;
    double number = 0;
    if (frag_bytes_parse(text, &bytes, &error))
        return bytes;
    error = (frag_error){0};
    if (!frag_ratio_parse(text, 0, 1e15, &number, &error))
        fail_usage("expected a number instead of", text);
    return (uint64_t)number;
}

int main(int argc, char **argv)
{
    fuzzer fuzz = {.program = argv[0],
                   .seed = 1,
                   .events_max = 1000000,
                   .check_every = 16,
                   .keep = "policy_fuzzer.trace"};
    policy_case what = {.capacity_bytes = FRAG_UNLIMITED, .page_bytes = FRAG_DEVICE_PAGE_BYTES};
    const char *path = NULL;
    const struct {
        const char *name;
        uint64_t *number;
        const char **text;
    } options[] = {
        {"--events", &fuzz.events_max, NULL},
        {"--seed", &fuzz.seed, NULL},
        {"--check", &fuzz.check_every, NULL},
        {"--policy", NULL, &fuzz.policy},
        {"--keep", NULL, &fuzz.keep},
        {"--trace", NULL, &path},
        {"--capacity", &what.capacity_bytes, NULL},
        {"--page", &what.page_bytes, NULL},
        {"--fail", &what.fail_call, NULL},
        {"--refuse", &what.refuse_every, NULL},
    };
    enum { OPTION_COUNT = sizeof options / sizeof options[0] };
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < OPTION_COUNT && strcmp(options[at].name, argv[i]) != 0)
            at++;
        if (strcmp(argv[i], "--skip") == 0)
            what.is_oom_skipped = true;
        else if (at == OPTION_COUNT)
            fail_usage("unknown option", argv[i]);
        else if (options[at].text != NULL)
            *options[at].text = value_after(argc, argv, &i);
        else
            *options[at].number = number_after(argc, argv, &i);
    }
    if (fuzz.check_every == 0)
        fail_usage("expected at least 1 after", "--check");
    if (path != NULL)
        return run_file(&fuzz, path, &what);
    fuzz.shared =
        mmap(NULL, sizeof *fuzz.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fuzz.shared == MAP_FAILED)
        fail_usage("no shared memory for", argv[0]);
    bool has_failed = false;
    fuzz_all(&fuzz, &has_failed);
    printf("%llu events in %llu cases over %llu random traces, seed %llu; %llu cases refused\n",
           (unsigned long long)fuzz.events, (unsigned long long)fuzz.run_count,
           (unsigned long long)fuzz.trace_count, (unsigned long long)fuzz.seed,
           (unsigned long long)fuzz.refused_count);
    return has_failed ? 1 : 0;
}
