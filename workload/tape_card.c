#include "workload/tape_card.h"

#include <string.h>

#include "base/bytes.h"

const frag_tape_card frag_tape_card_usual = {
    .capability = 80, .multiprocessors = 108, .threads_per_multiprocessor = 2048};

bool frag_tape_card_read(const frag_device_description *description, const char *name,
                         frag_tape_card *card, frag_error *error)
{
    const frag_compute *compute = &description->compute;
    const char *dot = strchr(compute->capability, '.');
    uint64_t minor = 0;
    uint64_t major = 0;
    char text[sizeof compute->capability] = "";
    if (dot != NULL)
        memcpy(text, compute->capability, (size_t)(dot - compute->capability));
    if (dot == NULL || !frag_count_parse(text, 1, 99, &major, NULL) ||
        !frag_count_parse(dot + 1, 0, 9, &minor, NULL) || compute->multiprocessor_count == 0 ||
        compute->threads_per_multiprocessor == 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' has no compute capability of CUDA; expected an NVIDIA card with one",
                         name);
    *card = (frag_tape_card){.capability = (uint32_t)(10 * major + minor),
                             .multiprocessors = compute->multiprocessor_count,
                             .threads_per_multiprocessor = compute->threads_per_multiprocessor};
    return true;
}
