/* For what only Linux has; some builds define it for all files. */
#define _GNU_SOURCE 1

#include "base/system/process.h"

#ifdef __linux__
#include <sys/personality.h>
#include <sys/prctl.h>

void frag_process_end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void frag_process_fix_addresses(void)
{
    int now = personality(0xffffffff);
    if (now >= 0)
        personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

int frag_process_wait_signal(const sigset_t *watched, const struct timespec *limit, bool *is_for_us)
{
    siginfo_t told = {0};
    int number = limit == NULL ? sigwaitinfo(watched, &told) : sigtimedwait(watched, &told, limit);
    *is_for_us = number > 0 && told.si_code <= 0;
    return number > 0 ? number : 0;
}

void frag_process_sleep_until(const struct timespec *until)
{
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL);
}

#else
#include <stdint.h>

void frag_process_end_with_parent(void)
{
}

void frag_process_fix_addresses(void)
{
}

/* Without a timed wait of the system: looks every hundredth of a second. */
static bool is_one_pending(const sigset_t *watched, const struct timespec *limit)
{
    int64_t left_ns = (int64_t)limit->tv_sec * 1000000000 + limit->tv_nsec;
    for (;;) {
        sigset_t pending;
        sigpending(&pending);
        for (int number = 1; number < NSIG; number++)
            if (sigismember(&pending, number) == 1 && sigismember(watched, number) == 1)
                return true;
        if (left_ns <= 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        left_ns -= 10000000;
    }
}

int frag_process_wait_signal(const sigset_t *watched, const struct timespec *limit, bool *is_for_us)
{
    int number = 0;
    *is_for_us = false;
    if (limit != NULL && !is_one_pending(watched, limit))
        return 0;
    if (sigwait(watched, &number) != 0)
        number = 0;
    *is_for_us = number > 0 && number != SIGINT && number != SIGQUIT;
    return number;
}

void frag_process_sleep_until(const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec left = {.tv_sec = until->tv_sec - now.tv_sec,
                            .tv_nsec = until->tv_nsec - now.tv_nsec};
    if (left.tv_nsec < 0) {
        left.tv_nsec += 1000000000;
        left.tv_sec--;
    }
    if (left.tv_sec >= 0)
        nanosleep(&left, NULL);
}
#endif
