#include "workload/statistical/likeness.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/trace/demand.h"
#include "workload/statistical/phases.h"

enum {
    OWN_SIZES = 48,     /* sizes of a phase with the most bytes in all are a class each */
    QUANTILES = 16,     /* of the sizes and lifetimes of a class */
    STRETCH_STEPS = 64, /* of lifetimes: 2^16 times as long */
};

typedef struct seen {
    uint64_t bytes;
    uint64_t stream;   /* its number */
    uint64_t lifetime; /* in requests; FRAG_UNLIMITED: not released */
    uint32_t phase;
} seen;

typedef struct fitter {
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_fit_options *options;
    frag_statistical *description;
    seen *requests; /* those that were served */
    uint64_t count;
    char step[FRAG_NAME_BYTES]; /* name of the marks at which steps begin; "": none */
} fitter;

/* ---- phases: a start and steps, by marks, or pieces */
/* "step 12" is the twelfth "step". */
static void strip_number(const char *mark, char name[FRAG_NAME_BYTES])
{
    size_t length = strlen(mark);
    while (length > 0 && (isdigit((unsigned char)mark[length - 1]) || mark[length - 1] == ' '))
        length--;
    length = length < FRAG_NAME_BYTES - 1 ? length : FRAG_NAME_BYTES - 1;
    memcpy(name, mark, length);
    name[length] = '\0';
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '"' || *at == '\\' || !isprint((unsigned char)*at) ? '?' : *at;
}

static frag_request_phase *add_phase(frag_statistical *description, const char *name)
{
    frag_request_phase *phase = &description->phases[description->phase_count++];
    frag_request_phase_init(phase);
    phase->requests = 0;
    phase->release = FRAG_RELEASE_DUE;
    memcpy(phase->name, name, strlen(name) + 1);
    return phase;
}

/* The name of a mark that is on the outside and begins something, or is a point; NULL: it is
 * another event, or within another mark. */
static const char *find_mark(const fitter *of, uint64_t event, uint32_t *depth)
{
    const frag_event *at = &of->trace->events[event];
    bool is_end = (at->flags & FRAG_EVENT_END) != 0;
    if (at->op != FRAG_OP_MARK)
        return NULL;
    if (is_end && *depth > 0)
        --*depth;
    bool is_outside = *depth == 0 && !is_end;
    *depth += (at->flags & FRAG_EVENT_BEGIN) != 0;
    return is_outside ? frag_strings_get(&of->recording->strings, at->slot) : NULL;
}

/* The first name that comes again: that of the steps. "": none does. */
static void find_step(const fitter *of, char step[FRAG_NAME_BYTES])
{
    frag_strings names = {0};
    uint32_t depth = 0;
    for (uint64_t i = 0; i < of->trace->event_count; i++) {
        const char *mark = find_mark(of, i, &depth);
        uint32_t known = names.count;
        if (mark == NULL)
            continue;
        strip_number(mark, step);
        if (frag_strings_add(&names, step, strlen(step)) < known)
            break;
        step[0] = '\0';
    }
    frag_strings_destroy(&names);
}

/* At the first step another phase, at the others one more of it. */
static void pass_event(fitter *of, uint64_t event, uint32_t *depth)
{
    frag_statistical *description = of->description;
    frag_request_phase *last = &description->phases[description->phase_count - 1];
    const char *mark = find_mark(of, event, depth);
    char name[FRAG_NAME_BYTES];
    if (mark == NULL || of->step[0] == '\0')
        return;
    strip_number(mark, name);
    if (strcmp(name, of->step) != 0)
        return;
    if (strcmp(last->name, name) == 0)
        last->repeat++;
    else if (last->requests == 0)
        memcpy(last->name, name, sizeof name);
    else
        add_phase(description, name);
}

/* ---- requests, their lifetimes, and the most bytes that are live in each phase */
static void watch(fitter *of, uint64_t served)
{
    frag_statistical *description = of->description;
    const frag_trace *trace = of->trace;
    uint64_t *number = frag_alloc((size_t)trace->event_count + 1, sizeof *number);
    uint64_t live = 0, per_piece = 0;
    uint32_t depth = 0;
    frag_demand demand;
    frag_demand_change change;
    if (of->options->pieces == 0)
        find_step(of, of->step);
    else
        per_piece = (served + of->options->pieces - 1) / of->options->pieces;
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        pass_event(of, i, &depth);
        if (!frag_demand_step(&demand, i, &change))
            continue;
        if (change.is_free) {
            seen *request = &of->requests[number[change.alloc_event]];
            request->lifetime = of->count - 1 - number[change.alloc_event];
            live -= change.bytes;
            continue;
        }
        frag_request_phase *phase = &description->phases[description->phase_count - 1];
        if (per_piece > 0 && phase->requests == per_piece)
            phase = add_phase(description, "");
        number[i] = of->count;
        of->requests[of->count++] = (seen){.bytes = change.bytes,
                                           .stream = trace->events[i].stream,
                                           .lifetime = FRAG_UNLIMITED,
                                           .phase = description->phase_count - 1};
        phase->requests++;
        live += change.bytes;
        if (live > phase->live.values[0])
            phase->live = (frag_draw){.count = 1, .values = {live}};
    }
    frag_demand_end(&demand);
    frag_free(number);
    /* Of a phase that was repeated those that are left were cut short. */
    for (uint64_t i = 0; i < of->count; i++)
        if (of->requests[i].lifetime == FRAG_UNLIMITED &&
            description->phases[of->requests[i].phase].repeat > 1)
            of->requests[i].lifetime = of->count - 1 - i;
}

/* ---- classes of a phase */
/* By phase, those that are not released last, stream and size. */
static int compare_seen(const void *left, const void *right)
{
    const seen *a = left, *b = right;
    int by_phase = frag_compare(a->phase, b->phase);
    int by_end = frag_compare(a->lifetime == FRAG_UNLIMITED, b->lifetime == FRAG_UNLIMITED);
    int by_stream = frag_compare(a->stream, b->stream);
    int by_bytes = frag_compare(a->bytes, b->bytes);
    return by_phase != 0    ? by_phase
           : by_end != 0    ? by_end
           : by_stream != 0 ? by_stream
           : by_bytes != 0  ? by_bytes
                            : frag_compare(a->lifetime, b->lifetime);
}

/* Requests of one class: of the same size, or of sizes between the same powers of two. */
static bool is_alike(const seen *a, const seen *b, bool by_octave)
{
    return (by_octave ? frag_bit_high(a->bytes) == frag_bit_high(b->bytes)
                      : a->bytes == b->bytes) &&
           a->stream == b->stream &&
           (a->lifetime == FRAG_UNLIMITED) == (b->lifetime == FRAG_UNLIMITED);
}

static uint64_t count_run(const seen *first, uint64_t count)
{
    uint64_t run = 1;
    while (run < count && is_alike(first, first + run, false))
        run++;
    return run;
}

/* Sizes with more bytes in all than this are a class each. */
static uint64_t find_threshold(const seen *first, uint64_t count, uint64_t *volumes)
{
    uint64_t runs = 0;
    for (uint64_t at = 0, run = 0; at < count; at += run) {
        run = count_run(first + at, count - at);
        volumes[runs++] = run * first[at].bytes;
    }
    qsort(volumes, (size_t)runs, sizeof *volumes, frag_compare_numbers);
    return runs > OWN_SIZES ? volumes[runs - OWN_SIZES - 1] : 0;
}

/* values are sorted here; all of them where they are few. */
static frag_draw take_quantiles(uint64_t *values, uint64_t count)
{
    frag_draw draw = {.count = count < QUANTILES ? (uint32_t)count : QUANTILES};
    qsort(values, (size_t)count, sizeof *values, frag_compare_numbers);
    for (uint32_t i = 0; i < draw.count; i++)
        draw.values[i] = values[(2 * i + 1) * count / (2 * draw.count)];
    if (draw.values[0] == draw.values[draw.count - 1])
        draw.count = 1;
    return draw;
}

static void add_class(frag_request_phase *phase, const seen *first, uint64_t count,
                      uint64_t *values)
{
    frag_request_class *of = &phase->classes[phase->class_count++];
    *of = (frag_request_class){
        .share = count, .multiple = 1, .stream = {.count = 1, .values = {first->stream}}};
    for (uint64_t i = 0; i < count; i++)
        values[i] = first[i].bytes;
    of->bytes = take_quantiles(values, count);
    for (uint64_t i = 0; i < count; i++)
        values[i] = first[i].lifetime;
    of->lifetime = take_quantiles(values, count);
    if (first->lifetime == FRAG_UNLIMITED)
        of->count = count;
}

static void make_classes(frag_request_phase *phase, const seen *first, uint64_t count,
                         uint64_t *values)
{
    uint64_t threshold = find_threshold(first, count, values);
    uint64_t start = 0;
    bool is_open = false;
    frag_free(phase->classes);
    phase->classes = frag_alloc(FRAG_CLASSES_MAX, sizeof *phase->classes);
    phase->class_count = 0;
    for (uint64_t at = 0, run = 0; at < count; at += run) {
        run = count_run(first + at, count - at);
        bool is_own = first[at].bytes * run > threshold;
        bool is_joined = (is_open && !is_own && is_alike(first + start, first + at, true)) ||
                         phase->class_count == FRAG_CLASSES_MAX - 1;
        if (at > 0 && !is_joined) {
            add_class(phase, first + start, at - start, values);
            start = at;
        }
        is_open = !is_own;
    }
    add_class(phase, first + start, count - start, values);
}

static void make_phases(fitter *of)
{
    frag_statistical *description = of->description;
    uint64_t *values = frag_alloc((size_t)of->count, sizeof *values);
    const seen *first = of->requests;
    qsort(of->requests, (size_t)of->count, sizeof *of->requests, compare_seen);
    for (uint32_t i = 0; i < description->phase_count; i++) {
        frag_request_phase *phase = &description->phases[i];
        make_classes(phase, first, phase->requests, values);
        first += phase->requests;
        phase->repeat = phase->repeat < phase->requests ? phase->repeat : phase->requests;
        phase->requests /= phase->repeat;
    }
    frag_free(values);
}

/* ---- the peak of live bytes */
static bool find_peak(const frag_statistical *description, uint64_t *peak, frag_error *error)
{
    frag_recording recording = {0};
    if (!frag_statistical_generate(description, "", &recording, error))
        return false;
    *peak = recording.traces[0].stats.peak_requested_bytes;
    frag_recording_destroy(&recording);
    return true;
}

/* Four steps to a doubling, and exact in few digits: 1, 1.25, 1.5, 1.75, 2, 2.5, ... */
static void stretch(frag_statistical *description, uint32_t steps)
{
    double factor = (double)(4 + steps % 4) / 4 * (double)((uint64_t)1 << steps / 4);
    for (uint32_t i = 0; i < description->phase_count; i++)
        description->phases[i].stretch = factor;
}

/* No more is live than in the recording. Where it is less, blocks live longer, but no longer than
 * is needed. */
static bool reach_peak(frag_statistical *description, uint64_t wanted, uint64_t *peak,
                       frag_error *error)
{
    const uint64_t least = wanted - (uint64_t)((double)wanted * FRAG_FIT_TOLERANCE);
    uint32_t low = 0, high = STRETCH_STEPS;
    if (!find_peak(description, peak, error) || *peak >= least)
        return error->code == FRAG_E_NONE;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        stretch(description, middle);
        if (!find_peak(description, peak, error))
            return false;
        *(*peak >= least ? &high : &low) = middle;
    }
    stretch(description, high < STRETCH_STEPS ? high : 0);
    return find_peak(description, peak, error);
}

/* ---- all */
static bool check_trace(const frag_trace *trace, uint64_t *served, frag_error *error)
{
    *served = trace->stats.initial_count + trace->stats.request_count - trace->stats.failed_count;
    if (*served == 0 || *served > FRAG_STATISTICAL_REQUESTS_MAX)
        return frag_fail(error, FRAG_E_INPUT,
                         "has %" PRIu64 " requests that were served; expected 1 to %d", *served,
                         FRAG_STATISTICAL_REQUESTS_MAX);
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->events[i].bytes >> 40 != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "event %" PRIu64 " requests %" PRIu64
                             " bytes; expected less than 1 TiB",
                             i, trace->events[i].bytes);
    return true;
}

bool frag_statistical_fit(const frag_recording *recording, const frag_trace *trace,
                          const frag_fit_options *options, frag_statistical *description,
                          double *ratio, frag_error *error)
{
    fitter of = {
        .recording = recording, .trace = trace, .options = options, .description = description};
    uint64_t served = 0, peak = 0, wanted = trace->stats.peak_requested_bytes;
    if (!check_trace(trace, &served, error))
        return false;
    of.requests = frag_alloc((size_t)served, sizeof *of.requests);
    *description = (frag_statistical){.seed = options->seed, .rounds = 1};
    description->phases = frag_alloc(FRAG_PHASES_MAX, sizeof *description->phases);
    add_phase(description, "");
    watch(&of, served);
    if (description->phases[description->phase_count - 1].requests == 0)
        frag_free(description->phases[--description->phase_count].classes);
    make_phases(&of);
    frag_free(of.requests);
    bool ok =
        (options->requests == 0 || frag_statistical_scale(description, options->requests, error)) &&
        reach_peak(description, wanted, &peak, error);
    *ratio = (double)peak / (double)wanted;
    return ok;
}

/* ---- writing */
static void write_draw(const char *key, const frag_draw *draw, frag_text *text)
{
    frag_text_add(text, ", %s: %s", key, draw->count > 1 ? "[" : "");
    for (uint32_t i = 0; i < draw->count; i++) {
        frag_text_add(text, "%s", i > 0 ? ", " : "");
        if (draw->values[i] == FRAG_UNLIMITED)
            frag_text_add(text, "forever");
        else
            frag_text_add(text, "%" PRIu64, draw->values[i]);
    }
    frag_text_add(text, "%s", draw->count > 1 ? "]" : "");
}

static void write_class(const frag_request_class *of, frag_text *text)
{
    bool is_counted = of->count > 0;
    frag_text_add(text, "        - {%s: %" PRIu64, is_counted ? "count" : "share",
                  is_counted ? of->count : of->share);
    write_draw("bytes", &of->bytes, text);
    write_draw("lifetime", &of->lifetime, text);
    if (of->stream.values[0] > 0)
        write_draw("stream", &of->stream, text);
    frag_text_add(text, "}\n");
}

void frag_statistical_write(const frag_statistical *description, frag_text *text)
{
    frag_text_add(text,
                  "statistical:\n  seed: %" PRIu64 "\n  release: due\n  stretch: %.6g\n  phases:\n",
                  description->seed, description->phases[0].stretch);
    for (uint32_t i = 0; i < description->phase_count; i++) {
        const frag_request_phase *phase = &description->phases[i];
        frag_text_add(text, "    - requests: %" PRIu64 "\n", phase->requests);
        if (phase->name[0] != '\0')
            frag_text_add(text, "      name: \"%s\"\n", phase->name);
        if (phase->repeat > 1)
            frag_text_add(text, "      repeat: %" PRIu64 "\n", phase->repeat);
        frag_text_add(text, "      live: %" PRIu64 "\n      classes:\n", phase->live.values[0]);
        for (uint32_t j = 0; j < phase->class_count; j++)
            write_class(&phase->classes[j], text);
    }
}
