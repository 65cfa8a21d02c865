#include "traces/text/text_trace.h"

frag_text_shape frag_text_shape_of(frag_op op)
{
    switch (op) {
    case FRAG_OP_ALLOC:
        return FRAG_TEXT_SLOT_BYTES;
    case FRAG_OP_FREE:
    case FRAG_OP_USE:
    case FRAG_OP_COMPLETE:
        return FRAG_TEXT_SLOT;
    case FRAG_OP_EMPTY_CACHE:
        return FRAG_TEXT_POOL_OR_NOTHING;
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_RELEASE:
    case FRAG_OP_POOL_CREATE:
    case FRAG_OP_POOL_ON_OOM:
    case FRAG_OP_POOL_NO_SPLIT:
        return FRAG_TEXT_POOL;
    case FRAG_OP_CONFIG:
    case FRAG_OP_MARK:
        return FRAG_TEXT_STRING;
    case FRAG_OP_LIMIT:
        return FRAG_TEXT_LIMIT;
    case FRAG_OP_SYNC:
    case FRAG_OP_CAPTURE_BEGIN:
    case FRAG_OP_CAPTURE_END:
        return FRAG_TEXT_NOTHING;
    default:
        return FRAG_TEXT_BYTES;
    }
}

const char *frag_text_flag_name(uint8_t flag)
{
    switch (flag) {
    case FRAG_EVENT_INITIAL:
        return "initial";
    case FRAG_EVENT_DEFERRED:
        return "deferred";
    case FRAG_EVENT_FAILED:
        return "failed";
    case FRAG_EVENT_BEGIN:
        return "begin";
    case FRAG_EVENT_END:
        return "end";
    case FRAG_EVENT_RATIO:
        return "ratio";
    case FRAG_EVENT_INFERRED:
        return "inferred";
    case FRAG_EVENT_PLACED:
        return "placed";
    default:
        return NULL;
    }
}
