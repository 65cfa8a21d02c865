#include "studies/explain/explain_start.h"

#include "base/bytes.h"

void frag_explain_start_find(const frag_trace *trace, uint64_t failed, uint64_t allowed_bytes,
                             frag_explain_start *start)
{
    uint64_t reserved = 0;
    *start = (frag_explain_start){
        .is_too_large =
            failed < trace->event_count && (trace->events[failed].flags & FRAG_EVENT_INITIAL) != 0,
    };
    if (!start->is_too_large)
        return;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if ((event->flags & FRAG_EVENT_INITIAL) == 0)
            break;
        if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP)
            reserved += event->bytes;
        else if (event->op == FRAG_OP_ALLOC)
            start->live_bytes += trace->block_bytes != NULL && trace->block_bytes[i] > 0
                                     ? trace->block_bytes[i]
                                     : event->bytes;
    }
    start->held_bytes = reserved > start->live_bytes ? reserved : start->live_bytes;
    if (start->held_bytes > allowed_bytes)
        start->missing_bytes = start->held_bytes - allowed_bytes;
}

void frag_explain_start_diagnose(const frag_explain_start *start, uint64_t allowed_bytes,
                                 frag_diagnosis *diagnosis)
{
    bool is_live_too_large = start->live_bytes > allowed_bytes;
    *diagnosis = (frag_diagnosis){
        .verdict = FRAG_OOM_VERDICT_SHORTAGE,
        .confidence = is_live_too_large ? FRAG_CONFIDENCE_HIGH : FRAG_CONFIDENCE_MEDIUM,
        .missing = {.is_known = start->missing_bytes > 0, .bytes = start->missing_bytes},
    };
    frag_text_add(&diagnosis->because,
                  "The start of the recording alone does not fit: when it begins, %s are held, %s "
                  "of them in use, and the device has %s",
                  FRAG_BYTES(start->held_bytes), FRAG_BYTES(start->live_bytes),
                  FRAG_BYTES(allowed_bytes));
    if (start->missing_bytes > 0)
        frag_text_add(&diagnosis->because, ": %s short.", FRAG_BYTES(start->missing_bytes));
    else
        frag_text_add(&diagnosis->because, ", which is too little for it laid out anew.");
    if (!is_live_too_large)
        frag_text_add(&diagnosis->because, " What is in use would fit by itself.");
}

void frag_explain_start_advise(const frag_explain_start *start, frag_advice *advice)
{
    *advice = (frag_advice){.count = 2};
    frag_advice_step *step = &advice->steps[0];
    step->action = "smaller-start";
    frag_text_add(&step->text, "Hold less before the recorded part begins: weights in a smaller "
                               "form, an optimizer with smaller state, nothing kept from "
                               "earlier steps");
    if (start->missing_bytes > 0)
        frag_text_add(&step->text, "; at least %s must go", FRAG_BYTES(start->missing_bytes));
    frag_text_add(&step->text, ".");
    advice->steps[1].action = "record-from-the-start";
    frag_text_add(&advice->steps[1].text,
                  "Record from the program's first allocation on: then it shows who holds this "
                  "memory, and every setting can be tried on it.");
}
