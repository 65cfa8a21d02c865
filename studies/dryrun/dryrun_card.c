#include "studies/dryrun/dryrun_card.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/device/card_table.h"

/* More than any script asks for, and less than what the addresses of the software CUDA hold. */
#define ENDLESS_BYTES ((uint64_t)1 << 39)

/* A card without a name has the figures of this one. */
#define USUAL_CARD "a100-80gb"

static bool is_size(const char *text)
{
    return isdigit((unsigned char)text[0]) && text[strlen(text) - 1] == 'B';
}

static bool find_nameless(const char *text, frag_dryrun_gpu *gpu, frag_error *error)
{
    uint64_t bytes = ENDLESS_BYTES;
    if (text != NULL && !frag_bytes_parse(text, &bytes, error))
        return frag_error_in(error, "--gpu");
    if (bytes < 16 * FRAG_MIB || bytes > ENDLESS_BYTES)
        return frag_fail_in(error, FRAG_E_USAGE, "--gpu",
                            "%s is out of range for a card; write a size from 16MiB to 512GiB",
                            text);
    if (!frag_card_load(USUAL_CARD, &gpu->card, NULL, error))
        return false;
    snprintf(gpu->card.name, sizeof gpu->card.name, "GPU of %s", text != NULL ? text : "any size");
    gpu->card.total_bytes = bytes;
    gpu->card.nominal_bytes = bytes;
    gpu->card.context_bytes = 0;
    gpu->is_nameless = true;
    return true;
}

bool frag_dryrun_gpu_find(const char *text, frag_dryrun_gpu *gpu, frag_text *note,
                          frag_error *error)
{
    *gpu = (frag_dryrun_gpu){.is_given = text != NULL};
    bool ok = text == NULL || is_size(text) ? find_nameless(text, gpu, error)
                                            : frag_card_load(text, &gpu->card, note, error);
    if (!ok)
        return frag_error_in(error, "--gpu");
    if (gpu->card.total_bytes == 0)
        return frag_fail_in(error, FRAG_E_INPUT, text, "it says nothing of memory; add 'memory'");
    if (strncmp(gpu->card.compute.capability, "gfx", 3) == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "--gpu",
                            "%s is a card for ROCm; a dry run pretends to be a card for CUDA",
                            gpu->card.name);
    gpu->memory = (frag_dryrun_card){.capacity_bytes = gpu->card.total_bytes,
                                     .context_bytes = gpu->card.context_bytes};
    return true;
}

static void add_number(frag_text *settings, const char *name, uint64_t value)
{
    if (value != 0)
        frag_text_add(settings, ",%s=%" PRIu64, name, value);
}

void frag_dryrun_gpu_settings(const frag_dryrun_gpu *gpu, uint64_t count, frag_text *settings)
{
    const frag_device_description *card = &gpu->card;
    const frag_compute *compute = &card->compute;
    frag_text_add(settings, "addresses=snapshot,devices=%" PRIu64 ",capacity=%" PRIu64, count,
                  card->total_bytes);
    add_number(settings, "context", card->context_bytes);
    if (card->nominal_bytes > card->total_bytes)
        add_number(settings, "reserved", card->nominal_bytes - card->total_bytes);
    if (strpbrk(card->name, ",=") == NULL && card->name[0] != '\0')
        frag_text_add(settings, ",name=%s", card->name);
    if (compute->capability[0] != '\0')
        frag_text_add(settings, ",compute-capability=%s", compute->capability);
    add_number(settings, "multiprocessors", compute->multiprocessor_count);
    add_number(settings, "threads-per-multiprocessor", compute->threads_per_multiprocessor);
    add_number(settings, "shared", compute->shared_per_block_bytes);
    add_number(settings, "l2", compute->l2_bytes);
}
