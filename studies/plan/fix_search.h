/* The cheapest combination of fixes that fits: which are tried in which order. What a fix is, and
 * how a combination is measured, is the caller's. */
#ifndef FRAG_PLAN_FIX_SEARCH_H
#define FRAG_PLAN_FIX_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAG_FIXES_MAX = 32 };

/* Levels of each fix; 0: it is not applied. */
typedef struct frag_fix_choice {
    uint32_t levels[FRAG_FIXES_MAX];
} frag_fix_choice;

typedef struct frag_fix_score {
    uint64_t needed_bytes;
    bool fits;
} frag_fix_score;

/* score: the best so far, which may be left as it is where the choice needs no less. false: the
 * search ends. */
typedef bool frag_fix_judge(void *context, const frag_fix_choice *choice, frag_fix_score *score);
/* The same, where what it needs is not asked for. */
typedef bool frag_fix_check(void *context, const frag_fix_choice *choice, bool *fits);

/* Sets the level of a fix in a choice: the least that fits, else level_max, which is at least 1 and
 * is not asked for. false: check ended it. */
bool frag_fix_first_level(frag_fix_check *check, void *context, size_t fix, uint32_t level_max,
                          frag_fix_choice *choice);

typedef struct frag_fix_search {
    size_t count;                        /* fixes, the cheapest first */
    uint32_t levels_max[FRAG_FIXES_MAX]; /* 0: does not apply */
    frag_fix_judge *judge;
    frag_fix_check *check; /* NULL: judge is asked */
    void *context;
} frag_fix_search;

typedef struct frag_fix_step {
    frag_fix_choice choice; /* all fixes so far */
    size_t fix;             /* that was added */
    frag_fix_score score;
} frag_fix_step;

typedef struct frag_fix_answer {
    frag_fix_step steps[FRAG_FIXES_MAX]; /* until one fits */
    size_t step_count;
    frag_fix_choice choice; /* what is left when nothing dearer than needed stays */
    frag_fix_score score;
    bool fits;
} frag_fix_answer;

/* A fix is held to be dearer than all before it together. They are added one by one in that order,
 * each at the least level that fits, else at the one that needs the least, or with check at the
 * strongest; what saves nothing is left out. When it fits, they are taken out again from the
 * dearest on, or lowered, as long as it still fits, again and again until none can be. Where no fix
 * does harm that is the cheapest combination. false: judge ended it. */
bool frag_fix_find(const frag_fix_search *search, frag_fix_answer *answer);

#endif
