/* A loop over independent jobs on several threads, and locks for these. */
#ifndef FRAG_BASE_THREADS_H
#define FRAG_BASE_THREADS_H

#include <stdint.h>

/* The cores this process may use. */
uint32_t frag_core_count(void);

/* Runs job(context, index) for every index below count on threads; returns when all are done. */
void frag_for_each(uint32_t threads, uint64_t count, void (*job)(void *context, uint64_t index),
                   void *context);

/* ---- locks that may be held while host memory is allocated.
 *
 * In a call of the library (base/scope.h) memory that fails on one thread takes that thread back to
 * where it began, whatever it held. The locks of such a call are therefore watched by its scope:
 * whoever waits for one then, or takes one later, goes back as well, so that nobody waits for what
 * does not come or uses what was left half done. Without a scope they are plain locks. */
typedef struct frag_lock frag_lock;

/* Of the active scope, if there is one: to be used by its threads alone. */
frag_lock *frag_lock_create(void);
void frag_lock_destroy(frag_lock *lock); /* NULL is allowed */

void frag_lock_take(frag_lock *lock);
void frag_lock_give(frag_lock *lock);

/* For who holds it: gives it, waits for frag_lock_tell, and takes it again. It can also return
 * without. */
void frag_lock_wait(frag_lock *lock);
/* To all who wait. */
void frag_lock_tell(frag_lock *lock);

#endif
