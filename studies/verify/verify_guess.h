/* Settings that may have been those of a recording, tried one after the other.
 *
 * A guess is replayed on the recorded device until it differs from the recording; of all guesses
 * the one that goes along longest is kept. */
#ifndef FRAG_VERIFY_VERIFY_GUESS_H
#define FRAG_VERIFY_VERIFY_GUESS_H

#include "allocators/pytorch/pytorch_settings.h"
#include "allocators/registry.h"
#include "base/context.h"
#include "studies/verify/verify.h"
#include "studies/verify/verify_rounding.h"

/* A capacity for limits that are known in bytes; powers of two keep the share exact. */
#define FRAG_GUESS_CAPACITY ((uint64_t)1 << 40)

/* Nothing is concluded of sizes beyond this. */
#define FRAG_GUESS_LARGEST ((uint64_t)1 << 60)

/* Options that a guess sets. */
typedef enum frag_guess_key {
    FRAG_GUESS_VERSION,
    FRAG_GUESS_EXPANDABLE,
    FRAG_GUESS_LARGE_SEGMENT,
    FRAG_GUESS_DIVISIONS,
    FRAG_GUESS_MAX_SPLIT,
    FRAG_GUESS_SLACK,
    FRAG_GUESS_KEYS
} frag_guess_key;

extern const char *const frag_guess_keys[FRAG_GUESS_KEYS];

/* Settings that may have been those of the recording. */
typedef struct frag_guess {
    char texts[FRAG_GUESS_KEYS][FRAG_ROUNDING_TEXT_BYTES]; /* "": as given */
    uint64_t mark_bytes;     /* more than this makes it collect garbage; FRAG_UNLIMITED: none */
    uint64_t limit_bytes;    /* of memory; FRAG_UNLIMITED: what the mark needs, or none */
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: not known */
    frag_rounding rounding;  /* what texts[FRAG_GUESS_DIVISIONS] stands for */
} frag_guess;

/* What a mark is: a share of a limit, which is a share of a capacity. */
typedef struct frag_guess_limits {
    double threshold;
    uint64_t limit_bytes;
    uint64_t capacity_bytes;
} frag_guess_limits;

typedef struct frag_guessing {
    const frag_context *context;
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_pytorch_settings given;
    uint64_t unit;      /* of all segments */
    double limit_ratio; /* a share that the program set as its limit; 0: it did not */
    bool is_free[FRAG_GUESS_KEYS];
    bool is_mark_free;
    bool is_limit_free;
    bool is_capacity_free;
    uint64_t events_left; /* to be replayed before it gives up */
    uint64_t replays;
    frag_guess best;
    uint64_t best_reach; /* the event at which the best guess differs */
    frag_verify_result best_result;
} frag_guessing;

/* Sets the option of a guess to how sizes were rounded. */
void frag_guess_set_rounding(frag_guess *tried, const frag_rounding *rounding);

/* The limits of a guess. false: it cannot have such a mark. */
bool frag_guess_find_limits(const frag_guessing *search, const frag_guess *tried,
                            frag_guess_limits *found);

/* false: no release has such settings, and result is nothing. */
bool frag_guess_replay(const frag_guessing *search, const frag_guess *tried,
                       frag_verify_result *result);

/* Keeps the guess if it goes along with the recording longer than all before. false: it cannot be
 * made, or the search is over, and result is nothing. */
bool frag_guess_try(frag_guessing *search, const frag_guess *tried, frag_verify_result *result);

/* Is one found that is identical, or enough replayed in vain? */
bool frag_guessing_is_over(const frag_guessing *search);

#endif
