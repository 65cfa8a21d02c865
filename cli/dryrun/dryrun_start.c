#include "cli/dryrun/dryrun_start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/process.h"
#include "cli/command.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_STARTED = 126, EXIT_SIGNAL = 128 };

/* After SIGTERM a process writes its recording; then it is killed. */
#define PATIENCE_NS ((uint64_t)30 * 1000 * 1000 * 1000)

/* ---- the child */

/* Before what is there already. */
static void put_first(const char *variable, const char *value)
{
    const char *old = getenv(variable);
    frag_text text = {0};
    bool has_old = old != NULL && old[0] != '\0';
    frag_text_add(&text, "%s%s%s", value, has_old ? ":" : "", has_old ? old : "");
    setenv(variable, text.bytes, 1);
    frag_text_destroy(&text);
}

/* What `. bin/activate` does. */
static void enter_environment(const char *folder)
{
    frag_text programs = {0};
    if (folder == NULL)
        return;
    frag_text_add(&programs, "%s/bin", folder);
    put_first("PATH", programs.bytes);
    setenv("VIRTUAL_ENV", folder, 1);
    unsetenv("PYTHONHOME");
    frag_text_destroy(&programs);
}

static void set_number(const char *variable, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    setenv(variable, text, 1);
}

/* As torchrun names them. */
static void set_rank(const frag_dryrun_rank *rank)
{
    if (rank->count == 0)
        return;
    set_number("RANK", rank->rank);
    set_number("WORLD_SIZE", rank->count);
    set_number("LOCAL_RANK", rank->rank % rank->local_count);
    set_number("LOCAL_WORLD_SIZE", rank->local_count);
    set_number("GROUP_RANK", rank->rank / rank->local_count);
    setenv("MASTER_ADDR", "127.0.0.1", 0);
    setenv("MASTER_PORT", "29500", 0);
}

static void set_surroundings(const frag_dryrun_start *start)
{
    set_rank(&start->rank);
    put_first("LD_PRELOAD", start->parts->preload.bytes);
    put_first("PYTHONPATH", start->parts->site);
    enter_environment(start->environment);
    put_first("PATH", start->parts->tools);
    setenv("FRAGLAB_DRYRUN", start->folder, 1);
    setenv("FRAGLAB_SOFTWARE_CUDA", start->settings, 1);
    setenv("PYTHONHASHSEED", "0", 1);
    if (start->parts->driver.length > 0)
        setenv("TRITON_LIBCUDA_PATH", start->parts->driver.bytes, 1);
    /* The cards of this machine are not those of the dry run. */
    unsetenv("CUDA_VISIBLE_DEVICES");
    /* 2.9 warns of the old name unless it finds the new one, which it does not heed for CUDA; later
     * releases heed both, earlier ones know the old one alone. */
    if (start->conf != NULL) {
        setenv("PYTORCH_CUDA_ALLOC_CONF", start->conf, 1);
        setenv("PYTORCH_ALLOC_CONF", start->conf, 1);
    }
    /* What a script orders by addresses of the host, such as sets of its objects, has one order in
     * every run. A container may not allow this; autocast, which PyTorch itself orders so, does not
     * need it: see host_objects.c. */
    frag_process_fix_addresses();
}

static _Noreturn void become(const frag_dryrun_start *start, char *const *command,
                             const sigset_t *mask, int report)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (start->timeout_ns != 0)
        setpgid(0, 0); /* all of it can be ended at once */
    if (start->log != NULL) {
        dup2(fileno(start->log), STDOUT_FILENO);
        dup2(fileno(start->log), STDERR_FILENO);
    }
    set_surroundings(start);
    execvp(command[0], command);
    int code = errno;
    ssize_t written = write(report, &code, sizeof code);
    _exit(written == (ssize_t)sizeof code && code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
}

typedef struct waiting {
    pid_t child;
    bool is_group;
    uint64_t begin_ns;
    uint64_t timeout_ns;
    bool is_timed_out;
    bool is_killed;
} waiting;

static void end_child(const waiting *wait, int number)
{
    kill(wait->is_group ? -wait->child : wait->child, number);
}

static void look_at_clock(waiting *wait)
{
    uint64_t now = frag_clock_ns() - wait->begin_ns;
    if (wait->timeout_ns == 0 || now < wait->timeout_ns)
        return;
    if (!wait->is_timed_out)
        end_child(wait, SIGTERM);
    wait->is_timed_out = true;
    /* What was recorded for long takes long to write. */
    if (now > 2 * wait->timeout_ns + PATIENCE_NS && !wait->is_killed) {
        end_child(wait, SIGKILL);
        wait->is_killed = true;
    }
}

/* Until the child is over. ^C on a terminal reaches the child by itself unless it has a group of
 * its own; a signal sent to this process does not. */
static int wait_for(waiting *wait, const sigset_t *watched, frag_dryrun_progress *progress)
{
    for (;;) {
        int status = 0;
        if (waitpid(wait->child, &status, WNOHANG) == wait->child)
            return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
        bool is_for_us = false;
        struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
        int number = frag_process_wait_signal(watched, &pause, &is_for_us);
        if (number > 0 && number != SIGCHLD && (is_for_us || wait->is_group))
            end_child(wait, number);
        look_at_clock(wait);
        if (progress != NULL)
            frag_dryrun_progress_draw(progress);
    }
}

static void watch_signals(sigset_t *watched)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigemptyset(watched);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(watched, numbers[i]);
}

bool frag_dryrun_run(const frag_dryrun_start *start, char *const *command, frag_dryrun_end *end,
                     frag_error *error)
{
    int report[2];
    sigset_t watched;
    sigset_t before;
    *end = (frag_dryrun_end){.code = 0};
    watch_signals(&watched);
    /* The report's end closes by itself when the child becomes the command. */
    if (pipe(report) != 0 || fcntl(report[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(report[1], F_SETFD, FD_CLOEXEC) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no pipe can be made (%s)", strerror(errno));
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &watched, &before);
    waiting wait = {.begin_ns = frag_clock_ns(),
                    .timeout_ns = start->timeout_ns,
                    .is_group = start->timeout_ns != 0};
    wait.child = fork();
    if (wait.child == 0)
        become(start, command, &before, report[1]);
    int fork_code = errno;
    close(report[1]);
    int exec_code = 0;
    end->is_started = wait.child > 0 && read(report[0], &exec_code, sizeof exec_code) <= 0;
    close(report[0]);
    if (wait.child > 0)
        end->code = wait_for(&wait, &watched, start->progress);
    if (start->progress != NULL)
        frag_dryrun_progress_end(start->progress);
    sigprocmask(SIG_SETMASK, &before, NULL);
    end->is_timed_out = wait.is_timed_out;
    end->time_ns = frag_clock_ns() - wait.begin_ns;
    if (wait.child < 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no process can be made (%s)", strerror(fork_code));
    if (!end->is_started)
        frag_fail(error, FRAG_E_SYSTEM, "'%s' cannot be run (%s)", command[0], strerror(exec_code));
    return true;
}
