#include "studies/ranks/rank_numbers.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static bool is_digit(char letter)
{
    return isdigit((unsigned char)letter) != 0;
}

/* The number that a text begins with; *end is behind it. false: none, or too large. */
static bool read_number(const char *text, uint32_t *number, const char **end)
{
    uint64_t value = 0;
    const char *at = text;
    for (; is_digit(*at) && value <= UINT32_MAX; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    *number = (uint32_t)value;
    *end = at;
    return at > text && value < UINT32_MAX;
}

/* The number behind the last "rank". skipped: a number that begins before this many letters is not
 * meant. */
static bool read_behind_word(const char *path, size_t skipped, uint32_t *number)
{
    bool is_found = false;
    const char *end = NULL;
    for (const char *at = path; *at != '\0'; at++) {
        if (strncasecmp(at, "rank", 4) != 0)
            continue;
        const char *digits = at + 4 + strspn(at + 4, "_-.=:");
        uint32_t value = 0;
        if (digits >= path + skipped && read_number(digits, &value, &end)) {
            *number = value;
            is_found = true;
        }
    }
    return is_found;
}

bool frag_rank_number_named(const char *path, uint32_t *number)
{
    return read_behind_word(path, 0, number);
}

/* How many letters all paths begin with; a number is not cut in two. */
static size_t common_start(const char *const *paths, size_t count)
{
    size_t length = strlen(paths[0]);
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < length && paths[i][same] == paths[0][same])
            same++;
        length = same;
    }
    while (length > 0 && is_digit(paths[0][length - 1]))
        length--;
    return length;
}

static bool read_where_they_differ(const char *const *paths, size_t count, uint32_t *numbers)
{
    if (count < 2)
        return false;
    size_t start = common_start(paths, count);
    const char *rest = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *end = NULL;
        if (!read_number(paths[i] + start, &numbers[i], &end) ||
            (rest != NULL && strcmp(end, rest) != 0))
            return false;
        rest = end;
    }
    return true;
}

/* A dry run writes rank 0 to "run.pickle", and the others to "run.pickle-rank1" and so on. */
static bool read_words(const char *const *paths, size_t count, size_t skipped, uint32_t *numbers)
{
    size_t named = 0;
    size_t unnamed = 0;
    bool has_first = false;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = 0;
        if (read_behind_word(paths[i], skipped, &numbers[i]))
            named++;
        else
            unnamed = i;
        has_first = has_first || (numbers[i] == 0 && unnamed != i);
    }
    return named == count || (named > 0 && named + 1 == count && !has_first);
}

void frag_rank_numbers(const char *const *paths, size_t count, uint32_t *numbers)
{
    size_t same = count > 1 ? common_start(paths, count) : 0;
    /* In "rank4/run.pickle" and "rank4/run.pickle-rank1" the 4 is of both. */
    if (read_words(paths, count, same, numbers) || read_words(paths, count, 0, numbers) ||
        read_where_they_differ(paths, count, numbers))
        return;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)i;
}

/* ---- lists */

bool frag_rank_list_parse(const char *text, frag_rank_list *list, frag_error *error)
{
    size_t capacity = 0;
    const char *at = text;
    *list = (frag_rank_list){0};
    for (;;) {
        uint32_t range[2];
        bool ok = read_number(at, &range[0], &at);
        range[1] = range[0];
        if (ok && *at == '-')
            ok = read_number(at + 1, &range[1], &at);
        if (!ok || range[1] < range[0] || (*at != ',' && *at != '\0'))
            return frag_fail(error, FRAG_E_USAGE, "'%s' is not a list of ranks; expected 0-3,8",
                             text);
        list->ranges = frag_grow(list->ranges, &capacity, list->count + 1, sizeof *list->ranges);
        memcpy(list->ranges[list->count++], range, sizeof range);
        if (*at == '\0')
            return true;
        at++;
    }
}

void frag_rank_list_destroy(frag_rank_list *list)
{
    frag_free(list->ranges);
    *list = (frag_rank_list){0};
}

bool frag_rank_list_has(const frag_rank_list *list, uint32_t number)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ranges[i][0] <= number && number <= list->ranges[i][1])
            return true;
    return false;
}
