#include "allocators/pytorch_settings.h"

#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/bytes.h"

#define VERSION_NEWEST 215u
#define VERSION_OLDEST 200u

enum {
    OPTION_VERSION,
    OPTION_MAX_SPLIT,
    OPTION_NON_SPLIT_ROUNDING,
    OPTION_DIVISIONS,
    OPTION_GC,
    OPTION_FRACTION,
    OPTION_LARGE_SEGMENT,
    OPTION_THROW,
    OPTION_EXPANDABLE,
    OPTION_RESERVE,
    OPTION_BACKEND,
};

#define HOST_ONLY(name)                                                                            \
    {                                                                                              \
        .key = name, .type = FRAG_OPTION_TEXT, .default_text = "",                                 \
        .help = "accepted as PyTorch does; has no effect on device memory"                         \
    }

const frag_option frag_pytorch_options[] = {
    [OPTION_VERSION] =
        {.key = "version",
         .type = FRAG_OPTION_TEXT,
         .default_text = "auto",
         .help = "release to follow, 2.0 to 2.15; auto: the recording's, else the newest"},
    [OPTION_MAX_SPLIT] = {.key = "max_split_size_mb",
                          .type = FRAG_OPTION_COUNT,
                          .default_text = "unlimited",
                          .min = 1,
                          .max = FRAG_UNLIMITED,
                          .help = "blocks of this size and more are never split (MiB)"},
    [OPTION_NON_SPLIT_ROUNDING] = {.key = "max_non_split_rounding_mb",
                                   .type = FRAG_OPTION_COUNT,
                                   .default_text = "20",
                                   .min = 1,
                                   .max = (uint64_t)1 << 20,
                                   .help =
                                       "surplus from which an oversize block is not reused (MiB)"},
    [OPTION_DIVISIONS] =
        {.key = "roundup_power2_divisions",
         .type = FRAG_OPTION_TEXT,
         .default_text = "",
         .help = "round to this share of a power of two: 8, or [256:1,512:2,>:8] by MiB"},
    [OPTION_GC] = {.key = "garbage_collection_threshold",
                   .type = FRAG_OPTION_RATIO,
                   .default_text = "0",
                   .ratio_min = 0,
                   .ratio_max = 1,
                   .help =
                       "share of the memory limit above which old cached segments are given back"},
    [OPTION_FRACTION] = {.key = "per_process_memory_fraction",
                         .type = FRAG_OPTION_RATIO,
                         .default_text = "1",
                         .ratio_min = 0,
                         .ratio_max = 1,
                         .help = "set_per_process_memory_fraction at the start; needs a capacity"},
    [OPTION_LARGE_SEGMENT] = {.key = "large_segment_size_mb",
                              .type = FRAG_OPTION_COUNT,
                              .default_text = "20",
                              .min = 11,
                              .max = (uint64_t)1 << 20,
                              .help = "segment for requests of 1 to 10 MiB (MiB)"},
    [OPTION_THROW] = {.key = "throw_on_cudamalloc_oom",
                      .type = FRAG_OPTION_FLAG,
                      .default_text = "false",
                      .help = "with a fraction: fail before the device is asked, without retrying"},
    [OPTION_EXPANDABLE] = {.key = "expandable_segments",
                           .type = FRAG_OPTION_FLAG,
                           .default_text = "false",
                           .help = "segments that grow page by page in reserved address space"},
    [OPTION_RESERVE] =
        {.key = "expandable_segments_reserve",
         .type = FRAG_OPTION_TEXT,
         .default_text = "",
         .help = "address space of one expandable segment: share of the capacity, or 40G"},
    [OPTION_BACKEND] = {.key = "backend",
                        .type = FRAG_OPTION_ENUM,
                        .default_text = "native",
                        .choices = "native",
                        .help = "the native allocator is the one simulated"},
    HOST_ONLY("expandable_segments_reserve_by_class"),
    HOST_ONLY("release_lock_on_cudamalloc"),
    HOST_ONLY("graph_capture_record_stream_reuse"),
    HOST_ONLY("pinned_use_cuda_host_register"),
    HOST_ONLY("pinned_num_register_threads"),
    HOST_ONLY("pinned_use_background_threads"),
    HOST_ONLY("pinned_reserve_segment_size_mb"),
    HOST_ONLY("pinned_free_catch_all"),
    {.key = NULL},
};

/* "2.9", "2.9.1", "2.10.0+cu128" as 209, 209, 210. */
static bool parse_version(const char *text, uint32_t *version)
{
    uint32_t parts[2] = {0, 0};
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        const char *start = at;
        for (; *at >= '0' && *at <= '9' && at - start < 3; at++)
            parts[i] = parts[i] * 10 + (uint32_t)(*at - '0');
        if (at == start || (i == 0 && *at++ != '.'))
            return false;
    }
    if (*at != '\0' && *at != '.' && *at != '+')
        return false;
    *version = parts[0] * 100 + parts[1];
    return parts[1] < 100;
}

static bool read_version(frag_pytorch_settings *settings, const char *text, const char *recorded,
                         frag_error *error)
{
    if (strcmp(text, "auto") == 0) {
        if (!parse_version(recorded, &settings->version))
            settings->version = VERSION_NEWEST;
        if (settings->version > VERSION_NEWEST)
            settings->version = VERSION_NEWEST;
        if (settings->version < VERSION_OLDEST)
            settings->version = VERSION_OLDEST;
    } else if (!parse_version(text, &settings->version) || settings->version < VERSION_OLDEST ||
               settings->version > VERSION_NEWEST) {
        return frag_fail(error, FRAG_E_USAGE,
                         "version '%s' of pytorch is not known; expected 2.0 to 2.15", text);
    }
    settings->tie = settings->version >= 213   ? FRAG_PYTORCH_TIE_SEGMENT_NUMBER
                    : settings->version == 212 ? FRAG_PYTORCH_TIE_BLOCK_NUMBER
                                               : FRAG_PYTORCH_TIE_ADDRESS;
    return true;
}

static bool parse_number(const char **at, uint64_t *number)
{
    const char *start = *at;
    *number = 0;
    for (; **at >= '0' && **at <= '9' && *at - start < 9; (*at)++)
        *number = *number * 10 + (uint64_t)(**at - '0');
    return *at > start;
}

static void skip_blanks(const char **at)
{
    while (**at == ' ')
        (*at)++;
}

static bool bad_divisions(const char *text, const char *at, frag_error *error)
{
    return frag_fail(error, FRAG_E_USAGE,
                     "roundup_power2_divisions '%s' is wrong at character %d; expected a power of "
                     "two such as 8, or "
                     "[256:1,512:2,>:8] with powers of two",
                     text, (int)(at - text) + 1);
}

static bool parse_division_value(const char *text, const char **at, uint32_t *value,
                                 frag_error *error)
{
    const char *start = *at;
    uint64_t number = 0;
    if (!parse_number(at, &number) || (number != 0 && !frag_is_power_of_two(number)))
        return bad_divisions(text, start, error);
    *value = (uint32_t)number;
    return true;
}

/* One value for all sixteen intervals, or a list whose gaps stay off. */
static bool read_divisions(frag_pytorch_settings *settings, const char *text, frag_error *error)
{
    uint32_t *divisions = settings->divisions;
    const char *at = text;
    skip_blanks(&at);
    if (*at == '\0')
        return true;
    if (*at != '[') {
        uint32_t value = 0;
        if (!parse_division_value(text, &at, &value, error))
            return false;
        skip_blanks(&at);
        if (*at != '\0')
            return bad_divisions(text, at, error);
        for (int i = 0; i < 16; i++)
            divisions[i] = value;
    } else {
        bool is_first = true;
        uint32_t last = 0;
        do {
            at++;
            skip_blanks(&at);
            bool is_rest = *at == '>';
            uint64_t start = 0;
            const char *key = at;
            if (is_rest)
                at++;
            else if (!parse_number(&at, &start) || !frag_is_power_of_two(start))
                return bad_divisions(text, key, error);
            skip_blanks(&at);
            if (*at != ':')
                return bad_divisions(text, at, error);
            at++;
            skip_blanks(&at);
            uint32_t value = 0;
            if (!parse_division_value(text, &at, &value, error))
                return false;
            skip_blanks(&at);
            if (is_rest) {
                for (uint32_t i = last + (settings->version >= 210 ? 1 : 0); i < 16; i++)
                    divisions[i] = value;
            } else {
                uint32_t interval = frag_bit_high(start) < 15 ? frag_bit_high(start) : 15;
                for (uint32_t i = 0; is_first && i < interval; i++)
                    divisions[i] = value;
                is_first = false;
                divisions[interval] = value;
                last = interval;
            }
        } while (*at == ',');
        if (*at != ']')
            return bad_divisions(text, at, error);
        at++;
        skip_blanks(&at);
        if (*at != '\0')
            return bad_divisions(text, at, error);
    }
    for (int i = 0; i < 16; i++)
        settings->has_divisions = settings->has_divisions || divisions[i] > 0;
    return true;
}

/* Sizes in MiB that PyTorch refuses below its large segment size (up to 2.9: at it, too). */
static bool check_split_size(const frag_pytorch_settings *settings, const char *key, uint64_t mib,
                             frag_error *error)
{
    bool is_strict = settings->version <= 209;
    uint64_t least = is_strict ? 21 : settings->large_segment_bytes / FRAG_MIB;
    if (mib != FRAG_UNLIMITED && mib < least)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s=%llu is too small for pytorch %u.%u; expected %llu or more", key,
                         (unsigned long long)mib, settings->version / 100, settings->version % 100,
                         (unsigned long long)least);
    return true;
}

/* "0.5" of the capacity, or "40G". */
static bool read_reserve(frag_pytorch_settings *settings, const char *text, frag_error *error)
{
    char number[32];
    size_t length = strlen(text);
    if (length == 0)
        return true;
    bool is_gib = text[length - 1] == 'G';
    length -= is_gib ? 1 : 0;
    double value = 0;
    if (length >= sizeof number)
        length = 0;
    memcpy(number, text, length);
    number[length] = '\0';
    if (!frag_ratio_parse(number, 0, is_gib ? 1048576 : 64, &value, NULL))
        return frag_fail(error, FRAG_E_USAGE,
                         "expandable_segments_reserve '%s' is wrong; expected a share of the "
                         "capacity such as 0.5, or 40G",
                         text);
    settings->reserve_bytes = is_gib ? (uint64_t)(value * (double)FRAG_GIB) : 0;
    settings->reserve_ratio = is_gib ? 0 : value;
    return true;
}

bool frag_pytorch_settings_create(frag_pytorch_settings *settings, const frag_option_value *values,
                                  const char *recorded_version, frag_error *error)
{
    *settings = (frag_pytorch_settings){0};
    if (!read_version(settings, values[OPTION_VERSION].text, recorded_version, error) ||
        !read_divisions(settings, values[OPTION_DIVISIONS].text, error))
        return false;
    uint64_t split = values[OPTION_MAX_SPLIT].number;
    uint64_t slack = values[OPTION_NON_SPLIT_ROUNDING].number;
    settings->large_segment_bytes = values[OPTION_LARGE_SEGMENT].number * FRAG_MIB;
    settings->is_expandable = values[OPTION_EXPANDABLE].number != 0;
    if (!read_reserve(settings, values[OPTION_RESERVE].text, error))
        return false;
    if (!check_split_size(settings, "max_split_size_mb", split, error))
        return false;
    if (values[OPTION_NON_SPLIT_ROUNDING].is_given &&
        !check_split_size(settings, "max_non_split_rounding_mb", slack, error))
        return false;
    if (split != FRAG_UNLIMITED && split > (FRAG_UNLIMITED >> 21))
        return frag_fail(error, FRAG_E_USAGE,
                         "max_split_size_mb=%llu is more than 64 bits of bytes; write unlimited",
                         (unsigned long long)split);
    settings->max_split_bytes = split == FRAG_UNLIMITED ? FRAG_UNLIMITED : split * FRAG_MIB;
    settings->non_split_rounding_bytes = values[OPTION_NON_SPLIT_ROUNDING].is_given
                                             ? slack * FRAG_MIB
                                             : settings->large_segment_bytes;
    settings->gc_threshold = values[OPTION_GC].ratio;
    if (settings->gc_threshold >= 1)
        return frag_fail(
            error, FRAG_E_USAGE,
            "garbage_collection_threshold=%s is invalid; expected more than 0 and less than 1",
            values[OPTION_GC].text);
    settings->memory_fraction = values[OPTION_FRACTION].ratio;
    /* Up to 2.9 the API call with 1.0 keeps a limit of the whole card; later ones drop the limit.
     */
    settings->has_fraction = values[OPTION_FRACTION].is_given &&
                             (settings->memory_fraction < 1 || settings->version < 210);
    settings->throws_on_oom = values[OPTION_THROW].number != 0;
    return true;
}

uint64_t frag_pytorch_round_divided(const frag_pytorch_settings *settings, uint64_t bytes)
{
    uint32_t high = frag_bit_high(bytes);
    uint32_t interval = high <= 20 ? 0 : high - 20 < 15 ? high - 20 : 15;
    uint64_t division = settings->divisions[interval];
    uint64_t least = settings->version < 204 ? 1 : 2;
    if (division < least || bytes <= FRAG_PYTORCH_ROUND * division)
        return frag_align_up(bytes, FRAG_PYTORCH_ROUND);
    uint64_t floor = (uint64_t)1 << high;
    if (bytes == floor || division == 1)
        return bytes;
    uint64_t step = floor >> frag_bit_high(division);
    return step == 0 ? floor * 2 : frag_align_up(bytes, step);
}

#undef HOST_ONLY
