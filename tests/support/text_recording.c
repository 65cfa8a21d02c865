#include "tests/support/text_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

bool frag_test_load(const void *bytes, size_t count, frag_trace_format format,
                    frag_recording *recording, frag_findings *findings, frag_error *error)
{
    frag_load_options options = {.format = format, .with_sites = true, .with_columns = true};
    *findings = (frag_findings){0};
    *error = (frag_error){0};
    frag_input *input = frag_input_from_memory(bytes, count, "test");
    bool ok = frag_recording_load_input(input, &options, recording, findings, error);
    frag_input_close(input);
    return ok;
}

void frag_test_load_well(const char *text, frag_recording *recording, frag_findings *findings)
{
    frag_error error;
    if (!frag_test_load(text, strlen(text), FRAG_FORMAT_AUTO, recording, findings, &error))
        fail_msg("line %llu: %s", (unsigned long long)error.line, error.sentence);
}

void frag_test_recording(const char *text, frag_recording *recording)
{
    frag_text whole = {0};
    frag_findings findings;
    frag_text_add(&whole, "# fraglab trace 1\n%s", text);
    frag_test_load_well(whole.bytes, recording, &findings);
    frag_text_destroy(&whole);
}

uint64_t frag_test_found(const frag_findings *findings, const char *kind)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].kind, kind) == 0)
            return findings->items[i].count;
    return 0;
}
