/* Feeds events of one's own to the library and asks for the peak: ten rounds of a program that
 * keeps a small result of each, between two large blocks that it frees. */
#include <fraglab.h>
#include <stdio.h>

enum { ROUNDS = 10, MIB = 1 << 20 };

static int add_round(fraglab_builder *builder, uint64_t round, fraglab_error *error)
{
    const fraglab_event events[] = {
        {.op = FRAGLAB_ALLOC, .id = 1, .bytes = (20 + 3 * round) * MIB},
        {.op = FRAGLAB_ALLOC, .id = 100 + round, .bytes = 2 * MIB},
        {.op = FRAGLAB_ALLOC, .id = 2, .bytes = 40 * MIB},
        {.op = FRAGLAB_FREE, .id = 1},
        {.op = FRAGLAB_FREE, .id = 2},
    };
    return fraglab_builder_add(builder, events, sizeof events / sizeof events[0], error);
}

static int print_peak(const fraglab_recording *recording, const char *name, fraglab_error *error)
{
    fraglab_policy *policy = NULL;
    fraglab_result *result = NULL;
    uint64_t requested = 0;
    uint64_t reserved = 0;
    int code = fraglab_policy_parse(name, &policy, error);
    if (code == FRAGLAB_OK)
        code = fraglab_run(NULL, recording, 0, policy, NULL, &result, error);
    if (code == FRAGLAB_OK)
        code = fraglab_result_u64(result, "peak.requested_bytes", &requested, error);
    if (code == FRAGLAB_OK)
        code = fraglab_result_u64(result, "peak.reserved_bytes", &reserved, error);
    if (code == FRAGLAB_OK)
        printf("%s: %llu MiB reserved for %llu MiB requested\n", name,
               (unsigned long long)(reserved / MIB), (unsigned long long)(requested / MIB));
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    return code;
}

int main(void)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_builder *builder = NULL;
    fraglab_recording *recording = NULL;
    int code = fraglab_builder_create(NULL, &builder, &error);
    for (uint64_t round = 0; code == FRAGLAB_OK && round < ROUNDS; round++)
        code = add_round(builder, round, &error);
    if (code == FRAGLAB_OK)
        code = fraglab_builder_finish(builder, &recording, &error);
    fraglab_builder_destroy(builder);
    if (code == FRAGLAB_OK)
        code = print_peak(recording, "pytorch", &error);
    if (code == FRAGLAB_OK)
        code = print_peak(recording, "pytorch:expandable_segments=true", &error);
    if (code != FRAGLAB_OK)
        fprintf(stderr, "%s: %s\n", error.where, error.sentence);
    fraglab_recording_close(recording);
    return code;
}
