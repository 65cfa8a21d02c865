#include "studies/tune/tune_space.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "base/memory.h"

#define FRACTION_KEY "per_process_memory_fraction"
/* Below, blocks would not be aligned as programs expect. */
#define LEAST_BYTES 512

/* PyTorch's own keys, the strong ones first. What is not here is for host memory, or for address
 * space, or only makes requests fail. Segments are even numbers of MiB: the driver maps pages of
 * 2 MiB. */
typedef struct known_axis {
    const char *key;
    const char *values[FRAG_TUNE_VALUES_MAX]; /* besides the default */
    bool needs_limit;                         /* works only on a device that can be full */
} known_axis;

static const known_axis pytorch_axes[] = {
    {.key = "expandable_segments", .values = {"True"}},
    {.key = "large_segment_size_mb",
     .values = {"12", "14", "16", "24", "32", "48", "64", "96", "128", "256", "512"}},
    {.key = "roundup_power2_divisions",
     .values = {"1", "2", "4", "8", "16", "32", "64", "[256:1,512:2,1024:4,>:8]",
                "[256:0,512:2,1024:4,>:8]", "[1:4,2:8,4:16,8:32,>:64]"}},
    {.key = "max_split_size_mb",
     .values = {"21", "32", "48", "64", "96", "128", "192", "256", "384", "512", "768", "1024",
                "2048", "4096"}},
    {.key = "max_non_split_rounding_mb", .values = {"21", "32", "64", "128", "256", "512", "1024"}},
    {.key = "garbage_collection_threshold",
     .values = {"0.3", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95"},
     .needs_limit = true},
    {.key = FRACTION_KEY, .values = {"0.95"}, .needs_limit = true},
};

typedef struct known_start {
    const char *items[3][2]; /* key, value */
    bool is_advised;         /* by guides */
} known_start;

static const known_start pytorch_starts[] = {
    {.items = {{"expandable_segments", "True"}}},
    {.items = {{"max_split_size_mb", "128"}}, .is_advised = true},
    {.items = {{"max_split_size_mb", "512"}}},
    {.items = {{"roundup_power2_divisions", "8"}}},
    {.items = {{"large_segment_size_mb", "64"}}},
    {.items = {{"expandable_segments", "True"}, {"large_segment_size_mb", "64"}}},
    {.items = {{"garbage_collection_threshold", "0.8"}, {FRACTION_KEY, "0.95"}}},
    {.items = {{"max_split_size_mb", "128"},
               {"garbage_collection_threshold", "0.6"},
               {FRACTION_KEY, "0.95"}}},
    {.items = {{"expandable_segments", "True"},
               {"garbage_collection_threshold", "0.8"},
               {FRACTION_KEY, "0.95"}}},
};

_Static_assert(sizeof pytorch_starts / sizeof *pytorch_starts <=
                   sizeof((frag_tune_space *)0)->starts / sizeof(frag_tune_point),
               "every start has a place");

/* A value twice would be two settings that are one. */
static void add_value(frag_tune_axis *axis, const char *text)
{
    for (uint32_t i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i], text) == 0)
            return;
    if (axis->count < FRAG_TUNE_VALUES_MAX)
        axis->values[axis->count++] = frag_copy_text(text);
}

static void add_number(frag_tune_axis *axis, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    add_value(axis, text);
}

static void add_bytes(frag_tune_axis *axis, uint64_t bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    char text[32];
    for (; unit < 3 && bytes % 1024 == 0 && bytes > 0; unit++)
        bytes /= 1024;
    snprintf(text, sizeof text, "%" PRIu64 "%s", bytes, units[unit]);
    add_value(axis, text);
}

/* Powers of two times the default, down and up by 64; from nothing or without limit, sizes that
 * segments and requests have. */
static void add_bytes_ladder(frag_tune_axis *axis, const frag_option *option, uint64_t middle)
{
    uint64_t from = middle / 64;
    uint64_t to = middle > FRAG_UNLIMITED / 64 ? middle : middle * 64;
    uint64_t factor = 2;
    if (middle == 0 || middle == FRAG_UNLIMITED) {
        from = middle == 0 ? 4 * FRAG_KIB : FRAG_MIB;
        to = middle == 0 ? 64 * FRAG_MIB : 4 * FRAG_GIB;
        factor = 4;
    }
    from = from < LEAST_BYTES ? LEAST_BYTES : from;
    for (uint64_t at = from; at <= to && at <= FRAG_UNLIMITED / 8; at *= factor)
        if (at >= option->min && at <= option->max && at != middle)
            add_bytes(axis, at);
}

static void add_count_ladder(frag_tune_axis *axis, const frag_option *option, uint64_t middle)
{
    if (option->max - option->min < FRAG_TUNE_VALUES_MAX) {
        for (uint64_t at = option->min; at <= option->max; at++)
            add_number(axis, at);
        return;
    }
    uint64_t around = middle == 0 || middle == FRAG_UNLIMITED ? 64 : middle;
    uint64_t from = around / 64 > 0 ? around / 64 : 1;
    for (uint64_t at = from; at <= FRAG_UNLIMITED / 128 && at / 64 <= around; at *= 2)
        if (at >= option->min && at <= option->max)
            add_number(axis, at);
}

/* Shares by tenths; what goes beyond 1 about its default. */
static void add_ratio_ladder(frag_tune_axis *axis, const frag_option *option, double middle)
{
    static const double parts[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
    static const double factors[] = {0, 0.125, 0.25, 0.5, 2, 4, 8};
    bool is_share = option->ratio_max <= 1;
    size_t count = is_share ? sizeof parts / sizeof *parts : sizeof factors / sizeof *factors;
    for (size_t i = 0; i < count; i++) {
        char text[32];
        double at = is_share ? parts[i] : factors[i] * (middle > 0 ? middle : 1);
        snprintf(text, sizeof text, "%.6g", at);
        if (at >= option->ratio_min && at <= option->ratio_max && (at < middle || at > middle))
            add_value(axis, text);
    }
}

static void add_choices(frag_tune_axis *axis, const char *choices)
{
    char *copy = frag_copy_text(choices);
    char *rest = NULL;
    for (char *name = strtok_r(copy, "|", &rest); name != NULL; name = strtok_r(NULL, "|", &rest))
        add_value(axis, name);
    frag_free(copy);
}

static void add_ladder(frag_tune_axis *axis, const frag_option *option,
                       const frag_option_value *value)
{
    switch (option->type) {
    case FRAG_OPTION_BYTES:
        add_bytes_ladder(axis, option, value->number);
        break;
    case FRAG_OPTION_COUNT:
        add_count_ladder(axis, option, value->number);
        break;
    case FRAG_OPTION_RATIO:
        add_ratio_ladder(axis, option, value->ratio);
        break;
    case FRAG_OPTION_FLAG:
        add_value(axis, value->number != 0 ? "false" : "true");
        break;
    case FRAG_OPTION_ENUM:
        add_choices(axis, option->choices);
        break;
    case FRAG_OPTION_TEXT:
        break;
    }
}

/* Where programs need what the option says, less memory is no gain. */
static bool is_promise(const char *key)
{
    return strcmp(key, "align") == 0 || strcmp(key, "alignment") == 0;
}

/* By the user, or by a settings string. */
static bool is_fixed(const frag_policy_spec *base, uint32_t index)
{
    return base->values[index].is_given ||
           strcmp(base->values[index].text, base->ops->options[index].default_text) != 0;
}

static frag_tune_axis *begin_axis(frag_tune_space *space, uint32_t option)
{
    frag_tune_axis *axis = &space->axes[space->axis_count];
    *axis = (frag_tune_axis){.key = space->base->ops->options[option].key};
    add_value(axis, space->base->values[option].text);
    return axis;
}

/* An axis with nothing to choose is none. */
static void end_axis(frag_tune_space *space)
{
    frag_tune_axis *axis = &space->axes[space->axis_count];
    if (axis->count > 1)
        space->value_counts[space->axis_count++] = axis->count;
    else
        frag_free(axis->values[0]);
}

static void add_known_axis(frag_tune_space *space, const known_axis *known)
{
    const frag_policy_ops *ops = space->base->ops;
    uint32_t option = frag_policy_option_find(ops, known->key);
    if (option == frag_policy_option_count(ops) || is_fixed(space->base, option))
        return;
    frag_tune_axis *axis = begin_axis(space, option);
    for (size_t i = 0; known->values[i] != NULL; i++)
        add_value(axis, known->values[i]);
    end_axis(space);
}

/* false: an axis that the start needs is fixed or of no use here. */
static bool make_start(const frag_tune_space *space, const known_start *known,
                       frag_tune_point *point)
{
    *point = (frag_tune_point){0};
    for (size_t i = 0; i < sizeof known->items / sizeof *known->items; i++) {
        const char *key = known->items[i][0];
        uint32_t axis = 0;
        uint8_t choice = 0;
        if (key == NULL)
            return true;
        while (axis < space->axis_count && strcmp(space->axes[axis].key, key) != 0)
            axis++;
        if (axis == space->axis_count)
            return false;
        while (choice < space->axes[axis].count &&
               strcmp(space->axes[axis].values[choice], known->items[i][1]) != 0)
            choice++;
        FRAG_ASSERT(choice < space->axes[axis].count);
        point->choices[axis] = choice;
        point->changed++;
    }
    return true;
}

static void create_pytorch(frag_tune_space *space, bool has_capacity)
{
    space->is_literal = true;
    for (size_t i = 0; i < sizeof pytorch_axes / sizeof *pytorch_axes; i++)
        if (has_capacity || !pytorch_axes[i].needs_limit)
            add_known_axis(space, &pytorch_axes[i]);
    for (size_t i = 0; i < sizeof pytorch_starts / sizeof *pytorch_starts; i++) {
        frag_tune_point *start = &space->starts[space->start_count];
        if (!make_start(space, &pytorch_starts[i], start))
            continue;
        space->start_count++;
        if (pytorch_starts[i].is_advised) {
            space->advised = *start;
            space->has_advised = true;
        }
    }
}

void frag_tune_space_create(const frag_policy_spec *base, bool has_capacity, frag_tune_space *space)
{
    *space = (frag_tune_space){.base = base};
    if (frag_pytorch_is_set_by(base->ops)) {
        create_pytorch(space, has_capacity);
        return;
    }
    for (uint32_t i = 0; i < base->value_count && space->axis_count < FRAG_TUNE_AXES_MAX; i++) {
        const frag_option *option = &base->ops->options[i];
        if (is_fixed(base, i) || is_promise(option->key) || option->type == FRAG_OPTION_TEXT)
            continue;
        add_ladder(begin_axis(space, i), option, &base->values[i]);
        end_axis(space);
    }
}

void frag_tune_space_destroy(frag_tune_space *space)
{
    for (uint32_t i = 0; i < space->axis_count; i++)
        for (uint32_t v = 0; v < space->axes[i].count; v++)
            frag_free(space->axes[i].values[v]);
    *space = (frag_tune_space){0};
}

static const char *value_of(const frag_tune_space *space, const frag_tune_point *point,
                            uint32_t axis)
{
    return space->axes[axis].values[point->choices[axis]];
}

void frag_tune_space_setting(const frag_tune_space *space, const frag_tune_point *point,
                             frag_text *setting)
{
    frag_text_clear(setting);
    frag_text_add(setting, "%s", "");
    for (uint32_t i = 0; i < space->axis_count; i++)
        if (point->choices[i] != 0 && strcmp(space->axes[i].key, FRACTION_KEY) != 0)
            frag_text_add(setting, "%s%s%c%s", setting->length > 0 ? "," : "", space->axes[i].key,
                          space->is_literal ? ':' : '=', value_of(space, point, i));
}

const char *frag_tune_space_fraction(const frag_tune_space *space, const frag_tune_point *point)
{
    for (uint32_t i = 0; i < space->axis_count; i++)
        if (point->choices[i] != 0 && strcmp(space->axes[i].key, FRACTION_KEY) == 0)
            return value_of(space, point, i);
    return NULL;
}

void frag_tune_space_label(const frag_tune_space *space, const frag_tune_point *point,
                           frag_text *label)
{
    frag_text setting = {0};
    const char *fraction = frag_tune_space_fraction(space, point);
    bool has_options = strchr(space->base->text, ':') != NULL;
    frag_tune_space_setting(space, point, &setting);
    frag_text_clear(label);
    frag_text_add(label, "%s", space->base->text);
    if (fraction != NULL)
        frag_text_add(label, "%c" FRACTION_KEY "=%s", has_options ? ',' : ':', fraction);
    has_options = has_options || fraction != NULL;
    if (setting.length > 0)
        frag_text_add(label, "%c%s", has_options ? ',' : ':', setting.bytes);
    frag_text_destroy(&setting);
}

bool frag_tune_space_spec(const frag_tune_space *space, const frag_tune_point *point,
                          frag_policy_spec *spec, frag_error *error)
{
    frag_text setting = {0};
    const char *fraction = frag_tune_space_fraction(space, point);
    frag_policy_spec_copy(space->base, spec);
    frag_tune_space_setting(space, point, &setting);
    bool ok = (setting.length == 0 || frag_policy_spec_apply(spec, setting.bytes, error)) &&
              (fraction == NULL || frag_policy_spec_set(spec, FRACTION_KEY, fraction, error));
    frag_text_destroy(&setting);
    if (!ok)
        frag_policy_spec_destroy(spec);
    return ok;
}
