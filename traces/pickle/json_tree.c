#include "traces/pickle/json_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    WINDOW_BYTES = 1 << 18,
    TEXT_BYTES_MAX = 8 << 20, /* of a string, or of a stack */
    NUMBER_BYTES_MAX = 400,
    DEPTH_MAX = 128,
    /* An input may make this many containers however short it is, and one more for every so many
       bytes. */
    FREE_CONTAINERS = 1 << 16,
    BYTES_PER_CONTAINER = 8,
    STRINGS_MAX = 1 << 28,
    EXPANSION_MAX = 2000, /* as of a compressed pickle */
    EXPANSION_FREE_BYTES = 16 << 20,
    END = -1
};

/* Whole numbers up to here are the same as decimal ones. */
#define EXACT_MAX 9007199254740992.0

/* Not under a shared key. */
#define UNSHARED UINT32_MAX

typedef struct level {
    size_t start;     /* of its items on the stack */
    uint64_t offset;  /* of its bracket */
    uint32_t text_id; /* in texts; UNSHARED: it is not kept for others */
    bool is_object;
} level;

typedef struct json_reader {
    frag_input *input;
    frag_error *error;
    const frag_json_tree_options *options;
    frag_pickle *tree;
    const unsigned char *bytes; /* what is visible, from byte `at` on not yet read */
    size_t count;
    size_t at;
    uint64_t offset; /* of bytes[0] */
    bool is_last;    /* nothing follows what is visible */
    bool is_shared;  /* the last key was one of the shared ones */
    bool has_failed;
    frag_pickle_value *stack;
    size_t stack_count;
    size_t stack_capacity;
    level levels[DEPTH_MAX];
    size_t level_count;
    uint64_t container_count;
    frag_text text;            /* a string without its escapes */
    frag_strings texts;        /* of the shared arrays */
    frag_pickle_value *shared; /* by text */
    size_t shared_capacity;
} json_reader;

/* ---- bytes */

static bool check_sizes(json_reader *reader)
{
    uint64_t offset = reader->offset + reader->count;
    if (frag_input_outgrows(reader->input, offset, EXPANSION_FREE_BYTES, EXPANSION_MAX))
        return frag_fail_at(
            reader->error, offset,
            "the compressed file grows to more than %d times its size; no real snapshot does",
            EXPANSION_MAX);
    if (reader->container_count > FREE_CONTAINERS + WINDOW_BYTES + offset / BYTES_PER_CONTAINER)
        return frag_fail_at(reader->error, offset,
                            "has more brackets than a snapshot of its size can have");
    if (reader->tree->pool_count > FRAG_PICKLE_POOL_MAX ||
        reader->container_count > UINT32_MAX / 2 || reader->tree->strings.count > STRINGS_MAX ||
        reader->texts.count > STRINGS_MAX)
        return frag_fail_at(reader->error, offset, "is larger than a snapshot that can be read");
    return true;
}

/* Makes wanted bytes visible from `at` on, or all there are. */
static bool see(json_reader *reader, size_t wanted)
{
    if (reader->count - reader->at >= wanted || reader->is_last)
        return !reader->has_failed;
    size_t asked = wanted > WINDOW_BYTES ? wanted : WINDOW_BYTES;
    frag_input_skip(reader->input, reader->at);
    reader->offset += reader->at;
    reader->at = 0;
    reader->count = 0;
    reader->has_failed =
        !frag_input_peek(reader->input, asked, &reader->bytes, &reader->count, reader->error) ||
        !check_sizes(reader);
    reader->is_last = reader->has_failed || reader->count < asked;
    if (reader->has_failed)
        reader->count = 0;
    return !reader->has_failed;
}

/* The next byte, which stays; END: there is none, or has_failed. */
static int look(json_reader *reader)
{
    if (reader->at == reader->count && (!see(reader, 1) || reader->at == reader->count))
        return END;
    return reader->bytes[reader->at];
}

static int look_past_space(json_reader *reader)
{
    int byte = look(reader);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        reader->at++;
        byte = look(reader);
    }
    return byte;
}

static bool fail_found(json_reader *reader, const char *expected)
{
    if (reader->has_failed)
        return false;
    int byte = look(reader);
    uint64_t offset = reader->offset + reader->at;
    reader->has_failed = true;
    if (byte == END)
        return frag_fail_at(reader->error, offset,
                            "the file ends early, expected %s; it was cut off, copy it again",
                            expected);
    if (byte > ' ' && byte < 0x7f)
        return frag_fail_at(reader->error, offset, "found '%c'; expected %s", byte, expected);
    return frag_fail_at(reader->error, offset, "found byte 0x%02x; expected %s", (unsigned)byte,
                        expected);
}

/* ---- spans: how many bytes from `at` on a text or an array takes, all of which are visible then
 */

/* Makes byte `length` behind `at` visible; spans grow until they are refused. */
static bool see_byte(json_reader *reader, size_t length, const char *expected)
{
    if (length < reader->count - reader->at)
        return true;
    if (length >= TEXT_BYTES_MAX) {
        reader->has_failed = true;
        return frag_fail_at(reader->error, reader->offset + reader->at,
                            "a value of more than %d MiB; expected %s", TEXT_BYTES_MAX >> 20,
                            expected);
    }
    if (!see(reader, 2 * length + 1))
        return false;
    if (length < reader->count - reader->at)
        return true;
    reader->at = reader->count;
    return fail_found(reader, expected);
}

/* From a quotation mark, length bytes behind `at`, to the one that ends the text. */
static bool span_text(json_reader *reader, size_t *length, bool *has_escape)
{
    size_t end = *length + 1;
    for (;; end++) {
        if (!see_byte(reader, end, "the end of a text"))
            return false;
        unsigned char byte = reader->bytes[reader->at + end];
        if (byte == '"')
            break;
        if (byte == '\\') {
            *has_escape = true;
            end++;
        } else if (byte < ' ') {
            reader->at += end;
            return fail_found(reader, "a text without control characters");
        }
    }
    *length = end + 1;
    return true;
}

static bool span_array(json_reader *reader, size_t *length)
{
    size_t end = 0;
    size_t depth = 0;
    do {
        bool has_escape = false;
        if (!see_byte(reader, end, "the end of a stack"))
            return false;
        unsigned char byte = reader->bytes[reader->at + end];
        if (byte == '"') {
            if (!span_text(reader, &end, &has_escape))
                return false;
            continue;
        }
        depth += byte == '[' || byte == '{' ? 1 : 0;
        depth -= byte == ']' || byte == '}' ? 1 : 0;
        end++;
    } while (depth > 0);
    *length = end;
    return true;
}

/* ---- values */

static void push(json_reader *reader, frag_pickle_value value)
{
    if (reader->stack_count == reader->stack_capacity)
        reader->stack = frag_grow(reader->stack, &reader->stack_capacity, reader->stack_count + 1,
                                  sizeof *reader->stack);
    reader->stack[reader->stack_count++] = value;
}

static int hexadecimal(unsigned char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The four digits behind "\u"; -1: they are none. */
static int32_t read_unit(const unsigned char *digits, const unsigned char *end)
{
    int32_t unit = 0;
    if (end - digits < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hexadecimal(digits[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static void add_code_point(frag_text *text, uint32_t code)
{
    char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint32_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(leads[length] | code);
    frag_text_add_bytes(text, bytes, length);
}

/* Behind a backslash; returns the bytes it takes, 0: it is no escape. Half of a surrogate pair
 * becomes U+FFFD. */
static size_t add_escape(frag_text *text, const unsigned char *at, const unsigned char *end)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    if (at == end)
        return 0;
    if (*at != 'u') {
        const char *letter = *at != '\0' ? strchr(letters, *at) : NULL;
        if (letter != NULL)
            frag_text_add_bytes(text, &meant[letter - letters], 1);
        return letter != NULL ? 1 : 0;
    }
    int32_t unit = read_unit(at + 1, end);
    if (unit < 0)
        return 0;
    bool is_high = unit >= 0xd800 && unit < 0xdc00;
    int32_t low =
        is_high && end - at >= 11 && at[5] == '\\' && at[6] == 'u' ? read_unit(at + 7, end) : -1;
    if (low >= 0xdc00 && low < 0xe000) {
        add_code_point(text,
                       0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
        return 11;
    }
    add_code_point(text, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : (uint32_t)unit);
    return 5;
}

static bool take_text(json_reader *reader)
{
    size_t length = 0;
    bool has_escape = false;
    if (!span_text(reader, &length, &has_escape))
        return false;
    const unsigned char *at = reader->bytes + reader->at + 1;
    const unsigned char *end = at + length - 2;
    if (!has_escape) {
        push(reader, frag_pickle_add_string(reader->tree, (const char *)at, length - 2));
        reader->at += length;
        return true;
    }
    frag_text_clear(&reader->text);
    frag_text_add_bytes(&reader->text, "", 0);
    while (at < end) {
        const unsigned char *plain = memchr(at, '\\', (size_t)(end - at));
        size_t before = (size_t)((plain != NULL ? plain : end) - at);
        frag_text_add_bytes(&reader->text, (const char *)at, before);
        at += before;
        if (at == end)
            break;
        size_t used = add_escape(&reader->text, at + 1, end);
        if (used == 0) {
            reader->at = (size_t)(at - reader->bytes);
            return fail_found(reader, "an escape of JSON, such as \\n or \\u00e9");
        }
        at += 1 + used;
    }
    push(reader, frag_pickle_add_string(reader->tree, reader->text.bytes, reader->text.length));
    reader->at += length;
    return true;
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

/* How many bytes of a number of JSON the text begins with; is_whole: it has neither fraction nor
 * exponent. 0: none. */
static size_t number_length(const char *text, bool *is_whole)
{
    size_t at = text[0] == '-' ? 1 : 0;
    size_t first = at;
    *is_whole = true;
    while (is_digit(text[at]))
        at++;
    if (at == first || (text[first] == '0' && at > first + 1))
        return 0;
    if (text[at] == '.') {
        *is_whole = false;
        first = ++at;
        while (is_digit(text[at]))
            at++;
        if (at == first)
            return 0;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        *is_whole = false;
        at++;
        at += text[at] == '+' || text[at] == '-' ? 1 : 0;
        first = at;
        while (is_digit(text[at]))
            at++;
        if (at == first)
            return 0;
    }
    return at;
}

/* false: it does not fit 64 bits. */
static bool read_whole(const char *text, size_t length, uint64_t *bits, bool *is_negative)
{
    uint64_t number = 0;
    size_t at = text[0] == '-' ? 1 : 0;
    *is_negative = at == 1;
    for (; at < length; at++) {
        uint64_t digit = (uint64_t)(text[at] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    if (*is_negative && number > (uint64_t)1 << 63)
        return false;
    *is_negative = *is_negative && number > 0;
    *bits = *is_negative ? ~number + 1 : number;
    return true;
}

static bool take_number(json_reader *reader)
{
    char text[NUMBER_BYTES_MAX + 1];
    uint64_t bits = 0;
    bool is_whole = false;
    bool is_negative = false;
    if (!see(reader, NUMBER_BYTES_MAX))
        return false;
    size_t visible = reader->count - reader->at;
    size_t copied = visible < NUMBER_BYTES_MAX ? visible : NUMBER_BYTES_MAX;
    memcpy(text, reader->bytes + reader->at, copied);
    text[copied] = '\0';
    size_t length = number_length(text, &is_whole);
    if (length == 0 || length == NUMBER_BYTES_MAX)
        return fail_found(reader, "a number of JSON of fewer than 400 characters");
    text[length] = '\0';
    reader->at += length;
    if (is_whole && read_whole(text, length, &bits, &is_negative)) {
        push(reader, frag_pickle_add_integer(reader->tree, bits, is_negative));
        return true;
    }
    double number = strtod(text, NULL);
    if (number == floor(number) && fabs(number) <= EXACT_MAX)
        push(reader, frag_pickle_add_integer(reader->tree, (uint64_t)(int64_t)number, number < 0));
    else
        push(reader, frag_pickle_add_float(reader->tree, number));
    return true;
}

static bool take_word(json_reader *reader)
{
    const struct {
        const char *word;
        frag_pickle_value value;
        double number; /* 0: it is the value */
    } words[] = {
        {"null", frag_pickle_none(), 0},        {"true", frag_pickle_truth(true), 0},
        {"false", frag_pickle_truth(false), 0}, {"NaN", 0, (double)NAN},
        {"Infinity", 0, (double)INFINITY},      {"-Infinity", 0, -(double)INFINITY},
    };
    if (!see(reader, sizeof "-Infinity"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);
        if (reader->count - reader->at < length ||
            memcmp(reader->bytes + reader->at, words[i].word, length) != 0)
            continue;
        bool is_float = isnan(words[i].number) || isinf(words[i].number);
        push(reader,
             is_float ? frag_pickle_add_float(reader->tree, words[i].number) : words[i].value);
        reader->at += length;
        return true;
    }
    return take_number(reader);
}

/* ---- containers */

/* An array that stood before under a shared key is pushed as it is; *text_id names a new one. */
static bool take_shared(json_reader *reader, bool *is_known, uint32_t *text_id)
{
    size_t length = 0;
    if (!span_array(reader, &length))
        return false;
    uint32_t before = reader->texts.count;
    uint32_t id =
        frag_strings_add(&reader->texts, (const char *)reader->bytes + reader->at, length);
    /* One that is still open has no value yet: it stands in itself only in what is no snapshot. */
    *is_known = id < before && reader->shared[id] != frag_pickle_none();
    *text_id = id == before ? id : UNSHARED;
    if (*is_known) {
        push(reader, reader->shared[id]);
        reader->at += length;
    } else if (id == before) {
        reader->shared = frag_grow(reader->shared, &reader->shared_capacity, (size_t)id + 1,
                                   sizeof *reader->shared);
        reader->shared[id] = frag_pickle_none();
    }
    return true;
}

static bool open_level(json_reader *reader, bool is_object, uint32_t text_id)
{
    if (reader->level_count == DEPTH_MAX)
        return fail_found(reader, "at most 128 levels of brackets; a snapshot has about 8");
    reader->levels[reader->level_count++] = (level){
        .start = reader->stack_count,
        .offset = reader->offset + reader->at,
        .text_id = text_id,
        .is_object = is_object,
    };
    reader->at++;
    return true;
}

static frag_pickle_value make_container(json_reader *reader, const level *ended)
{
    const frag_pickle_value *items = reader->stack + ended->start;
    size_t count = reader->stack_count - ended->start;
    uint32_t record = 0;
    if (ended->is_object && count > 0 && reader->options->visitor != NULL &&
        reader->options->visitor(reader->options->context, reader->tree, items, count / 2, false,
                                 &record))
        return frag_pickle_make(FRAG_PICKLE_TAG_RECORD, record);
    if (!ended->is_object && count == 2 &&
        frag_pickle_tag_of(items[0]) == FRAG_PICKLE_TAG_INTEGER &&
        frag_pickle_tag_of(items[1]) == FRAG_PICKLE_TAG_INTEGER)
        return frag_pickle_add_pair(reader->tree, items[0], items[1]);
    frag_pickle_value value = frag_pickle_add_container(
        reader->tree, ended->is_object ? FRAG_PICKLE_DICT : FRAG_PICKLE_LIST);
    frag_pickle_add_items(reader->tree, frag_pickle_content_of(value), items, count);
    return value;
}

static void close_level(json_reader *reader)
{
    const level *ended = &reader->levels[--reader->level_count];
    frag_pickle_value value = make_container(reader, ended);
    reader->container_count++;
    reader->stack_count = ended->start;
    reader->at++;
    push(reader, value);
    if (ended->text_id != UNSHARED)
        reader->shared[ended->text_id] = value;
}

static bool take_key(json_reader *reader)
{
    if (look_past_space(reader) != '"')
        return fail_found(reader, "'\"', the name of a member");
    if (!take_text(reader))
        return false;
    uint64_t name = frag_pickle_content_of(reader->stack[reader->stack_count - 1]);
    reader->is_shared = name < 64 && (reader->options->shared_keys >> name & 1) != 0;
    if (look_past_space(reader) != ':')
        return fail_found(reader, "':' between a name and its value");
    reader->at++;
    return true;
}

/* A value, or the opening bracket of one. */
static bool take_value(json_reader *reader, bool *is_opened)
{
    int byte = look_past_space(reader);
    bool is_known = false;
    bool is_shared = reader->is_shared && byte == '[';
    uint32_t text_id = UNSHARED;
    reader->is_shared = false;
    *is_opened = byte == '[' || byte == '{';
    if (byte == '"')
        return take_text(reader);
    if (byte == END || (byte < ' ' || byte == ',' || byte == ']' || byte == '}' || byte == ':'))
        return fail_found(reader, "a value");
    if (!*is_opened)
        return take_word(reader);
    if (is_shared && !take_shared(reader, &is_known, &text_id))
        return false;
    *is_opened = !is_known;
    return is_known || open_level(reader, byte == '{', text_id);
}

/* Closes what ends behind a value, and goes on to the next. *is_done: there is none. */
static bool take_between(json_reader *reader, bool is_opened, bool *is_done)
{
    while (reader->level_count > 0) {
        const level *inner = &reader->levels[reader->level_count - 1];
        int byte = look_past_space(reader);
        if (byte == (inner->is_object ? '}' : ']')) {
            close_level(reader);
            is_opened = false;
            continue;
        }
        if (!is_opened && byte != ',')
            return fail_found(reader, inner->is_object ? "',' or '}'" : "',' or ']'");
        if (!is_opened)
            reader->at++;
        return !inner->is_object || take_key(reader);
    }
    *is_done = true;
    return true;
}

static bool read_all(json_reader *reader)
{
    bool is_done = false;
    while (!is_done) {
        bool is_opened = false;
        if (!take_value(reader, &is_opened) || !take_between(reader, is_opened, &is_done))
            return false;
    }
    if (reader->options->is_part || look_past_space(reader) == END)
        return !reader->has_failed;
    return fail_found(reader, "the end of the file behind the JSON value");
}

bool frag_json_tree_read(frag_pickle *tree, frag_input *input,
                         const frag_json_tree_options *options, frag_pickle_value *root,
                         frag_error *error)
{
    json_reader *reader = frag_alloc(1, sizeof *reader);
    reader->tree = tree;
    reader->input = input;
    reader->options = options;
    reader->error = error;
    reader->offset = frag_input_offset(input);
    bool is_read = read_all(reader);
    if (is_read)
        *root = reader->stack[0];
    frag_free(reader->stack);
    frag_free(reader->shared);
    frag_text_destroy(&reader->text);
    frag_strings_destroy(&reader->texts);
    frag_free(reader);
    return is_read;
}
