/* From the figures of a message to what happened: one of nine verdicts, with the arithmetic that
 * leads to it.
 *
 * A caching allocator gives every wholly free segment back to the driver and asks again before it
 * fails. So what is idle when it does fail lies in segments that something still uses, and
 * "idle + free against the request" tells a lack of memory from a lack of memory in one piece. */
#ifndef FRAG_EXPLAIN_VERDICT_H
#define FRAG_EXPLAIN_VERDICT_H

#include "base/text.h"
#include "messages/message.h"

/* X(enumerator, name, what it means for a person) */
#define FRAG_OOM_VERDICTS(X)                                                                       \
    X(SHORTAGE, "shortage", "the program needs more memory than the device has left")              \
    X(OVERSIZED, "oversized-request", "one request is larger than the whole device")               \
    X(FRAGMENTATION, "fragmentation", "there was enough memory, but not in one piece")             \
    X(OTHER_MEMORY, "other-memory", "somebody else holds the memory")                              \
    X(LIMIT, "limit", "a limit that was set is reached, whatever the device has")                  \
    X(PLATFORM, "platform", "the figures do not explain it; suspect driver or platform")           \
    X(CACHE_HELD, "cache-held", "a cache holds memory that this request may not use")              \
    X(NO_FIGURES, "no-figures", "memory ran out, but the message does not say enough to tell why") \
    X(NOT_AN_OOM, "not-an-oom", "no GPU ran out of memory here")

typedef enum frag_oom_verdict {
#define FRAG_OOM_VERDICT_ENUM(name, text, meaning) FRAG_OOM_VERDICT_##name,
    FRAG_OOM_VERDICTS(FRAG_OOM_VERDICT_ENUM)
#undef FRAG_OOM_VERDICT_ENUM
        FRAG_OOM_VERDICT_COUNT
} frag_oom_verdict;

const char *frag_oom_verdict_name(frag_oom_verdict verdict);

typedef enum frag_confidence {
    FRAG_CONFIDENCE_LOW,    /* the figures allow something else too */
    FRAG_CONFIDENCE_MEDIUM, /* they point there, but are near a border, rounded or few */
    FRAG_CONFIDENCE_HIGH
} frag_confidence;

const char *frag_confidence_name(frag_confidence confidence);

/* The figures, made whole: what a message leaves out but its others imply is filled in. */
typedef struct frag_diagnosis {
    frag_oom_verdict verdict;
    frag_confidence confidence;
    frag_amount figures[FRAG_FIGURE_COUNT];
    frag_amount outside; /* of the device: neither free nor the allocator's */
    frag_amount context; /* of the process: not the allocator's */
    frag_amount missing; /* how much more would have been needed */
    uint64_t tokens;     /* of context for which the message says that there is room; 0: none */
    bool is_survived;    /* memory ran out, and the program went on without it */
    bool is_own;         /* other memory, but of this process: beside its allocator */
    frag_text because;   /* the arithmetic, in a sentence or two */
} frag_diagnosis;

/* Of the message that says most; where the text has none, whether it shows another error. The
 * diagnosis is destroyed by the caller. */
void frag_diagnose_text(const frag_messages *messages, frag_diagnosis *diagnosis);
void frag_diagnose(const frag_message *message, frag_diagnosis *diagnosis);
void frag_diagnosis_destroy(frag_diagnosis *diagnosis);

/* What the verdict means for a person, in a few words. */
const char *frag_diagnosis_meaning(const frag_diagnosis *diagnosis);

#endif
