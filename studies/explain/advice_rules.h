/* The table of advice: which step is for which verdict, framework and text. */
#ifndef FRAG_EXPLAIN_ADVICE_RULES_H
#define FRAG_EXPLAIN_ADVICE_RULES_H

#include "studies/explain/verdict.h"

/* What a step can gain at most. */
typedef enum frag_gain_source {
    FRAG_GAIN_UNKNOWN,
    FRAG_GAIN_IDLE,
    FRAG_GAIN_OTHERS,
    FRAG_GAIN_CONTEXT,
    FRAG_GAIN_FREE,
    FRAG_GAIN_SHARE, /* of the device, what is free in whole hundredths */
    FRAG_GAIN_PRIVATE,
    FRAG_GAIN_MISSING /* not a gain, but what must be gained */
} frag_gain_source;

/* The variable that PyTorch's settings are read from. */
typedef enum frag_conf_variable {
    FRAG_CONF_CUDA,
    FRAG_CONF_HIP,
    FRAG_CONF_NPU,
    FRAG_CONF_PLAIN,
    FRAG_CONF_COUNT
} frag_conf_variable;

typedef struct frag_advice_rule {
    uint32_t verdicts;   /* one bit each, */
    uint32_t frameworks; /* as of these */
    const char *action;
    uint32_t when;                   /* facts that must all hold, */
    uint32_t unless;                 /* and those of which none may */
    frag_setting unless_set;         /* left out when it is in force */
    const char *setting;             /* what to set, literally, */
    const char *const *conf_setting; /* or by the variable that it is set in; NULL: none */
    /* or with a number from the figures; it may make none */
    void (*make_setting)(const frag_diagnosis *diagnosis, frag_text *setting);
    frag_gain_source gain;
    const char *text; /* '@': the setting, '<': what lists processes, '>': what picks devices */
    const char *with_gain; /* goes on after the text; one %s for the bytes */
} frag_advice_rule;

/* What others hold of the device at most. */
frag_amount frag_advice_others(const frag_diagnosis *diagnosis);

/* What is free, as a share of the device in hundredths and rounded down; 0: that is not known. */
unsigned frag_advice_share(const frag_diagnosis *diagnosis);

/* In the order in which they are worth trying. */
extern const frag_advice_rule frag_advice_rules[];
extern const size_t frag_advice_rule_count;

/* What holds in this case, one bit each: what the rules' conditions are made of. */
uint32_t frag_advice_facts(const frag_messages *messages, const frag_message *message,
                           const frag_diagnosis *diagnosis);

/* Did the wording tell this release? */
bool frag_advice_has_release(const frag_message *message, const char *release);

#endif
