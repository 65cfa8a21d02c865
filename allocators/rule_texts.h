/* What several policies say alike in their rules, which `fraglab policies NAME` prints. */
#ifndef FRAG_ALLOCATORS_RULE_TEXTS_H
#define FRAG_ALLOCATORS_RULE_TEXTS_H

#define FRAG_RULE_TO_ALIGN "to multiples of align"
#define FRAG_RULE_LOW_END "always; the low end is handed out, the remainder stays free"
#define FRAG_RULE_NEIGHBOURS "with free neighbours, at once"
#define FRAG_RULE_OF_ITS_SEGMENT "with free neighbours of its segment, at once"
#define FRAG_RULE_NEVER "never"
#define FRAG_RULE_IGNORED "ignored: every stream may use a block as soon as it is free"
#define FRAG_RULE_MAPPED_AT_ITS_END                                                                \
    "one address range, mapped at its end in steps of grow, or by just the pages "                 \
    "needed if the device has no room for a step; the last "                                       \
    "hole is extended. "
#define FRAG_RULE_ONE_RANGE                                                                        \
    FRAG_RULE_MAPPED_AT_ITS_END                                                                    \
    "What is free at the end goes back on empty_cache and before a request "                       \
    "fails"
#define FRAG_RULE_RMM_STREAMS                                                                      \
    "free blocks belong to the stream that freed them; a stream that takes another's waits for it"

#endif
