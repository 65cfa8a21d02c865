/* Calls the library in a program that writes 1,5 for one and a half, on two threads:
 * library_locale FILE. Prints that number, then a row and an explanation. */
#include <fraglab.h>
#include <locale.h>
#include <stdio.h>

int main(int count, char **words)
{
    fraglab_context_options calls = {.size = sizeof calls, .threads = 2};
    fraglab_open_options whole = {.size = sizeof whole, .with_sites = 1};
    fraglab_context *context = NULL;
    fraglab_recording *recording = NULL;
    fraglab_policy *policy = NULL;
    fraglab_result *result = NULL;
    char *explanation = NULL;
    if (count < 2 || setlocale(LC_ALL, "de_DE.UTF-8") == NULL ||
        fraglab_context_create(&calls, &context, NULL) != FRAGLAB_OK ||
        fraglab_open_path(context, words[1], &whole, &recording, NULL) != FRAGLAB_OK ||
        fraglab_policy_parse("pytorch:garbage_collection_threshold=0.8", &policy, NULL) !=
            FRAGLAB_OK ||
        fraglab_run(context, recording, 0, policy, NULL, &result, NULL) != FRAGLAB_OK ||
        fraglab_explain_recording(context, recording, NULL, &explanation, NULL) != FRAGLAB_OK)
        return 1;
    printf("%.1f\n%s%s", 1.5, fraglab_result_json(result), explanation);
    fraglab_free(explanation);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    fraglab_context_destroy(context);
    return 0;
}
