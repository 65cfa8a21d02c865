/* libfraglab: what a program's GPU-memory requests do to an allocator, without a GPU.
 *
 *     fraglab_recording *recording = NULL;
 *     fraglab_policy *policy = NULL;
 *     fraglab_result *result = NULL;
 *     fraglab_error error = FRAGLAB_ERROR_INIT;
 *     if (fraglab_open_path(NULL, "run.pickle", NULL, &recording, &error) == FRAGLAB_OK &&
 *         fraglab_policy_parse("pytorch:recorded", &policy, &error) == FRAGLAB_OK &&
 *         fraglab_run(NULL, recording, 0, policy, NULL, &result, &error) == FRAGLAB_OK)
 *         fputs(fraglab_result_json(result), stdout);
 *     else
 *         fprintf(stderr, "%s: %s\n", error.where, error.sentence);
 *
 * docs/library.md starts from nothing; docs/result-format.md lists the fields of a result.
 *
 * Calls. A function that can fail returns FRAGLAB_OK or a code, and fills the error where one is
 * given (NULL: it is not wanted). What it makes is stored through a pointer, which is NULL after a
 * failure. No function prints, exits or aborts because of what a caller or a file does (an output
 * to "-" or "/dev/stdout" is FRAGLAB_E_USAGE), and none keeps anything of a call that failed. Host
 * memory that runs out is FRAGLAB_E_MEMORY. (A broken invariant of the library does abort: that is
 * a bug, please report it. And a NULL where none is allowed here crashes, as everywhere in C.)
 *
 * Ownership. Whoever gets a handle gives it back with the function named beside its type, where
 * NULL is allowed. Handles do not depend on each other: a recording may be closed while its results
 * live. Texts stored through `char **` are the caller's: fraglab_free. Texts returned as
 * `const char *` live as long as the handle they were asked of. What a caller passes in is copied,
 * but for the functions of a context.
 *
 * Threads. Calls on different handles may run at the same time on any threads. Recordings, policies
 * and contexts are never changed by what uses them: several threads may use one at a time. Results
 * and histories too, once made. A builder belongs to one thread at a time. No handle may be given
 * back while another thread uses it.
 *
 * Structures. Those with a `size` as their first member are set to zero, then size to their sizeof
 * (the _INIT macros do): a program that was compiled against an older header keeps working with a
 * newer library, which takes what is not there for zero. Zero is the default of every member.
 *
 * Units. Sizes are bytes, times nanoseconds. Texts are UTF-8; what is not UTF-8 in a recording
 * comes out as U+FFFD or '?'. Events are counted from 0, lines and columns from 1.
 *
 * Locale. Numbers are read and written with a point, whatever locale the program has set.
 *
 * Versions. Within one soname (libfraglab.so.0) functions and members are only added. */
#ifndef FRAG_INCLUDE_FRAGLAB_H
#define FRAG_INCLUDE_FRAGLAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Of this header; fraglab_version tells that of the library. */
#define FRAGLAB_VERSION_MAJOR 0
#define FRAGLAB_VERSION_MINOR 1
#define FRAGLAB_VERSION_PATCH 0

/* No limit, never, or not known, wherever a number can be that. */
#define FRAGLAB_UNLIMITED UINT64_MAX

const char *fraglab_version(void); /* "0.1.0" */
const char *fraglab_commit(void);  /* of the source: "1e0d381", or "unknown" */

/* Gives back a text that was stored through a `char **`, or bytes. NULL is allowed. */
void fraglab_free(void *memory);

/* ---- errors */

enum {
    FRAGLAB_OK = 0,
    FRAGLAB_E_USAGE = 2,    /* what the caller asks for is wrong: an unknown policy, a bad option */
    FRAGLAB_E_INPUT = 3,    /* a file's content is wrong */
    FRAGLAB_E_SYSTEM = 4,   /* the operating system refused */
    FRAGLAB_E_MEMORY = 5,   /* host memory ran out (never: simulated memory, which is a result) */
    FRAGLAB_E_CANCELLED = 6 /* is_cancelled said so */
};

typedef struct fraglab_error {
    size_t size;
    int32_t code;
    int32_t has_offset; /* 1: offset is known */
    uint64_t line;      /* of the file; 0: not known */
    uint64_t column;    /* 0: not known */
    uint64_t offset;    /* byte of the file, after decompression */
    char where[256];    /* file, option or member; "": none */
    char sentence[512]; /* what was found, and what would be right; one line */
} fraglab_error;
#define FRAGLAB_ERROR_INIT                                                                         \
    {                                                                                              \
        sizeof(fraglab_error), 0, 0, 0, 0, 0, {0},                                                 \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Writes "where:line:column: sentence" (what is known of it) into text, which has room for bytes,
 * cut off where it is too long. Returns text. */
char *fraglab_error_text(const fraglab_error *error, char *text, size_t bytes);

/* ---- context: what long calls may use and ask for. NULL: silent, not to be cancelled, with the
 * environment of the process */

typedef struct fraglab_context fraglab_context; /* fraglab_context_destroy */

/* The functions may be called from any thread of a call, never at the same time for one context.
 * They run in the locale "C", may not call the library, and must return. Each may be NULL. */
typedef struct fraglab_context_options {
    size_t size;
    void *user; /* handed to the functions */
    /* Not 0: the call is to end soon, with FRAGLAB_E_CANCELLED. Asked many times a second; once it
     * has answered so, it must go on answering so until the call has returned. */
    int (*is_cancelled)(void *user);
    /* "replaying", "events", so many of so many (total 0: not known). */
    void (*progress)(void *user, const char *what, const char *unit, uint64_t done, uint64_t total);
    /* Something a person should know about an input that was read all the same. */
    void (*warn)(void *user, const char *sentence);
    /* The variables that "pytorch:env" reads, and PATH and TMPDIR of a drawing; NULL: those of the
     * process. NULL as an answer: the variable is not set. A text must stay until the call has
     * returned. */
    const char *(*environment)(void *user, const char *name);
    uint32_t threads; /* that a call may use, its own included; at most 4096. 0: one. The results
                         are the same */
} fraglab_context_options;

int fraglab_context_create(const fraglab_context_options *options, fraglab_context **context,
                           fraglab_error *error);
void fraglab_context_destroy(fraglab_context *context);

/* Of the process, before other threads call: large arrays of recordings take at most so much
 * memory; those beyond lie in nameless files of the folder (NULL: $TMPDIR, else /var/tmp). */
int fraglab_limit_memory(uint64_t bytes, const char *folder, fraglab_error *error);

/* ---- recordings: files that programs produced, with one trace for each device */

typedef struct fraglab_recording fraglab_recording; /* fraglab_recording_close */

typedef struct fraglab_open_options {
    size_t size;
    const char *format; /* as after --from: "snapshot"; NULL: told by the content */
    const char *name;   /* for people and rows; NULL: the file's, without folders; else "memory" */
    int32_t with_sites; /* 1: keep call stacks, notes, times and recorded addresses: for explain,
                           for verify, for figures and for writing it whole */
} fraglab_open_options;

/* Every format that fraglab reads, compressed or not (docs/trace-format.md, docs/exchange.md). "-"
 * is stdin. options NULL: defaults. */
int fraglab_open_path(const fraglab_context *context, const char *path,
                      const fraglab_open_options *options, fraglab_recording **recording,
                      fraglab_error *error);
/* The bytes of such a file. They may be changed or freed when the call has returned. */
int fraglab_open_memory(const fraglab_context *context, const void *bytes, size_t count,
                        const fraglab_open_options *options, fraglab_recording **recording,
                        fraglab_error *error);
/* Reads from the descriptor, from where it stands to the end; it stays open. Pipes too. */
int fraglab_open_descriptor(const fraglab_context *context, int descriptor,
                            const fraglab_open_options *options, fraglab_recording **recording,
                            fraglab_error *error);
void fraglab_recording_close(fraglab_recording *recording);

size_t fraglab_recording_trace_count(const fraglab_recording *recording);
/* The number of the trace of the device that requests most at one time; 0 when there is none. */
size_t fraglab_recording_main_trace(const fraglab_recording *recording);

typedef struct fraglab_trace_facts {
    size_t size;
    uint64_t device; /* number of the GPU in the program */
    uint64_t event_count;
    uint64_t request_count; /* allocations after the start */
    uint64_t failed_count;  /* of them: ran out of memory when recorded */
    uint64_t stream_count;
    uint64_t pool_count;    /* private pools, and the default one */
    uint64_t initial_bytes; /* live at the start */
    uint64_t peak_requested_bytes;
    uint64_t peak_requested_event;
    uint64_t bound_bytes;                  /* no policy can serve every request with less */
    uint64_t observed_reserved_peak_bytes; /* of the recorded allocator; 0: not recorded */
    char digest[33];                       /* of all that the trace says, in hexadecimal */
} fraglab_trace_facts;

/* facts->size tells what the caller has room for. */
int fraglab_recording_trace_facts(const fraglab_recording *recording, size_t trace,
                                  fraglab_trace_facts *facts, fraglab_error *error);
/* One JSON object: name, recorded_by, metadata (the recorded program's settings and more), findings
 * (what did not fit together), traces with the facts above. */
int fraglab_recording_json(const fraglab_recording *recording, char **json, fraglab_error *error);

/* Writes the recording as "fgt" (compressed columns), "text" (an event a line) or "minimalloc" (a
 * packing problem: the lifetime and size of each request of its only trace), to a file that takes
 * the place of `path` when it is whole, or to memory (fraglab_free). overwrite 0: a file that
 * exists is FRAGLAB_E_USAGE. A recording opened without sites is written without them. */
int fraglab_recording_write(const fraglab_recording *recording, const char *format,
                            const char *path, int overwrite, fraglab_error *error);
int fraglab_recording_write_memory(const fraglab_recording *recording, const char *format,
                                   void **bytes, size_t *count, fraglab_error *error);

/* A piece of a trace: by events, by times, or from first_mark on; all zero: all of it. */
typedef struct fraglab_cut_options {
    size_t size;
    uint64_t first_event;
    uint64_t end_event;     /* behind the last one; 0: the end of the trace */
    uint64_t start_ns;      /* of Unix time */
    uint64_t end_ns;        /* behind the last; 0: the end of the trace */
    const char *first_mark; /* from the first mark of that name ... */
    const char *last_mark;  /* ... to the end of this one; NULL: of the first */
} fraglab_cut_options;

/* Makes a recording of its own of a piece: what was held and live where it starts becomes its
 * beginning, at the recorded addresses where the recording was opened with sites. */
int fraglab_recording_cut(const fraglab_recording *recording, size_t trace,
                          const fraglab_cut_options *options, fraglab_recording **piece,
                          fraglab_error *error);

/* ---- a recording of one's own, event by event */

typedef struct fraglab_builder fraglab_builder; /* fraglab_builder_destroy */

enum {
    FRAGLAB_ALLOC = 0,      /* id, bytes, stream */
    FRAGLAB_FREE = 1,       /* id */
    FRAGLAB_USE = 2,        /* id, stream: the block is used on another stream (record_stream) */
    FRAGLAB_SYNC = 3,       /* every stream has done its work */
    FRAGLAB_EMPTY_CACHE = 4 /* the program asks for cached memory to be given back */
};

typedef struct fraglab_event {
    uint32_t op;      /* FRAGLAB_ALLOC ... */
    uint32_t pool;    /* ALLOC: 0, or the number of a private pool */
    uint64_t id;      /* the program's own name for the block: its address, say. May be used again
                         after its free */
    uint64_t bytes;   /* ALLOC: 1 to 2^56 - 1 */
    uint64_t stream;  /* any number; 0 is the default stream */
    uint64_t time_ns; /* 0: not known */
} fraglab_event;

typedef struct fraglab_builder_options {
    size_t size;
    const char *name; /* of the recording; NULL: "built" */
    uint32_t device;
} fraglab_builder_options;

int fraglab_builder_create(const fraglab_builder_options *options, fraglab_builder **builder,
                           fraglab_error *error);
/* A fact about the program: "torch.conf" is what the policy pytorch:recorded takes, and
 * "torch.version_hint" ("2.9") the release. Before the first event. FRAGLAB_E_USAGE: after it, or
 * the key is NULL or empty, or the value is NULL. */
int fraglab_builder_set(fraglab_builder *builder, const char *key, const char *value,
                        fraglab_error *error);
/* Adds count events. FRAGLAB_E_INPUT names the first that makes no sense (an id that is live
 * already, a free of none); those before it were added. After FRAGLAB_E_MEMORY the builder can only
 * be destroyed. */
int fraglab_builder_add(fraglab_builder *builder, const fraglab_event *events, size_t count,
                        fraglab_error *error);
/* A line of a call stack. */
typedef struct fraglab_frame {
    const char *function; /* UTF-8; NULL: not known */
    const char *file;     /* "train.py"; NULL: not known */
    uint32_t line;        /* from 1; 0: not known */
} fraglab_frame;

/* The call stack of all events that are added from now on, innermost frame first: what `sites`,
 * leaks and diff tell of. count 0: not known. The frames are copied. */
int fraglab_builder_stack(fraglab_builder *builder, const fraglab_frame *frames, size_t count,
                          fraglab_error *error);
/* A mark between what was added and what will be: the start of a step or of a phase, by which
 * leaks and cuts find it. name: UTF-8, not empty. time_ns as of an event. */
int fraglab_builder_mark(fraglab_builder *builder, const char *name, uint64_t time_ns,
                         fraglab_error *error);
/* Makes the recording of what was added; the builder can then only be destroyed. */
int fraglab_builder_finish(fraglab_builder *builder, fraglab_recording **recording,
                           fraglab_error *error);
void fraglab_builder_destroy(fraglab_builder *builder);

/* ---- policies */

typedef struct fraglab_policy fraglab_policy; /* fraglab_policy_destroy */

/* One policy with options, as after --policy: "best-fit", "pytorch:expandable_segments=true",
 * "pytorch:recorded", "pytorch:env", "./my_policy.so:align=4KiB", which stays loaded. */
int fraglab_policy_parse(const char *text, fraglab_policy **policy, fraglab_error *error);
const char *fraglab_policy_name(const fraglab_policy *policy);
void fraglab_policy_destroy(fraglab_policy *policy);

/* The number of bundled policies, and the name of each; NULL beyond them. */
size_t fraglab_policy_count(void);
const char *fraglab_policy_name_at(size_t index);
/* A JSON object a line, as `fraglab policies --format jsonl` prints them: rules, options with
 * defaults and ranges. name NULL: all bundled ones. */
int fraglab_policies_json(const char *name, char **json, fraglab_error *error);
/* The bundled cards, as `fraglab device list --format jsonl` prints them. */
int fraglab_cards_json(char **json, fraglab_error *error);

/* ---- runs */

typedef struct fraglab_run_options {
    size_t size;
    uint64_t capacity_bytes;       /* 0: unlimited, or what the card has */
    uint64_t used_by_others_bytes; /* of the capacity */
    const char *label;             /* names the row; NULL: the policy as it was written */
    const char *gpu;               /* a card, by name or file: "rtx4090"; NULL: none */
    const char *latency;           /* a file with latencies of device calls; NULL: the card's */
    const char *address_rule;      /* "lowest", "bump", "recorded"; NULL: as on the command line */
    uint64_t fail_call;            /* this malloc or map (from 1) fails as if full; 0: none */
    uint64_t check_every;          /* audit the policy every so many events; 0: never */
    int32_t skip_oom;              /* 1: after an OOM go on without the request */
    int32_t with_bounds;           /* 1: add what a policy that knows the future would need */
    const char *stats_at;          /* fraglab_run: add to the row, under "memory_stats", what
                                      torch.cuda.memory_stats() would return at "peak" (the first
                                      peak of reserved bytes), "oom", "end", or after the event of
                                      that number (docs/statistics.md). NULL: leave it out */
    int32_t with_timing;           /* 1: fraglab_run: measure wall time and events per second; they
                                      differ from run to run */
} fraglab_run_options;
#define FRAGLAB_RUN_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(fraglab_run_options), 0, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0             \
    }

typedef struct fraglab_result fraglab_result; /* fraglab_result_destroy */

/* Replays a trace of the recording with the policy on the simulated device. Where simulated memory
 * runs out, that is a result and not an error (the fields under "oom"). options NULL: defaults. */
int fraglab_run(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                const fraglab_policy *policy, const fraglab_run_options *options,
                fraglab_result **result, fraglab_error *error);
void fraglab_result_destroy(fraglab_result *result);

/* The row: the very line, newline included, that `fraglab run --format jsonl` prints. */
const char *fraglab_result_json(const fraglab_result *result);
/* One field of the row by its path: "peak.reserved_bytes". FRAGLAB_E_USAGE: the row has no such
 * field, it is null, or of another kind (a number is a double too); *value stays. */
int fraglab_result_u64(const fraglab_result *result, const char *path, uint64_t *value,
                       fraglab_error *error);
int fraglab_result_double(const fraglab_result *result, const char *path, double *value,
                          fraglab_error *error);
int fraglab_result_text(const fraglab_result *result, const char *path, const char **value,
                        fraglab_error *error);

/* ---- a run as a file */

#define FRAGLAB_ALL_TRACES SIZE_MAX

typedef struct fraglab_run_file_options {
    size_t size;
    const char *at; /* "snapshot": it ends there: "peak" of reserved bytes, "oom", "end", or after
                       the event of that number; NULL: the end */
    int32_t overwrite; /* 0: a file that exists is FRAGLAB_E_USAGE */
} fraglab_run_file_options;

/* Runs as fraglab_run does, and writes the run as a
 *   "snapshot": a memory snapshot of PyTorch, for its viewers (path.zst and path.gz: compressed);
 *   "chrome": a Chrome trace, for Perfetto;
 *   "placement": where each request of one trace was placed, as MiniMalloc's CSV, which has been
 *       checked to overlap nowhere. FRAGLAB_E_USAGE: a request could not be placed;
 *   "driver-log": every device call of the run of one trace, a line each, fields parted by tabs:
 *       event, call, address, bytes, result.
 * trace FRAGLAB_ALL_TRACES: all of the recording, which is what `fraglab run --snapshot` and
 * --chrome write, byte by byte (snapshots name call sites where the recording was opened with
 * sites). To a file that takes the place of `path` when it is whole, or to memory (fraglab_free).
 * Both options may be NULL. */
int fraglab_run_write(const fraglab_context *context, const fraglab_recording *recording,
                      size_t trace, const fraglab_policy *policy,
                      const fraglab_run_options *options, const char *format, const char *path,
                      const fraglab_run_file_options *file_options, fraglab_error *error);
int fraglab_run_write_memory(const fraglab_context *context, const fraglab_recording *recording,
                             size_t trace, const fraglab_policy *policy,
                             const fraglab_run_options *options, const char *format,
                             const fraglab_run_file_options *file_options, void **bytes,
                             size_t *count, fraglab_error *error);

/* ---- the least capacity that survives, as `fraglab min-capacity` */

typedef struct fraglab_capacity {
    size_t size;
    uint64_t capacity_bytes;      /* FRAGLAB_UNLIMITED: none is enough */
    uint64_t failing_above_bytes; /* the largest capacity that fails; FRAGLAB_UNLIMITED: none does
                                     above the least */
    uint64_t enough_bytes;        /* from here on none of its calls fails; 0: unknown */
    uint64_t runs;                /* replays it took */
    uint64_t below_event;         /* of the OOM with one page less; FRAGLAB_UNLIMITED: none */
    uint64_t below_requested_bytes;
} fraglab_capacity;

/* Of the options those of the device are used, but capacity_bytes; capacity->size tells what the
 * caller has room for. */
int fraglab_min_capacity(const fraglab_context *context, const fraglab_recording *recording,
                         size_t trace, const fraglab_policy *policy,
                         const fraglab_run_options *options, fraglab_capacity *capacity,
                         fraglab_error *error);

/* ---- does a policy do what the recorded allocator did? As `fraglab verify` */

typedef struct fraglab_verify_options {
    size_t size;
    uint64_t capacity_bytes; /* of the recorded device; 0: as the recording says, or concluded */
    int32_t count_all;       /* 1: go on after the first difference and count them */
} fraglab_verify_options;

typedef struct fraglab_verification {
    size_t size;
    int32_t is_identical;
    int32_t has_first; /* 0: identical */
    uint64_t requests; /* compared, up to the first difference */
    uint64_t device_events;
    uint64_t ooms;
    uint64_t first_event;
    char first_kind[32]; /* "address", "call", "missing", "early", "failed", "served"; "": none */
    uint64_t differences;
    /* What the recording does not say, where all is identical with it; FRAGLAB_UNLIMITED, "": not
     * needed. */
    uint64_t inferred_capacity_bytes;
    uint64_t inferred_limit_bytes;
    char inferred_settings[400]; /* "version=2.6,max_split_size_mb=128" */
} fraglab_verification;

/* The recording is one that was opened with sites: its addresses are compared. policy NULL: the one
 * that the recording names, with its settings, else PyTorch's with the settings that can be
 * concluded. capacity_bytes as in the options. FRAGLAB_E_INPUT: the recording holds nothing to
 * compare with; FRAGLAB_E_USAGE: it was opened without sites. */
int fraglab_verify(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                   const fraglab_policy *policy, uint64_t capacity_bytes,
                   fraglab_verification *verification, fraglab_error *error);
/* The same as one JSON object with all that was found, the line that `fraglab verify --format
 * jsonl` prints for the trace (fraglab_free). options NULL: defaults. */
int fraglab_verify_json(const fraglab_context *context, const fraglab_recording *recording,
                        size_t trace, const fraglab_policy *policy,
                        const fraglab_verify_options *options, char **json, fraglab_error *error);

/* The same against a golden log: requests that an allocator library itself served, with all that it
 * answered (docs/oracle.md). As `fraglab verify --against golden`. */
typedef struct fraglab_golden {
    size_t size;
    int32_t is_identical;
    int32_t has_failed; /* the log ends where the library itself failed */
    uint64_t requests;  /* compared, and the same; the next five too */
    uint64_t device_events;
    uint64_t trace_events;
    uint64_t ooms;
    uint64_t stat_lines;
    uint64_t segments;
    uint64_t first_line; /* of the log, with the first difference; FRAGLAB_UNLIMITED: none */
    char first_kind[32]; /* "address", "oom", "message", "device_calls", "trace_events", "stats",
                            "segments", "end"; "": none */
} fraglab_golden;

/* policy NULL: the one that the log names, with its settings. check_every: audit the policy every
 * so many events; 0: never. golden (NULL: not wanted) is filled; json (NULL: not wanted) is the
 * line that `fraglab verify --against golden --format jsonl` prints, for fraglab_free.
 * FRAGLAB_E_INPUT: what is read is no golden log. */
int fraglab_verify_golden_path(const fraglab_context *context, const char *path,
                               const fraglab_policy *policy, uint64_t check_every,
                               fraglab_golden *golden, char **json, fraglab_error *error);
/* The same of a log in memory, compressed or not. name: of the log in json; NULL: "memory". */
int fraglab_verify_golden_memory(const fraglab_context *context, const void *bytes, size_t count,
                                 const char *name, const fraglab_policy *policy,
                                 uint64_t check_every, fraglab_golden *golden, char **json,
                                 fraglab_error *error);

/* ---- the page of a report, as `fraglab report` */

typedef struct fraglab_report_options {
    size_t size;
    const char *title;                     /* NULL: the usual one */
    const char *command;                   /* that the page names as what made it */
    const char *format;                    /* of the recordings; NULL: told by their content */
    const fraglab_policy *const *policies; /* policy_count 0: those that `fraglab report` takes */
    size_t policy_count;
    int32_t overwrite; /* 0: a file that exists is FRAGLAB_E_USAGE */
    /* Recordings that are open, shown behind those of the paths; with call sites where they were
     * opened with sites. */
    const fraglab_recording *const *recordings;
    size_t recording_count;
} fraglab_report_options;

/* One HTML page that needs no other file: runs of each recording with each policy, their timelines
 * and maps, verdicts. The paths are those of recordings and of files of rows, as docs/report.md
 * says (path_count 0: only the open recordings of the options are shown); of the run options those
 * of the device, skip_oom and with_bounds are used. To a file that takes the place of `path` when
 * it is whole, or to memory (fraglab_free). Both options may be NULL. */
int fraglab_report_write(const fraglab_context *context, const char *const *paths,
                         size_t path_count, const fraglab_run_options *run_options,
                         const fraglab_report_options *options, const char *path,
                         fraglab_error *error);
int fraglab_report_write_memory(const fraglab_context *context, const char *const *paths,
                                size_t path_count, const fraglab_run_options *run_options,
                                const fraglab_report_options *options, void **bytes, size_t *count,
                                fraglab_error *error);

/* ---- the data of figures, as `fraglab plot KIND --format csv` */

/* Names of the kinds: "timeline", "map", "bars", ...; NULL beyond them. */
const char *fraglab_figure_kind_at(size_t index);

typedef struct fraglab_figure_setting {
    const char *name;  /* an option of `fraglab plot KIND`, without dashes: "x" */
    const char *value; /* "time"; NULL: a flag */
} fraglab_figure_setting;

typedef struct fraglab_figure_options {
    size_t size;
    const char *format;                    /* of the input; NULL: told by the content */
    const fraglab_policy *const *policies; /* policy_count 0: those that the command takes */
    size_t policy_count;
    const fraglab_figure_setting *settings; /* docs/plots.md says which each kind has */
    size_t setting_count;
    /* Recordings that are open, drawn behind those of the paths; with times and call sites where
     * they were opened with sites. */
    const fraglab_recording *const *recordings;
    size_t recording_count;
} fraglab_figure_options;

/* The table that a figure of that kind is drawn from (fraglab_free). The paths are those of
 * recordings or files of rows, as the kind takes them (path_count 0: only the open recordings of
 * the options are drawn); of the run options those of the device are used. Both options may be
 * NULL. FRAGLAB_E_USAGE: no such kind or setting, or the figure is a picture. */
int fraglab_figure_csv(const fraglab_context *context, const char *kind, const char *const *paths,
                       size_t path_count, const fraglab_run_options *run_options,
                       const fraglab_figure_options *options, char **csv, fraglab_error *error);

/* ---- figures, drawn by gnuplot, as `fraglab plot KIND -o FILE` */

typedef struct fraglab_drawing_options {
    size_t size;
    const char *format; /* "svg", "png", "pdf", or "terminal": characters without colours. NULL: by
                           the ending of the path; in memory svg */
    const char *title;  /* NULL: the usual one; "": none */
    uint64_t width;  /* pixels, or characters of a line; 0: 800, of a png 1600, of characters 100 */
    uint64_t height; /* 0: in proportion to the width; 30 lines of characters */
    int32_t overwrite; /* 0: a file that exists is FRAGLAB_E_USAGE */
} fraglab_drawing_options;

/* Draws what fraglab_figure_csv gives the data of, with the same paths, options and failures. It
 * starts gnuplot, which is found by PATH, in a folder of its own below TMPDIR (else /tmp), of which
 * nothing stays; both variables are asked of the context. FRAGLAB_E_SYSTEM: gnuplot, its scripts
 * (installed with the library) or the folder are missing, or gnuplot failed. A cancelled call ends
 * gnuplot. To a file that takes the place of `path` when it is whole, or to memory (fraglab_free).
 */
int fraglab_figure_draw(const fraglab_context *context, const char *kind, const char *const *paths,
                        size_t path_count, const fraglab_run_options *run_options,
                        const fraglab_figure_options *options,
                        const fraglab_drawing_options *drawing, const char *path,
                        fraglab_error *error);
int fraglab_figure_draw_memory(const fraglab_context *context, const char *kind,
                               const char *const *paths, size_t path_count,
                               const fraglab_run_options *run_options,
                               const fraglab_figure_options *options,
                               const fraglab_drawing_options *drawing, void **bytes, size_t *count,
                               fraglab_error *error);

/* ---- histories: what figures are drawn from */

typedef struct fraglab_history fraglab_history; /* fraglab_history_destroy */

typedef struct fraglab_sample {
    uint64_t event;
    uint64_t requested_bytes; /* of allocations the program holds; all four right after the event */
    uint64_t allocated_bytes; /* of their blocks */
    uint64_t active_bytes;    /* allocated, and blocks whose free waits for a stream */
    uint64_t reserved_bytes;  /* of segments */
} fraglab_sample;

typedef struct fraglab_placement {
    uint64_t event;      /* of the request */
    uint64_t free_event; /* the program's free; FRAGLAB_UNLIMITED: never */
    uint64_t end_event;  /* its place was free again; FRAGLAB_UNLIMITED: never */
    uint64_t address;
    uint64_t block_bytes;   /* 0: not served */
    uint64_t rounded_bytes; /* of the request, by the policy's rule */
} fraglab_placement;

typedef struct fraglab_segment {
    uint64_t begin_event; /* held after this event */
    uint64_t end_event;   /* up to this one; FRAGLAB_UNLIMITED: to the end of the run */
    uint64_t address;
    uint64_t bytes;
    uint32_t stream;
    uint32_t pool;
} fraglab_segment;

/* As fraglab_run; samples: at most so many levels are kept, each peak too (0: 4000; >= 10). */
int fraglab_history_record(const fraglab_context *context, const fraglab_recording *recording,
                           size_t trace, const fraglab_policy *policy,
                           const fraglab_run_options *options, size_t samples,
                           fraglab_history **history, fraglab_error *error);
void fraglab_history_destroy(fraglab_history *history);
/* Each returns how many there are, and copies at most capacity of them to out (NULL: none), in
 * order of their first event. */
size_t fraglab_history_samples(const fraglab_history *history, fraglab_sample *out,
                               size_t capacity);
size_t fraglab_history_placements(const fraglab_history *history, fraglab_placement *out,
                                  size_t capacity);
size_t fraglab_history_segments(const fraglab_history *history, fraglab_segment *out,
                                size_t capacity);

/* ---- the layout after one event */

typedef struct fraglab_layout fraglab_layout; /* fraglab_layout_destroy */

enum { FRAGLAB_SPAN_SEGMENT = 0, FRAGLAB_SPAN_BLOCK = 1, FRAGLAB_SPAN_HOLE = 2 };

typedef struct fraglab_span {
    uint32_t kind;
    uint32_t stream;
    uint32_t pool;
    uint32_t is_waiting; /* BLOCK: freed by the program, but still waiting for a stream */
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes; /* BLOCK */
} fraglab_span;

/* event FRAGLAB_UNLIMITED: at the end. Where memory runs out before, it is the one there. */
int fraglab_layout_at(const fraglab_context *context, const fraglab_recording *recording,
                      size_t trace, const fraglab_policy *policy,
                      const fraglab_run_options *options, uint64_t event, fraglab_layout **layout,
                      fraglab_error *error);
void fraglab_layout_destroy(fraglab_layout *layout);
/* Segments, each before the blocks and holes inside it, in order of address. */
size_t fraglab_layout_spans(const fraglab_layout *layout, fraglab_span *out, size_t capacity);

/* ---- explain why memory ran out */

/* One JSON object, as `fraglab explain --format jsonl` prints it for a log or a message: verdict,
 * figures, advice. Text without a message of out of memory is no error: the verdict says so. */
int fraglab_explain_text(const char *text, size_t length, char **json, fraglab_error *error);

typedef struct fraglab_explain_options {
    size_t size;
    uint64_t capacity_bytes;     /* of the device; 0: what was held and free when it ran out */
    const char *memory_fraction; /* "0.9": the program called set_per_process_memory_fraction(0.9);
                                    NULL: it did not */
    /* Another recording of the same program that did not run out of memory: it knows the requests
     * after the one that failed. NULL: nobody does. */
    const fraglab_recording *whole;
    const fraglab_policy *const *policies; /* to try beside the usual settings */
    size_t policy_count;
    int32_t as_text; /* 1: not JSON but text for a person */
} fraglab_explain_options;

/* What held the memory when the recorded program ran out (or would with that capacity), and which
 * settings and policies get past the request that failed: for each device that has something to
 * explain the JSON object that `fraglab explain --format jsonl` prints, one a line, or the text
 * that it prints for a person. Call sites are named where the recording was opened with sites.
 * FRAGLAB_E_USAGE: the recording did not run out of memory, and no capacity is given. */
int fraglab_explain_recording(const fraglab_context *context, const fraglab_recording *recording,
                              const fraglab_explain_options *options, char **explanation,
                              fraglab_error *error);

/* ---- all combinations of traces, policies, options and capacities, as `fraglab sweep` */

typedef struct fraglab_sweep_options {
    size_t size;
    const char *folder; /* where the relative paths of an experiment in memory begin; NULL: where
                           the process is */
    void *user;         /* handed to row */
    /* Gets each row, in order: the very line, with its newline and a zero behind, that
     * `fraglab sweep` writes. Not 0: the sweep is to end, with FRAGLAB_E_CANCELLED. What holds for
     * the functions of a context holds for it. NULL: nobody wants them one by one. */
    int (*row)(void *user, const char *line, size_t length);
    /* A file that the rows are appended to. Where it has the first rows of this experiment already,
     * the sweep goes on after them, and they are not handed out. NULL: none. */
    const char *output;
    int32_t overwrite;   /* 1: the rows that output holds are thrown away */
    int32_t counts_only; /* 1: leave out what needs a second replay, the layout at the peak */
    int32_t replay_all;  /* 1: replay what must equal another run, too; the rows are the same */
} fraglab_sweep_options;

typedef struct fraglab_sweep_totals {
    size_t size;
    uint64_t rows;
    uint64_t replayed; /* of them; the others follow from these */
    uint64_t found;    /* that output had already, not among rows */
} fraglab_sweep_totals;

/* Runs the experiment of a file (docs/sweep.md). Rows are replayed on the context's threads. A
 * combination that the policy refuses is a row that says so. *rows is all rows one after the other,
 * for fraglab_free; rows NULL: not wanted, and so may be totals. */
int fraglab_sweep_path(const fraglab_context *context, const char *path,
                       const fraglab_sweep_options *options, char **rows,
                       fraglab_sweep_totals *totals, fraglab_error *error);
/* The same of an experiment in memory, YAML or JSON, of at most 1 MiB. */
int fraglab_sweep_memory(const fraglab_context *context, const char *experiment, size_t length,
                         const fraglab_sweep_options *options, char **rows,
                         fraglab_sweep_totals *totals, fraglab_error *error);

/* ---- does a described model fit on a card, as `fraglab plan` */

typedef struct fraglab_plan_options {
    size_t size;
    const char *gpu;          /* a bundled card, a file of one, or a size such as "12GiB" */
    const char *conf;         /* PYTORCH_CUDA_ALLOC_CONF of the program; NULL: none */
    const char *const *knobs; /* "batch=4": those of docs/workloads.md, above those of the file */
    size_t knob_count;
} fraglab_plan_options;

/* The JSON object that `fraglab plan --format jsonl` prints for a workload file or the config.json
 * of a model, for fraglab_free. */
int fraglab_plan(const fraglab_context *context, const char *path,
                 const fraglab_plan_options *options, char **json, fraglab_error *error);

/* ---- the settings of a policy that need the least memory, as `fraglab tune` */

enum {
    FRAGLAB_TUNE_PEAK = 0,        /* the least peak of reserved bytes; first, no OOM */
    FRAGLAB_TUNE_MIN_CAPACITY = 1 /* the least capacity that survives */
};

typedef struct fraglab_tune_options {
    size_t size;
    const fraglab_recording *const *held_out; /* what was found is reported for these too, but they
                                                 are not searched on */
    size_t held_out_count;
    int32_t goal;         /* FRAGLAB_TUNE_PEAK ... */
    int32_t with_bounds;  /* 1: add what a policy that knows the future would need */
    uint64_t settings;    /* to try, each on every trace; 0: 400; at most 10000 */
    uint64_t max_seconds; /* the search ends after that time, and what it finds depends on the
                             machine; 0: no limit */
    uint64_t seed;        /* of the random restarts */
    const fraglab_run_options *device; /* its capacity, card, latency, address rule, fail_call and
                                          bytes of others are used; NULL: defaults */
} fraglab_tune_options;

typedef struct fraglab_tuned fraglab_tuned; /* fraglab_tuned_destroy */

/* Searches the options of the policy on every trace of the recordings; those that the policy was
 * given stay as they are. FRAGLAB_E_USAGE: count is 0, or a policy whose settings come from the
 * recording or the environment. */
int fraglab_tune(const fraglab_context *context, const fraglab_recording *const *recordings,
                 size_t count, const fraglab_policy *policy, const fraglab_tune_options *options,
                 fraglab_tuned **tuned, fraglab_error *error);
void fraglab_tuned_destroy(fraglab_tuned *tuned);

/* The very line, newline included, that `fraglab tune --format jsonl` prints. */
const char *fraglab_tuned_json(const fraglab_tuned *tuned);
/* What was found, as after --policy, and for fraglab_policy_parse. */
const char *fraglab_tuned_policy(const fraglab_tuned *tuned);
/* What is to be set in the program: of pytorch PYTORCH_CUDA_ALLOC_CONF, else the options that
 * differ from the policy's. "": nothing that was tried is better. */
const char *fraglab_tuned_setting(const fraglab_tuned *tuned);
/* For set_per_process_memory_fraction; NULL: it is not to be called. */
const char *fraglab_tuned_memory_fraction(const fraglab_tuned *tuned);

/* FRAGLAB_UNLIMITED as bytes: the policy refuses the setting there, or it runs out of memory. */
typedef struct fraglab_tuned_trace {
    const char *name; /* of the recording; belongs to the fraglab_tuned */
    uint64_t device;  /* number of the GPU in the program */
    uint64_t default_bytes;
    uint64_t tuned_bytes;
    uint64_t peak_requested_bytes;
    uint64_t packing_bytes; /* FRAGLAB_UNLIMITED: not asked for */
    int32_t is_held_out;
} fraglab_tuned_trace;

/* Returns how many there are, and copies at most capacity of them to out (NULL: none). */
size_t fraglab_tuned_traces(const fraglab_tuned *tuned, fraglab_tuned_trace *out, size_t capacity);

/* ---- what differs between two recordings? As `fraglab diff` */

typedef struct fraglab_diff_options {
    size_t size;
    const char *by; /* "site", "stack", "purpose" or "size"; NULL: site */
    /* What is looked at, as after --at: "peak", "end", an event, "A..B", a mark; NULL: peak. */
    const char *at_before;
    const char *at_after;
    const fraglab_policy *policy; /* what both are replayed with; NULL: pytorch, with the settings
                                     of the recording where it holds some */
    int32_t without_replays;      /* 1: nothing is replayed */
} fraglab_diff_options;

/* Who holds the memory in each (two recordings, or one twice), which requests are equal, and the
 * peaks of replays: the JSON object that `fraglab diff --format json` prints (fraglab_free). Call
 * sites are known where the recording was opened with sites. Of the run options those of the device
 * are used; both options may be NULL. FRAGLAB_E_USAGE: there is no such place or trace. */
int fraglab_diff(const fraglab_context *context, const fraglab_recording *before,
                 size_t before_trace, const fraglab_recording *after, size_t after_trace,
                 const fraglab_run_options *run_options, const fraglab_diff_options *options,
                 char **json, fraglab_error *error);

/* ---- what is kept step after step? As `fraglab leaks` */

typedef struct fraglab_leaks_options {
    size_t size;
    const char *mark;             /* steps begin at the marks of that name; NULL: they are found */
    const fraglab_policy *policy; /* of the replays; NULL: pytorch, with the settings of the
                                     recording where it holds some */
} fraglab_leaks_options;

/* What is live at the lowest point of each step, and rises until the end: the JSON object that
 * `fraglab leaks --format json` prints (fraglab_free), with the step in which the device of the
 * run options is full where they have a capacity. Call sites are known where the recording was
 * opened with sites. Both options may be NULL. FRAGLAB_E_USAGE: there are too few such marks;
 * FRAGLAB_E_INPUT: too few requests to find steps in. */
int fraglab_leaks(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                  const fraglab_run_options *run_options, const fraglab_leaks_options *options,
                  char **json, fraglab_error *error);

/* ---- the ranks of one job side by side. As `fraglab ranks` */

typedef struct fraglab_ranks_options {
    size_t size;
    const uint32_t *numbers;   /* of the recordings; NULL: those in their names, else their order */
    const char *const *stages; /* ranks that are to be alike, "0-3,8"; the rest are a stage too */
    size_t stage_count;
    const fraglab_policy *policy; /* NULL: pytorch, with the settings that a recording holds */
    int32_t tries_settings; /* 1: which of the usual settings keeps all ranks going, too: on the
                               device of the options, or of the first that ran out */
} fraglab_ranks_options;

/* What each rank needs at its peak, which request the same, how uneven they are, and which is out
 * of memory first: the JSON object that `fraglab ranks --format jsonl` prints (fraglab_free). Of a
 * recording of several devices the one counts that requests most; one recording alone is a job of
 * its devices. Call sites are known where the recordings were opened with sites. Of the run options
 * those of the device are used; both options may be NULL. FRAGLAB_E_USAGE: fewer than two ranks, a
 * number twice, a stage that names a rank which is not there. */
int fraglab_ranks(const fraglab_context *context, const fraglab_recording *const *recordings,
                  size_t count, const fraglab_run_options *run_options,
                  const fraglab_ranks_options *options, char **json, fraglab_error *error);

/* ---- what got worse between two files of rows? As `fraglab compare` */

typedef struct fraglab_comparison fraglab_comparison; /* fraglab_comparison_destroy */

/* An amount is a share of the base's value, "1%", or one in the metric's unit, "16MiB" or "3", or
 * both joined by a comma, of which both must be exceeded. '*' in a metric's name stands for any
 * text. */
typedef struct fraglab_compare_options {
    size_t size;
    const char *fail_above;        /* how much a metric may get worse; NULL: "1%" */
    const char *const *thresholds; /* "METRIC=AMOUNT"; the last that matches counts */
    size_t threshold_count;
    const char *const *metrics; /* compare only these; none: all but wall times */
    size_t metric_count;
    int32_t allow_missing; /* 1: a row of the base without a counterpart, or that cannot be
                              compared, is no finding */
} fraglab_compare_options;

/* Compares the rows of two files as fraglab_result_json gives them, one a line. Rows are matched by
 * trace, label and device. FRAGLAB_E_INPUT names the line that is no row. */
int fraglab_compare_paths(const char *base, const char *now, const fraglab_compare_options *options,
                          fraglab_comparison **comparison, fraglab_error *error);
/* The same of such lines in memory. */
int fraglab_compare_memory(const void *base, size_t base_bytes, const void *now, size_t now_bytes,
                           const fraglab_compare_options *options, fraglab_comparison **comparison,
                           fraglab_error *error);
void fraglab_comparison_destroy(fraglab_comparison *comparison);

/* As `fraglab compare --format jsonl` prints it: each metric, what rows there is something to say
 * of, a summary; one object a line. */
const char *fraglab_comparison_json(const fraglab_comparison *comparison);
/* 1: something is worse, or a row could not be compared and allow_missing is 0. */
int fraglab_comparison_has_finding(const fraglab_comparison *comparison);

enum {
    FRAGLAB_SAME = 0,   /* equal */
    FRAGLAB_WITHIN = 1, /* not more than the threshold */
    FRAGLAB_BETTER = 2, /* by more than the threshold */
    FRAGLAB_WORSE = 3,  /* by more than the threshold */
    FRAGLAB_UNKNOWN = 4 /* only one of the two says */
};

typedef struct fraglab_compared_metric {
    size_t row;       /* its number, as of fraglab_comparison_rows */
    const char *path; /* as of fraglab_result_u64 */
    double base;      /* NaN: the base does not say */
    double now;       /* NaN: the new row does not say */
    double change;    /* (now - base) / base; NaN where one is, infinite from 0 */
    int32_t verdict;  /* FRAGLAB_SAME ... */
} fraglab_compared_metric;

typedef struct fraglab_compared_row {
    const char *trace; /* its name, and the number of the GPU where it is not 0 */
    const char *policy;
    const char *device;  /* the parameters of the simulated one */
    const char *problem; /* why it is not compared; NULL: it is */
    const char *note;    /* what else differs; NULL: nothing */
    uint64_t worse;      /* metrics */
    uint64_t better;
    int32_t is_missing; /* only the base has it */
    int32_t is_new;     /* only the new rows have it */
} fraglab_compared_row;

/* Each returns how many there are, and copies at most capacity of them to out (NULL: none): the
 * rows of the base in its order, then new ones; metrics in order of the rows. The texts belong to
 * the comparison. */
size_t fraglab_comparison_rows(const fraglab_comparison *comparison, fraglab_compared_row *out,
                               size_t capacity);
size_t fraglab_comparison_metrics(const fraglab_comparison *comparison,
                                  fraglab_compared_metric *out, size_t capacity);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
