/* Runs two policies on a recording and prints their rows, as `fraglab run --format jsonl` does:
 * two_policies FILE [POLICY POLICY] */
#include <fraglab.h>
#include <stdio.h>

static int fail(const fraglab_error *error)
{
    char text[1024];
    fprintf(stderr, "%s\n", fraglab_error_text(error, text, sizeof text));
    return error->code;
}

int main(int count, char **words)
{
    const char *policies[] = {count > 2 ? words[2] : "pytorch:recorded",
                              count > 3 ? words[3] : "best-fit"};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    if (count < 2) {
        fprintf(stderr, "usage: two_policies FILE [POLICY [POLICY]]\n");
        return 2;
    }
    if (fraglab_open_path(NULL, words[1], NULL, &recording, &error) != FRAGLAB_OK)
        return fail(&error);
    for (size_t trace = 0; trace < fraglab_recording_trace_count(recording); trace++)
        for (size_t i = 0; i < 2; i++) {
            fraglab_policy *policy = NULL;
            fraglab_result *result = NULL;
            if (fraglab_policy_parse(policies[i], &policy, &error) != FRAGLAB_OK ||
                fraglab_run(NULL, recording, trace, policy, NULL, &result, &error) != FRAGLAB_OK)
                return fail(&error);
            fputs(fraglab_result_json(result), stdout);
            fraglab_result_destroy(result);
            fraglab_policy_destroy(policy);
        }
    fraglab_recording_close(recording);
    return 0;
}
