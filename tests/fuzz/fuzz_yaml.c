/* Fuzzes the YAML reader with any bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/formats/yaml.h"
#include "sim/device/device_description.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void visit(const frag_yaml_node *node)
{
    uint64_t number = 0;
    double ratio = 0;
    bool flag = false;
    frag_error error = {.code = FRAG_E_NONE};
    FRAG_ASSERT(node->line > 0 && node->column > 0);
    FRAG_ASSERT((node->kind == FRAG_YAML_SCALAR) == (node->text != NULL));
    if (!frag_yaml_bytes(node, &number, &error) && !frag_yaml_ratio(node, 0, 1, &ratio, &error) &&
        !frag_yaml_count(node, 1, 9, &number, &error) && !frag_yaml_flag(node, &flag, &error))
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.line == node->line &&
                    error.sentence[0] != '\0');
    uint64_t items = 0;
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next, items++) {
        FRAG_ASSERT((node->kind == FRAG_YAML_MAPPING) == (item->key != NULL));
        if (item->key != NULL)
            FRAG_ASSERT(frag_yaml_find(node, item->key) == item);
        visit(item);
    }
    FRAG_ASSERT(items == node->count);
}

/* A description that is read has what was asked of it, and is written so that it reads back. */
static void describe(const unsigned char *bytes, size_t count)
{
    frag_device_description card;
    frag_device_description again;
    frag_error error = {.code = FRAG_E_NONE};
    if (!frag_device_description_parse(bytes, count, &card, &error)) {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        return;
    }
    FRAG_ASSERT(card.name[0] != '\0' && card.context_bytes <= card.total_bytes);
    FRAG_ASSERT(frag_footprint_bytes(&card.footprint, 1) > 0);
    for (int call = 0; call < FRAG_DEVICE_CALL_COUNT; call++)
        FRAG_ASSERT(frag_latency_ns(&card.latency.calls[call], FRAG_MIB) >= 0);
    frag_text text = {.bytes = NULL};
    frag_device_description_write(&card, &text);
    FRAG_ASSERT(frag_device_description_parse(text.bytes, text.length, &again, &error));
    FRAG_ASSERT(strcmp(card.digest, again.digest) == 0);
    frag_text_destroy(&text);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    frag_error error = {.code = FRAG_E_NONE};
    frag_yaml_node *root = frag_yaml_parse(bytes, count, &error);
    if (root == NULL)
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
    else
        visit(root);
    describe(bytes, count);
    frag_yaml_destroy(root);
    return 0;
}
