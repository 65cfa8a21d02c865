#include "tests/support/changed_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/xorshift.h"

typedef struct range {
    size_t begin;
    size_t end;
} range;

typedef struct change_draw {
    const changed_file *file;
    uint64_t bits;
    frag_text *to;
    frag_text *what;
} change_draw;

static uint64_t draw(change_draw *at, uint64_t limit)
{
    return limit == 0 ? 0 : xorshift_next(&at->bits) % limit;
}

static change_draw begin_draw(const changed_file *file, uint64_t number, frag_text *to,
                              frag_text *what)
{
    change_draw at = {file, (number + 1) * 0x9e3779b97f4a7c15u, to, what};
    for (int i = 0; i < 8; i++) /* neighbours begin alike */
        (void)draw(&at, 2);
    return at;
}

static size_t draw_place(change_draw *at)
{
    return (size_t)draw(at, at->file->count);
}

static void add_range(change_draw *at, size_t begin, size_t end)
{
    if (end > begin) /* an empty file has no bytes at all */
        frag_text_add_bytes(at->to, (const char *)at->file->bytes + begin, end - begin);
}

static void replace(change_draw *at, range part, const char *by, size_t length)
{
    add_range(at, 0, part.begin);
    if (length > 0)
        frag_text_add_bytes(at->to, by, length);
    add_range(at, part.end, at->file->count);
}

static void describe(change_draw *at, const char *what, size_t place)
{
    frag_text_add(at->what, "%s %zu", what, place);
}

/* The line of a place, with its end; empty behind the last. */
static range line_at(const changed_file *file, size_t place)
{
    range line = {place, place};
    while (place < file->count && line.begin > 0 && file->bytes[line.begin - 1] != '\n')
        line.begin--;
    while (line.end < file->count && file->bytes[line.end] != '\n')
        line.end++;
    line.end += line.end < file->count;
    return line;
}

/* The first record in braces behind a place, with the comma and the space behind it; empty where
 * there is none. */
static range record_at(const changed_file *file, size_t place)
{
    range record = {place, place};
    while (record.begin < file->count && file->bytes[record.begin] != '{')
        record.begin++;
    int depth = 0;
    for (record.end = record.begin; record.end < file->count; record.end++) {
        depth += file->bytes[record.end] == '{';
        depth -= file->bytes[record.end] == '}';
        if (depth == 0)
            break;
    }
    record.end += record.end < file->count;
    while (record.end < file->count && file->bytes[record.end] != '\0' &&
           strchr(", \n", file->bytes[record.end]) != NULL)
        record.end++;
    return record;
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

/* The first number behind a place; empty where there is none. */
static range number_at(const changed_file *file, size_t place)
{
    range number = {place, place};
    while (number.begin < file->count && !is_digit(file->bytes[number.begin]))
        number.begin++;
    number.end = number.begin;
    while (number.end < file->count && is_digit(file->bytes[number.end]))
        number.end++;
    return number;
}

/* Beside it, on borders, out of range, or another number of the file. */
static void change_number(change_draw *at, size_t place)
{
    static const char *const others[] = {"0",  "1",          "2",          "255",
                                         "-1", "4294967295", "4294967296", "18446744073709551616",
                                         "x",  "0x10",       "1.5",        "2097152"};
    enum { OTHERS = sizeof others / sizeof others[0] };
    range number = number_at(at->file, place);
    uint64_t choice = draw(at, OTHERS + 12);
    uint64_t value = 0;
    for (size_t i = number.begin; i < number.end; i++)
        value = value * 10 + (uint64_t)(at->file->bytes[i] - '0');
    frag_text fresh = {0};
    if (choice < OTHERS) {
        frag_text_add(&fresh, "%s", others[choice]);
    } else if (choice < OTHERS + 8) {
        static const uint64_t steps[] = {1, (uint64_t)-1, 512, (uint64_t)-512};
        frag_text_add(&fresh, "%llu", (unsigned long long)(value + steps[choice % 4]));
    } else {
        range other = number_at(at->file, draw_place(at));
        frag_text_add_bytes(&fresh, (const char *)at->file->bytes + other.begin,
                            other.end - other.begin);
    }
    describe(at, "number at", number.begin);
    frag_text_add(at->what, " is %s", fresh.length > 0 ? fresh.bytes : "none");
    replace(at, number, fresh.bytes, fresh.length);
    frag_text_destroy(&fresh);
}

static void change_byte(change_draw *at, size_t place)
{
    static const char others[] = "0189 -+.,:;=#\"'\\/{}[]()\n\r\tabeEnux%~\x80\xff";
    unsigned char byte = at->file->bytes[place];
    char fresh = (char)(byte ^ (1 << draw(at, 8)));
    switch (draw(at, at->file->is_binary ? 6 : 2)) {
    case 1:
        fresh = others[draw(at, sizeof others)]; /* its '\0' too */
        break;
    case 2:
        fresh = (char)(byte + 1);
        break;
    case 3:
        fresh = (char)(byte - 1);
        break;
    case 4:
        fresh = (char)at->file->bytes[draw_place(at)];
        break;
    default:
        break;
    }
    describe(at, "byte", place);
    frag_text_add(at->what, " is %u", (unsigned)(unsigned char)fresh);
    replace(at, (range){place, place + 1}, &fresh, 1);
}

static void remove_part(change_draw *at, const char *what, range part)
{
    describe(at, what, part.begin);
    replace(at, part, "", 0);
}

static void repeat_part(change_draw *at, const char *what, range part)
{
    describe(at, what, part.begin);
    add_range(at, 0, part.end);
    add_range(at, part.begin, at->file->count);
}

static void swap_parts(change_draw *at, const char *what, range first, range second)
{
    describe(at, what, first.begin);
    add_range(at, 0, first.begin);
    add_range(at, second.begin, second.end);
    add_range(at, first.end, second.begin);
    add_range(at, first.begin, first.end);
    add_range(at, second.end, at->file->count);
}

static void change_text(change_draw *at, size_t place)
{
    range line = line_at(at->file, place);
    range record = record_at(at->file, place);
    switch (draw(at, 12)) {
    case 0:
        remove_part(at, "no line", line);
        break;
    case 1:
        repeat_part(at, "twice the line", line);
        break;
    case 2:
        swap_parts(at, "later the line", line, line_at(at->file, line.end));
        break;
    case 3:
        remove_part(at, "no record", record);
        break;
    case 4:
        repeat_part(at, "twice the record", record);
        break;
    case 5:
        swap_parts(at, "later the record", record, record_at(at->file, record.end));
        break;
    case 6:
        change_byte(at, place);
        break;
    default:
        change_number(at, place);
        break;
    }
}

/* The first word from a place on, without what follows it; empty where there is none. */
static range word_at(const changed_file *file, size_t place)
{
    range word = {place, place};
    while (word.begin < file->count && file->bytes[word.begin] <= ' ')
        word.begin++;
    word.end = word.begin;
    while (word.end < file->count && file->bytes[word.end] > ' ')
        word.end++;
    return word;
}

static void change_word(change_draw *at, range word)
{
    static const char *const others[] = {
        "memory",       "out",   "of",   "failed", "error:", "cannot", "allocate", "not",
        "GPU",          "host",  "when", "that",   "did",    "trying", "%s",       "xxx",
        "insufficient", "bytes", "MiB",  "GB",     "4096",   "5.25",   "total",    "free",
        "used",         "of:",   "no",   "if",     "#",      "//",     "code",     "2",
        "unable",       "RAM",   "do",   "would",  "buffer", "VRAM",   "\"",       "exceeds",
    };
    const char *other = others[draw(at, sizeof others / sizeof others[0])];
    frag_text_add(at->what, " is %s", other);
    replace(at, word, other, strlen(other));
}

void changed_words(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    change_draw at = begin_draw(file, number, to, what);
    range word = word_at(file, draw_place(&at));
    switch (draw(&at, 8)) {
    case 0:
        remove_part(&at, "no word", word);
        break;
    case 1:
        repeat_part(&at, "twice the word", word);
        break;
    case 2:
        swap_parts(&at, "later the word", word, word_at(file, word.end));
        break;
    case 3:
        describe(&at, "line from word", word.begin);
        replace(&at, (range){word.begin, word.begin}, "\n", 1);
        break;
    default:
        describe(&at, "word", word.begin);
        change_word(&at, word);
        break;
    }
}

void changed_bytes(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    change_draw at = begin_draw(file, number, to, what);
    size_t place = draw_place(&at);
    if (file->count == 0) {
        frag_text_add(what, "nothing");
        return;
    }
    switch (draw(&at, 10)) {
    case 0:
        describe(&at, "ends at", place);
        add_range(&at, 0, place);
        break;
    case 1:
        remove_part(&at, "no byte", (range){place, place + 1});
        break;
    case 2:
        repeat_part(&at, "twice the byte", (range){place, place + 1});
        break;
    default:
        if (file->is_binary)
            change_byte(&at, place);
        else
            change_text(&at, place);
        break;
    }
}

/* The first figure behind a place, with its fraction; empty where there is none. */
static range figure_at(const changed_file *file, size_t place)
{
    range figure = number_at(file, place);
    size_t point = figure.end;
    if (point + 1 < file->count && file->bytes[point] == '.' && is_digit(file->bytes[point + 1]))
        figure.end = number_at(file, point + 1).end;
    return figure;
}

static void change_figure(change_draw *at)
{
    static const double factors[] = {0.5, 2, 0, 1.001, 0.999, 10};
    enum { FACTORS = sizeof factors / sizeof factors[0] };
    range figure = figure_at(at->file, draw_place(at));
    uint64_t choice = draw(at, FACTORS + 4);
    frag_text fresh = {0};
    if (choice >= FACTORS) {
        range other = figure_at(at->file, draw_place(at));
        if (other.end > other.begin)
            frag_text_add_bytes(&fresh, (const char *)at->file->bytes + other.begin,
                                other.end - other.begin);
    } else if (figure.end > figure.begin && figure.end - figure.begin < 20) {
        char copy[20] = {0};
        memcpy(copy, at->file->bytes + figure.begin, figure.end - figure.begin);
        bool has_point = strchr(copy, '.') != NULL;
        frag_text_add(&fresh, "%.*f", has_point ? 2 : 0, strtod(copy, NULL) * factors[choice]);
    }
    describe(at, "figure at", figure.begin);
    frag_text_add(at->what, " is %s", fresh.length > 0 ? fresh.bytes : "none");
    replace(at, figure, fresh.bytes, fresh.length);
    frag_text_destroy(&fresh);
}

void changed_figures(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    frag_text once = {0};
    change_draw at = begin_draw(file, number, to, what);
    if (number % 2 == 0) {
        change_figure(&at);
        return;
    }
    at.to = &once;
    change_figure(&at);
    const changed_file half = {(const unsigned char *)once.bytes, once.length, false};
    at.file = &half;
    at.to = to;
    change_figure(&at);
    frag_text_destroy(&once);
}

bool changed_borders(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    static const unsigned whole[] = {1, 12, 23, 31, 59, 100, 1000, 1000000, 1000000000};
    static const unsigned powers[] = {2,  3,  4,  6,  7,  8,  9,  10, 12, 15, 16, 20, 21, 24,
                                      30, 31, 32, 40, 47, 48, 52, 53, 56, 60, 61, 62, 63};
    enum { WHOLE = sizeof whole / sizeof whole[0], POWERS = sizeof powers / sizeof powers[0] };
    enum { BORDERS = 3 * (WHOLE + POWERS) };
    uint64_t choice = number % BORDERS / 3;
    uint64_t border = choice < WHOLE ? whole[choice] : (uint64_t)1 << powers[choice - WHOLE];
    change_draw at = {file, 0, to, what};
    range found = number_at(file, 0);
    for (uint64_t i = 0; i < number / BORDERS; i++)
        found = number_at(file, found.end);
    if (found.end == found.begin)
        return false;
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)(border + number % 3 - 1));
    describe(&at, "number at", found.begin);
    frag_text_add(what, " is %s", text);
    replace(&at, found, text, (size_t)length);
    return true;
}

/* The first number from a place on, or else of the file. */
static range number_near(const changed_file *file, size_t place)
{
    range found = number_at(file, place);
    return found.end > found.begin ? found : number_at(file, 0);
}

static uint64_t value_of(const changed_file *file, range number)
{
    uint64_t value = 0;
    for (size_t i = number.begin; i < number.end; i++)
        value = value * 10 + (uint64_t)(file->bytes[i] - '0');
    return value;
}

void changed_pairs(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    change_draw at = begin_draw(file, number, to, what);
    range one = number_near(file, draw_place(&at));
    range other = number_near(file, draw_place(&at));
    uint64_t value = value_of(file, other);
    if (number % 4 == 3) { /* their sum, or what is left of one */
        uint64_t own = value_of(file, one);
        value = draw(&at, 2) == 0 ? value + own : value - own;
    }
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)(value + number % 3 - 1));
    describe(&at, "number at", one.begin);
    frag_text_add(what, " is %s", text);
    replace(&at, one, text, (size_t)length);
}

bool changed_in_turn(const changed_file *file, uint64_t number, frag_text *to, frag_text *what)
{
    change_draw at = {file, 0, to, what};
    size_t place = (size_t)(number / 2);
    if (place >= file->count)
        return false;
    unsigned char byte = file->bytes[place];
    const char others[2] = {(char)(byte + 1), (char)(byte - 1)};
    describe(&at, "byte", place);
    frag_text_add(what, " is %u", (unsigned)(unsigned char)others[number % 2]);
    replace(&at, (range){place, place + 1}, &others[number % 2], 1);
    return true;
}
