/* Any bytes as what a process of a dry run left: the first line as its facts, the others as the
 * report of the software CUDA. The facts are read, or it is said why not; every name is a string of
 * its own, and no place in a list is outside it. */
#include <string.h>

#include "base/bytes.h"
#include "studies/dryrun/dryrun_facts.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void check(const frag_dryrun_facts *facts)
{
    for (size_t i = 0; i < facts->mark_count; i++) {
        const frag_dryrun_mark *mark = &facts->marks[i];
        FRAG_ASSERT(memchr(mark->name, '\0', sizeof mark->name) != NULL);
        FRAG_ASSERT(frag_dryrun_find_mark(facts, mark->name) <= mark);
    }
    for (size_t i = 0; i < facts->note_count; i++) {
        const frag_dryrun_note *note = &facts->notes[i];
        FRAG_ASSERT(memchr(note->kind, '\0', sizeof note->kind) != NULL);
        FRAG_ASSERT(note->text != NULL && strpbrk(note->text, "\x1b\n") == NULL);
    }
    for (size_t i = 0; i < facts->uncertain_count; i++)
        for (size_t j = 0; j < i; j++)
            FRAG_ASSERT(facts->uncertain[i].answered_bytes != facts->uncertain[j].answered_bytes);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    const unsigned char *end = count > 0 ? memchr(bytes, '\n', count) : NULL;
    size_t first = end != NULL ? (size_t)(end - bytes) : count;
    frag_input *input = frag_input_from_memory(bytes, first, "facts");
    frag_input *report = frag_input_from_memory(bytes + first, count - first, "report");
    frag_error error = {.code = FRAG_E_NONE};
    frag_dryrun_facts facts;
    if (frag_dryrun_facts_read_inputs(input, report, &facts, &error))
        check(&facts);
    else
        FRAG_ASSERT(error.code != FRAG_E_NONE && error.sentence[0] != '\0');
    frag_dryrun_facts_destroy(&facts);
    frag_input_close(input);
    frag_input_close(report);
    return 0;
}
