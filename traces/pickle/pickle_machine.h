/* The machine that runs a pickle's operations: what its two readers share. For
 * traces/pickle/pickle.c and traces/pickle/pickle_entry.c alone. */
#ifndef FRAG_PICKLE_PICKLE_MACHINE_H
#define FRAG_PICKLE_PICKLE_MACHINE_H

#include "base/file.h"
#include "traces/pickle/pickle_tree.h"

enum { FRAG_PICKLE_MARKS_MAX = 512 };

/* A name that was given to no value; no value has these bits. */
#define FRAG_PICKLE_UNNAMED UINT64_MAX

/* What is expected of the value of a key: mostly that it stands as in the last entry. */
typedef enum frag_pickle_form {
    FRAG_PICKLE_FORM_OTHER,  /* nothing */
    FRAG_PICKLE_FORM_NUMBER, /* a number of the same operation */
    FRAG_PICKLE_FORM_SAME,   /* the same bytes, at most 8, MEMOIZE among them */
    FRAG_PICKLE_FORM_NAMED,  /* BINGET or LONG_BINGET, whichever it was */
    /* ---- of no one length */
    FRAG_PICKLE_FORM_ANY_NUMBER, /* BININT, BININT1 or BININT2 */
    FRAG_PICKLE_FORM_ANY_NAME    /* BINGET or LONG_BINGET */
} frag_pickle_form;

/* A key of an entry with its value as they stood in the file; the next entry is mostly like it.
 * Bytes are compared as one number, the first the lowest. */
typedef struct frag_pickle_key {
    frag_pickle_value value;
    uint64_t bits; /* its operation, BINGET or LONG_BINGET, with its operand */
    uint64_t mask;
    size_t length;
    /* ---- of the value: of no use while its form is OTHER or of no one length */
    uint64_t head_bits; /* the key and what goes before the value's operand */
    uint64_t head_mask;
    size_t operand_at; /* of SAME all of the value is the operand */
    size_t total_length;
    uint64_t operand_mask; /* of what becomes the content of the value */
    uint64_t check_bits;   /* what is expected of the operand: a sign of 0, the same bytes */
    uint64_t check_mask;
    frag_pickle_value base; /* the value but for the operand: the tag of NUMBER, all of SAME */
    frag_pickle_form form;
    uint32_t names_given; /* 1: SAME ends with MEMOIZE */
    uint32_t miss_count;  /* how often the value was not as expected */
} frag_pickle_key;

typedef struct frag_pickle_machine {
    /* ---- input: bytes at..end are visible; window is where the visible part began */
    frag_input *input;
    const unsigned char *window;
    const unsigned char *at;
    const unsigned char *end;
    uint64_t window_offset;
    unsigned char *tail; /* the last bytes of the input, with zeros behind them */
    /* ---- values in the making, and those that were given a name */
    frag_pickle_value *stack;
    size_t stack_count;
    size_t stack_capacity;
    size_t marks[FRAG_PICKLE_MARKS_MAX];
    size_t mark_count;
    frag_pickle_value *memo;
    size_t memo_count;
    size_t memo_capacity;
    /* ---- what was read */
    frag_pickle *tree;
    frag_pickle_visitor visitor;
    void *visitor_context;
    bool has_entry_key;
    frag_pickle_value entry_key; /* the first key of what the visitor took last */
    uint64_t entry_count;        /* records that no container stands for */
    frag_pickle_key keys[FRAG_PICKLE_KEYS_MAX + 1]; /* the first that is not known is OTHER */
    frag_pickle_value pairs[2 * FRAG_PICKLE_KEYS_MAX + 2]; /* of the entry; keys stay */
    size_t key_count;   /* 0: none are known, or names were given anew */
    size_t taken_count; /* of the keys, when the visitor took last what has just these; else 0 */
} frag_pickle_machine;

/* Reads dictionaries that stand one behind the other, each from EMPTY_DICT, where *at is, to
 * SETITEMS, as long as they begin like the last one that the visitor took, are of plain values and
 * the visitor takes them. Their records are on the stack then, and *at is behind the last of them.
 * true: there stands another dictionary, which is to be read operation by operation; that also
 * finds what is wrong with it. There is room on the stack for one more value. */
bool frag_pickle_machine_entries(frag_pickle_machine *machine, const unsigned char **at);

#endif
