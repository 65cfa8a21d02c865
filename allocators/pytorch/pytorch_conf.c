#include "allocators/pytorch/pytorch_conf.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"

#define MIB_MAX (UINT64_MAX / FRAG_MIB)

typedef struct token {
    const char *text;
    uint64_t column; /* of its first character, from 1 */
} token;

typedef struct parser {
    frag_pytorch_settings settings; /* becomes the user's when the whole string was read */
    token *tokens;
    size_t count;
    size_t at; /* the token being read */
    uint64_t end_column;
    bool is_slack_named;
    frag_error *error;
} parser;

static bool is_new(const parser *parse)
{
    return parse->settings.version >= 210;
}

/* The release's words about the token being read. */
static bool refuse(parser *parse, const char *words)
{
    uint64_t column =
        parse->at < parse->count ? parse->tokens[parse->at].column : parse->end_column;
    uint32_t version = parse->settings.version;
    if (parse->error != NULL)
        parse->error->column = column;
    return frag_fail(parse->error, FRAG_E_USAGE,
                     "PyTorch %u.%u refuses these settings at character %llu: %s", version / 100,
                     version % 100, (unsigned long long)column, words);
}

#define WORDS_MAX 256

static bool refuse_about(parser *parse, const char *before, const char *name, const char *after)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "%s%.120s%s", before, name, after);
    return refuse(parse, words);
}

static bool is_token(const parser *parse, const char *text)
{
    return parse->at < parse->count && strcmp(parse->tokens[parse->at].text, text) == 0;
}

/* From 2.10 on, a wrong separator is passed over unseen. */
static bool read_separator(parser *parse, const char *separator)
{
    parse->at++;
    if (is_new(parse) || is_token(parse, separator))
        return true;
    return refuse_about(parse, "Error parsing CachingAllocator settings, expected ", separator, "");
}

/* From 2.10 on, reading beyond the last word is an assertion of the library. */
static bool refuse_end(parser *parse)
{
    return refuse(parse, "Index out of bounds in ConfigTokenizer");
}

/* Moves from a key to its value. */
static bool go_to_value(parser *parse, const char *words_if_missing)
{
    const char *key = parse->tokens[parse->at].text;
    if (!read_separator(parse, ":"))
        return false;
    parse->at++;
    if (parse->at < parse->count)
        return true;
    if (is_new(parse))
        return refuse_end(parse);
    if (words_if_missing != NULL)
        return refuse(parse, words_if_missing);
    return refuse_about(parse, "Error, expecting ", key, " value");
}

/* Whole numbers as stoi (up to 2.9) and stoull read them: a leading number counts, what follows
 * does not, and a minus wraps around. */
static bool read_whole(parser *parse, uint64_t *number)
{
    const char *text = parse->tokens[parse->at].text;
    char *end = NULL;
    errno = 0;
    if (is_new(parse)) {
        *number = strtoull(text, &end, 10);
        return (end != text && errno == 0) || refuse(parse, "stoull");
    }
    long value = strtol(text, &end, 10);
    *number = (uint64_t)value;
    return (end != text && errno == 0 && value >= INT_MIN && value <= INT_MAX) ||
           refuse(parse, "stoi");
}

/* The start of an interval is read as a longer number than its division. */
static bool read_start(parser *parse, uint64_t *number)
{
    const char *text = parse->tokens[parse->at].text;
    char *end = NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return (end != text && errno == 0) || refuse(parse, is_new(parse) ? "stoull" : "stoul");
}

static bool read_real(parser *parse, double *number)
{
    const char *text = parse->tokens[parse->at].text;
    char *end = NULL;
    errno = 0;
    *number = strtod(text, &end);
    return (end != text && errno == 0) || refuse(parse, "stod");
}

/* Up to 2.9, AMD's spelling of a key is answered with the other one, and a missing value is
 * reported in two ways. */
static bool read_flag_as(parser *parse, bool *flag, const char *spelling, bool is_missing_told)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "Expected a single True/False argument for %s", spelling);
    char missing[WORDS_MAX];
    snprintf(missing, sizeof missing, "Error, expecting %s value", spelling);
    if (!go_to_value(parse, is_missing_told ? missing : words))
        return false;
    const char *text = parse->tokens[parse->at].text;
    *flag = strcmp(text, "True") == 0;
    if (*flag || strcmp(text, "False") == 0)
        return true;
    if (!is_new(parse))
        return refuse(parse, words);
    snprintf(words, sizeof words,
             "Expected 'True' or 'False' at index %zu in ConfigTokenizer but got '%.120s'",
             parse->at, text);
    return refuse(parse, words);
}

static bool read_flag(parser *parse, bool *flag)
{
    return read_flag_as(parse, flag, parse->tokens[parse->at].text, false);
}

/* A size of at least the large segment; more than 64 bits of bytes is the most there is. */
static bool read_split_size(parser *parse, uint64_t *bytes)
{
    const char *key = parse->tokens[parse->at].text;
    uint64_t mib = 0;
    if (!go_to_value(parse, NULL) || !read_whole(parse, &mib))
        return false;
    uint64_t least = frag_pytorch_conf_split_mib_min(&parse->settings);
    if (mib < least) {
        char words[WORDS_MAX];
        if (is_new(parse))
            snprintf(words, sizeof words, "CachingAllocator option %s too small, must be >= %llu",
                     key, (unsigned long long)least);
        else
            snprintf(words, sizeof words, "CachingAllocator option %s too small, must be > %llu",
                     key, (unsigned long long)least - 1);
        return refuse(parse, words);
    }
    *bytes = (mib < MIB_MAX ? mib : MIB_MAX) * FRAG_MIB;
    return true;
}

static bool read_max_split(parser *parse)
{
    return read_split_size(parse, &parse->settings.max_split_bytes);
}

static bool read_slack(parser *parse)
{
    parse->is_slack_named = true;
    return read_split_size(parse, &parse->settings.non_split_rounding_bytes);
}

static bool read_gc(parser *parse)
{
    double value = 0;
    if (!go_to_value(parse, NULL) || !read_real(parse, &value))
        return false;
    if (is_new(parse) && !(value > 0 && value < 1))
        return refuse(parse, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    if (!(value > 0))
        return refuse(parse, "garbage_collect_threshold too small, set it 0.0~1.0");
    if (!(value < 1))
        return refuse(parse, "garbage_collect_threshold too big, set it 0.0~1.0");
    parse->settings.gc_threshold = value;
    return true;
}

static bool read_division(parser *parse, bool may_be_off, uint64_t *division)
{
    if (!read_whole(parse, division))
        return false;
    if (frag_is_power_of_two(*division) || (*division == 0 && may_be_off))
        return true;
    return refuse_about(
        parse, "For roundups, the ", parse->settings.version <= 207 ? "divisons" : "divisions",
        may_be_off ? " has to be power of 2 or 0 to disable roundup " : " has to be power of 2 ");
}

/* The first item also stands for all smaller intervals; gaps between items stay off. */
static bool read_division_item(parser *parse, bool *is_first, uint32_t *last)
{
    uint64_t *divisions = parse->settings.divisions;
    bool is_rest = is_token(parse, ">");
    size_t start_at = parse->at;
    if (!read_separator(parse, ":"))
        return false;
    parse->at++;
    uint64_t value = 0;
    if (parse->at >= parse->count)
        return is_new(parse) ? refuse_end(parse)
                             : refuse(parse, "Error parsing roundup_power2_divisions value");
    if (!read_division(parse, parse->settings.version >= 204, &value))
        return false;
    if (is_rest) {
        for (uint32_t i = *last + (is_new(parse) ? 1 : 0); i < 16; i++)
            divisions[i] = value;
        return true;
    }
    size_t value_at = parse->at;
    uint64_t start = 0;
    parse->at = start_at;
    if (!read_start(parse, &start))
        return false;
    if (!frag_is_power_of_two(start))
        return refuse(parse, "For roundups, the intervals have to be power of 2 ");
    parse->at = value_at;
    uint32_t interval = frag_bit_high(start) < 15 ? frag_bit_high(start) : 15;
    for (uint32_t i = 0; *is_first && i < interval; i++)
        divisions[i] = value;
    *is_first = false;
    divisions[interval] = value;
    *last = interval;
    return true;
}

static bool refuse_bracket(parser *parse)
{
    return refuse(parse,
                  "Expected closing bracket ']' in ConfigTokenizer but reached end of config");
}

/* A list that ends after an item: releases up to 2.9 read on and crash, or say what follows. */
static bool refuse_unclosed(parser *parse)
{
    parse->at = parse->count;
    return is_new(parse) ? refuse_end(parse)
                         : refuse(parse, "Error parsing CachingAllocator settings, expected ,");
}

/* From the value's first token on: one value for all intervals, or a list. */
static bool read_division_value(parser *parse)
{
    if (!is_token(parse, "[")) {
        uint64_t value = 0;
        if (!read_division(parse, false, &value))
            return false;
        for (uint32_t i = 0; i < 16; i++)
            parse->settings.divisions[i] = value;
        return true;
    }
    bool is_first = true;
    uint32_t last = 0;
    for (parse->at++; parse->at < parse->count && !is_token(parse, "]"); parse->at++) {
        if (!read_division_item(parse, &is_first, &last))
            return false;
        if (parse->at + 1 == parse->count)
            return refuse_unclosed(parse);
        if (strcmp(parse->tokens[parse->at + 1].text, "]") != 0 && !read_separator(parse, ","))
            return false;
    }
    return parse->at < parse->count || !is_new(parse) || refuse_bracket(parse);
}

static bool read_divisions(parser *parse)
{
    return go_to_value(parse, NULL) && read_division_value(parse);
}

static bool read_expandable(parser *parse)
{
    return read_flag(parse, &parse->settings.is_expandable);
}

static bool read_throw(parser *parse)
{
    return read_flag(parse, &parse->settings.throws_on_oom);
}

static bool read_reuse(parser *parse)
{
    bool *flag = &parse->settings.reuses_at_end;
    return read_flag_as(parse, flag, parse->tokens[parse->at].text, true);
}

static bool read_release_lock(parser *parse)
{
    bool ignored = false;
    return read_flag_as(parse, &ignored, "release_lock_on_cudamalloc", false);
}

static bool read_host_register(parser *parse)
{
    bool ignored = false;
    return read_flag_as(parse, &ignored, "pinned_use_cuda_host_register", true);
}

static bool read_other_flag(parser *parse)
{
    bool ignored = false;
    return read_flag_as(parse, &ignored, parse->tokens[parse->at].text, true);
}

static bool read_other_number(parser *parse)
{
    uint64_t ignored = 0;
    return go_to_value(parse, NULL) && read_whole(parse, &ignored);
}

static bool read_fraction(parser *parse)
{
    double value = 0;
    if (!go_to_value(parse, NULL) || !read_real(parse, &value))
        return false;
    if (!(value >= 0 && value <= 1))
        return refuse(parse, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    parse->settings.key_fraction = value;
    return true;
}

/* Here it is not PyTorch that refuses. */
static bool refuse_backend(parser *parse)
{
    uint64_t column = parse->tokens[parse->at].column;
    if (parse->error != NULL)
        parse->error->column = column;
    return frag_fail(
        parse->error, FRAG_E_USAGE,
        "character %llu of the settings: backend:cudaMallocAsync " FRAG_PYTORCH_OTHER_BACKEND,
        (unsigned long long)column);
}

static bool read_backend(parser *parse)
{
    if (!go_to_value(parse, "Error parsing backend value"))
        return false;
    if (is_token(parse, "native"))
        return true;
    if (is_token(parse, "cudaMallocAsync"))
        return refuse_backend(parse);
    return refuse(parse, "Unknown allocator backend, options are native and cudaMallocAsync");
}

static bool read_threads(parser *parse)
{
    uint64_t count = 0;
    if (!go_to_value(parse, NULL) || !read_whole(parse, &count))
        return false;
    char got[32] = "";
    if (is_new(parse))
        snprintf(got, sizeof got, ", got %llu", (unsigned long long)count);
    if (!frag_is_power_of_two(count))
        return refuse_about(parse, "Number of register threads has to be power of 2",
                            is_new(parse) ? got : " ", "");
    return count <= 128 ||
           refuse_about(parse, "Number of register threads should be less than or equal to 128",
                        got, "");
}

static bool read_pinned_reserve(parser *parse)
{
    uint64_t mib = 0;
    if (!go_to_value(parse, NULL) || !read_whole(parse, &mib))
        return false;
    return mib > 0 || refuse(parse, "Pinned reserve segment size has to be greater than 0");
}

/* A share of the device, or GiB with a G. What is neither is warned about and changes nothing. */
static bool read_reserve(parser *parse)
{
    if (!go_to_value(parse, NULL))
        return false;
    const char *text = parse->tokens[parse->at].text;
    char *end = NULL;
    double value = strtod(text, &end);
    bool is_gib = *end == 'G' || *end == 'g';
    bool is_decimal = strspn(text, "0123456789.eE+-") >= (size_t)(end - text);
    if (!is_decimal || end == text || end[is_gib] != '\0' || !(value > 0) || !isfinite(value))
        return true;
    double bytes = value * (double)FRAG_GIB;
    uint64_t most = FRAG_UNLIMITED;
    parse->settings.reserve_bytes = !is_gib                ? 0
                                    : bytes < 1            ? 1
                                    : bytes < (double)most ? (uint64_t)bytes
                                                           : most;
    parse->settings.reserve_ratio = is_gib ? 0 : value;
    return true;
}

/* [class:value,...], read by place: only the closing bracket and the commas are looked at. Classes
 * are names that programs give to streams; no trace has them. */
static bool read_reserve_by_class(parser *parse)
{
    if (!go_to_value(parse, NULL))
        return false;
    for (parse->at++; !is_token(parse, "]"); parse->at++) {
        parse->at += 2;
        if (parse->at >= parse->count)
            return refuse_end(parse);
        if (parse->at + 1 < parse->count && strcmp(parse->tokens[parse->at + 1].text, ",") == 0)
            parse->at++;
    }
    return true;
}

/* Passes over the value of a key that another reader reads. */
static bool skip_value(parser *parse)
{
    if (!go_to_value(parse, NULL))
        return false;
    if (!is_token(parse, "["))
        return true;
    while (parse->at < parse->count && !is_token(parse, "]"))
        parse->at++;
    return parse->at < parse->count || refuse_bracket(parse);
}

/* Read before the other keys, because the least of the others depends on it. */
static bool read_large_segment(parser *parse)
{
    uint64_t mib = 0;
    if (!go_to_value(parse, NULL) || !read_whole(parse, &mib))
        return false;
    if (mib <= 10)
        return refuse(parse, "CachingAllocator option large_segment_size_mb must be > 10 MB");
    parse->settings.large_segment_bytes = (mib < MIB_MAX ? mib : MIB_MAX) * FRAG_MIB;
    return true;
}

typedef struct known_key {
    const char *name;
    uint32_t since;
    bool is_shared;              /* by all kinds of accelerators, since 2.10 */
    bool (*read)(parser *parse); /* from the key to the last token of its value */
} known_key;

static const known_key known_keys[] = {
    {"backend", 200, false, read_backend},
    {"max_split_size_mb", 200, true, read_max_split},
    {"garbage_collection_threshold", 200, true, read_gc},
    {"roundup_power2_divisions", 200, true, read_divisions},
    {"expandable_segments", 201, true, read_expandable},
    {"pinned_use_cuda_host_register", 202, false, read_host_register},
    {"pinned_use_hip_host_register", 202, false, read_host_register},
    {"release_lock_on_cudamalloc", 202, false, read_release_lock},
    {"release_lock_on_hipmalloc", 202, false, read_release_lock},
    {"pinned_num_register_threads", 202, false, read_threads},
    {"max_non_split_rounding_mb", 206, true, read_slack},
    {"pinned_use_background_threads", 206, true, read_other_flag},
    {"graph_capture_record_stream_reuse", 209, false, read_reuse},
    {"per_process_memory_fraction", 210, false, read_fraction},
    {"pinned_reserve_segment_size_mb", 210, false, read_pinned_reserve},
    {"large_segment_size_mb", 211, true, skip_value},
    {"throw_on_cudamalloc_oom", 212, false, read_throw},
    {"pinned_free_catch_all", 212, false, read_other_flag},
    {"pinned_max_round_threshold_mb", 213, true, read_other_number},
    {"pinned_max_cached_size_mb", 213, true, read_other_number},
    {"expandable_segments_reserve", 215, false, read_reserve},
    {"expandable_segments_reserve_by_class", 215, false, read_reserve_by_class},
};

static const known_key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++)
        if (strcmp(known_keys[i].name, name) == 0)
            return &known_keys[i];
    return NULL;
}

uint32_t frag_pytorch_conf_since(const char *key)
{
    const known_key *known = find_key(key);
    return known == NULL ? 0 : known->since;
}

uint64_t frag_pytorch_conf_split_mib_min(const frag_pytorch_settings *settings)
{
    return settings->version < 210 ? 21 : settings->large_segment_bytes / FRAG_MIB;
}

static bool is_blank(const parser *parse, char c)
{
    return c == ' ' || (is_new(parse) && c >= '\t' && c <= '\r');
}

/* Blanks count nowhere, not even inside a word, so words are pieces of the text without them. */
static char *split(parser *parse, const char *text)
{
    size_t length = strlen(text);
    char *words = frag_alloc(2 * length + 1, 1);
    parse->tokens = frag_alloc(length + 1, sizeof *parse->tokens);
    char *end = words;
    bool is_inside = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (is_blank(parse, c))
            continue;
        bool is_mark = c == ',' || c == ':' || c == '[' || c == ']';
        if (is_mark || !is_inside) {
            if (is_inside)
                end++;
            parse->tokens[parse->count++] = (token){end, i + 1};
        }
        *end++ = c;
        end += is_mark ? 1 : 0;
        is_inside = !is_mark;
    }
    parse->end_column = length + 1;
    return words;
}

/* Up to 2.9 one reader knows all keys. Since 2.10 there are three, which pass over each other's: of
 * the backend, of the keys of this allocator, of those that all accelerators share. */
typedef enum reader { READER_ALL, READER_BACKEND, READER_OWN, READER_SHARED } reader;

static bool refuse_key(parser *parse, reader reading)
{
    const char *name = parse->tokens[parse->at].text;
    if (reading == READER_ALL)
        return refuse_about(parse, "Unrecognized CachingAllocator option: ", name, "");
    return refuse_about(parse, "Unrecognized key '", name,
                        reading == READER_SHARED ? "' in Accelerator allocator config."
                                                 : "' in CUDA allocator config.");
}

static bool read_key(parser *parse, reader reading)
{
    if (reading == READER_BACKEND)
        return skip_value(parse);
    const known_key *known = find_key(parse->tokens[parse->at].text);
    if (known == NULL || known->since > parse->settings.version)
        return refuse_key(parse, reading);
    bool is_mine = reading == READER_ALL || known->is_shared == (reading == READER_SHARED);
    return is_mine ? known->read(parse) : skip_value(parse);
}

static bool read_keys(parser *parse, reader reading)
{
    for (parse->at = 0; parse->at < parse->count; parse->at++) {
        if (!read_key(parse, reading))
            return false;
        if (parse->at + 1 < parse->count && !read_separator(parse, ","))
            return false;
    }
    return true;
}

static bool read_large_segment_first(parser *parse)
{
    if (parse->settings.version < 211)
        return true;
    for (parse->at = 0; parse->at < parse->count; parse->at++)
        if (is_token(parse, "large_segment_size_mb") && !read_large_segment(parse))
            return false;
    return true;
}

static bool read_shared(parser *parse)
{
    return read_large_segment_first(parse) && read_keys(parse, READER_SHARED);
}

/* The first string is read for the backend, then by the allocator as it starts, which looks at its
 * own keys first; one set at run time goes through the settings that all accelerators share. */
static bool read_all(parser *parse)
{
    if (!is_new(parse))
        return read_keys(parse, READER_ALL);
    if (parse->settings.is_configured)
        return read_shared(parse) && read_keys(parse, READER_OWN);
    return read_keys(parse, READER_BACKEND) && read_keys(parse, READER_OWN) && read_shared(parse);
}

static void note_divisions(frag_pytorch_settings *settings)
{
    settings->has_divisions = false;
    for (uint32_t i = 0; i < 16; i++)
        settings->has_divisions |= settings->divisions[i] > 0;
}

bool frag_pytorch_conf_parse(frag_pytorch_settings *settings, const char *text, frag_error *error)
{
    parser parse = {.settings = *settings, .error = error};
    char *words = split(&parse, text);
    parse.settings.max_split_bytes = FRAG_UNLIMITED;
    parse.settings.gc_threshold = 0;
    memset(parse.settings.divisions, 0, sizeof parse.settings.divisions);
    bool ok = read_all(&parse);
    if (ok) {
        if (!parse.is_slack_named && parse.settings.version >= 211)
            parse.settings.non_split_rounding_bytes = parse.settings.large_segment_bytes;
        note_divisions(&parse.settings);
        parse.settings.is_configured = true;
        *settings = parse.settings;
    }
    frag_free(words);
    frag_free(parse.tokens);
    return ok;
}

bool frag_pytorch_conf_divisions(frag_pytorch_settings *settings, const char *text,
                                 frag_error *error)
{
    parser parse = {.settings = *settings, .error = error};
    char *words = split(&parse, text);
    memset(parse.settings.divisions, 0, sizeof parse.settings.divisions);
    bool ok = parse.count > 0 ? read_division_value(&parse) : refuse(&parse, "there is no value");
    if (ok) {
        parse.at++;
        ok = parse.at == parse.count || refuse(&parse, "something follows the value");
    }
    if (ok) {
        note_divisions(&parse.settings);
        *settings = parse.settings;
    }
    frag_free(words);
    frag_free(parse.tokens);
    return ok;
}

const char *frag_pytorch_conf_of(uint32_t version, const frag_context *context)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};
    size_t count = version >= FRAG_PYTORCH_SEVERAL_NAMES ? sizeof names / sizeof names[0] : 1;
    const char *conf = NULL;
    for (size_t i = 0; i < count && conf == NULL; i++)
        conf = frag_context_environment(context, names[i]);
    return conf;
}
