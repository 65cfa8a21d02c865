/* What processes ask of the system where Linux and others differ. Outside Linux each function does
 * what comes nearest, as it says. */
#ifndef FRAG_SYSTEM_PROCESS_H
#define FRAG_SYSTEM_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* In a child: it is killed when its parent ends. Elsewhere nothing; the child ends at its next
 * write into the pipe that nobody reads. */
void frag_process_end_with_parent(void);

/* This process and those that it becomes have their memory at the same addresses in every run.
 * Where a container does not allow it, and elsewhere, nothing changes. */
void frag_process_fix_addresses(void);

/* Waits for one of the watched signals, which are blocked, and returns it; 0: none came within the
 * limit (NULL: none is set), or the wait was interrupted. is_for_us: a process
 * sent it to this one alone, where ^C on a terminal goes to its children too. Elsewhere SIGINT and
 * SIGQUIT are taken to be of the terminal. */
int frag_process_wait_signal(const sigset_t *watched, const struct timespec *limit,
                             bool *is_for_us);

/* Until this time of CLOCK_MONOTONIC, or a signal. */
void frag_process_sleep_until(const struct timespec *until);

#endif
