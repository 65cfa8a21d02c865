/* What can be done so that a workload needs less memory, the cheapest for the user first. */
#ifndef FRAG_PLAN_FIX_TABLE_H
#define FRAG_PLAN_FIX_TABLE_H

#include "base/text.h"
#include "studies/plan/fix_base.h"
#include "studies/plan/fix_search.h"
#include "studies/plan/fix_time.h"

/* What a fix costs the user. */
typedef enum frag_fix_price {
    FRAG_FIX_FREE,     /* results and speed stay */
    FRAG_FIX_TIME,     /* slower, results stay */
    FRAG_FIX_NUMERICS, /* results are rounded otherwise */
    FRAG_FIX_TRAINING, /* another training: tune it anew */
    FRAG_FIX_PRICE_COUNT
} frag_fix_price;

/* "free", "time", "numerics", "training". */
const char *frag_fix_price_name(frag_fix_price price);

const char *frag_fix_place_name(frag_fix_place place);

enum { FRAG_FIX_KNOBS_MAX = 2 };

/* A fix is said by constants where these are enough, and else by functions. */
typedef struct frag_fix {
    const char *name;
    const char *what; /* it does, a sentence */
    const char *cost; /* a sentence */
    frag_fix_price price;
    /* Ever stronger forms that it has here; 0: it does not apply. */
    uint32_t (*count_levels)(const frag_fix_base *base);
    bool is_recomputing;     /* frag_fix_recomputing_ratio says how much longer it takes, */
    frag_fix_transfer moves; /* frag_fix_moved_bytes what crosses the bus */
    /* What it does: knobs that it sets, then a function, which may be NULL. */
    struct {
        const char *key, *value;
    } knobs[FRAG_FIX_KNOBS_MAX];
    void (*apply)(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting);
    /* What it makes of the setting, in few words. */
    const char *made;
    void (*describe)(const frag_fit_setting *setting, frag_text *text);
    /* The line to paste, if there is one. */
    const char *lines[FRAG_FIX_PLACE_COUNT];
    void (*write_line)(const frag_fix_base *base, const frag_fit_setting *setting,
                       frag_fix_place place, frag_text *text);
} frag_fix;

extern const frag_fix frag_fixes[];
size_t frag_fix_count(void);
/* NULL: FRAG_E_USAGE, with the nearest name. */
const frag_fix *frag_fix_named(const char *name, frag_error *error);

void frag_fix_describe(const frag_fix *fix, const frag_fit_setting *setting, frag_text *text);
/* setting: with all fixes applied. */
void frag_fix_write_line(const frag_fix *fix, const frag_fix_base *base,
                         const frag_fit_setting *setting, frag_fix_place place, frag_text *text);
void frag_fix_apply_all(const frag_fix_base *base, const frag_fix_choice *choice,
                        frag_fit_setting *setting);

/* The longest batch of a workload, in tokens. */
uint64_t frag_fix_longest(const frag_workload *workload);
/* Batches that are longer become that long. */
void frag_fix_shorten(frag_workload *workload, uint64_t tokens);

#endif
