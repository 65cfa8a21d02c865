#include "tests/text_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/text.h"
#include "traces/load.h"

void frag_test_recording(const char *text, frag_recording *recording)
{
    frag_text whole = {0};
    frag_text_add(&whole, "# fraglab trace 1\n%s", text);
    frag_input *input = frag_input_from_memory(whole.bytes, whole.length, "test");
    frag_load_options options = {.with_sites = true, .with_columns = true};
    frag_findings findings = {0};
    frag_error error = {0};
    if (!frag_recording_load_input(input, &options, recording, &findings, &error))
        fail_msg("%s", error.sentence);
    frag_input_close(input);
    frag_text_destroy(&whole);
}
