/* What a piece of text stands for that a terminal, JSON, HTML or a diff of lines has dressed up. */
#ifndef FRAG_MESSAGES_MESSAGE_ESCAPE_H
#define FRAG_MESSAGES_MESSAGE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* bytes is text from some point on, length what is left of it. Each returns how many bytes it
 * takes, 0: there is no such thing here. *plain is the character meant, 0 for none. */

/* Colours and titles of a terminal: ESC, or written as \033, \x1b, \u001b, ^[. */
size_t frag_escape_terminal(const unsigned char *bytes, size_t length);

/* "\n", "\"", "\\", "\u003e" of JSON and Python, however often escaped. */
size_t frag_escape_backslash(const unsigned char *bytes, size_t length, char *plain);

/* "&gt;", "&#39;", "<br>": of entities those in ASCII, of tags those that shape text. */
size_t frag_escape_html(const unsigned char *bytes, size_t length, char *plain);

/* Of the line at at: how many bytes its beginning has in common with the line before it, up to a
 * mark that ends a prefix ("[rank0]: ", "2026-01-02 12:00:00 | "), numbers aside. What may belong
 * to a message is no prefix. */
size_t frag_escape_prefix(const unsigned char *bytes, size_t length, size_t before, size_t at);

/* Does such a prefix say that its line is an error ("[ERROR] ")? */
bool frag_escape_says_error(const unsigned char *bytes, size_t length);

/* UTF-16, as PowerShell writes logs, to UTF-8. false: it is none, and *text stays empty. The
 * caller destroys the text. */
bool frag_escape_utf16(const char *bytes, size_t length, frag_text *text);

/* Text in which letters outside ASCII are written as JSON does, "\u663e\u5b58", to UTF-8. false:
 * there are none, and *text stays empty. The caller destroys the text. */
bool frag_escape_unicode(const char *bytes, size_t length, frag_text *text);

#endif
