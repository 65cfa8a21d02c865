#include "studies/leaks/leak_series.h"

/* The rule, over the values behind the warm-up (the first sixth, at least one): a leak rises at two
 * times or more (three of many), falls by no more than a tenth of what it rises, and grows in each
 * third, in the last by at least a third of the mean. One that rises once is a buffer that is made
 * late; one whose last third does not grow is a cache that fills. */
enum { MANY = 8, LEAST = 4 };

typedef struct sums {
    uint64_t rise;
    uint64_t fall;
    size_t rises;
    size_t last_rise;
} sums;

static sums add_up(const uint64_t *values, size_t start, size_t count)
{
    sums all = {0};
    for (size_t i = start + 1; i < count; i++) {
        if (values[i] > values[i - 1]) {
            all.rise += values[i] - values[i - 1];
            all.rises++;
            all.last_rise = i;
        } else {
            all.fall += values[i - 1] - values[i];
        }
    }
    return all;
}

static double growth(const uint64_t *values, size_t from, size_t to)
{
    return (double)values[to] - (double)values[from];
}

/* Where what is judged begins: behind the warm-up, and where it does not rise at first, shortly
 * before it does. */
static size_t find_start(const uint64_t *values, size_t count)
{
    size_t start = count / 6 > 1 ? count / 6 : 1;
    while (start + LEAST < count && values[start + 1] == values[start])
        start++;
    return start;
}

/* The value with which the rising begins: back from the start as long as it rose, then on over what
 * is flat. */
static size_t find_first(const uint64_t *values, size_t start, size_t count)
{
    size_t at = start;
    while (at > 0 && values[at - 1] < values[at] &&
           growth(values, at - 1, at) <=
               3 * growth(values, start, count - 1) / (double)(count - 1 - start))
        at--;
    while (at + 1 < count && values[at + 1] <= values[at])
        at++;
    return at + 1 < count ? at + 1 : at;
}

frag_leak_judgement frag_leak_judge(const uint64_t *values, size_t count)
{
    size_t start = find_start(values, count);
    size_t last = count - 1;
    size_t steps = last - start;
    sums all = add_up(values, start, count);
    frag_leak_judgement found = {.shape = FRAG_SHAPE_FLAT,
                                 .start = start,
                                 .last_rise = all.last_rise,
                                 .rising_ratio = (double)all.rises / (double)steps};
    double total = growth(values, start, last);
    if (all.rise == 0 || all.fall * 10 > all.rise || total <= 0)
        return found;
    found.first = find_first(values, start, count);
    if (all.rises == 1) {
        found.shape = FRAG_SHAPE_ONCE;
        return found;
    }
    double parts[3];
    for (size_t i = 0; i < 3; i++)
        parts[i] = growth(values, start + steps * i / 3, start + steps * (i + 1) / 3);
    bool is_spread = parts[0] > 0 && parts[1] > 0 && parts[2] * 9 >= total;
    bool is_often = all.rises >= (steps >= MANY ? 3 : 2);
    if (!is_spread || !is_often) {
        found.shape = parts[2] * 9 < total ? FRAG_SHAPE_LEVELS_OFF : FRAG_SHAPE_FLAT;
        return found;
    }
    found.shape = FRAG_SHAPE_LEAK;
    found.is_even = true;
    for (size_t i = 0; i < 3; i++)
        found.is_even = found.is_even && parts[i] * 6 >= total && parts[i] * 2 <= total * 1.2;
    return found;
}
