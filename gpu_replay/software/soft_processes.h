/* Processes that use the same cards: a file that all of them map (setting cards=FILE) says what
 * each holds of each card, so that one sees the memory that another took. Without the setting every
 * process has the cards for itself. Everything here is called under the lock of the device. */
#ifndef FRAG_SOFTWARE_SOFT_PROCESSES_H
#define FRAG_SOFTWARE_SOFT_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAG_SOFT_PROCESSES_MAX 256

typedef struct frag_soft_process {
    int64_t id;
    uint64_t bytes; /* held of the card */
} frag_soft_process;

/* Bytes that living processes other than this one hold of a card. */
uint64_t frag_soft_processes_bytes(uint32_t card);
/* Those processes; returns how many. */
uint32_t frag_soft_processes_list(uint32_t card, frag_soft_process found[FRAG_SOFT_PROCESSES_MAX]);

/* Between the two no other process takes memory. */
void frag_soft_processes_lock(void);
void frag_soft_processes_unlock(void);

/* What this process holds from now on: more, between the two above, or less. */
void frag_soft_processes_raise(uint32_t card, uint64_t bytes);
void frag_soft_processes_lower(uint32_t card, uint64_t bytes);
/* A request was refused: who held what at the last of them goes into the report. */
void frag_soft_processes_refused(uint32_t card, uint64_t bytes);
/* What others held when the last request was refused; 0 when none was. */
uint64_t frag_soft_processes_at_refusal(uint32_t card);
/* The most that all processes together held, and how many of them did at the same time. */
void frag_soft_processes_peak(uint32_t card, uint64_t *bytes, uint32_t *count);
/* The sentence about the last refusal. false: there is none, or no other process held anything. */
bool frag_soft_processes_tell(char *out, size_t out_bytes);

/* The end of this process, or of its life so far: it holds nothing. */
void frag_soft_processes_stop(void);
/* In a forked child: what is mapped is the parent's. */
void frag_soft_processes_forget(void);

#endif
