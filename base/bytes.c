#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

typedef struct byte_unit {
    const char *suffix;
    uint64_t bytes;
} byte_unit;

static const byte_unit byte_units[] = {
    {"B", 1},
    {"KiB", FRAG_KIB},
    {"MiB", FRAG_MIB},
    {"GiB", FRAG_GIB},
    {"TiB", (uint64_t)1 << 40},
    {"PiB", (uint64_t)1 << 50},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"PB", 1000000000000000},
};

static const byte_unit *find_unit(const char *suffix)
{
    for (size_t i = 0; i < sizeof byte_units / sizeof byte_units[0]; i++)
        if (strcmp(suffix, byte_units[i].suffix) == 0)
            return &byte_units[i];
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool frag_bytes_parse(const char *text, uint64_t *bytes, frag_error *error)
{
    if (strcmp(text, "unlimited") == 0) {
        *bytes = FRAG_UNLIMITED;
        return true;
    }
    const char *at = text;
    uint64_t whole = 0;
    while (is_digit(*at)) {
        if (!frag_multiply(whole, 10, &whole) || !frag_add(whole, (uint64_t)(*at - '0'), &whole))
            return frag_fail(error, FRAG_E_USAGE, "'%s' is more than 64 bits of bytes", text);
        at++;
    }
    if (at == text)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is not a size; write one like 64KiB, 1.5GiB or 4096", text);
    uint64_t fraction = 0;
    uint64_t scale = 1;
    bool has_fraction = *at == '.';
    if (has_fraction) {
        at++;
        const char *digits = at;
        while (is_digit(*at)) {
            if (scale < 1000000000) {
                fraction = fraction * 10 + (uint64_t)(*at - '0');
                scale *= 10;
            }
            at++;
        }
        if (at == digits)
            return frag_fail(error, FRAG_E_USAGE,
                             "'%s' has no digit after the point; write one like 1.5GiB", text);
    }
    const char *digits_end = at;
    while (*at == ' ')
        at++;
    if (*at == '\0' && at != digits_end)
        return frag_fail(error, FRAG_E_USAGE, "'%s' ends in a blank; leave it out", text);
    if (strlen(at) == 1 && strchr("KkMGT", *at) != NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' could mean 1000s or 1024s; write %ciB (1024s) or %cB (1000s)", text,
                         *at == 'k' ? 'K' : *at, *at == 'K' ? 'k' : *at);
    const byte_unit *unit = *at == '\0' ? &byte_units[0] : find_unit(at);
    if (unit == NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' has an unknown unit; write KiB, MiB, GiB (1024s) or kB, MB, GB",
                         text);
    if (has_fraction && unit->bytes == 1)
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is a fraction of a byte; write whole bytes or a unit as in 1.5GiB",
                         text);
    uint64_t total = 0;
    if (!frag_multiply(whole, unit->bytes, &total))
        return frag_fail(error, FRAG_E_USAGE, "'%s' is more than 64 bits of bytes", text);
    /* fraction < 10^9 and unit <= 10^12 or 2^40: the product stays below 2^70, so divide first. */
    uint64_t part = unit->bytes / scale * fraction + unit->bytes % scale * fraction / scale;
    if (!frag_add(total, part, bytes))
        return frag_fail(error, FRAG_E_USAGE, "'%s' is more than 64 bits of bytes", text);
    return true;
}

bool frag_count_parse(const char *text, uint64_t min, uint64_t max, uint64_t *count,
                      frag_error *error)
{
    uint64_t value = 0;
    const char *at = text;
    bool fits = true;
    for (; is_digit(*at); at++)
        fits = fits && frag_multiply(value, 10, &value) &&
               frag_add(value, (uint64_t)(*at - '0'), &value);
    if (at == text || *at != '\0')
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is not a whole number; expected %" PRIu64 " to %" PRIu64, text, min,
                         max);
    if (!fits || value < min || value > max)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s is out of range; expected %" PRIu64 " to %" PRIu64, text, min, max);
    *count = value;
    return true;
}

bool frag_ratio_parse(const char *text, double min, double max, double *ratio, frag_error *error)
{
    char *end = NULL;
    errno = 0;
    double value = is_digit(text[0]) || text[0] == '.' ? strtod(text, &end) : 0;
    /* strtod also knows hexadecimal and locale forms; only plain decimals are numbers here. */
    if (end == NULL || end == text || *end != '\0' ||
        strspn(text, "0123456789.eE+-") != strlen(text) || !isfinite(value))
        return frag_fail(error, FRAG_E_USAGE, "'%s' is not a number; expected %g to %g", text, min,
                         max);
    if (value < min || value > max)
        return frag_fail(error, FRAG_E_USAGE, "%s is out of range; expected %g to %g", text, min,
                         max);
    *ratio = value;
    return true;
}

const char *frag_bytes_text(uint64_t bytes, char text[FRAG_BYTES_TEXT_MAX])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes == FRAG_UNLIMITED) {
        snprintf(text, FRAG_BYTES_TEXT_MAX, "unlimited");
        return text;
    }
    uint32_t unit = bytes < FRAG_KIB ? 0 : frag_bit_high(bytes) / 10;
    if (unit == 0)
        snprintf(text, FRAG_BYTES_TEXT_MAX, "%" PRIu64 " B", bytes);
    else
        snprintf(text, FRAG_BYTES_TEXT_MAX, "%.2f %s",
                 (double)bytes / (double)((uint64_t)1 << (10 * unit)), names[unit]);
    return text;
}

const char *frag_count_text(uint64_t count, char text[FRAG_BYTES_TEXT_MAX])
{
    char digits[FRAG_BYTES_TEXT_MAX];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    int out = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}
