/* A slow and obvious checker of policies that shares no code with them: a device of its own that
 * keeps plain lists of what it gave, and a list of live blocks against which every grant is held.
 */
#ifndef FRAG_SUPPORT_SLOW_CHECKER_H
#define FRAG_SUPPORT_SLOW_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/device.h"
#include "sim/policy.h"

typedef struct slow_range {
    uint64_t address;
    uint64_t bytes;
} slow_range;

/* Memory that is mapped for a second time. */
typedef struct slow_alias {
    slow_range range;
    uint64_t source;
} slow_alias;

/* A reserved range; one byte a page tells whether it is mapped. */
typedef struct slow_reservation {
    slow_range range;
    unsigned char *is_mapped;
} slow_reservation;

typedef struct slow_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t requested_bytes;
    uint32_t pool;
    frag_handle handle;
    bool is_shared;  /* another stream used it: it may stay after its free */
    bool is_waiting; /* freed, and its completion not yet reported */
} slow_block;

typedef struct slow_device {
    frag_device base;
    uint64_t next_address;
    uint64_t held_bytes;   /* whole pages: what the capacity limits */
    uint64_t policy_bytes; /* as asked */
    uint64_t refuse_every; /* every n-th malloc or map is refused; 0: none */
    uint64_t space_calls;
    slow_range *segments;
    size_t segment_count;
    size_t segment_capacity;
    slow_reservation *reservations;
    size_t reservation_count;
    size_t reservation_capacity;
    slow_alias *aliases;
    size_t alias_count;
    size_t alias_capacity;
} slow_device;

typedef struct slow_checker {
    slow_device device;
    const frag_policy_ops *ops;
    frag_policy *policy;
    uint64_t align;
    slow_block *blocks;
    size_t block_count;
    size_t block_capacity;
    char problem[256]; /* "" while all is well */
} slow_checker;

void slow_checker_create(slow_checker *checker, uint64_t capacity_bytes, uint64_t page_bytes);
void slow_checker_destroy(slow_checker *checker);

/* Each asks the policy and holds the outcome against the lists. false: out of memory, or a problem.
 */
bool slow_checker_alloc(slow_checker *checker, const frag_request *request);
/* The same for those who want the grant, too. */
bool slow_checker_grant(slow_checker *checker, const frag_request *request, frag_grant *grant);
void slow_checker_free(slow_checker *checker, size_t block, uint32_t stream);
void slow_checker_use(slow_checker *checker, size_t block, uint32_t stream);
/* For the policy's setup; the context is the checker. */
void slow_checker_complete(void *context, frag_handle handle);

/* Walks the policy and audits everything. false: problem says what is wrong. */
bool slow_checker_audit(slow_checker *checker);

#endif
