#include "cli/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/process.h"
#include "cli/command.h"

#define READ_BYTES ((size_t)1 << 16)
#define WAKE_MS 100
#define PATIENCE 50 /* wakes after an interrupt until the child is killed */

static _Noreturn void be_child(frag_child_work *work, void *context, const int ends[2],
                               pid_t parent)
{
    /* Nothing would be left that waits for it. */
    frag_process_end_with_parent();
    if (getppid() != parent)
        _exit(1);
    close(ends[0]);
    FILE *stream = fdopen(ends[1], "w");
    if (stream == NULL)
        _exit(1);
    work(context, stream);
    /* Not _exit: the driver's libraries put their affairs in order. */
    exit(fclose(stream) == 0 ? 0 : 1);
}

static bool read_some(int end, unsigned char **bytes, size_t *count, size_t *capacity, bool *is_end)
{
    *bytes = frag_grow(*bytes, capacity, *count + READ_BYTES, 1);
    ssize_t got = read(end, *bytes + *count, READ_BYTES);
    *is_end = got == 0;
    if (got > 0)
        *count += (size_t)got;
    return got >= 0 || errno == EINTR;
}

/* Until the child closes its end. */
static void read_all(int end, pid_t child, unsigned char **bytes, size_t *count)
{
    size_t capacity = 0;
    bool is_end = false;
    int since_interrupt = 0;
    while (!is_end) {
        struct pollfd wait = {.fd = end, .events = POLLIN};
        int ready = poll(&wait, 1, WAKE_MS);
        if (ready > 0 && !read_some(end, bytes, count, &capacity, &is_end))
            break;
        /* The terminal interrupts both; others only this one. */
        if (frag_is_interrupted() && since_interrupt++ == 0)
            kill(child, SIGINT);
        if (since_interrupt == PATIENCE)
            kill(child, SIGKILL);
    }
}

static bool judge_end(int status, frag_error *error)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        return frag_fail(error, FRAG_E_SYSTEM,
                         "the process that used the GPU was ended by signal %d (%s)",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    return frag_fail(error, FRAG_E_SYSTEM, "the process that used the GPU ended with code %d",
                     WEXITSTATUS(status));
}

bool frag_child_run(frag_child_work *work, void *context, unsigned char **bytes, size_t *count,
                    frag_error *error)
{
    int ends[2];
    *bytes = NULL;
    *count = 0;
    /* What is still to be written would be written twice. */
    fflush(NULL);
    if (pipe(ends) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no pipe to another process: %s", strerror(errno));
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0)
        be_child(work, context, ends, parent);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return frag_fail(error, FRAG_E_SYSTEM, "no other process: %s", strerror(errno));
    }
    read_all(ends[0], child, bytes, count);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return judge_end(status, error);
}
