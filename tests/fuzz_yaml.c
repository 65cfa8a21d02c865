#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/yaml.h"

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
    frag_yaml_destroy(root);
    return 0;
}
