/* A loop over independent jobs on several threads. */
#ifndef FRAG_BASE_THREADS_H
#define FRAG_BASE_THREADS_H

#include <stdint.h>

/* The cores this process may use. */
uint32_t frag_core_count(void);

/* Runs job(context, index) for every index below count on threads; returns when all are done. */
void frag_for_each(uint32_t threads, uint64_t count, void (*job)(void *context, uint64_t index),
                   void *context);

#endif
