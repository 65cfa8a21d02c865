#include "studies/explain/explain_peak.h"

#include "base/bytes.h"

/* A request larger than the device says more, as does what is short by more at the failure. */
static bool is_said_already(const frag_explain_peak *peak, const frag_diagnosis *diagnosis,
                            uint64_t short_bytes)
{
    switch (diagnosis->verdict) {
    case FRAG_OOM_VERDICT_OVERSIZED:
        return true;
    case FRAG_OOM_VERDICT_LIMIT:
        return peak->live_bytes <= peak->capacity_bytes;
    case FRAG_OOM_VERDICT_SHORTAGE:
        return diagnosis->missing.is_known && diagnosis->missing.bytes >= short_bytes;
    default:
        return false;
    }
}

static void say(const frag_explain_peak *peak, uint64_t short_bytes, frag_text *because)
{
    frag_text_clear(because);
    frag_text_add(because, "%s the program has %s in use at once, and ",
                  peak->is_whole ? "At its peak" : "Up to the request that failed when recorded",
                  FRAG_BYTES(peak->live_bytes));
    if (peak->live_bytes > peak->capacity_bytes)
        frag_text_add(because, "the device has %s", FRAG_BYTES(peak->capacity_bytes));
    if (peak->live_bytes <= peak->capacity_bytes)
        frag_text_add(because, "%s is allowed", FRAG_BYTES(peak->allowed_bytes));
    else if (peak->allowed_bytes < peak->capacity_bytes)
        frag_text_add(because, ", of which %s is allowed", FRAG_BYTES(peak->allowed_bytes));
    frag_text_add(because, ": at least %s short, however it is laid out.", FRAG_BYTES(short_bytes));
}

void frag_explain_peak_diagnose(const frag_explain_peak *peak, frag_diagnosis *diagnosis)
{
    if (peak->live_bytes <= peak->allowed_bytes)
        return;
    uint64_t short_bytes = peak->live_bytes - peak->allowed_bytes;
    if (is_said_already(peak, diagnosis, short_bytes))
        return;
    diagnosis->verdict = peak->live_bytes > peak->capacity_bytes ? FRAG_OOM_VERDICT_SHORTAGE
                                                                 : FRAG_OOM_VERDICT_LIMIT;
    diagnosis->confidence = FRAG_CONFIDENCE_HIGH;
    diagnosis->missing = (frag_amount){.is_known = true, .bytes = short_bytes};
    say(peak, short_bytes, &diagnosis->because);
}
