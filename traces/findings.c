#include "traces/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

void frag_findings_add(frag_findings *findings, const char *kind, const char *meaning,
                       bool is_inconsistency, uint32_t device, uint64_t event, const char *format,
                       ...)
{
    uint32_t place = 0;
    while (place < findings->count && strcmp(findings->items[place].kind, kind) != 0)
        place++;
    FRAG_ASSERT(place < FRAG_FINDING_KINDS_MAX);
    frag_finding *finding = &findings->items[place];
    uint64_t count = place < findings->count ? finding->count : 0;
    if (count > 0) {
        finding->count++;
        /* Histories are undone from their end, so what is found last may come first. */
        if (device > finding->device || (device == finding->device && event >= finding->event))
            return;
    }
    findings->count += count == 0 ? 1 : 0;
    *finding = (frag_finding){
        .kind = kind,
        .meaning = meaning,
        .count = count + 1,
        .device = device,
        .event = event,
        .is_inconsistency = is_inconsistency,
    };
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->first, sizeof finding->first, format, arguments);
    va_end(arguments);
    /* It may hold text of the recording, which is not to reach a terminal as it is. */
    frag_text_make_plain(finding->first);
}

uint64_t frag_findings_inconsistencies(const frag_findings *findings)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < findings->count; i++)
        count += findings->items[i].is_inconsistency ? findings->items[i].count : 0;
    return count;
}
