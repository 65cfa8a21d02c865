#include "tests/gpu_replay/torch_program.h"

#include <dlfcn.h>
#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/replay/replay.h"
#include "traces/load.h"

/* At the end of a program that loaded a library, LeakSanitizer follows variables of ended threads
 * into memory that is gone, where its guess of their places is wrong ("Tracer caught signal 11").
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0";
}

static char build_folder[4096];
static char scratch[64];

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    EXPECT(found != NULL);
    memcpy(function, &found, sizeof found);
}

static void *open_built(const char *name)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", build_folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    EXPECT(library != NULL);
    return library;
}

static void open_program(served_program *program)
{
    void *runtime = open_built("software-cuda/13/libcudart.so.13");
    void *driver = open_built("software-cuda/13/libcuda.so.1");
    find(runtime, "cudaStreamCreateWithFlags", &program->cudaStreamCreateWithFlags);
    find(runtime, "cudaSetDevice", &program->cudaSetDevice);
    find(runtime, "cudaGetDevice", &program->cudaGetDevice);
    find(driver, "frag_software_get_held", &program->get_held);
    find(driver, "frag_software_get_usage", &program->get_usage);
    find(driver, "frag_software_complete", &program->complete);
    find(driver, "frag_software_call_count", &program->call_count);
    program->library = open_built("libfraglab_torch.so");
    void *library = program->library;
    find(library, "fraglab_alloc", &program->alloc);
    find(library, "fraglab_free", &program->free);
    find(library, "fraglab_record_stream", &program->record_stream);
    find(library, "fraglab_empty_cache", &program->empty_cache);
    find(library, "fraglab_set_memory_fraction", &program->set_memory_fraction);
    find(library, "fraglab_base_allocation", &program->base_allocation);
    find(library, "fraglab_begin_allocate_to_pool", &program->begin_allocate_to_pool);
    find(library, "fraglab_end_allocate_to_pool", &program->end_allocate_to_pool);
    find(library, "fraglab_release_pool", &program->release_pool);
    find(library, "fraglab_last_error", &program->last_error);
    find(library, "fraglab_stat", &program->stat);
}

/* Unloading the library is its end of the program. */
void torch_program_close(served_program *program)
{
    EXPECT(dlclose(program->library) == 0);
}

void torch_program_expect_nothing_held(const served_program *program)
{
    frag_software_held held;
    program->get_held(&held);
    EXPECT(held.malloc_count == 0);
    EXPECT(held.pool_count == 0);
    EXPECT(held.handle_count == 0);
    EXPECT(held.mapping_count == 0);
    EXPECT(held.reservation_count == 0);
    EXPECT(held.event_count == 0);
}

/* Runs the body as a program with these settings; NULL ones are not set. stderr goes to
 * scratch/stderr. */
void torch_program_run(torch_program_body *body, const char *name, const char *policy,
                       const char *capacity, const char *software)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char text[8192];
        snprintf(text, sizeof text, "%s/stderr", scratch);
        if (freopen(text, "w", stderr) == NULL)
            _exit(2);
        setvbuf(stderr, NULL, _IONBF, 0);
        snprintf(text, sizeof text, "%s/software-cuda/13/libcudart.so.13", build_folder);
        setenv("FRAGLAB_CUDART", text, 1);
        snprintf(text, sizeof text, "addresses=snapshot%s%s", software[0] != '\0' ? "," : "",
                 software);
        setenv("FRAGLAB_SOFTWARE_CUDA", text, 1);
        snprintf(text, sizeof text, "%s/recording.fgt", scratch);
        setenv("FRAGLAB_RECORD", text, 1);
        snprintf(text, sizeof text, "%s/stats", scratch);
        setenv("FRAGLAB_STATS", text, 1);
        if (policy != NULL)
            setenv("FRAGLAB_POLICY", policy, 1);
        if (capacity != NULL)
            setenv("FRAGLAB_CAPACITY", capacity, 1);
        served_program program = {0};
        open_program(&program);
        body(&program, name);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        char command[256];
        snprintf(command, sizeof command, "cat %s/stderr >&2", scratch);
        (void)!system(command);
        fail_msg("the program on %s ended with %d", policy != NULL ? policy : "(none)", status);
    }
}

bool torch_program_file_has(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    static char content[1 << 16];
    size_t length = fread(content, 1, sizeof content - 1, file);
    content[length] = '\0';
    fclose(file);
    return strstr(content, text) != NULL;
}

void torch_program_forget_files(void)
{
    static const char *const names[] = {"recording.fgt", "stats"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
        unlink(path);
    }
}

/* ---- what was recorded, replayed */

/* Addresses of mapped ranges begin elsewhere; the places in them must be the same. */
typedef struct comparison {
    const frag_trace *trace;
    uint64_t event;
    uint64_t offset;
    bool has_offset;
    uint64_t differences;
} comparison;

static void compare_grant(void *context, const frag_request *request, const frag_grant *grant)
{
    comparison *seen = context;
    while (seen->trace->events[seen->event].op != FRAG_OP_ALLOC)
        seen->event++;
    const frag_event *event = &seen->trace->events[seen->event];
    uint64_t recorded = seen->trace->addresses[seen->event++];
    assert_int_equal(event->bytes, request->bytes);
    assert_int_equal((event->flags & FRAG_EVENT_FAILED) != 0, grant == NULL);
    if (grant == NULL)
        return;
    uint64_t offset = grant->address - recorded;
    seen->differences += seen->has_offset && offset != seen->offset ? 1 : 0;
    seen->offset = offset;
    seen->has_offset = true;
}

void torch_program_load(frag_recording *recording)
{
    char path[128];
    snprintf(path, sizeof path, "%s/recording.fgt", scratch);
    frag_findings findings = {0};
    frag_error error = {0};
    frag_load_options options = {.with_columns = true};
    if (!frag_recording_load(path, &options, recording, &findings, &error))
        fail_msg("%s", error.sentence);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
}

uint64_t torch_program_replay(const char *policy, uint64_t capacity)
{
    frag_recording recording = {0};
    torch_program_load(&recording);
    const frag_trace *trace = &recording.traces[0];
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    frag_device *device = frag_sim_device_create(
        &(frag_sim_device_options){.capacity_bytes = capacity, .address_rule = FRAG_ADDRESS_BUMP});
    frag_replay *replay = frag_replay_create(
        &(frag_run_setup){&recording, trace, spec.ops, spec.values, NULL}, device, &error);
    assert_non_null(replay);
    comparison seen = {.trace = trace};
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED,
                                   .is_oom_skipped = true,
                                   .check_every = 1000,
                                   .on_grant = compare_grant,
                                   .on_grant_context = &seen};
    frag_replay_result result;
    if (!frag_replay_run(replay, &options, &result, &error))
        fail_msg("%s", error.sentence);
    if (seen.differences > 0)
        fail_msg("%s: %llu blocks lie elsewhere in the replay", policy,
                 (unsigned long long)seen.differences);
    assert_int_equal(trace->stats.observed_reserved_peak_bytes, result.peak.reserved_bytes);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    return result.peak.reserved_bytes;
}

int torch_program_set_up(void **state)
{
    (void)state;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return -1;
    path[length] = '\0';
    snprintf(build_folder, sizeof build_folder, "%s", dirname(dirname(path)));
    snprintf(scratch, sizeof scratch, "/tmp/fraglab-torch-XXXXXX");
    return mkdtemp(scratch) != NULL ? 0 : -1;
}

int torch_program_tear_down(void **state)
{
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return system(command);
}
