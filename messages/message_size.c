#include "messages/message_size.h"

#include <string.h>

/* A number before its unit multiplies it. */
typedef struct digits_read {
    uint64_t whole;
    uint64_t decimals;
    uint64_t scale; /* decimals / scale */
    bool is_huge;   /* beyond 64 bits */
} digits_read;

enum { INTEGER_DIGITS_MAX = 30, DECIMALS_MAX = 9, DIMENSIONS_MAX = 32, LINE_MAX = 240 };

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Multiplies and adds; false: beyond 64 bits, and *number stays. */
static bool multiply_add(uint64_t *number, uint64_t factor, uint64_t more)
{
    if (factor != 0 && *number > (UINT64_MAX - more) / factor)
        return false;
    *number = *number * factor + more;
    return true;
}

/* A comma between thousands: three digits follow, and then no fourth. */
static bool is_thousands_comma(const char *text)
{
    return text[0] == ',' && is_digit(text[1]) && is_digit(text[2]) && is_digit(text[3]) &&
           !is_digit(text[4]);
}

/* The whole part. Returns how many bytes; *is_huge: it is beyond 64 bits. */
static size_t read_integer(const char *text, uint64_t *number, bool *is_huge)
{
    size_t at = 0;
    size_t digits = 0;
    *number = 0;
    *is_huge = false;
    for (; digits <= INTEGER_DIGITS_MAX; at++) {
        if (is_digit(text[at])) {
            *is_huge = !multiply_add(number, 10, (uint64_t)(text[at] - '0')) || *is_huge;
            digits++;
        } else if (digits == 0 || !is_thousands_comma(text + at)) {
            break;
        }
    }
    return digits == 0 || digits > INTEGER_DIGITS_MAX ? 0 : at;
}

static size_t read_unit(const char *text, uint64_t *unit)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {
        {"gigs", 30},     {"megs", 20},      {"gigabytes", 30}, {"gigabyte", 30}, {"megabytes", 20},
        {"megabyte", 20}, {"kilobytes", 10}, {"kilobyte", 10},  {"gbytes", 30},   {"gbyte", 30},
        {"mbytes", 20},   {"mbyte", 20},     {"kbytes", 10},    {"kbyte", 10},    {"bytes", 0},
        {"byte", 0},      {"eib", 60},       {"pib", 50},       {"tib", 40},      {"gib", 30},
        {"mib", 20},      {"kib", 10},       {"eb", 60},        {"pb", 50},       {"tb", 40},
        {"gb", 30},       {"mb", 20},        {"kb", 10},        {"g", 30},        {"m", 20},
        {"k", 10},        {"b", 0},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t at = 0;
        const char *name = units[i].name;
        while (*name != '\0' && (text[at] == *name || (text[at] == '\n' && at > 0))) {
            name += text[at] == *name;
            at++;
        }
        bool is_time = at == 1 && is_digit(text[at]); /* "4m11s" */
        if (*name == '\0' && !is_time) {
            *unit = (uint64_t)1 << units[i].shift;
            return at;
        }
    }
    return 0;
}

static bool is_binary_unit(const char *text)
{
    return *text != '\0' && strchr("kmgtpe", *text) != NULL && text[1] == 'i' && text[2] == 'b';
}

/* Decimals after the point. A terminal may have broken the line among them. */
static size_t read_decimals(const char *text, uint64_t *decimals, uint64_t *scale)
{
    size_t at = 0;
    unsigned count = 0;
    for (; is_digit(text[at]) || (text[at] == '\n' && is_digit(text[at + 1]) && count < 2); at++) {
        if (text[at] == '\n' || count >= DECIMALS_MAX)
            continue;
        *decimals = *decimals * 10 + (uint64_t)(text[at] - '0');
        *scale *= 10;
        count++;
    }
    return at;
}

/* "19.77/22.05gib": the unit of the second is that of the first. */
static bool read_shared_unit(const char *text, uint64_t *unit)
{
    size_t at = strspn(text, "0123456789.");
    return at > 0 && read_unit(text + at, unit) > 0;
}

/* unit * decimals / scale, which is below the unit. A scale has at most nine zeros. */
static uint64_t fraction_of(uint64_t unit, uint64_t decimals, uint64_t scale)
{
    return unit / scale * decimals + unit % scale * decimals / scale;
}

/* "7.35g(7889485824bytes)", "2.99gib(3206250496b)": the same size in bytes, at most a tenth less
 * where "g" meant 10^9. */
static void read_exact_bytes(const char *text, frag_amount *amount)
{
    uint64_t exact = 0;
    bool is_huge = false;
    size_t digits = *text == '(' ? read_integer(text + 1, &exact, &is_huge) : 0;
    const char *unit = text + 1 + digits;
    if (digits == 0 || is_huge || (strncmp(unit, "byte", 4) != 0 && strncmp(unit, "b)", 2) != 0))
        return;
    uint64_t below = amount->bytes / 10 + 2 * amount->slack_bytes;
    if (exact < amount->bytes ? amount->bytes - exact <= below
                              : exact - amount->bytes <= 2 * amount->slack_bytes)
        *amount = (frag_amount){.bytes = exact, .is_known = true};
}

/* The number of a size, without what stands behind it. */
static size_t read_count(const char *text, digits_read *read)
{
    *read = (digits_read){.scale = 1};
    size_t at = read_integer(text, &read->whole, &read->is_huge);
    if (at == 0)
        return 0;
    if ((text[at] == '.' || text[at] == ',') && (is_digit(text[at + 1]) || text[at + 1] == '\n')) {
        at++;
        at += text[at] == '\n';
        at += read_decimals(text + at, &read->decimals, &read->scale);
    }
    return at;
}

static void set_amount(const digits_read *read, uint64_t unit, frag_amount *amount)
{
    *amount =
        (frag_amount){.bytes = read->whole, .slack_bytes = unit == 1 ? 0 : unit / read->scale / 2};
    amount->is_known =
        !read->is_huge &&
        multiply_add(&amount->bytes, unit, fraction_of(unit, read->decimals, read->scale));
}

/* "1984585910/1.8gb": the same size twice, first in bytes */
static bool is_rounded(const char *text, uint64_t unit, uint64_t bytes)
{
    digits_read second;
    frag_amount rounded;
    read_count(text, &second);
    set_amount(&second, unit, &rounded);
    return bytes >= unit && bytes + rounded.slack_bytes >= rounded.bytes &&
           bytes <= rounded.bytes + 2 * rounded.slack_bytes;
}

/* "1.07374e+09": as C++ prints a number that is none of its integers */
static size_t read_power(const char *text, frag_amount *amount)
{
    digits_read read;
    size_t at = read_count(text, &read);
    if (at == 0 || read.is_huge || text[at] != 'e' || text[at + 1] != '+')
        return 0;
    unsigned power = 0;
    size_t digits = strspn(text + at + 2, "0123456789");
    for (size_t i = 0; i < digits && digits <= 2; i++)
        power = power * 10 + (unsigned)(text[at + 2 + i] - '0');
    uint64_t half = 5;
    uint64_t number = read.whole;
    bool fits = digits > 0 && digits <= 2 && multiply_add(&number, read.scale, read.decimals);
    for (; read.scale > 1; read.scale /= 10, power--)
        if (power == 0)
            return 0;
    for (unsigned i = 0; i < power && fits; i++)
        fits = multiply_add(&number, 10, 0) && (i == 0 || multiply_add(&half, 10, 0));
    *amount = (frag_amount){.bytes = number, .slack_bytes = power > 0 ? half : 0};
    amount->is_known = fits;
    return digits > 2 ? 0 : at + 2 + digits;
}

size_t frag_message_size(const char *text, frag_amount *amount)
{
    digits_read read;
    uint64_t unit = 1;
    size_t power = read_power(text, amount);
    if (power > 0)
        return read_unit(text + power, &unit) > 0 && unit == 1
                   ? power + read_unit(text + power, &unit)
                   : 0;
    size_t at = read_count(text, &read);
    if (at == 0)
        return 0;
    at += text[at] == '.' && is_binary_unit(text + at + 1); /* "117. GiB", as numpy prints */
    at += text[at] == '\n';
    size_t unit_bytes = read_unit(text + at, &unit);
    /* "700+MB", "132090576(0x7df8ad0) KB" */
    size_t more = text[at] == '+' ? 1 : 0;
    if (strncmp(text + at, "(0x", 3) == 0)
        more = strspn(text + at + 3, "0123456789abcdef") + 4;
    if (more > 0 && (more == 1 || text[at + more - 1] == ')') &&
        read_unit(text + at + more, &unit) > 1)
        unit_bytes = more + read_unit(text + at + more, &unit);
    /* "30.2 of 33.4 GB" */
    bool is_of = read.scale > 1 && strncmp(text + at, "of", 2) == 0;
    if (unit_bytes == 0 && is_of && read_shared_unit(text + at + 2, &unit)) {
        set_amount(&read, unit, amount);
        return at;
    }
    if (unit_bytes == 0 && (text[at] != '/' || !read_shared_unit(text + at + 1, &unit)))
        return 0;
    if (unit_bytes == 0 && is_rounded(text + at + 1, unit, read.whole))
        unit = 1;
    set_amount(&read, unit, amount);
    if (amount->is_known && unit > 1)
        read_exact_bytes(text + at + unit_bytes, amount);
    return at + unit_bytes;
}

size_t frag_message_size_named(const char *text, size_t at, frag_amount *amount)
{
    size_t end = at;
    while (end > 0 && strchr(":=\"", text[end - 1]) != NULL)
        end--;
    /* "free_mb=512", ""free_mb": 512" */
    for (size_t from = end; end < at && from > 0 && end - from <= sizeof "bytes" - 1; from--) {
        digits_read key;
        uint64_t each = 1;
        if (text[from - 1] != '_' || read_unit(text + from, &each) != end - from ||
            end - from < sizeof "mb" - 1)
            continue;
        size_t digits = read_count(text + at, &key);
        set_amount(&key, each, amount);
        return digits;
    }
    /* "memory (MB) | allocated: 2773.3 | reserved: 8322.0": the unit of the whole line */
    size_t head = end < at ? end : 0;
    while (head > 0 && end - head < LINE_MAX && strchr("\n)", text[head - 1]) == NULL)
        head--;
    if (head > 0 && text[head - 1] == ')' && text[head] == '|')
        end = head;
    if (end == at || end < sizeof "(mb)" - 1 || strchr(")]", text[end - 1]) == NULL)
        return 0;
    size_t from = end - 1;
    while (from > 0 && end - from < sizeof "(gigabytes)" - 1 && strchr("([", text[from]) == NULL)
        from--;
    digits_read read;
    uint64_t unit = 1;
    size_t unit_bytes = strchr("([", text[from]) != NULL ? read_unit(text + from + 1, &unit) : 0;
    size_t taken =
        unit_bytes > 1 && from + 1 + unit_bytes + 1 == end ? read_count(text + at, &read) : 0;
    if (taken > 0)
        set_amount(&read, unit, amount);
    return taken;
}

size_t frag_message_number(const char *text, frag_amount *amount)
{
    bool is_huge = false;
    *amount = (frag_amount){0};
    size_t power = read_power(text, amount);
    if (power > 0)
        return power;
    size_t at = read_integer(text, &amount->bytes, &is_huge);
    amount->is_known = at > 0 && !is_huge;
    return at;
}

static uint64_t type_bytes(const char *name)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {
        {"complex128", 16}, {"complex64", 8}, {"double", 8}, {"float64", 8}, {"int64", 8},
        {"uint64", 8},      {"float32", 4},   {"float", 4},  {"int32", 4},   {"uint32", 4},
        {"half", 2},        {"bfloat16", 2},  {"int16", 2},  {"uint16", 2},  {"int8", 1},
        {"uint8", 1},       {"bool", 1},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(name, types[i].name, strlen(types[i].name)) == 0)
            return types[i].bytes;
    return 0;
}

/* "[[Node: mul = Mul[T=DT_FLOAT, ...": TensorFlow 1.x names the type of the node only. */
static uint64_t node_type_bytes(const char *text)
{
    static const char node[] = "[[node:";
    static const char type[] = "[t=dt_";
    if (strncmp(text, node, sizeof node - 1) != 0)
        return 0;
    for (size_t at = 0; at < LINE_MAX && text[at] != '\0' && text[at] != '\n'; at++)
        if (strncmp(text + at, type, sizeof type - 1) == 0)
            return type_bytes(text + at + sizeof type - 1);
    return 0;
}

size_t frag_message_shape(const char *text, frag_amount *amount)
{
    uint64_t bytes = 1;
    size_t at = 0;
    bool fits = true;
    for (unsigned i = 0; text[at] == (i == 0 ? '[' : ','); i++) {
        uint64_t dimension = 0;
        size_t digits = 0;
        at++;
        for (; is_digit(text[at + digits]) && digits < INTEGER_DIGITS_MAX; digits++)
            fits = multiply_add(&dimension, 10, (uint64_t)(text[at + digits] - '0')) && fits;
        if (digits == 0 || i >= DIMENSIONS_MAX)
            return 0;
        fits = multiply_add(&bytes, dimension, 0) && fits;
        at += digits;
    }
    if (at == 0 || text[at] != ']')
        return 0;
    at++;
    size_t type = at + (text[at] == '\n');
    bool is_told = strncmp(text + type, "andtype", 7) == 0;
    uint64_t each = is_told ? type_bytes(text + type + 7) : node_type_bytes(text + type);
    if (!is_told && each == 0)
        return 0;
    *amount = (frag_amount){.bytes = bytes};
    amount->is_known = each > 0 && fits && multiply_add(&amount->bytes, each, 0);
    return is_told ? type + 7 : at;
}
