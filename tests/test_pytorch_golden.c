/* The pytorch policy against logs of the real library: every address, every OOM. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "sim/replay.h"
#include "traces/load.h"

#define FOLDER "tests/data/golden"

/* What the policy answered, alloc by alloc; 0: out of memory. */
typedef struct answers {
    uint64_t *addresses;
    uint64_t count;
} answers;

static void note_answer(void *context, const frag_request *request, const frag_grant *grant)
{
    (void)request;
    answers *all = context;
    all->addresses[all->count++] = grant != NULL ? grant->address : 0;
}

static void load(const char *path, frag_recording *recording)
{
    frag_load_options options = {.with_columns = true};
    frag_findings findings = {0};
    frag_error error = {0};
    if (!frag_recording_load(path, &options, recording, &findings, &error))
        fail_msg("%s: %s", path, error.sentence);
}

static frag_device *open_device(const frag_recording *recording)
{
    frag_sim_device_options options = {.address_rule = FRAG_ADDRESS_LOWEST};
    frag_error error = {0};
    assert_true(frag_count_parse(frag_recording_get(recording, "golden.capacity"), 1, UINT64_MAX,
                                 &options.capacity_bytes, &error));
    if (strcmp(frag_recording_get(recording, "golden.va"), "bump") == 0)
        options.address_rule = FRAG_ADDRESS_BUMP;
    return frag_sim_device_create(&options);
}

static void compare(const char *path, const frag_trace *trace, const answers *all)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op != FRAG_OP_ALLOC)
            continue;
        uint64_t expected = (event->flags & FRAG_EVENT_FAILED) != 0 ? 0 : trace->addresses[i];
        if (all->addresses[at] != expected)
            fail_msg("%s event %llu: %llu bytes at 0x%llx; the library has 0x%llx", path,
                     (unsigned long long)i, (unsigned long long)event->bytes,
                     (unsigned long long)all->addresses[at], (unsigned long long)expected);
        at++;
    }
    assert_int_equal(at, all->count);
}

static void replay_log(const char *path)
{
    frag_recording recording = {0};
    frag_error error = {0};
    load(path, &recording);
    const frag_trace *trace = &recording.traces[0];
    frag_policy_spec spec;
    assert_true(frag_policy_spec_parse("pytorch", &spec, &error));
    assert_true(
        frag_policy_spec_apply(&spec, frag_recording_get(&recording, "torch.conf"), &error));
    answers all = {frag_alloc(trace->event_count, sizeof *all.addresses), 0};
    frag_device *device = open_device(&recording);
    frag_replay *replay =
        frag_replay_create(&recording, trace, spec.ops, spec.values, device, &error);
    if (replay == NULL)
        fail_msg("%s: %s", path, error.sentence);
    frag_replay_options options = {.is_oom_skipped = true,
                                   .stop_after = FRAG_UNLIMITED,
                                   .check_every = 500,
                                   .on_grant = note_answer,
                                   .on_grant_context = &all};
    frag_replay_result result;
    if (!frag_replay_run(replay, &options, &result, &error))
        fail_msg("%s: %s", path, error.sentence);
    compare(path, trace, &all);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    free(all.addresses);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
}

static void grants_the_addresses_of_the_real_library(void **state)
{
    (void)state;
    struct dirent **names = NULL;
    int count = scandir(FOLDER, &names, NULL, alphasort);
    assert_true(count > 0);
    uint32_t logs = 0;
    for (int i = 0; i < count; i++) {
        char path[512];
        size_t length = strlen(names[i]->d_name);
        if (length > 4 && strcmp(names[i]->d_name + length - 4, ".fgt") == 0) {
            snprintf(path, sizeof path, FOLDER "/%s", names[i]->d_name);
            replay_log(path);
            logs++;
        }
        free(names[i]);
    }
    free(names);
    assert_true(logs >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_the_addresses_of_the_real_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
