#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "sim/cli/arguments.h"
#include "sim/cli/command.h"
#include "sim/cli/help.h"
#include "sim/version.h"

#define EXIT_INTERRUPTED 130

static volatile sig_atomic_t is_interrupted;

bool frag_is_interrupted(void)
{
    return is_interrupted != 0;
}

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

static void set_signals(void)
{
    /* The first ^C asks for a stop at the next row; a second one finds the default and kills. A
     * write that it falls into goes on, so that finished rows are whole. */
    struct sigaction interrupt = {.sa_handler = note_interrupt};
    interrupt.sa_flags = (int)(SA_RESETHAND | (unsigned)SA_RESTART);
    sigemptyset(&interrupt.sa_mask);
    sigaction(SIGINT, &interrupt, NULL);
    /* A parent may have had SIGPIPE ignored; `fraglab ... | head` should end quietly all the same.
     */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigemptyset(&standard.sa_mask);
    sigaction(SIGPIPE, &standard, NULL);
}

static int run(const frag_arguments *arguments)
{
    if (arguments->is_version) {
        printf("fraglab %s (%s)\n", frag_version(), frag_commit());
        return 0;
    }
    if (arguments->is_help) {
        frag_help_print(stdout, arguments->path, arguments->path_length);
        return 0;
    }
    int code = arguments->path[arguments->path_length - 1]->run(arguments);
    return is_interrupted != 0 && code == 0 ? EXIT_INTERRUPTED : code;
}

int main(int argc, char **argv)
{
    set_signals();
    frag_arguments arguments;
    frag_error error = {.code = FRAG_E_NONE};
    if (argc <= 1) {
        const frag_command *path[] = {&frag_program};
        frag_help_print(stderr, path, 1);
        return (int)FRAG_E_USAGE;
    }
    int code = frag_arguments_parse(&arguments, argc, argv, &error) ? run(&arguments)
                                                                    : frag_report(&error);
    frag_arguments_destroy(&arguments);
    /* A full disk shows only now; a result that was lost must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        frag_error lost = {.code = FRAG_E_NONE};
        frag_fail(&lost, FRAG_E_SYSTEM,
                  "stdout could not be written (%s); nothing on it can be trusted",
                  strerror(errno));
        return frag_report(&lost);
    }
    return code;
}
