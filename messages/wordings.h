/* The table of wordings: how each framework says that memory ran out, and which figure stands
 * where. A new wording is a new line of the table. */
#ifndef FRAG_MESSAGES_WORDINGS_H
#define FRAG_MESSAGES_WORDINGS_H

#include "messages/message_facts.h"

typedef enum frag_wording_role {
    FRAG_WORDING_OPENS,    /* an OOM message begins here, or goes on if it has just begun */
    FRAG_WORDING_FIELD,    /* a figure or fact of the message before it */
    FRAG_WORDING_HARMLESS, /* the message before it, or this one, is only a warning */
    FRAG_WORDING_HOST,     /* a message about host memory */
    FRAG_WORDING_ELSE,     /* the message before it is about something else after all */
    FRAG_WORDING_HINT,     /* advice of the message: nothing after it counts as in force */
    FRAG_WORDING_SETTING,  /* a setting in force */
    FRAG_WORDING_SCENE     /* says what the program was doing */
} frag_wording_role;

enum {
    FRAG_WORDING_AT_START = 1, /* only at the start of a line, or after the mark that ends a
                                  prefix such as "RuntimeError:" */
    FRAG_WORDING_AT_END = 2,   /* no word may follow: it is a message, not a sentence about one */
    FRAG_WORDING_TELLING = 4,  /* a field so peculiar that a message whose head was cut off is
                                  known by it */
    FRAG_WORDING_AS_ERROR = 8, /* only in the form of a program's error (message_form.h) */
    FRAG_WORDING_AS_CODE = 16  /* a name that sources and texts use too: only where reported */
};

/* Patterns are lower case without blanks. In them stand for something:
 *   %  a size with its unit     #  a whole number, of bytes where it is a figure
 *   &  "[2,3,4]andtypefloat"    *  anything up to 60 bytes, once in a pattern
 * It begins with two characters of its own, or with %. The figures are those of the pattern's %, #
 * and & in order. Of all that fit at a place the one that covers most text is taken, and one that
 * goes on beyond it is taken too; so the order of the table decides nothing. */
typedef struct frag_wording {
    const char *pattern;
    frag_wording_role role;
    frag_framework framework; /* UNKNOWN: keeps the framework of the message */
    signed char figures[4];   /* frag_figure, or one of the below */
    uint32_t says;
    uint32_t place; /* FRAG_WORDING_AT_* */
    frag_setting setting;
    uint32_t scene; /* FRAG_SCENE_* */
    const char *release;
} frag_wording;

/* Instead of a figure. */
enum {
    FRAG_CAPTURE_NOTHING = -1,
    FRAG_CAPTURE_DEVICE = -2,  /* the device's number */
    FRAG_CAPTURE_PROCESS = -3, /* memory of one process by its number */
    FRAG_CAPTURE_CACHED = -4,  /* idle where it says "cached" */
    FRAG_CAPTURE_PROCESS_ID = -5,
    FRAG_CAPTURE_TOKENS = -6 /* how long a context the memory has room for */
};

extern const frag_wording frag_wordings[];
extern const size_t frag_wording_count;

#endif
