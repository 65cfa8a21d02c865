#include "messages/wording_match.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "messages/guess/message_form.h"
#include "messages/guess/message_guess.h"
#include "messages/message_size.h"

enum {
    GAP_MAX = 60,    /* what * may pass over */
    CUT_LETTERS = 3, /* so many of a name tell it where the text is cut off */
    REACH = 400      /* of a line so much is read */
};

/* ---- one pattern */
static size_t capture(char kind, const char *text, frag_amount *amount)
{
    return kind == '%'   ? frag_message_size(text, amount)
           : kind == '#' ? frag_message_number(text, amount)
                         : frag_message_shape(text, amount);
}

/* The text ends within the name that follows a figure, and what there is of it is right. */
static bool is_cut_off(const char *pattern, const char *text, size_t letters)
{
    return letters >= CUT_LETTERS && text[strspn(text, "\n")] == '\0' &&
           pattern[strspn(pattern, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

/* At text, without regard to line ends. At most one level deep: a pattern has one *. */
static bool match_pattern(const char *pattern, const char *text, frag_wording_match *found)
{
    size_t at = 0;
    size_t letters = 0; /* since the last figure */
    for (; *pattern != '\0'; pattern++) {
        if (found->capture_count > 0 && is_cut_off(pattern, text + at, letters))
            break;
        if (at > 0 && text[at] == '\n')
            at++;
        if (*pattern == '*') {
            for (size_t gap = 0; gap <= GAP_MAX && text[at + gap] != '\0'; gap++) {
                frag_wording_match rest = *found;
                if (match_pattern(pattern + 1, text + at + gap, &rest)) {
                    *found = rest;
                    found->bytes = at + gap + rest.bytes;
                    return true;
                }
            }
            return false;
        }
        if (*pattern == '%' || *pattern == '#' || *pattern == '&') {
            FRAG_ASSERT(found->capture_count < FRAG_WORDING_CAPTURES_MAX);
            size_t taken = capture(*pattern, text + at, &found->captures[found->capture_count]);
            if (taken == 0)
                return false;
            found->capture_count++;
            at += taken;
            letters = 0;
        } else if (text[at] == *pattern) {
            at++;
            letters++;
        } else {
            return false;
        }
    }
    found->bytes = at;
    return true;
}

/* ---- where a wording counts */
/* Not of "out-of-memory error", a word with hyphens. */
static bool is_at_start(const frag_message_text *text, size_t at)
{
    const char *bytes = text->bytes;
    if (at > 1 && bytes[at - 1] == '-' && isalpha((unsigned char)bytes[at - 2]) &&
        (text->marks[at] & FRAG_MESSAGE_WORD) == 0)
        return false;
    return at == 0 || strchr("\n:'\"`]})!-*#=>", bytes[at - 1]) != NULL;
}

static bool is_at_end(const frag_message_text *text, size_t at)
{
    const char *rest = text->bytes + at;
    const char *quote = rest + strspn(rest, ".:!");
    bool is_compared = (*quote == '"' || *quote == '\'') && strncmp(quote + 1, "in", 2) == 0;
    return !is_compared && (*rest == '\0' || strchr("\n.,;:!?'\"`)]*<", *rest) != NULL);
}

/* A line may be wrapped, but goes on only in a line of the same process. */
static bool is_of_one(const frag_message_text *text, size_t at, size_t end)
{
    if (memchr(text->bytes + at, '\n', end - at) == NULL)
        return true;
    uint64_t first = frag_message_text_owner(text, at);
    uint64_t last = frag_message_text_owner(text, end - 1);
    return first == 0 || last == 0 || first == last;
}

/* "| CUDA out of memory | too large a batch | a smaller one |": a row of a table, that tells what
 * may happen. */
static bool is_in_table(const frag_message_text *text, size_t at)
{
    size_t start = frag_message_text_line_start(text, at);
    size_t end = frag_message_text_line_end(text, start, REACH);
    bool has_bar = (text->marks[start] & FRAG_MESSAGE_BAR) != 0;
    bool is_cell = at == start || strchr("|`*", text->bytes[at - 1]) != NULL;
    return has_bar && is_cell && memchr(text->bytes + start, '|', end - start) != NULL &&
           strncmp(text->bytes + start, "error", strlen("error")) != 0;
}

static bool is_in_place(const frag_message_text *text, const frag_wording *wording, size_t at,
                        size_t end)
{
    bool has_figures = strpbrk(wording->pattern, "%#&") != NULL;
    size_t start = frag_message_text_line_start(text, at);
    bool is_case = strncmp(text->bytes + start, "case", strlen("case")) == 0 &&
                   (text->marks[start + strlen("case")] & FRAG_MESSAGE_WORD) != 0;
    if (wording->role == FRAG_WORDING_OPENS &&
        ((!has_figures &&
          (is_case || is_in_table(text, at) || frag_message_is_explained_at(text, at))) ||
         frag_message_is_of_page(text, at)))
        return false;
    return is_of_one(text, at, end) &&
           ((wording->place & FRAG_WORDING_AT_START) == 0 || is_at_start(text, at)) &&
           ((wording->place & FRAG_WORDING_AT_END) == 0 || is_at_end(text, end)) &&
           ((wording->place & FRAG_WORDING_AS_ERROR) == 0 ||
            frag_message_is_error(text->bytes, at, end)) &&
           ((wording->place & FRAG_WORDING_AS_CODE) == 0 ||
            frag_message_is_reported(text->bytes, at, end));
}

/* ---- all wordings */
void frag_wording_index_make(frag_wording_index *index)
{
    FRAG_ASSERT(frag_wording_count <= FRAG_WORDINGS_MAX);
    memset(index, 0, sizeof *index);
    index->next = frag_alloc(frag_wording_count, sizeof *index->next);
    for (size_t i = frag_wording_count; i > 0; i--) {
        const char *pattern = frag_wordings[i - 1].pattern;
        FRAG_ASSERT(strchr("#&*", pattern[0]) == NULL && strchr("%#&*", pattern[1]) == NULL);
        bool is_size = pattern[0] == '%';
        uint16_t *list = &index->first[(unsigned char)(is_size ? '0' : pattern[0])]
                                      [(unsigned char)(is_size ? '0' : pattern[1])];
        index->next[i - 1] = *list;
        *list = (uint16_t)i;
    }
}

void frag_wording_index_destroy(frag_wording_index *index)
{
    frag_free(index->next);
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Is this digit not the first of its number? */
static bool is_inside_number(const char *text, size_t at)
{
    return at > 0 && is_digit(text[at]) &&
           (is_digit(text[at - 1]) ||
            (at > 1 && (text[at - 1] == '.' || text[at - 1] == ',') && is_digit(text[at - 2])));
}

/* Most wordings differ soon from what stands here. */
static bool may_match(const char *pattern, const char *text)
{
    for (size_t i = 2;
         i < 6 && pattern[0] != '%' && pattern[i] != '\0' && strchr("%#&*", pattern[i]) == NULL;
         i++)
        if (text[i - 1] == '\n' || text[i] == '\n')
            return true;
        else if (text[i] != pattern[i])
            return false;
    return true;
}

/* Of two that cover the same text the one with more letters of its own is the more special. */
static bool is_longer(const frag_wording_match *found, const frag_wording_match *best)
{
    return best->wording == NULL || found->bytes > best->bytes ||
           (found->bytes == best->bytes &&
            strlen(found->wording->pattern) > strlen(best->wording->pattern));
}

static void try_wording(const frag_message_text *text, const frag_wording *wording, size_t at,
                        frag_wording_match *best)
{
    frag_wording_match found;
    if (!may_match(wording->pattern, text->bytes + at))
        return;
    found.wording = wording;
    found.at = at;
    found.capture_count = 0;
    if (match_pattern(wording->pattern, text->bytes + at, &found) && is_longer(&found, best) &&
        is_in_place(text, wording, at, at + found.bytes))
        *best = found;
}

/* A line ends between the first two bytes, which is rare: any wording may fit. */
static void find_at_line_end(const frag_message_text *text, size_t at, frag_wording_match *best)
{
    for (size_t i = 0; i < frag_wording_count; i++)
        if (frag_wordings[i].pattern[0] == text->bytes[at])
            try_wording(text, &frag_wordings[i], at, best);
}

static void find_at(const frag_wording_index *index, const frag_message_text *text, size_t at,
                    frag_wording_match *best)
{
    const char *bytes = text->bytes;
    frag_amount size;
    bool is_size = is_digit(bytes[at]);
    if (!is_size && bytes[at + 1] == '\n') {
        find_at_line_end(text, at, best);
        return;
    }
    uint16_t wording = index->first[(unsigned char)(is_size ? '0' : bytes[at])]
                                   [(unsigned char)(is_size ? '0' : bytes[at + 1])];
    if (wording == 0 ||
        (is_size && (is_inside_number(bytes, at) || frag_message_size(bytes + at, &size) == 0)))
        return;
    for (; wording != 0; wording = index->next[wording - 1])
        try_wording(text, &frag_wordings[wording - 1], at, best);
}

bool frag_wording_find(const frag_wording_index *index, const frag_message_text *text, size_t from,
                       size_t behind, frag_wording_match *found)
{
    for (size_t at = from; at < text->length; at++) {
        found->wording = NULL;
        find_at(index, text, at, found);
        if (found->wording != NULL && at + found->bytes > behind)
            return true;
    }
    return false;
}
