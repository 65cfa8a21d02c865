/* Says why memory ran out in a recording, and which settings would need the least; Ctrl-C ends it:
 * explain_and_tune FILE */
#include <fraglab.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t is_over;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static int is_cancelled(void *user)
{
    (void)user;
    return is_over;
}

static void show_progress(void *user, const char *what, const char *unit, uint64_t done,
                          uint64_t total)
{
    (void)user;
    fprintf(stderr, "\r%s: %llu of %llu %s ", what, (unsigned long long)done,
            (unsigned long long)total, unit);
}

static int fail(const fraglab_error *error)
{
    char text[1024];
    fprintf(stderr, "%s\n", fraglab_error_text(error, text, sizeof text));
    return error->code;
}

/* The setting to paste, and what it gains. */
static void print_tuned(const fraglab_tuned *tuned)
{
    fraglab_tuned_trace traces[16];
    size_t count = fraglab_tuned_traces(tuned, traces, 16);
    printf("PYTORCH_CUDA_ALLOC_CONF=%s\n", fraglab_tuned_setting(tuned));
    for (size_t i = 0; i < count && i < 16; i++)
        printf("device %llu: %llu MiB reserved, %llu MiB with the default\n",
               (unsigned long long)traces[i].device,
               (unsigned long long)traces[i].tuned_bytes >> 20,
               (unsigned long long)traces[i].default_bytes >> 20);
}

int main(int count, char **words)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_context *context = NULL;
    fraglab_recording *recording = NULL;
    fraglab_policy *policy = NULL;
    fraglab_tuned *tuned = NULL;
    char *explanation = NULL;
    fraglab_context_options calls = {.size = sizeof calls,
                                     .is_cancelled = is_cancelled,
                                     .progress = show_progress,
                                     .threads = 4};
    fraglab_open_options whole = {.size = sizeof whole, .with_sites = 1};
    fraglab_explain_options person = {.size = sizeof person, .as_text = 1};
    fraglab_tune_options search = {.size = sizeof search, .settings = 100};
    signal(SIGINT, end);
    if (count < 2) {
        fprintf(stderr, "usage: explain_and_tune FILE\n");
        return 2;
    }
    if (fraglab_context_create(&calls, &context, &error) != FRAGLAB_OK ||
        fraglab_open_path(context, words[1], &whole, &recording, &error) != FRAGLAB_OK ||
        fraglab_policy_parse("pytorch", &policy, &error) != FRAGLAB_OK)
        return fail(&error);
    if (fraglab_explain_recording(context, recording, &person, &explanation, &error) == FRAGLAB_OK)
        printf("%s\n", explanation);
    else if (error.code != FRAGLAB_E_USAGE) /* which says that it did not run out of memory */
        return fail(&error);
    const fraglab_recording *searched[] = {recording};
    if (fraglab_tune(context, searched, 1, policy, &search, &tuned, &error) != FRAGLAB_OK)
        return fail(&error);
    print_tuned(tuned);
    fraglab_tuned_destroy(tuned);
    fraglab_free(explanation);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    fraglab_context_destroy(context);
    return 0;
}
