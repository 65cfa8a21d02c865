/* Fuzzes the parser of PYTORCH_CUDA_ALLOC_CONF, under every release. */
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "base/bytes.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void check_settings(const frag_pytorch_settings *settings)
{
    FRAG_ASSERT(settings->large_segment_bytes > 10 * FRAG_MIB);
    FRAG_ASSERT(settings->max_split_bytes >= 20 * FRAG_MIB ||
                settings->max_split_bytes >= settings->large_segment_bytes);
    FRAG_ASSERT(settings->gc_threshold >= 0 && settings->gc_threshold < 1);
    FRAG_ASSERT(settings->key_fraction >= 0 && settings->key_fraction <= 1);
    bool has_divisions = false;
    for (int i = 0; i < 16; i++) {
        FRAG_ASSERT((settings->divisions[i] & (settings->divisions[i] - 1)) == 0);
        has_divisions |= settings->divisions[i] > 0;
    }
    FRAG_ASSERT(settings->has_divisions == has_divisions);
}

static void parse(frag_pytorch_settings *settings, const char *text)
{
    frag_pytorch_settings before = *settings;
    frag_error error = {.code = FRAG_E_NONE};
    if (frag_pytorch_conf_parse(settings, text, &error)) {
        check_settings(settings);
        return;
    }
    FRAG_ASSERT(error.code == FRAG_E_USAGE && error.sentence[0] != '\0');
    FRAG_ASSERT(error.column >= 1 && error.column <= strlen(text) + 1);
    FRAG_ASSERT(memcmp(&before, settings, sizeof before) == 0);
    FRAG_ASSERT(!frag_pytorch_conf_parse(settings, text, NULL));
}

/* The first byte is the release; the lines that follow are strings set one after another. */
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count == 0 || count > FRAG_MIB)
        return 0;
    frag_pytorch_settings settings;
    frag_pytorch_settings_reset(&settings, 200 + bytes[0] % 16u);
    char *text = frag_alloc(count, 1);
    memcpy(text, bytes + 1, count - 1);
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        parse(&settings, line);
        line = end;
    }
    free(text);
    return 0;
}
