/* What each policy does, described as the five choices in which allocators differ, and its use of
 * streams. For people; the policies themselves do not read it. */
#ifndef FRAG_ALLOCATORS_POLICY_RULES_H
#define FRAG_ALLOCATORS_POLICY_RULES_H

typedef struct frag_policy_rules {
    const char *policy;   /* its name */
    const char *rounding; /* what a request is rounded to */
    const char *takes;    /* which free block serves it, with which ties */
    const char *cuts;     /* when a block is split, and where */
    const char *joins;    /* what a freed block is coalesced with */
    const char *grows;    /* what is asked of the device, and what goes back when */
    const char *streams;  /* who may reuse what another stream freed */
} frag_policy_rules;

/* Names are those of options where a rule has one. NULL: a policy from outside the tree. */
const frag_policy_rules *frag_policy_rules_find(const char *name);

#endif
