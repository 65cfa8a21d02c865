/* Takes a policy written in C (my_policy.c, built as a shared object) and asks how small a device
 * may be for it: policy_in_c FILE ./my_policy.so[:OPTIONS] */
#include <fraglab.h>
#include <stdio.h>

int main(int count, char **words)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    fraglab_policy *policy = NULL;
    fraglab_capacity capacity = {.size = sizeof capacity};
    if (count != 3) {
        fprintf(stderr, "usage: policy_in_c FILE ./my_policy.so[:OPTIONS]\n");
        return 2;
    }
    int code = fraglab_open_path(NULL, words[1], NULL, &recording, &error);
    if (code == FRAGLAB_OK)
        code = fraglab_policy_parse(words[2], &policy, &error);
    if (code == FRAGLAB_OK)
        code = fraglab_min_capacity(NULL, recording, 0, policy, NULL, &capacity, &error);
    if (code == FRAGLAB_OK)
        printf("%s needs %llu bytes\n", fraglab_policy_name(policy),
               (unsigned long long)capacity.capacity_bytes);
    else
        fprintf(stderr, "%s: %s\n", error.where, error.sentence);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    return code;
}
