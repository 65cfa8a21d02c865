/* Lengths that are one for all, listed, or drawn from a range. */
#include "base/random.h"
#include "workload/description/description.h"

uint64_t frag_lengths_at(const frag_lengths *lengths, uint64_t index, uint64_t *random)
{
    if (!lengths->is_range)
        return lengths->values[index % lengths->count];
    uint64_t span = lengths->values[1] - lengths->values[0] + 1;
    return lengths->values[0] + frag_random_next(random) % span;
}

uint64_t frag_lengths_largest(const frag_lengths *lengths)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < lengths->count; i++)
        largest = lengths->values[i] > largest ? lengths->values[i] : largest;
    return largest;
}

bool frag_workload_has_tokens(const frag_workload *workload)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    return !family->has_images && !family->has_samples && !family->has_graphs;
}

bool frag_workload_is_drawn(const frag_workload *workload, frag_workload *longest)
{
    *longest = *workload;
    frag_lengths *const all[] = {&longest->tokens, &longest->lookups, &longest->nodes,
                                 &longest->edges};
    bool is_drawn = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        is_drawn = is_drawn || all[i]->is_range;
        if (all[i]->is_range)
            all[i]->values[0] = all[i]->values[1];
    }
    return is_drawn;
}

uint64_t frag_workload_answer(const frag_workload *workload, uint64_t length)
{
    return length > 0 ? length : workload->new_tokens;
}

uint64_t frag_workload_longest_answer(const frag_workload *workload)
{
    const frag_lengths *lengths = &workload->answer_tokens;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < lengths->count; i++) {
        uint64_t answer = frag_workload_answer(workload, lengths->values[i]);
        longest = answer > longest ? answer : longest;
    }
    return longest;
}
