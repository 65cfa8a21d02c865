#include "studies/plan/fix_search.h"

#include <string.h>

static const frag_fix_score none_yet = {UINT64_MAX, false};

bool frag_fix_first_level(frag_fix_check *check, void *context, size_t fix, uint32_t level_max,
                          frag_fix_choice *choice)
{
    bool fits = false;
    choice->levels[fix] = 0;
    while (!fits && ++choice->levels[fix] < level_max)
        if (!check(context, choice, &fits))
            return false;
    return true;
}

/* The least level of a fix that fits, else the one that needs the least of those that are judged,
 * on top of a choice. A level that helps no more than a lower one is passed over. */
static bool find_level(const frag_fix_search *search, frag_fix_choice *choice, size_t fix,
                       frag_fix_score *best)
{
    frag_fix_choice tried = *choice;
    uint32_t most = search->levels_max[fix];
    uint32_t level = 1;
    if (search->check != NULL && most > 0) {
        if (!frag_fix_first_level(search->check, search->context, fix, most, &tried))
            return false;
        level = tried.levels[fix];
    }
    for (; level <= most && !best->fits; level++) {
        frag_fix_score score = *best;
        tried.levels[fix] = level;
        if (!search->judge(search->context, &tried, &score))
            return false;
        if (score.fits || (!best->fits && score.needed_bytes < best->needed_bytes)) {
            *best = score;
            *choice = tried;
        }
    }
    return true;
}

static bool add_fixes(const frag_fix_search *search, frag_fix_answer *answer)
{
    frag_fix_choice choice = {{0}};
    frag_fix_score best = answer->score;
    for (size_t fix = 0; fix < search->count && !best.fits; fix++) {
        frag_fix_choice before = choice;
        if (!find_level(search, &choice, fix, &best))
            return false;
        if (choice.levels[fix] == before.levels[fix])
            continue;
        answer->steps[answer->step_count++] = (frag_fix_step){choice, fix, best};
    }
    answer->choice = choice;
    answer->score = best;
    return true;
}

static bool still_fits(const frag_fix_search *search, const frag_fix_choice *choice,
                       frag_fix_score *score)
{
    if (search->check != NULL)
        return search->check(search->context, choice, &score->fits);
    *score = none_yet;
    return search->judge(search->context, choice, score);
}

/* The least level with which the others still fit. */
static bool lower_fix(const frag_fix_search *search, frag_fix_answer *answer, size_t fix)
{
    frag_fix_choice tried = answer->choice;
    for (uint32_t level = 0; level < answer->choice.levels[fix]; level++) {
        frag_fix_score score = {0};
        tried.levels[fix] = level;
        if (!still_fits(search, &tried, &score))
            return false;
        if (score.fits) {
            answer->choice = tried;
            answer->score = score;
            break;
        }
    }
    return true;
}

/* The dearest first, until none can be lower: one may be in the way of another. */
static bool lower_all(const frag_fix_search *search, frag_fix_answer *answer)
{
    frag_fix_choice before;
    do {
        before = answer->choice;
        for (size_t fix = search->count; fix > 0; fix--)
            if (answer->choice.levels[fix - 1] > 0 && !lower_fix(search, answer, fix - 1))
                return false;
    } while (memcmp(&before, &answer->choice, sizeof before) != 0);
    return true;
}

bool frag_fix_find(const frag_fix_search *search, frag_fix_answer *answer)
{
    *answer = (frag_fix_answer){.score = none_yet};
    if (!search->judge(search->context, &answer->choice, &answer->score) ||
        !add_fixes(search, answer))
        return false;
    answer->fits = answer->score.fits;
    if (answer->fits && !lower_all(search, answer))
        return false;
    if (search->check == NULL)
        return true;
    answer->score = none_yet;
    return search->judge(search->context, &answer->choice, &answer->score);
}
