#include "cli/machine/record_run.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/process.h"
#include "base/system/program_path.h"
#include "sim/device/device_log_format.h"

#define PRELOAD_FILE "libfraglab_record.so"
#define CUPTI_FILE "libfraglab_cupti.so"
#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_STARTED = 126, EXIT_SIGNAL = 128 };

/* Beside the program as built, or as installed. */
static bool find_library(const char *file, char path[8192])
{
    static const char *const places[] = {"", "../lib/fraglab/"};
    char program[4096];
    frag_program_path(program, sizeof program);
    char *slash = strrchr(program, '/');
    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof *places; i++) {
        slash[1] = '\0';
        snprintf(path, 8192, "%s%s%s", program, places[i], file);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* Answers without starting the driver, so that this process may still make others. */
typedef int get_version(int *version);

/* Why CUPTI cannot be used; NULL: it can. Whatever would go wrong only in the program, hours before
 * anybody looks, is looked at here. */
static const char *find_hindrance(const char *library)
{
    const char *other = getenv(INJECTION_VARIABLE);
    if (access("/dev/nvidiactl", F_OK) != 0 && access("/dev/dxg", F_OK) != 0)
        return "CUPTI needs a GPU driver, and none is here";
    if (other != NULL && other[0] != '\0')
        return INJECTION_VARIABLE " names another library already";
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver == NULL)
        return "CUPTI needs a GPU driver, and libcuda.so.1 is not found";
    if (dlsym(driver, "frag_software_reset") != NULL)
        return "the driver is a software CUDA";
    void *recorder = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    const int *needed = recorder != NULL ? dlsym(recorder, "frag_cupti_needs_version") : NULL;
    if (needed == NULL)
        return "CUPTI cannot be loaded";
    void *found = dlsym(driver, "cuDriverGetVersion");
    get_version *get;
    memcpy(&get, &found, sizeof get);
    int version = 0;
    if (get == NULL || get(&version) != 0 || version < *needed)
        return "the GPU driver is older than CUPTI";
    return NULL;
}

bool frag_record_choose(const char *by, frag_record_choice *choice, frag_error *error)
{
    choice->reason = "it was asked for";
    choice->is_cupti = by == NULL || strcmp(by, "cupti") == 0;
    bool has_cupti = choice->is_cupti && find_library(CUPTI_FILE, choice->library);
    if (by != NULL && choice->is_cupti)
        return has_cupti ||
               frag_fail(error, FRAG_E_SYSTEM,
                         "there is no " CUPTI_FILE " beside this fraglab; it is built where the "
                         "CUDA toolkit with cupti.h is found; use --by preload");
    if (by == NULL) {
        const char *hindrance =
            has_cupti ? find_hindrance(choice->library) : "this fraglab was built without CUPTI";
        choice->is_cupti = hindrance == NULL;
        choice->reason = choice->is_cupti ? "CUPTI and a GPU driver are here" : hindrance;
        if (choice->is_cupti)
            return true;
    }
    if (!find_library(PRELOAD_FILE, choice->library))
        return frag_fail(error, FRAG_E_SYSTEM,
                         "there is no " PRELOAD_FILE
                         " beside this fraglab: it was moved away from it, or built with CUDA=no");
    return strpbrk(choice->library, " :") == NULL ||
           frag_fail(error, FRAG_E_SYSTEM,
                     "%s cannot be preloaded, as its path has a blank or a colon; move fraglab",
                     choice->library);
}

/* ---- the child */

static void set_surroundings(const frag_record_choice *choice, const char *folder)
{
    setenv(FRAG_DEVICE_LOG_FOLDER_VARIABLE, folder, 1);
    if (choice->is_cupti) {
        setenv(INJECTION_VARIABLE, choice->library, 1);
        return;
    }
    const char *others = getenv("LD_PRELOAD");
    char all[16384];
    bool has_others = others != NULL && others[0] != '\0';
    snprintf(all, sizeof all, "%s%s%s", choice->library, has_others ? ":" : "",
             has_others ? others : "");
    setenv("LD_PRELOAD", all, 1);
}

static _Noreturn void become(const frag_record_choice *choice, const char *folder,
                             char *const *command, const sigset_t *mask, int report)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    set_surroundings(choice, folder);
    execvp(command[0], command);
    int code = errno;
    ssize_t written = write(report, &code, sizeof code);
    _exit(written == (ssize_t)sizeof code && code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
}

/* Until the child is over. ^C on a terminal reaches the child by itself, a signal sent to this
 * process does not. */
static int wait_for(pid_t child, const sigset_t *watched)
{
    for (;;) {
        int status = 0;
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
        bool is_for_us = false;
        int number = frag_process_wait_signal(watched, NULL, &is_for_us);
        if (is_for_us && number != SIGCHLD)
            kill(child, number);
    }
}

bool frag_record_run(const frag_record_choice *choice, const char *folder, char *const *command,
                     int *code, frag_error *error)
{
    int report[2];
    sigset_t watched;
    sigset_t before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGQUIT);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGHUP);
    /* The report's end closes by itself when the child becomes the command. */
    if (pipe(report) != 0 || fcntl(report[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(report[1], F_SETFD, FD_CLOEXEC) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no pipe can be made (%s)", strerror(errno));
    sigprocmask(SIG_BLOCK, &watched, &before);
    pid_t child = fork();
    if (child == 0)
        become(choice, folder, command, &before, report[1]);
    int fork_code = errno;
    close(report[1]);
    int exec_code = 0;
    bool is_started = child > 0 && read(report[0], &exec_code, sizeof exec_code) <= 0;
    close(report[0]);
    if (child > 0)
        *code = wait_for(child, &watched);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no process can be made (%s)", strerror(fork_code));
    if (!is_started) {
        frag_fail(error, FRAG_E_SYSTEM, "'%s' cannot be run (%s)", command[0], strerror(exec_code));
    }
    return true;
}
