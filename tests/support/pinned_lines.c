#include "tests/support/pinned_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"

enum { SHOWN_MAX = 5 };

typedef struct line_comparison {
    const char *next; /* what is answered now, from here on */
    unsigned wrong;
} line_comparison;

static void show(line_comparison *at, const char *before, size_t length, size_t now)
{
    if (at->wrong++ < SHOWN_MAX)
        fprintf(stderr, "before: %.*s\nnow:    %.*s\n", (int)length, before, (int)now, at->next);
}

static bool compare_line(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    line_comparison *at = context;
    size_t now = strcspn(at->next, "\n");
    if (now != length || memcmp(at->next, line, length) != 0)
        show(at, line, length, now);
    at->next += at->next[now] == '\0' ? now : now + 1;
    return true;
}

unsigned pinned_lines_compare(const pinned_lines *pinned)
{
    frag_text out = {0};
    frag_error error = {0};
    pinned->tell(&out);
    line_comparison at = {.next = out.bytes};
    frag_input *input = frag_input_open(pinned->path, &error);
    if (input == NULL || !frag_each_line(input, compare_line, &at, &error)) {
        fprintf(stderr, "%s: %s\n", pinned->path, error.sentence);
        at.wrong++;
    }
    frag_input_close(input);
    if (*at.next != '\0')
        show(&at, "", 0, strcspn(at.next, "\n"));
    frag_text_destroy(&out);
    if (at.wrong > 0)
        fprintf(stderr,
                "%u lines differ from %s; if on purpose: make %s, and read the difference\n",
                at.wrong, pinned->path, pinned->target);
    return at.wrong;
}

bool pinned_lines_write(const pinned_lines *pinned, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--write") != 0)
        return false;
    frag_text out = {0};
    pinned->tell(&out);
    fputs(out.bytes, stdout);
    frag_text_destroy(&out);
    return true;
}

void pinned_add(uint64_t *sum, uint64_t number)
{
    uint64_t mixed = (*sum ^ number) * 0x9e3779b97f4a7c15u;
    *sum = mixed ^ mixed >> 29;
}

void pinned_add_text(uint64_t *sum, const char *text)
{
    for (; *text != '\0'; text++)
        pinned_add(sum, (unsigned char)*text);
    pinned_add(sum, 256);
}
