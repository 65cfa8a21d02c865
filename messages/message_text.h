/* Text as people paste it, made plain enough to look for wordings in it.
 *
 * An error message comes wrapped by a terminal, quoted by a mail, coloured, escaped by a logger. So
 * blanks, terminal codes, quote marks at the start of a line and box drawing are taken away, and
 * what is left is searched without regard to case. Line ends stay, because a number ends there. */
#ifndef FRAG_MESSAGES_MESSAGE_TEXT_H
#define FRAG_MESSAGES_MESSAGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands for a letter outside ASCII: part of no wording. */
#define FRAG_MESSAGE_FOREIGN '\x01'

/* What taking blanks and capitals away lost, kept beside each byte. */
enum {
    FRAG_MESSAGE_WORD = 1,    /* a blank stood before it, or a line begins here */
    FRAG_MESSAGE_CAPITAL = 2, /* it was a capital letter */
    FRAG_MESSAGE_BAR = 4,     /* a line begins here, with a '|' that was taken away */
    FRAG_MESSAGE_ERROR = 8    /* a line begins here, with a prefix that said "error" */
};

typedef struct frag_message_text {
    char *bytes;          /* ends with a zero; lower case, no blanks; '\n' between lines */
    unsigned char *marks; /* FRAG_MESSAGE_* of each byte, and of the zero */
    size_t length;
    /* Place in bytes of each line that has something in it, in order, and its number in the text.
     */
    struct frag_message_line {
        size_t at;
        uint64_t line;  /* from 1 */
        uint64_t owner; /* whose line it is by its prefix, see below */
    } * lines;
    size_t line_count;
    size_t line_capacity;
} frag_message_text;

/* Any bytes, zeros included. The result is the caller's. Time and memory are linear in length. */
void frag_message_text_make(frag_message_text *text, const char *bytes, size_t length);
void frag_message_text_destroy(frag_message_text *text);

/* The line of the original in which the byte at lies. */
uint64_t frag_message_text_line(const frag_message_text *text, size_t at);

/* Of a long line so much is read behind a place. */
enum { FRAG_MESSAGE_LINE_REACH = 240 };

/* Where the line in which the byte at lies begins in bytes, and where it ends, its '\n' left out,
 * or reach bytes behind at where that is nearer. */
size_t frag_message_text_line_start(const frag_message_text *text, size_t at);
size_t frag_message_text_line_end(const frag_message_text *text, size_t at, size_t reach);

/* Which of the processes that write the log wrote that line: one more than the number behind
 * "rank" or "pid=" near its start, as in "[rank3]: " or "(Worker rank=3 pid=1090)"; 0: it does not
 * say. */
uint64_t frag_message_text_owner(const frag_message_text *text, size_t at);

/* "C:\Users": a letter, a colon, a backslash and a name. Where the letter is small, the backslash
 * may be that of an escape. Of a text as it was given. */
bool frag_message_text_has_windows_path(const char *text, size_t length);

#endif
