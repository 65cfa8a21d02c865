#include "gpu_replay/software/soft_settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/bytes.h"

#define VALUE_MAX (FRAG_SOFT_PATH_MAX + 64)
#define CODE_MAX 9999

static const char *const call_names[FRAG_SOFT_CALL_COUNT] = {
#define CALL_NAME(name, about) #name,
    FRAG_SOFT_CALLS(CALL_NAME)
#undef CALL_NAME
};

static const unsigned char call_abouts[FRAG_SOFT_CALL_COUNT] = {
#define CALL_ABOUT(name, about) FRAG_ABOUT_##about,
    FRAG_SOFT_CALLS(CALL_ABOUT)
#undef CALL_ABOUT
};

const char *frag_soft_call_name(frag_soft_call_id call)
{
    return call_names[call];
}

frag_soft_about frag_soft_call_about(frag_soft_call_id call)
{
    return (frag_soft_about)call_abouts[call];
}

bool frag_soft_call_find(const char *name, frag_soft_call_id *call)
{
    static const char *const prefixes[] = {"", "cuda", "cu", "cuMem"};
    char base[64];
    size_t length = strlen(name);
    if (length >= sizeof base)
        return false;
    memcpy(base, name, length + 1);
    if (length > 3 && strcmp(base + length - 3, "_v2") == 0)
        base[length - 3] = '\0';
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        size_t skipped = strlen(prefixes[p]);
        for (int i = 0; i < FRAG_SOFT_CALL_COUNT; i++) {
            if (strncmp(call_names[i], prefixes[p], skipped) == 0 &&
                strcasecmp(call_names[i] + skipped, base) == 0) {
                *call = (frag_soft_call_id)i;
                return true;
            }
        }
    }
    return false;
}

void frag_soft_settings_default(frag_soft_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->device_count = 1;
    for (int i = 0; i < FRAG_SOFT_DEVICES_MAX; i++)
        settings->capacity_bytes[i] = 80 * FRAG_GIB;
    settings->granularity_bytes = 2 * FRAG_MIB;
    settings->pool_growth_bytes = 32 * FRAG_MIB;
    settings->shadow_bytes = 64 * FRAG_KIB;
    settings->shadow_total_bytes = 64 * FRAG_MIB;
    settings->shows_processes = true;
    settings->driver_version = 13000;
    settings->card.compute_capability = 80;
}

/* Cuts the text at the first separator; NULL when there is none. */
static char *cut(char *text, char separator)
{
    char *found = strchr(text, separator);
    if (found == NULL)
        return NULL;
    *found = '\0';
    return found + 1;
}

/* The numbers of a call and codes as people write them. */
static bool parse_code(const char *text, int32_t *code, frag_error *error)
{
    uint64_t value = 0;
    if (!frag_count_parse(text, 1, CODE_MAX, &value, error))
        return false;
    *code = (int32_t)value;
    return true;
}

static bool parse_call(const char *text, frag_soft_call_id *call, frag_error *error)
{
    if (frag_soft_call_find(text, call))
        return true;
    return frag_fail(error, FRAG_E_USAGE,
                     "'%s' is no call that can fail; write its name, such as cudaMalloc, malloc, "
                     "cuMemCreate or create",
                     text);
}

static bool parse_device(const char *text, uint32_t *device, frag_error *error)
{
    uint64_t value = 0;
    if (!frag_count_parse(text, 0, FRAG_SOFT_DEVICES_MAX - 1, &value, error))
        return false;
    *device = (uint32_t)value;
    return true;
}

static bool set_devices(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint64_t count = 0;
    if (!frag_count_parse(value, 0, FRAG_SOFT_DEVICES_MAX, &count, error))
        return false;
    settings->device_count = (uint32_t)count;
    return true;
}

static bool set_capacity(frag_soft_settings *settings, char *value, frag_error *error)
{
    const char *which = cut(value, '/');
    uint64_t bytes = 0;
    uint32_t device = FRAG_SOFT_DEVICE_ALL;
    if (!frag_bytes_parse(value, &bytes, error) ||
        (which != NULL && !parse_device(which, &device, error)))
        return false;
    if (bytes == 0 || bytes > (uint64_t)1 << 40)
        return frag_fail(error, FRAG_E_USAGE, "a capacity is 1 byte to 1 TiB");
    for (uint32_t i = 0; i < FRAG_SOFT_DEVICES_MAX; i++)
        if (device == FRAG_SOFT_DEVICE_ALL || device == i)
            settings->capacity_bytes[i] = bytes;
    return true;
}

static bool set_context(frag_soft_settings *settings, char *value, frag_error *error)
{
    return frag_bytes_parse(value, &settings->context_bytes, error);
}

static bool set_reserved(frag_soft_settings *settings, char *value, frag_error *error)
{
    return frag_bytes_parse(value, &settings->reserved_bytes, error);
}

/* BYTES[/DEVICE][@CALL] */
static bool set_others(frag_soft_settings *settings, char *value, frag_error *error)
{
    const char *from = cut(value, '@');
    const char *which = cut(value, '/');
    frag_soft_others others = {.device = FRAG_SOFT_DEVICE_ALL};
    if (!frag_bytes_parse(value, &others.bytes, error) ||
        (which != NULL && !parse_device(which, &others.device, error)) ||
        (from != NULL && !frag_count_parse(from, 1, UINT64_MAX, &others.from, error)))
        return false;
    if (settings->others_count == FRAG_SOFT_OTHERS_MAX)
        return frag_fail(error, FRAG_E_USAGE, "at most %d times", FRAG_SOFT_OTHERS_MAX);
    settings->others[settings->others_count++] = others;
    return true;
}

static bool parse_pages(const char *value, uint64_t *bytes, frag_error *error)
{
    if (!frag_bytes_parse(value, bytes, error))
        return false;
    if (!frag_is_power_of_two(*bytes) || *bytes < 64 * FRAG_KIB || *bytes > FRAG_GIB)
        return frag_fail(error, FRAG_E_USAGE, "a power of two from 64 KiB to 1 GiB");
    return true;
}

static bool set_granularity(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_pages(value, &settings->granularity_bytes, error);
}

static bool set_pool_growth(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_pages(value, &settings->pool_growth_bytes, error);
}

static bool set_max_mappings(frag_soft_settings *settings, char *value, frag_error *error)
{
    return frag_count_parse(value, 0, UINT32_MAX, &settings->mapping_count_max, error);
}

/* One of two or three words, as its place in the list. */
static bool parse_word(const char *value, const char *const *words, uint32_t count, uint32_t *place,
                       frag_error *error)
{
    char all[128] = "";
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(value, words[i]) == 0) {
            *place = i;
            return true;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : " or ", words[i]);
    }
    return frag_fail(error, FRAG_E_USAGE, "'%s' is not known; write %s", value, all);
}

static bool set_footprint(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"pages", "classes"}, 2, &place, error))
        return false;
    settings->has_classes = place == 1;
    return true;
}

static bool set_addresses(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"first-fit", "bump", "snapshot"}, 3, &place,
                    error))
        return false;
    settings->addresses = (frag_soft_addresses)place;
    return true;
}

static bool set_lag(frag_soft_settings *settings, char *value, frag_error *error)
{
    if (strcmp(value, "told") == 0) {
        settings->lag = FRAG_SOFT_LAG_TOLD;
        return true;
    }
    return frag_count_parse(value, 0, UINT32_MAX, &settings->lag, error);
}

static bool set_lag_unit(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"work", "calls"}, 2, &place, error))
        return false;
    settings->lag_counts_calls = place == 1;
    return true;
}

static bool set_streams(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"created", "any"}, 2, &place, error))
        return false;
    settings->takes_any_stream = place == 1;
    return true;
}

static bool set_handles(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"posix", "any"}, 2, &place, error))
        return false;
    settings->takes_any_handle_type = place == 1;
    return true;
}

static bool set_processes(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"none", "own"}, 2, &place, error))
        return false;
    settings->shows_processes = place == 1;
    return true;
}

static bool set_driver(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint64_t version = 0;
    if (!frag_count_parse(value, 0, 99990, &version, error))
        return false;
    settings->driver_version = (uint32_t)version;
    return true;
}

/* 8.9, or times ten: 89. */
static bool set_compute_capability(frag_soft_settings *settings, char *value, frag_error *error)
{
    enum { MIN = 50, MAX = 129 };
    uint64_t version = 0;
    uint64_t minor = 0;
    const char *after = cut(value, '.');
    if (after == NULL) {
        if (!frag_count_parse(value, MIN, MAX, &version, error))
            return false;
    } else {
        if (!frag_count_parse(value, MIN / 10, MAX / 10, &version, error) ||
            !frag_count_parse(after, 0, 9, &minor, error))
            return false;
        version = version * 10 + minor;
    }
    settings->card.compute_capability = (uint32_t)version;
    return true;
}

static bool set_name(frag_soft_settings *settings, char *value, frag_error *error)
{
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof settings->card.name)
        return frag_fail(error, FRAG_E_USAGE, "a card's name has 1 to %d bytes",
                         (int)sizeof settings->card.name - 1);
    memcpy(settings->card.name, value, length + 1);
    return true;
}

static bool parse_small(const char *value, uint64_t min, uint64_t max, uint32_t *out,
                        frag_error *error)
{
    uint64_t count = 0;
    if (!frag_count_parse(value, min, max, &count, error))
        return false;
    *out = (uint32_t)count;
    return true;
}

static bool set_multiprocessors(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_small(value, 1, 1024, &settings->card.multiprocessor_count, error);
}

static bool set_threads(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_small(value, 32, 4096, &settings->card.threads_per_multiprocessor, error);
}

static bool parse_shared(const char *value, uint32_t *out, frag_error *error)
{
    uint64_t bytes = 0;
    if (!frag_bytes_parse(value, &bytes, error))
        return false;
    if (bytes < 16 * FRAG_KIB || bytes > FRAG_MIB)
        return frag_fail(error, FRAG_E_USAGE, "shared memory has 16 KiB to 1 MiB");
    *out = (uint32_t)bytes;
    return true;
}

static bool set_shared(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_shared(value, &settings->card.shared_bytes_per_block_opt_in, error);
}

static bool set_shared_all(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_shared(value, &settings->card.shared_bytes_per_multiprocessor, error);
}

static bool set_l2(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint64_t bytes = 0;
    if (!frag_bytes_parse(value, &bytes, error))
        return false;
    if (bytes == 0 || bytes > FRAG_GIB)
        return frag_fail(error, FRAG_E_USAGE, "an L2 cache has 1 byte to 1 GiB");
    settings->card.l2_bytes = bytes;
    return true;
}

static bool set_clock(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_small(value, 1, 10000000, &settings->card.clock_khz, error);
}

static bool set_memory_clock(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_small(value, 1, 100000000, &settings->card.memory_clock_khz, error);
}

static bool set_bus(frag_soft_settings *settings, char *value, frag_error *error)
{
    return parse_small(value, 32, 16384, &settings->card.memory_bus_bits, error);
}

/* BYTES[/TOTAL] */
static bool set_shadow(frag_soft_settings *settings, char *value, frag_error *error)
{
    const char *total = cut(value, '/');
    uint64_t total_bytes = settings->shadow_total_bytes;
    if (!frag_bytes_parse(value, &settings->shadow_bytes, error) ||
        (total != NULL && !frag_bytes_parse(total, &total_bytes, error)))
        return false;
    settings->shadow_total_bytes = total_bytes;
    return true;
}

static bool set_workspaces(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"high", "low"}, 2, &place, error))
        return false;
    settings->answers_low = place == 1;
    return true;
}

/* CALL:NUMBER:CODE[:COUNT] */
static bool set_fail(frag_soft_settings *settings, char *value, frag_error *error)
{
    char *number = cut(value, ':');
    char *code = number == NULL ? NULL : cut(number, ':');
    if (code == NULL)
        return frag_fail(error, FRAG_E_USAGE, "write CALL:NUMBER:CODE, such as malloc:5:2");
    const char *count = cut(code, ':');
    frag_soft_fault fault = {.count = 1};
    if (!parse_call(value, &fault.call, error) ||
        !frag_count_parse(number, 1, UINT32_MAX, &fault.first, error) ||
        !parse_code(code, &fault.code, error))
        return false;
    if (count != NULL && strcmp(count, "all") == 0)
        fault.count = UINT64_MAX / 2;
    else if (count != NULL && !frag_count_parse(count, 1, UINT32_MAX, &fault.count, error))
        return false;
    if (settings->fault_count == FRAG_SOFT_FAULTS_MAX)
        return frag_fail(error, FRAG_E_USAGE, "at most %d times", FRAG_SOFT_FAULTS_MAX);
    settings->faults[settings->fault_count++] = fault;
    return true;
}

/* CALL:ONE_IN:CODE[:SEED] */
static bool set_random(frag_soft_settings *settings, char *value, frag_error *error)
{
    char *one_in = cut(value, ':');
    char *code = one_in == NULL ? NULL : cut(one_in, ':');
    if (code == NULL)
        return frag_fail(error, FRAG_E_USAGE, "write CALL:ONE_IN:CODE, such as malloc:100:2");
    const char *seed = cut(code, ':');
    frag_soft_chance chance = {.seed = 1};
    if (!parse_call(value, &chance.call, error) ||
        !frag_count_parse(one_in, 1, UINT32_MAX, &chance.one_in, error) ||
        !parse_code(code, &chance.code, error) ||
        (seed != NULL && !frag_count_parse(seed, 0, UINT64_MAX, &chance.seed, error)))
        return false;
    settings->chance = chance;
    return true;
}

/* CODE@CALL */
static bool set_sticky(frag_soft_settings *settings, char *value, frag_error *error)
{
    const char *from = cut(value, '@');
    if (from == NULL)
        return frag_fail(error, FRAG_E_USAGE, "write CODE@CALL, such as 700@100");
    return parse_code(value, &settings->sticky_code, error) &&
           frag_count_parse(from, 1, UINT64_MAX, &settings->sticky_from, error);
}

static bool set_path(char path[FRAG_SOFT_PATH_MAX], const char *value, frag_error *error)
{
    size_t length = strlen(value);
    if (length == 0 || length >= FRAG_SOFT_PATH_MAX)
        return frag_fail(error, FRAG_E_USAGE, "a file name has 1 to %d bytes",
                         FRAG_SOFT_PATH_MAX - 1);
    memcpy(path, value, length + 1);
    return true;
}

static bool set_log(frag_soft_settings *settings, char *value, frag_error *error)
{
    return set_path(settings->log_path, value, error);
}

static bool set_leaks(frag_soft_settings *settings, char *value, frag_error *error)
{
    return set_path(settings->leaks_path, value, error);
}

static bool set_report(frag_soft_settings *settings, char *value, frag_error *error)
{
    return set_path(settings->report_path, value, error);
}

static bool set_cards(frag_soft_settings *settings, char *value, frag_error *error)
{
    return set_path(settings->cards_path, value, error);
}

static bool set_log_calls(frag_soft_settings *settings, char *value, frag_error *error)
{
    uint32_t place = 0;
    if (!parse_word(value, (const char *const[]){"all", "memory"}, 2, &place, error))
        return false;
    settings->logs_memory_only = place == 1;
    return true;
}

typedef struct setting {
    const char *name;
    bool may_change; /* while the device is in use */
    bool (*set)(frag_soft_settings *settings, char *value, frag_error *error);
} setting;

static const setting table[] = {
    {"devices", false, set_devices},
    {"capacity", true, set_capacity},
    {"context", false, set_context},
    {"reserved", false, set_reserved},
    {"others", true, set_others},
    {"granularity", false, set_granularity},
    {"footprint", false, set_footprint},
    {"addresses", false, set_addresses},
    {"pool-growth", false, set_pool_growth},
    {"max-mappings", true, set_max_mappings},
    {"lag", true, set_lag},
    {"lag-unit", true, set_lag_unit},
    {"streams", false, set_streams},
    {"handles", false, set_handles},
    {"fail", true, set_fail},
    {"random", true, set_random},
    {"sticky", true, set_sticky},
    {"driver", false, set_driver},
    {"compute-capability", false, set_compute_capability},
    {"name", false, set_name},
    {"multiprocessors", false, set_multiprocessors},
    {"threads-per-multiprocessor", false, set_threads},
    {"shared", false, set_shared},
    {"shared-per-multiprocessor", false, set_shared_all},
    {"l2", false, set_l2},
    {"clock", false, set_clock},
    {"memory-clock", false, set_memory_clock},
    {"bus", false, set_bus},
    {"shadow", true, set_shadow},
    {"workspaces", false, set_workspaces},
    {"report", false, set_report},
    {"cards", false, set_cards},
    {"processes", true, set_processes},
    {"log", false, set_log},
    {"log-calls", true, set_log_calls},
    {"leaks", true, set_leaks},
};

static bool apply_one(frag_soft_settings *settings, char *text, bool is_running, frag_error *error)
{
    char *value = cut(text, '=');
    if (value == NULL)
        return frag_fail(error, FRAG_E_USAGE, "'%s' has no value; write NAME=VALUE", text);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, text) != 0)
            continue;
        if (is_running && !table[i].may_change)
            return frag_fail(error, FRAG_E_USAGE, "'%s' cannot change while the device is in use",
                             text);
        if (table[i].set(settings, value, error))
            return true;
        return frag_error_in(error, table[i].name);
    }
    return frag_fail(error, FRAG_E_USAGE, "'%s' is no setting of the software CUDA", text);
}

bool frag_soft_settings_apply(frag_soft_settings *settings, const char *list, bool is_running,
                              frag_error *error)
{
    frag_soft_settings changed = *settings;
    char text[VALUE_MAX];
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        if (length >= sizeof text)
            return frag_fail(error, FRAG_E_USAGE, "a setting has more than %d bytes",
                             VALUE_MAX - 1);
        memcpy(text, list, length);
        text[length] = '\0';
        if (length > 0 && !apply_one(&changed, text, is_running, error))
            return false;
        list += length;
        list += *list == ',';
    }
    for (uint32_t i = 0; i < changed.device_count; i++)
        if (changed.context_bytes > changed.capacity_bytes[i])
            return frag_fail(error, FRAG_E_USAGE, "the context is larger than the capacity");
    *settings = changed;
    return true;
}
