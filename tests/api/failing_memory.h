/* Host memory that fails on demand, and a count of what is live: for tests of the library. The
 * build redirects malloc and its kin there in every program tests/api/test_library*.c and
 * test_*_answers.c. */
#ifndef FRAG_API_FAILING_MEMORY_H
#define FRAG_API_FAILING_MEMORY_H

/* Pieces of memory that were allocated and not freed. */
long frag_live_memory(void);

/* Returns a code of the library. */
typedef int frag_call_to_try(void *argument);

/* Makes the call with each of its allocations refused, or of the later ones some, until it
 * succeeds: before that it must return FRAGLAB_E_MEMORY (or do without), and leave neither memory
 * nor descriptors behind. name: for the message. */
void frag_expect_memory_may_fail(const char *name, frag_call_to_try *call, void *argument);

#endif
