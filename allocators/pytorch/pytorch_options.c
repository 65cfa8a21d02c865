#include "allocators/pytorch/pytorch_options.h"

#include <string.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "base/bytes.h"

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
    OPTION_CONF,
    OPTION_RESERVE_BY_CLASS,
    OPTION_RELEASE_LOCK,
    OPTION_REUSE,
};

enum { BACKEND_NATIVE, BACKEND_ASYNC }; /* in the order of the option's choices */

#define HOST_ONLY(name)                                                                            \
    {                                                                                              \
        .key = name, .type = FRAG_OPTION_TEXT, .default_text = "",                                 \
        .help = "accepted as PyTorch does; has no effect on device memory"                         \
    }

const frag_option frag_pytorch_options[] = {
    [OPTION_VERSION] =
        {"version", FRAG_OPTION_TEXT, "auto",
         .help = "release to follow, 2.0 to 2.15; auto: the recording's, else the newest"},
    [OPTION_MAX_SPLIT] = {"max_split_size_mb", FRAG_OPTION_COUNT, "unlimited", .min = 1,
                          .max = FRAG_UNLIMITED,
                          .help = "blocks of this size and more are never split (MiB)"},
    [OPTION_NON_SPLIT_ROUNDING] = {"max_non_split_rounding_mb", FRAG_OPTION_COUNT, "20", .min = 1,
                                   .max = (uint64_t)1 << 20,
                                   .help =
                                       "surplus from which an oversize block is not reused (MiB)"},
    [OPTION_DIVISIONS] =
        {"roundup_power2_divisions", FRAG_OPTION_TEXT, "",
         .help = "round to this share of a power of two: 8, or [256:1,512:2,>:8] by MiB"},
    [OPTION_GC] = {"garbage_collection_threshold", FRAG_OPTION_RATIO, "0", .ratio_min = 0,
                   .ratio_max = 1,
                   .help =
                       "share of the memory limit above which old cached segments are given back"},
    [OPTION_FRACTION] = {"per_process_memory_fraction", FRAG_OPTION_RATIO, "1", .ratio_min = 0,
                         .ratio_max = 1,
                         .help = "set_per_process_memory_fraction at the start; needs a capacity"},
    [OPTION_LARGE_SEGMENT] = {"large_segment_size_mb", FRAG_OPTION_COUNT, "20", .min = 11,
                              .max = (uint64_t)1 << 20,
                              .help = "segment for requests of 1 to 10 MiB (MiB)"},
    [OPTION_THROW] = {"throw_on_cudamalloc_oom", FRAG_OPTION_FLAG, "false",
                      .help = "with a fraction: fail before the device is asked, without retrying"},
    [OPTION_EXPANDABLE] = {"expandable_segments", FRAG_OPTION_FLAG, "false",
                           .help = "segments that grow page by page in reserved address space"},
    [OPTION_RESERVE] =
        {"expandable_segments_reserve", FRAG_OPTION_TEXT, "",
         .help = "address space of one expandable segment: share of the capacity, or 40G"},
    [OPTION_BACKEND] = {"backend", FRAG_OPTION_ENUM, "native", .choices = "native|cudaMallocAsync",
                        .help = "native; the policy of cudaMallocAsync is cuda-async"},
    [OPTION_CONF] = {"conf", FRAG_OPTION_TEXT, "",
                     .help = "a literal PYTORCH_CUDA_ALLOC_CONF, read as the release does; other "
                             "options given go before it"},
    [OPTION_RESERVE_BY_CLASS] = HOST_ONLY("expandable_segments_reserve_by_class"),
    [OPTION_RELEASE_LOCK] = HOST_ONLY("release_lock_on_cudamalloc"),
    [OPTION_REUSE] = {"graph_capture_record_stream_reuse", FRAG_OPTION_FLAG, "false",
                      .help =
                          "from 2.12 on a pool's frees that were put off are over at its pool_end"},
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

bool frag_pytorch_version(const char *text, const char *recorded, uint32_t *version,
                          frag_error *error)
{
    if (strcmp(text, "auto") == 0) {
        if (!parse_version(recorded, version) || *version > VERSION_NEWEST)
            *version = VERSION_NEWEST;
        if (*version < VERSION_OLDEST)
            *version = VERSION_OLDEST;
        return true;
    }
    if (parse_version(text, version) && *version >= VERSION_OLDEST && *version <= VERSION_NEWEST)
        return true;
    return frag_fail(error, FRAG_E_USAGE,
                     "version '%s' of pytorch is not known; expected 2.0 to 2.15", text);
}

/* A key that the release does not have yet is refused, unless it says what is so without it. */
static bool check_keys(const frag_pytorch_settings *settings, const frag_option_value *values,
                       frag_error *error)
{
    for (uint32_t i = 0; frag_pytorch_options[i].key != NULL; i++) {
        const char *key = frag_pytorch_options[i].key;
        uint32_t since = frag_pytorch_conf_since(key);
        if (!values[i].is_given || since <= settings->version || i == OPTION_FRACTION ||
            strcmp(values[i].text, frag_pytorch_options[i].default_text) == 0 ||
            (frag_pytorch_options[i].type == FRAG_OPTION_FLAG && values[i].number == 0))
            continue;
        return frag_fail(
            error, FRAG_E_USAGE, "%s came with PyTorch %u.%u; version %u.%u does not have it", key,
            since / 100, since % 100, settings->version / 100, settings->version % 100);
    }
    return true;
}

static bool bad_divisions(const char *text, uint64_t column, frag_error *error)
{
    return frag_fail(error, FRAG_E_USAGE,
                     "roundup_power2_divisions '%s' is wrong at character %llu; expected a power "
                     "of two such as 8, or [256:1,512:2,>:8] with powers of two",
                     text, (unsigned long long)column);
}

/* One value for all sixteen intervals, or a list. What PyTorch overlooks is refused. */
static bool read_divisions(frag_pytorch_settings *settings, const char *text, frag_error *error)
{
    if (text[0] == '\0' || strcmp(text, "0") == 0) {
        memset(settings->divisions, 0, sizeof settings->divisions);
        settings->has_divisions = false;
        return true;
    }
    size_t good = strspn(text, "0123456789[]:,> ");
    if (text[good] != '\0')
        return bad_divisions(text, good + 1, error);
    if (strncmp(text, "[]", 2) == 0)
        return bad_divisions(text, 2, error);
    frag_error problem = {.code = FRAG_E_NONE};
    return frag_pytorch_conf_divisions(settings, text, &problem) ||
           bad_divisions(text, problem.column, error);
}

/* Sizes in MiB that PyTorch refuses below its large segment size (up to 2.9: at it, too). */
static bool check_split_size(const frag_pytorch_settings *settings, const char *key, uint64_t bytes,
                             frag_error *error)
{
    uint64_t least = frag_pytorch_conf_split_mib_min(settings);
    if (bytes / FRAG_MIB < least)
        return frag_fail(error, FRAG_E_USAGE,
                         "%s=%llu is too small for pytorch %u.%u; expected %llu or more", key,
                         (unsigned long long)(bytes / FRAG_MIB), settings->version / 100,
                         settings->version % 100, (unsigned long long)least);
    return true;
}

/* "0.5" of the capacity, or "40G". */
static bool read_reserve(frag_pytorch_settings *settings, const char *text, frag_error *error)
{
    char number[32];
    size_t length = strlen(text);
    settings->reserve_bytes = 0;
    settings->reserve_ratio = 0;
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

/* The sizes given besides the settings string, and what must hold between them all. */
static bool read_sizes(frag_pytorch_settings *settings, const frag_option_value *values,
                       frag_error *error)
{
    if (values[OPTION_LARGE_SEGMENT].is_given) {
        uint64_t bytes = values[OPTION_LARGE_SEGMENT].number * FRAG_MIB;
        if (settings->non_split_rounding_bytes == settings->large_segment_bytes)
            settings->non_split_rounding_bytes = bytes;
        settings->large_segment_bytes = bytes;
    }
    uint64_t split = values[OPTION_MAX_SPLIT].number;
    if (values[OPTION_MAX_SPLIT].is_given) {
        if (split != FRAG_UNLIMITED && split > (FRAG_UNLIMITED >> 21))
            return frag_fail(
                error, FRAG_E_USAGE,
                "max_split_size_mb=%llu is more than 64 bits of bytes; write unlimited",
                (unsigned long long)split);
        settings->max_split_bytes = split == FRAG_UNLIMITED ? FRAG_UNLIMITED : split * FRAG_MIB;
    }
    if (values[OPTION_NON_SPLIT_ROUNDING].is_given)
        settings->non_split_rounding_bytes = values[OPTION_NON_SPLIT_ROUNDING].number * FRAG_MIB;
    return check_split_size(settings, "max_split_size_mb", settings->max_split_bytes, error) &&
           (!values[OPTION_NON_SPLIT_ROUNDING].is_given ||
            check_split_size(settings, "max_non_split_rounding_mb",
                             settings->non_split_rounding_bytes, error));
}

/* From 2.10 on the key sets a limit when the allocator is created; the option stands for the call
 * that follows. Up to 2.9 that call with 1.0 keeps a limit of the whole card, later it drops the
 * limit. */
static void read_fraction(frag_pytorch_settings *settings, const frag_option_value *value)
{
    settings->memory_fraction = value->is_given ? value->ratio : settings->key_fraction;
    settings->has_fraction =
        settings->memory_fraction < 1 || (value->is_given && settings->version < 210);
}

bool frag_pytorch_settings_create(frag_pytorch_settings *settings, const frag_option_value *values,
                                  const char *recorded_version, frag_error *error)
{
    uint32_t version = 0;
    if (!frag_pytorch_version(values[OPTION_VERSION].text, recorded_version, &version, error))
        return false;
    frag_pytorch_settings_reset(settings, version);
    if (values[OPTION_BACKEND].number == BACKEND_ASYNC)
        return frag_fail(error, FRAG_E_USAGE,
                         "backend=cudaMallocAsync " FRAG_PYTORCH_OTHER_BACKEND);
    if (!frag_pytorch_conf_parse(settings, values[OPTION_CONF].text, error) ||
        !check_keys(settings, values, error) || !read_sizes(settings, values, error))
        return false;
    if (values[OPTION_DIVISIONS].is_given &&
        !read_divisions(settings, values[OPTION_DIVISIONS].text, error))
        return false;
    if (values[OPTION_RESERVE].is_given &&
        !read_reserve(settings, values[OPTION_RESERVE].text, error))
        return false;
    if (values[OPTION_GC].is_given) {
        settings->gc_threshold = values[OPTION_GC].ratio;
        if (settings->gc_threshold >= 1)
            return frag_fail(
                error, FRAG_E_USAGE,
                "garbage_collection_threshold=%s is invalid; expected more than 0 and less than 1",
                values[OPTION_GC].text);
    }
    if (values[OPTION_EXPANDABLE].is_given)
        settings->is_expandable = values[OPTION_EXPANDABLE].number != 0;
    if (values[OPTION_THROW].is_given)
        settings->throws_on_oom = values[OPTION_THROW].number != 0;
    if (values[OPTION_REUSE].is_given)
        settings->reuses_at_end = values[OPTION_REUSE].number != 0;
    read_fraction(settings, &values[OPTION_FRACTION]);
    return true;
}

#undef HOST_ONLY

bool frag_pytorch_is_set_by(const frag_policy_ops *ops)
{
    return ops->options == frag_pytorch_options;
}

bool frag_pytorch_settings_of(frag_pytorch_settings *settings, const frag_policy_ops *ops,
                              const frag_option_value *values, const char *recorded_version)
{
    return frag_pytorch_is_set_by(ops) &&
           frag_pytorch_settings_create(settings, values,
                                        recorded_version != NULL ? recorded_version : "", NULL);
}
