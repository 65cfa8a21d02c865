/* What a call of the library holds, so that all of it can be given back when host memory runs out.
 *
 * Code below the library never looks at what an allocation returned. While a scope is active on a
 * thread, base/memory.c enters every piece of memory in it, and the files that know a library of
 * others enter what that library must be asked to release. When memory fails, frag_scope_fail goes
 * back to where the scope was entered (longjmp), and what the scope lists is released; the stack
 * between is lost, so nothing that must be released may live there alone. What outlives a call
 * stays in the scope of the handle it belongs to, and goes with it.
 *
 * Without a scope, as in the command line, nothing is listed, and failing memory ends the program.
 */
#ifndef FRAG_BASE_SCOPE_H
#define FRAG_BASE_SCOPE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_scope frag_scope;
typedef void frag_scope_release(void *thing, size_t bytes);

frag_scope *frag_scope_create(void); /* NULL: out of host memory */
/* Releases what the scope lists: things in reverse order, then memory. NULL is allowed. */
void frag_scope_destroy(frag_scope *scope);

/* Calls work with the scope active on this thread; scopes do not nest. false: host memory failed,
 * here or in a thread that helped, and the scope was emptied. */
bool frag_scope_enter(frag_scope *scope, void (*work)(void *context), void *context);

/* ---- for code that runs inside; each does nothing, or as it says, where no scope is active */

/* The active scope, for threads that are to help; NULL: none. */
frag_scope *frag_scope_active(void);
/* Calls work on a thread that helps, or as the part of this thread beside helpers: when memory
 * fails it ends, and the scope remembers. NULL: calls work. */
void frag_scope_help(frag_scope *scope, void (*work)(void *context), void *context);
/* Did memory fail for one of the scope's threads? The others may end early then. */
bool frag_scope_has_failed(frag_scope *scope);
/* To be called when all that helped have ended: goes on with the failure of one of them. */
void frag_scope_rejoin(frag_scope *scope);

/* What the scope's threads wait on where one of them may wait for another (base/threads.h): change
 * is told when memory fails. */
typedef struct frag_scope_watch {
    pthread_mutex_t mutex;
    pthread_cond_t change;
} frag_scope_watch;
frag_scope_watch *frag_scope_watched(frag_scope *scope);

/* Host memory failed: does not return. Without a scope the program ends, with exit code 4. */
_Noreturn void frag_scope_fail(size_t count, size_t item_bytes);

/* Enters memory, NULL excepted, and takes it out: malloc'ed memory that is freed, or handed to the
 * caller of the library. Memory that is not listed is left alone. */
void frag_scope_add(void *memory);
void frag_scope_remove(void *memory);
void frag_scope_moved(uintptr_t from, void *to); /* from: where realloc had it */

/* Has release(thing, bytes) called when the scope is emptied, until it is disowned. */
void frag_scope_own(void *thing, size_t bytes, frag_scope_release *release);
void frag_scope_disown(void *thing);

#endif
