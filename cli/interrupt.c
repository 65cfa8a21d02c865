/* Ctrl-C and SIGTERM set a flag that long computations poll. */
#include "cli/command.h"

#include <signal.h>

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

void frag_watch_signals(void)
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
