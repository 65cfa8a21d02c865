/* Reads the mapping 'statistical' of a workload file: what stands further out is the default of
 * what stands further in. */
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "workload/description/field_values.h"
#include "workload/description/statistical.h"

#define RUN(name) offsetof(frag_statistical, name)
#define PHASE(name) offsetof(frag_request_phase, name)
#define CLASS(name) offsetof(frag_request_class, name)
#define BYTES_MAX ((double)((uint64_t)1 << 40))

enum { SHARE_MAX = 1000000, ROBSON_WORDS_MAX = 1 << 20 };

static const frag_field run_fields[] = {
    {"seed", NULL, FRAG_FIELD_COUNT, RUN(seed), 1, 0, 4294967295.0, NULL, "of what is drawn"},
    {"rounds", NULL, FRAG_FIELD_COUNT, RUN(rounds), 1, 1, FRAG_STATISTICAL_REQUESTS_MAX, NULL,
     "all phases so many times"},
    {.key = NULL},
};

static const frag_field phase_fields[] = {
    {"name", NULL, FRAG_FIELD_NAME, PHASE(name), 0, 0, 0, NULL, "of the marks; else phase N"},
    {"pattern", NULL, FRAG_FIELD_CHOICE, PHASE(pattern), FRAG_PATTERN_MIXTURE, 0, 0,
     "mixture|robson", "requests of the classes in random order, or Robson's adversary"},
    {"requests", NULL, FRAG_FIELD_COUNT, PHASE(requests), 1000, 1, FRAG_STATISTICAL_REQUESTS_MAX,
     NULL, "in the phase"},
    {"repeat", NULL, FRAG_FIELD_COUNT, PHASE(repeat), 1, 1, FRAG_STATISTICAL_REQUESTS_MAX, NULL,
     "the phase so many times"},
    {"live", NULL, FRAG_FIELD_SPAN, PHASE(live), 0, 0, BYTES_MAX, "bytes",
     "bytes that may be live; FIRST..LAST: a ramp"},
    {"release", NULL, FRAG_FIELD_CHOICE, PHASE(release), FRAG_RELEASE_RANDOM, 0, 0,
     "random|oldest|newest|due", "which block goes where more would be live"},
    {"stretch", NULL, FRAG_FIELD_RATIO, PHASE(stretch), 1, 0, 1000000, NULL,
     "lifetimes are so many times as long"},
    {"survivors", NULL, FRAG_FIELD_RATIO, PHASE(survivors), 1, 0, 1, NULL,
     "of the phase's live blocks, at its end"},
    {"holes", NULL, FRAG_FIELD_COUNT, PHASE(holes), 0, 0, FRAG_STATISTICAL_REQUESTS_MAX, NULL,
     "every so many of them are released at its end, in the order of their requests; 0: none"},
    {"largest", NULL, FRAG_FIELD_BYTES, PHASE(largest), 0, 1, BYTES_MAX, NULL,
     "size of Robson's last requests"},
    {.key = NULL},
};

static const frag_field class_fields[] = {
    {"share", NULL, FRAG_FIELD_COUNT, CLASS(share), 1, 0, SHARE_MAX, NULL,
     "of the requests, beside the other classes"},
    {"count", NULL, FRAG_FIELD_COUNT, CLASS(count), 0, 0, FRAG_STATISTICAL_REQUESTS_MAX, NULL,
     "of the requests, exactly; 0: by share"},
    {"bytes", NULL, FRAG_FIELD_DRAW, CLASS(bytes), 0, 1, BYTES_MAX, "bytes", "sizes"},
    {"multiple", NULL, FRAG_FIELD_BYTES, CLASS(multiple), 1, 1, FRAG_GIB, NULL,
     "sizes are rounded up to one of it"},
    {"lifetime", NULL, FRAG_FIELD_DRAW, CLASS(lifetime), 0, 0, FRAG_STATISTICAL_REQUESTS_MAX,
     "lifetime", "requests before the release, or forever"},
    {"stream", NULL, FRAG_FIELD_DRAW, CLASS(stream), 0, 0, 65534, "number", "streams"},
    {.key = NULL},
};

void frag_request_phase_init(frag_request_phase *phase)
{
    *phase = (frag_request_phase){.class_count = 1};
    phase->classes = frag_alloc(1, sizeof *phase->classes);
    frag_fields_set_initial(phase_fields, phase);
    frag_fields_set_initial(class_fields, phase->classes);
    phase->classes->lifetime = (frag_draw){.count = 1, .values = {FRAG_UNLIMITED}};
    phase->classes->stream = (frag_draw){.count = 1};
}

void frag_statistical_destroy(frag_statistical *description)
{
    for (uint32_t i = 0; i < description->phase_count; i++)
        frag_free(description->phases[i].classes);
    frag_free(description->phases);
    *description = (frag_statistical){.phases = NULL};
}

/* ---- checks */
static bool is_one(const frag_draw *draw)
{
    return draw->kind == FRAG_DRAW_LIST && draw->count == 1;
}

static bool check_robson(const frag_request_phase *phase, const frag_yaml_node *at,
                         frag_error *error)
{
    const frag_draw *bytes = &phase->classes[0].bytes;
    uint64_t unit = bytes->values[0], live = phase->live.values[0];
    if (phase->class_count != 1 || !is_one(bytes) || !is_one(&phase->live) || phase->largest == 0)
        return frag_fail_line(error, at->line, at->column,
                              "pattern is robson; expected one size as 'bytes', and 'live' and "
                              "'largest', no classes");
    if (phase->largest % unit != 0 || phase->largest == unit ||
        !frag_is_power_of_two(phase->largest / unit) || live == 0 || live % phase->largest != 0 ||
        live / unit > ROBSON_WORDS_MAX)
        return frag_fail_line(error, at->line, at->column,
                              "bytes %" PRIu64 ", largest %" PRIu64 " and live %" PRIu64
                              " are given; expected largest a power of two times bytes, live a "
                              "multiple of largest and at most %d times bytes",
                              unit, phase->largest, live, ROBSON_WORDS_MAX);
    return true;
}

static uint64_t count_exact(const frag_request_phase *phase, uint64_t *share)
{
    uint64_t count = 0;
    *share = 0;
    for (uint32_t i = 0; i < phase->class_count; i++) {
        count += phase->classes[i].count;
        *share += phase->classes[i].count > 0 ? 0 : phase->classes[i].share;
    }
    return count;
}

static bool check_phase(const frag_request_phase *phase, const frag_yaml_node *at,
                        frag_error *error)
{
    for (uint32_t i = 0; i < phase->class_count; i++)
        if (phase->classes[i].bytes.count == 0)
            return frag_fail_line(error, at->line, at->column,
                                  "a class of requests has no 'bytes'; expected sizes, such as "
                                  "'bytes: 512..1MiB'");
    if (phase->pattern == FRAG_PATTERN_ROBSON)
        return check_robson(phase, at, error);
    uint64_t share = 0;
    uint64_t count = count_exact(phase, &share);
    if (count > phase->requests || (count < phase->requests && share == 0))
        return frag_fail_line(error, at->line, at->column,
                              "requests is %" PRIu64 ", and classes have a count of %" PRIu64
                              " in all; expected %s",
                              phase->requests, count,
                              share == 0 ? "as many, or a class with a share" : "at most as many");
    return true;
}

static uint64_t phase_requests(const frag_request_phase *phase)
{
    if (phase->pattern != FRAG_PATTERN_ROBSON)
        return phase->requests;
    return 2 * (phase->live.values[0] / phase->classes[0].bytes.values[0]); /* none has more */
}

/* a * b, no more than just above the greatest number of requests. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    const uint64_t max = FRAG_STATISTICAL_REQUESTS_MAX;
    return a > 0 && b > max / a ? max + 1 : a * b;
}

uint64_t frag_statistical_requests(const frag_statistical *description)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < description->phase_count; i++)
        sum += multiply(phase_requests(&description->phases[i]), description->phases[i].repeat);
    return multiply(sum, description->rounds);
}

static bool check_requests(const frag_statistical *description, frag_error *error)
{
    uint64_t requests = frag_statistical_requests(description);
    return requests <= FRAG_STATISTICAL_REQUESTS_MAX ||
           frag_fail(error, FRAG_E_INPUT,
                     "all phases and rounds have more than %d requests; expected at most as many",
                     FRAG_STATISTICAL_REQUESTS_MAX);
}

bool frag_statistical_scale(frag_statistical *description, uint64_t requests, frag_error *error)
{
    uint64_t all = frag_statistical_requests(description);
    for (uint32_t i = 0; i < description->phase_count; i++) {
        frag_request_phase *phase = &description->phases[i];
        if (phase->pattern == FRAG_PATTERN_ROBSON)
            return frag_fail(error, FRAG_E_INPUT,
                             "pattern is robson, which has as many requests as follow from live");
        uint64_t share = 0;
        uint64_t least = count_exact(phase, &share);
        uint64_t scaled = phase->requests * requests / all;
        least = least > 0 ? least : 1;
        /* Without shares there is nothing to have more of. */
        phase->requests = share == 0 || scaled < least ? least : scaled;
    }
    return check_requests(description, error);
}

/* ---- YAML */
/* What a mapping says, of a phase and each of its classes. */
static bool read_level(const frag_yaml_node *mapping, const frag_field_group *run,
                       frag_request_phase *phase, const char *const *also, frag_error *error)
{
    if (!frag_yaml_expect(mapping, FRAG_YAML_MAPPING, mapping->key != NULL ? mapping->key : "phase",
                          error))
        return false;
    for (uint32_t i = 0; i < phase->class_count; i++)
        if (!frag_fields_read(
                mapping,
                (frag_field_group[]){
                    {phase_fields, phase}, {class_fields, &phase->classes[i]}, *run, {NULL, NULL}},
                also, error))
            return false;
    return true;
}

/* A list of at least one and at most max; false: something else. */
static bool expect_list(const frag_yaml_node *list, uint64_t max, frag_error *error)
{
    if (!frag_yaml_expect(list, FRAG_YAML_SEQUENCE, list->key, error))
        return false;
    return (list->count > 0 && list->count <= max) ||
           frag_fail_line(error, list->line, list->column,
                          "%s has %" PRIu64 " items; expected 1 to %" PRIu64, list->key,
                          list->count, max);
}

static bool read_classes(const frag_yaml_node *mapping, frag_request_phase *phase,
                         frag_error *error)
{
    static const char *const also[] = {NULL};
    const frag_yaml_node *list = frag_yaml_find(mapping, "classes");
    if (list == NULL)
        return true;
    if (!expect_list(list, FRAG_CLASSES_MAX, error))
        return false;
    frag_request_class usual = phase->classes[0];
    frag_free(phase->classes);
    phase->classes = frag_alloc((size_t)list->count, sizeof *phase->classes);
    phase->class_count = 0;
    for (const frag_yaml_node *item = list->first; item != NULL; item = item->next) {
        frag_request_class *of = &phase->classes[phase->class_count++];
        *of = usual;
        if (!frag_yaml_expect(item, FRAG_YAML_MAPPING, "a class", error) ||
            !frag_fields_read(item, (frag_field_group[]){{class_fields, of}, {NULL, NULL}}, also,
                              error))
            return false;
    }
    return true;
}

static void copy_phase(frag_request_phase *to, const frag_request_phase *from)
{
    *to = *from;
    to->classes = frag_alloc(from->class_count, sizeof *to->classes);
    memcpy(to->classes, from->classes, from->class_count * sizeof *to->classes);
}

static bool read_phases(const frag_yaml_node *mapping, frag_statistical *description,
                        frag_error *error)
{
    static const char *const also[] = {"classes", NULL};
    const frag_yaml_node *list = frag_yaml_find(mapping, "phases");
    if (list == NULL)
        return check_phase(&description->phases[0], mapping, error);
    if (!expect_list(list, FRAG_PHASES_MAX, error))
        return false;
    frag_request_phase usual = description->phases[0];
    frag_request_phase *phases = frag_alloc((size_t)list->count, sizeof *phases);
    for (uint64_t i = 0; i < list->count; i++)
        copy_phase(&phases[i], &usual);
    frag_statistical_destroy(&(frag_statistical){.phases = description->phases, .phase_count = 1});
    description->phases = phases;
    description->phase_count = (uint32_t)list->count;
    for (const frag_yaml_node *item = list->first; item != NULL; item = item->next, phases++)
        if (!read_level(item, &(frag_field_group){NULL, NULL}, phases, also, error) ||
            !read_classes(item, phases, error) || !check_phase(phases, item, error))
            return false;
    return true;
}

bool frag_statistical_read(const frag_yaml_node *mapping, frag_statistical *description,
                           frag_error *error)
{
    static const char *const also[] = {"phases", "classes", NULL};
    description->phases = frag_alloc(1, sizeof *description->phases);
    description->phase_count = 1;
    frag_request_phase_init(description->phases);
    frag_fields_set_initial(run_fields, description);
    return read_level(mapping, &(frag_field_group){run_fields, description}, description->phases,
                      also, error) &&
           read_classes(mapping, description->phases, error) &&
           read_phases(mapping, description, error) && check_requests(description, error);
}
