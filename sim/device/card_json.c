#include "sim/device/card_json.h"

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"

static uint64_t known(uint64_t value)
{
    return value > 0 ? value : FRAG_UNLIMITED;
}

static const char *known_text(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* One text: what --gpu takes, with commas between. */
static void add_names(frag_json *json, const char *key, const frag_card_aliases *names)
{
    frag_text list = {.bytes = NULL};
    for (uint32_t i = 0; i < names->count; i++)
        frag_text_add(&list, "%s%s", i > 0 ? ", " : "", names->names[i]);
    frag_json_text(json, key, list.bytes);
    frag_text_destroy(&list);
}

static void add_compute(frag_json *json, const frag_compute *compute)
{
    frag_json_text(json, "compute.capability", known_text(compute->capability));
    frag_json_number(json, "compute.multiprocessors", known(compute->multiprocessor_count));
    frag_json_number(json, "compute.threads_per_multiprocessor",
                     known(compute->threads_per_multiprocessor));
    frag_json_number(json, "compute.shared_per_block_bytes",
                     known(compute->shared_per_block_bytes));
    frag_json_number(json, "compute.l2_bytes", known(compute->l2_bytes));
    frag_json_number(json, "compute.bandwidth_bytes_per_second", known(compute->bandwidth_bytes));
}

void frag_card_write_json(const char *name, const frag_device_description *card, FILE *stream)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "gpu", name);
    frag_json_text(json, "name", card->name);
    frag_json_text(json, "origin", frag_origin_name(card->origin));
    frag_json_text(json, "source", known_text(card->source));
    frag_json_text(json, "driver", known_text(card->driver));
    frag_json_text(json, "date", known_text(card->date));
    frag_json_number(json, "total_bytes", card->total_bytes);
    frag_json_number(json, "context_bytes", known(card->context_bytes));
    frag_json_number(json, "page_bytes", frag_device_description_page(card));
    frag_json_flag(json, "has_latency", card->has_latency);
    frag_json_text(json, "digest", card->digest);
    frag_json_number(json, "nominal_bytes", known(card->nominal_bytes));
    add_names(json, "aliases", &card->aliases);
    add_names(json, "means", &card->meanings);
    add_compute(json, &card->compute);
    frag_json_write(json, stream, false);
}
