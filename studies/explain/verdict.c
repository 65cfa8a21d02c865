#include "studies/explain/verdict.h"

#include "base/bytes.h"

const char *frag_oom_verdict_name(frag_oom_verdict verdict)
{
    static const char *const names[] = {FRAG_OOM_VERDICTS(FRAG_SECOND_OF_3)};
    return names[verdict];
}

const char *frag_diagnosis_meaning(const frag_diagnosis *diagnosis)
{
    static const char *const meanings[] = {FRAG_OOM_VERDICTS(FRAG_THIRD_OF_3)};
    return diagnosis->is_survived ? "memory ran out, but the program went on without it"
           : diagnosis->is_own    ? "this process holds the memory, but not in its allocator"
                                  : meanings[diagnosis->verdict];
}

const char *frag_confidence_name(frag_confidence confidence)
{
    static const char *const names[] = {
        [FRAG_CONFIDENCE_LOW] = "low",
        [FRAG_CONFIDENCE_MEDIUM] = "medium",
        [FRAG_CONFIDENCE_HIGH] = "high",
    };
    return names[confidence];
}

/* ---- the figures made whole */
static uint64_t less(uint64_t from, uint64_t amount)
{
    return from > amount ? from - amount : 0;
}

static uint64_t more(uint64_t amount, uint64_t by)
{
    return amount > UINT64_MAX - by ? UINT64_MAX : amount + by;
}

static frag_amount known(uint64_t bytes, uint64_t slack)
{
    return (frag_amount){.is_known = true, .bytes = bytes, .slack_bytes = slack};
}

static frag_amount difference(frag_amount from, frag_amount amount)
{
    return known(less(from.bytes, amount.bytes), from.slack_bytes + amount.slack_bytes);
}

static frag_amount sum(frag_amount one, frag_amount other)
{
    return known(more(one.bytes, other.bytes), one.slack_bytes + other.slack_bytes);
}

/* Where the framework does not see which process is its own, it is the smallest that can hold
 * what the allocator has. */
static void sort_processes(const frag_message *message, frag_amount *figures)
{
    frag_amount *own = &figures[FRAG_FIGURE_PROCESS];
    uint64_t others = 0;
    uint32_t own_index = UINT32_MAX;
    if (!own->is_known && figures[FRAG_FIGURE_RESERVED].is_known) {
        uint64_t least = less(figures[FRAG_FIGURE_RESERVED].bytes, 32 * FRAG_MIB);
        for (uint32_t i = 0; i < message->process_count; i++)
            if (message->processes[i] >= least &&
                (own_index == UINT32_MAX || message->processes[i] < message->processes[own_index]))
                own_index = i;
        if (own_index != UINT32_MAX)
            *own = known(message->processes[own_index], 0);
    }
    for (uint32_t i = 0; i < message->process_count; i++)
        others = i == own_index ? others : more(others, message->processes[i]);
    if (message->process_count > 0 && !figures[FRAG_FIGURE_OTHERS].is_known)
        figures[FRAG_FIGURE_OTHERS] = known(others, 0);
}

static void complete(const frag_message *message, frag_diagnosis *diagnosis)
{
    frag_amount *figures = diagnosis->figures;
    frag_amount *allocated = &figures[FRAG_FIGURE_ALLOCATED];
    frag_amount *reserved = &figures[FRAG_FIGURE_RESERVED];
    frag_amount *idle = &figures[FRAG_FIGURE_IDLE];
    frag_amount *total = &figures[FRAG_FIGURE_TOTAL];
    frag_amount *free = &figures[FRAG_FIGURE_FREE];
    if ((message->says & FRAG_SAYS_CACHED) != 0 && idle->is_known && allocated->is_known &&
        idle->bytes >= allocated->bytes && total->is_known &&
        more(more(idle->bytes, allocated->bytes), free->bytes) > total->bytes) {
        *reserved = *idle;
        *idle = difference(*reserved, *allocated);
    }
    if (!reserved->is_known && allocated->is_known && idle->is_known)
        *reserved = sum(*allocated, *idle);
    if (!idle->is_known && allocated->is_known && reserved->is_known)
        *idle = difference(*reserved, *allocated);
    sort_processes(message, figures);
    if (message->framework == FRAG_FRAMEWORK_PYTORCH_MPS) {
        frag_amount used = sum(*allocated, figures[FRAG_FIGURE_OTHERS]);
        if (allocated->is_known && figures[FRAG_FIGURE_LIMIT].is_known)
            *free = difference(figures[FRAG_FIGURE_LIMIT], used);
    } else if (message->framework == FRAG_FRAMEWORK_CUDA_JL && total->is_known &&
               figures[FRAG_FIGURE_PROCESS].is_known) {
        *free = difference(*total, figures[FRAG_FIGURE_PROCESS]); /* it says what is in use */
        figures[FRAG_FIGURE_PROCESS].is_known = false;
    } else if ((message->framework == FRAG_FRAMEWORK_TENSORFLOW ||
                message->framework == FRAG_FRAMEWORK_JAX) &&
               (message->says & FRAG_SAYS_WHOLE) == 0 && total->is_known && total->bytes == 0) {
        total->is_known = false; /* an allocator without a limit prints 0 */
    } else if ((message->framework == FRAG_FRAMEWORK_TENSORFLOW ||
                message->framework == FRAG_FRAMEWORK_JAX) &&
               (message->says & FRAG_SAYS_WHOLE) == 0 && total->is_known && allocated->is_known &&
               !free->is_known) {
        *idle = difference(*total, *allocated); /* it took all of its limit at the start */
        *reserved = *total;
    }
    frag_amount held = reserved->is_known ? *reserved : *allocated;
    if (total->is_known && free->is_known && held.is_known)
        diagnosis->outside = difference(*total, sum(*free, held));
    if (figures[FRAG_FIGURE_PROCESS].is_known && held.is_known)
        diagnosis->context = difference(figures[FRAG_FIGURE_PROCESS], held);
}

/* ---- the verdict */
/* No device has so much: 8 TiB. */
#define CORRUPT_BYTES ((uint64_t)1 << 43)

/* In use where a message leaves figures out: then it is likely a shortage. */
enum { NEARLY_FULL_PERCENT = 85 };

typedef struct case_file {
    const frag_message *message;
    frag_diagnosis *diagnosis;
    const frag_amount *figures;
    uint64_t requested;
    uint64_t segment; /* what the driver must give for it */
    uint64_t total;
    uint64_t free;
    uint64_t held; /* by the allocator */
    uint64_t idle;
    uint64_t outside;
} case_file;

static bool knows(const case_file *file, frag_figure figure)
{
    return file->figures[figure].is_known;
}

static void decide(const case_file *file, frag_oom_verdict verdict, frag_confidence confidence)
{
    file->diagnosis->verdict = verdict;
    file->diagnosis->confidence = confidence;
}

/* What a message says outright, whatever its figures. Returns whether it does. */
static bool decide_by_words(const case_file *file)
{
    uint32_t says = file->message->says;
    frag_text *because = &file->diagnosis->because;
    if ((says & FRAG_SAYS_HUGE) != 0 || file->requested >= CORRUPT_BYTES) {
        decide(file, FRAG_OOM_VERDICT_OVERSIZED, FRAG_CONFIDENCE_HIGH);
        if (file->requested >= CORRUPT_BYTES)
            frag_text_add(because, "The request of %s is", FRAG_BYTES(file->requested));
        else
            frag_text_add(because, "The request is");
        frag_text_add(because, " larger than any device: a size went wrong, as from a negative "
                               "dimension or a product that overflowed.");
    } else if ((says & FRAG_SAYS_ON_CHIP) != 0) {
        decide(file, FRAG_OOM_VERDICT_LIMIT, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because,
                      "One program needs more of the memory inside the chip than that has");
        if (knows(file, FRAG_FIGURE_REQUESTED) && knows(file, FRAG_FIGURE_LIMIT))
            frag_text_add(because, ": %s of %s, as printed", FRAG_BYTES(file->requested),
                          FRAG_BYTES(file->figures[FRAG_FIGURE_LIMIT].bytes));
        frag_text_add(because, ". It is not the device's own memory (HBM) that ran out.");
        file->diagnosis->missing = file->figures[FRAG_FIGURE_EXCESS];
    } else if ((says & FRAG_SAYS_BLOCK_MAX) != 0) {
        decide(file, FRAG_OOM_VERDICT_PLATFORM, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "This platform refuses single blocks of that size, however much "
                               "memory is free.");
    } else if ((says & FRAG_SAYS_POOL_FULL) != 0) {
        decide(file, FRAG_OOM_VERDICT_LIMIT, FRAG_CONFIDENCE_HIGH);
        if (knows(file, FRAG_FIGURE_FREE) && knows(file, FRAG_FIGURE_REQUESTED)) {
            frag_text_add(because, "%s are needed, the pool may hold %s more: %s short.",
                          FRAG_BYTES(file->requested), FRAG_BYTES(file->free),
                          FRAG_BYTES(less(file->requested, file->free)));
            return true;
        }
        frag_text_add(because, "The message says that a pool has reached the most it may hold%s.",
                      knows(file, FRAG_FIGURE_LIMIT) ? "" : "; how much that is, it does not say");
    } else if ((says & FRAG_SAYS_UTILISATION) != 0) {
        decide(file, FRAG_OOM_VERDICT_OTHER_MEMORY, FRAG_CONFIDENCE_HIGH);
        if (knows(file, FRAG_FIGURE_FREE) && knows(file, FRAG_FIGURE_REQUESTED))
            frag_text_add(because,
                          "Before the program took anything, %s were free, less than the %s that "
                          "it is to take.",
                          FRAG_BYTES(file->free), FRAG_BYTES(file->requested));
        else
            frag_text_add(because, "Before the program took anything, less was free than the "
                                   "share of the device that it is to take.");
    } else if ((says & FRAG_SAYS_WHOLE) != 0 && knows(file, FRAG_FIGURE_TOTAL) &&
               knows(file, FRAG_FIGURE_ALLOCATED)) {
        decide(file, FRAG_OOM_VERDICT_SHORTAGE, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "The compiled program needs %s, the device has %s.",
                      FRAG_BYTES(file->figures[FRAG_FIGURE_ALLOCATED].bytes),
                      FRAG_BYTES(file->total));
        if (knows(file, FRAG_FIGURE_EXCESS))
            file->diagnosis->missing = file->figures[FRAG_FIGURE_EXCESS];
    } else {
        return false;
    }
    return true;
}

/* Without the request's size (the paste was cut off) only a clear picture says something. */
static void decide_without_request(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    if (!knows(file, FRAG_FIGURE_TOTAL) || !knows(file, FRAG_FIGURE_ALLOCATED) ||
        file->total == 0) {
        decide(file, FRAG_OOM_VERDICT_NO_FIGURES, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "It does not say how much was asked for.");
        return;
    }
    uint64_t allocated = file->figures[FRAG_FIGURE_ALLOCATED].bytes;
    bool knows_free = knows(file, FRAG_FIGURE_FREE);
    if (knows_free && file->free < file->total / 20 && file->outside > file->total / 2)
        decide(file, FRAG_OOM_VERDICT_OTHER_MEMORY, FRAG_CONFIDENCE_MEDIUM);
    else if (allocated >= file->total / 100 * NEARLY_FULL_PERCENT)
        decide(file, FRAG_OOM_VERDICT_SHORTAGE, FRAG_CONFIDENCE_MEDIUM);
    else if (knows_free && file->free < file->total / 20 && file->idle > file->total / 5)
        decide(file, FRAG_OOM_VERDICT_FRAGMENTATION, FRAG_CONFIDENCE_LOW);
    else
        decide(file, FRAG_OOM_VERDICT_NO_FIGURES, FRAG_CONFIDENCE_MEDIUM);
    frag_text_add(because, "The size of the request is cut off; %s of %s are in use.",
                  FRAG_BYTES(allocated), FRAG_BYTES(file->total));
}

static void decide_mps(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    uint64_t allocated = file->figures[FRAG_FIGURE_ALLOCATED].bytes;
    uint64_t others = file->figures[FRAG_FIGURE_OTHERS].bytes;
    const frag_amount *free = &file->figures[FRAG_FIGURE_FREE];
    bool fits = free->bytes >= more(file->requested, free->slack_bytes);
    uint64_t limit = file->figures[FRAG_FIGURE_LIMIT].bytes;
    /* Much, and enough: without it the request would fit. */
    bool is_others =
        others >= allocated || (others >= limit / 5 && more(allocated, file->requested) <= limit);
    decide(file,
           fits        ? FRAG_OOM_VERDICT_PLATFORM
           : is_others ? FRAG_OOM_VERDICT_OTHER_MEMORY
                       : FRAG_OOM_VERDICT_SHORTAGE,
           fits                             ? FRAG_CONFIDENCE_LOW
           : others > allocated / 2 || fits ? FRAG_CONFIDENCE_MEDIUM
                                            : FRAG_CONFIDENCE_HIGH);
    frag_text_add(because,
                  "PyTorch's allocator holds %s, what else uses Metal here %s, and %s more is over "
                  "the %s that MPS allows.",
                  FRAG_BYTES(allocated), FRAG_BYTES(others), FRAG_BYTES(file->requested),
                  FRAG_BYTES(limit));
}

/* A limit that the program set itself, below what the device has. Returns whether it was that. */
static bool decide_limit(const case_file *file)
{
    uint64_t limit = file->figures[FRAG_FIGURE_LIMIT].bytes;
    /* Rounded as they are printed, the figures may miss each other by a little. */
    uint64_t slack = file->figures[FRAG_FIGURE_LIMIT].slack_bytes +
                     file->figures[FRAG_FIGURE_RESERVED].slack_bytes +
                     file->figures[FRAG_FIGURE_ALLOCATED].slack_bytes;
    uint64_t wanted = more(more(file->held, file->requested), slack);
    bool binds = knows(file, FRAG_FIGURE_LIMIT) && wanted > limit;
    /* A pool that rounds up, or is in pieces, ends a little below its limit. */
    bool is_near = knows(file, FRAG_FIGURE_LIMIT) && !binds && wanted > limit / 100 * 99;
    bool has_room = knows(file, FRAG_FIGURE_FREE)
                        ? file->free >= file->requested
                        : !knows(file, FRAG_FIGURE_TOTAL) || file->requested > limit;
    if (!(binds || is_near) || !(has_room || file->requested > limit))
        return false;
    decide(file, FRAG_OOM_VERDICT_LIMIT,
           is_near || file->idle >= file->requested ? FRAG_CONFIDENCE_MEDIUM
                                                    : FRAG_CONFIDENCE_HIGH);
    frag_text_add(&file->diagnosis->because, "%s held + %s asked is %s the %s allowed",
                  FRAG_BYTES(file->held), FRAG_BYTES(file->requested),
                  is_near ? "as good as" : "over", FRAG_BYTES(limit));
    if (knows(file, FRAG_FIGURE_FREE))
        frag_text_add(&file->diagnosis->because, ", while the device has %s free",
                      FRAG_BYTES(file->free));
    frag_text_add(&file->diagnosis->because, ".");
    file->diagnosis->missing = known(less(more(file->held, file->requested), limit), 0);
    return true;
}

/* Enough is free by the figures, but only just, and it is the last few percent of the device, of
 * which the driver keeps some for itself. */
static bool is_full(const case_file *file)
{
    return knows(file, FRAG_FIGURE_FREE) && knows(file, FRAG_FIGURE_TOTAL) &&
           file->free >= file->segment && file->free < file->total / 20 &&
           (file->free / 4 <= file->segment || file->free < FRAG_GIB / 4);
}

/* Where a hundredth or so of a device is idle, it is as full as a device gets. */
static bool is_crumbs(const case_file *file)
{
    return knows(file, FRAG_FIGURE_TOTAL) && file->idle < file->total / 200 * 3;
}

static void decide_full(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    frag_text_add(because,
                  "%s were still free for %s asked, but the device is full to the last few "
                  "percent, of which the driver keeps some",
                  FRAG_BYTES(file->free), FRAG_BYTES(file->requested));
    if (file->outside >= file->total / 10 * 3) {
        decide(file, FRAG_OOM_VERDICT_OTHER_MEMORY, FRAG_CONFIDENCE_MEDIUM);
        frag_text_add(because, "; %s of it are neither free nor held by this program's allocator.",
                      FRAG_BYTES(file->outside));
    } else if (file->idle >= file->requested && !is_crumbs(file)) {
        decide(file, FRAG_OOM_VERDICT_FRAGMENTATION, FRAG_CONFIDENCE_LOW);
        frag_text_add(because, "; %s lie idle in the allocator's cache, in pieces.",
                      FRAG_BYTES(file->idle));
    } else {
        decide(file, FRAG_OOM_VERDICT_SHORTAGE, FRAG_CONFIDENCE_LOW);
        frag_text_add(because, ".");
    }
}

/* Figures that cannot be, or that leave nothing to complain about. Returns whether they are. */
static bool decide_impossible(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    uint64_t allocated = file->figures[FRAG_FIGURE_ALLOCATED].bytes;
    uint64_t largest = file->figures[FRAG_FIGURE_LARGEST].bytes;
    bool knows_total = knows(file, FRAG_FIGURE_TOTAL);
    bool knows_free = knows(file, FRAG_FIGURE_FREE);
    if (knows_total && knows_free && file->free > file->total + file->total / 50) {
        decide(file, FRAG_OOM_VERDICT_PLATFORM, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "The driver says that %s of %s are free, which cannot be.",
                      FRAG_BYTES(file->free), FRAG_BYTES(file->total));
    } else if (knows_total && knows(file, FRAG_FIGURE_ALLOCATED) &&
               (file->message->says & FRAG_SAYS_GUESS) == 0 &&
               allocated > file->total + file->total / 50) {
        decide(file, FRAG_OOM_VERDICT_SHORTAGE, FRAG_CONFIDENCE_MEDIUM);
        frag_text_add(because,
                      "%s are in use on a device of %s: the driver (of Windows, as a rule) has "
                      "moved memory to the host, and even that was not enough.",
                      FRAG_BYTES(allocated), FRAG_BYTES(file->total));
    } else if (is_full(file) && !knows(file, FRAG_FIGURE_LIMIT)) {
        decide_full(file);
    } else if (knows_free && file->free >= file->segment && !knows(file, FRAG_FIGURE_IDLE) &&
               knows(file, FRAG_FIGURE_LARGEST) && largest < file->requested) {
        decide(file, FRAG_OOM_VERDICT_FRAGMENTATION, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because,
                      "%s were free, more than the %s asked, but no piece was larger than %s.",
                      FRAG_BYTES(file->free), FRAG_BYTES(file->requested), FRAG_BYTES(largest));
    } else if (knows_free && file->free >= file->segment) {
        decide(file, FRAG_OOM_VERDICT_PLATFORM,
               file->free / 2 >= file->segment ? FRAG_CONFIDENCE_HIGH : FRAG_CONFIDENCE_MEDIUM);
        frag_text_add(because,
                      "%s were free, more than the %s asked: the driver should have given it.",
                      FRAG_BYTES(file->free), FRAG_BYTES(file->requested));
    } else if (!knows_free && knows_total && knows(file, FRAG_FIGURE_RESERVED) &&
               file->idle < file->requested && more(file->held, file->requested) <= file->total) {
        decide(file, FRAG_OOM_VERDICT_PLATFORM, FRAG_CONFIDENCE_LOW);
        frag_text_add(because,
                      "%s held + %s asked would fit on a device of which the rest is not "
                      "explained.",
                      FRAG_BYTES(file->held), FRAG_BYTES(file->requested));
    } else {
        return false;
    }
    return true;
}

/* Idle memory that the request could have used if it lay in one piece. */
static bool decide_fragmentation(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    uint64_t reach = more(file->idle, file->free);
    uint64_t slack = file->figures[FRAG_FIGURE_IDLE].slack_bytes;
    if (!knows(file, FRAG_FIGURE_IDLE) || reach < file->requested)
        return false;
    /* Where others hold most of the device, what is idle here is not what is missing. */
    bool is_little = file->idle < file->requested || file->idle < file->total / 10;
    if (is_little && file->outside > file->held && file->outside > file->total / 3)
        return false;
    if (is_crumbs(file) && (file->idle >= file->requested || reach < file->total / 200 * 3)) {
        decide(file, FRAG_OOM_VERDICT_SHORTAGE,
               slack > file->idle / 8 ? FRAG_CONFIDENCE_MEDIUM : FRAG_CONFIDENCE_HIGH);
        frag_text_add(because,
                      "The device is full: %s of %s are in use. The %s that lie idle in the "
                      "cache would hold the request, but in crumbs.",
                      FRAG_BYTES(file->figures[FRAG_FIGURE_ALLOCATED].bytes),
                      FRAG_BYTES(file->total), FRAG_BYTES(file->idle));
        return true;
    }
    decide(file, FRAG_OOM_VERDICT_FRAGMENTATION,
           file->idle / 8 * 7 >= file->requested ? FRAG_CONFIDENCE_HIGH : FRAG_CONFIDENCE_MEDIUM);
    if (file->idle >= file->requested) {
        frag_text_add(because,
                      "%s lie idle in the allocator's cache, more than the %s asked, but in "
                      "pieces between blocks in use.",
                      FRAG_BYTES(file->idle), FRAG_BYTES(file->requested));
    } else {
        frag_text_add(because,
                      "%s idle in the cache and %s free on the device are together more than "
                      "the %s asked, but neither is alone.",
                      FRAG_BYTES(file->idle), FRAG_BYTES(file->free), FRAG_BYTES(file->requested));
        decide(file, FRAG_OOM_VERDICT_FRAGMENTATION, FRAG_CONFIDENCE_MEDIUM);
    }
    return true;
}

/* Do others hold so much, by the message, that the request would fit without them? */
static bool are_others_named(const case_file *file)
{
    uint64_t others = file->figures[FRAG_FIGURE_OTHERS].bytes;
    uint64_t reach = more(file->idle, file->free);
    return others >= file->total / 5 && more(others, reach) >= file->requested;
}

/* Is most of what lies outside the allocator this process's? */
static bool is_own(const case_file *file)
{
    const frag_amount *context = &file->diagnosis->context;
    return !are_others_named(file) && file->outside > 0 && context->is_known &&
           context->bytes >= file->outside / 2;
}

/* Memory of others: so much that it is neither a context nor a desktop. */
static bool decide_others(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    const frag_diagnosis *diagnosis = file->diagnosis;
    uint64_t reach = more(file->idle, file->free);
    bool is_async = file->message->framework == FRAG_FRAMEWORK_PYTORCH_ASYNC;
    if (!diagnosis->outside.is_known || more(file->outside, reach) < file->requested)
        return false;
    uint64_t much = file->total / 20 * 3;
    if (much < 2 * FRAG_GIB + FRAG_GIB / 2)
        much = 2 * FRAG_GIB + FRAG_GIB / 2;
    bool is_much = file->outside >= file->total / 10 * 3 || (!is_async && file->outside >= much);
    bool is_named = are_others_named(file);
    if (!is_much && !is_named)
        return false;
    bool is_most = file->outside > file->total / 2 || is_named;
    decide(file, FRAG_OOM_VERDICT_OTHER_MEMORY,
           is_most ? FRAG_CONFIDENCE_HIGH : FRAG_CONFIDENCE_MEDIUM);
    if (is_named)
        frag_text_add(because, "Other programs hold %s of %s.",
                      FRAG_BYTES(file->figures[FRAG_FIGURE_OTHERS].bytes), FRAG_BYTES(file->total));
    else if (is_own(file))
        frag_text_add(because,
                      "This process holds %s beside the %s of its allocator: another library "
                      "in it, or another copy of the framework.",
                      FRAG_BYTES(diagnosis->context.bytes), FRAG_BYTES(file->held));
    else
        frag_text_add(because,
                      "Of %s, %s are neither free nor held by this program's allocator (%s): "
                      "other programs%s hold them.",
                      FRAG_BYTES(file->total), FRAG_BYTES(file->outside), FRAG_BYTES(file->held),
                      is_async ? ", or the driver's own pool," : "");
    return true;
}

/* Free by the message, or else at most: what nobody is known to hold. */
static uint64_t most_free(const case_file *file)
{
    const frag_amount *process = &file->figures[FRAG_FIGURE_PROCESS];
    uint64_t held = process->is_known && process->bytes > file->held ? process->bytes : file->held;
    return knows(file, FRAG_FIGURE_FREE)
               ? file->free
               : less(file->total, more(held, file->figures[FRAG_FIGURE_OTHERS].bytes));
}

/* The message does not say how much was free, and it may have been enough. */
static void decide_unsure_shortage(const case_file *file, uint64_t free)
{
    frag_text *because = &file->diagnosis->because;
    bool is_nearly_full =
        file->figures[FRAG_FIGURE_ALLOCATED].bytes >= file->total / 100 * NEARLY_FULL_PERCENT;
    decide(file, FRAG_OOM_VERDICT_SHORTAGE,
           is_nearly_full ? FRAG_CONFIDENCE_MEDIUM : FRAG_CONFIDENCE_LOW);
    frag_text_add(because, "%s were asked for. How much was free, it does not say: at most %s",
                  FRAG_BYTES(file->requested), FRAG_BYTES(free));
    if (file->idle > 0)
        frag_text_add(because, ", beside %s idle in the cache", FRAG_BYTES(file->idle));
    frag_text_add(because, ".");
}

static void decide_shortage(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    bool is_exact = knows(file, FRAG_FIGURE_FREE);
    uint64_t free = most_free(file);
    uint64_t reach = more(file->idle, free);
    uint64_t private = file->figures[FRAG_FIGURE_PRIVATE].bytes;
    if (knows(file, FRAG_FIGURE_PRIVATE) &&
        more(more(file->idle, file->free), private) >= file->requested) {
        decide(file, FRAG_OOM_VERDICT_CACHE_HELD, FRAG_CONFIDENCE_MEDIUM);
        frag_text_add(because,
                      "%s lie free in the private pools of CUDA graphs, where other requests "
                      "may not use them; with them the %s asked would fit.",
                      FRAG_BYTES(private), FRAG_BYTES(file->requested));
        if (is_exact)
            file->diagnosis->missing = known(less(file->requested, reach), 0);
        return;
    }
    if (!is_exact && reach >= file->requested) {
        decide_unsure_shortage(file, free);
        return;
    }
    uint64_t short_by = less(file->requested, reach);
    bool is_near = short_by < file->requested / 20;
    file->diagnosis->missing = known(short_by, 0);
    decide(file, FRAG_OOM_VERDICT_SHORTAGE,
           is_near ? FRAG_CONFIDENCE_MEDIUM : FRAG_CONFIDENCE_HIGH);
    frag_text_add(because, "%s%s free", is_exact || free == 0 ? "" : "At most ", FRAG_BYTES(free));
    if (knows(file, FRAG_FIGURE_IDLE))
        frag_text_add(because, " + %s idle in the cache", FRAG_BYTES(file->idle));
    frag_text_add(because, " is less than the %s asked: %s%s short.", FRAG_BYTES(file->requested),
                  is_exact || free == 0 ? "" : "at least ", FRAG_BYTES(short_by));
}

static void decide_by_figures(const case_file *file)
{
    frag_text *because = &file->diagnosis->because;
    bool knows_rest = knows(file, FRAG_FIGURE_FREE) ||
                      (knows(file, FRAG_FIGURE_IDLE) && file->idle >= file->requested) ||
                      (knows(file, FRAG_FIGURE_TOTAL) && knows(file, FRAG_FIGURE_ALLOCATED)) ||
                      (knows(file, FRAG_FIGURE_LIMIT) &&
                       (knows(file, FRAG_FIGURE_ALLOCATED) || knows(file, FRAG_FIGURE_RESERVED)));
    if (!knows(file, FRAG_FIGURE_REQUESTED)) {
        decide_without_request(file);
    } else if (knows(file, FRAG_FIGURE_TOTAL) && file->requested > file->total) {
        decide(file, FRAG_OOM_VERDICT_OVERSIZED, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "%s were asked for in one piece, of a device that has %s in all.",
                      FRAG_BYTES(file->requested), FRAG_BYTES(file->total));
    } else if (!knows_rest && knows(file, FRAG_FIGURE_LIMIT) &&
               file->requested > file->figures[FRAG_FIGURE_LIMIT].bytes) {
        decide(file, FRAG_OOM_VERDICT_LIMIT, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "%s were asked for in one piece, and no more than %s is allowed.",
                      FRAG_BYTES(file->requested),
                      FRAG_BYTES(file->figures[FRAG_FIGURE_LIMIT].bytes));
    } else if (!knows_rest) {
        decide(file, FRAG_OOM_VERDICT_NO_FIGURES, FRAG_CONFIDENCE_HIGH);
        frag_text_add(because, "%s were asked for; ", FRAG_BYTES(file->requested));
        if (knows(file, FRAG_FIGURE_ALLOCATED) || knows(file, FRAG_FIGURE_RESERVED))
            frag_text_add(because,
                          "%s were held already, but how much the device has, it does not say.",
                          FRAG_BYTES(file->held));
        else if (knows(file, FRAG_FIGURE_TOTAL))
            frag_text_add(because,
                          "the device has %s, but how much of it was free or in use, it "
                          "does not say.",
                          FRAG_BYTES(file->total));
        else
            frag_text_add(because, "what was free or in use, it does not say.");
    } else if (file->message->framework == FRAG_FRAMEWORK_PYTORCH_MPS) {
        decide_mps(file);
    } else if (!decide_limit(file) && !decide_impossible(file) && !decide_fragmentation(file) &&
               !decide_others(file)) {
        if (knows(file, FRAG_FIGURE_FREE) || knows(file, FRAG_FIGURE_TOTAL)) {
            decide_shortage(file);
        } else {
            decide(file, FRAG_OOM_VERDICT_NO_FIGURES, FRAG_CONFIDENCE_MEDIUM);
            frag_text_add(because,
                          "%s were asked for below a limit that was not reached; what "
                          "the device had free, it does not say.",
                          FRAG_BYTES(file->requested));
        }
    }
}

/* PyTorch asks the driver for 20 MiB where the request is smaller than 10; its old messages tell
 * the request, later ones the segment. */
static uint64_t segment_of(const frag_message *message, uint64_t requested)
{
    bool is_native = message->framework == FRAG_FRAMEWORK_PYTORCH ||
                     message->framework == FRAG_FRAMEWORK_PYTORCH_HIP;
    return is_native && requested > FRAG_MIB && requested < 10 * FRAG_MIB &&
                   requested % (2 * FRAG_MIB) != 0
               ? 20 * FRAG_MIB
               : requested;
}

/* What ran out, where it is not the memory of a device. */
static const char *host_text(uint32_t says)
{
    return (says & FRAG_SAYS_ON_CHIP) != 0
               ? "A kernel needs more of the memory inside the chip (\"shared memory\" of a "
                 "multiprocessor) than that has; the device's own memory did not run out."
           : (says & FRAG_SAYS_SHM) != 0
               ? "The shared memory between processes of the computer (/dev/shm) ran out, not a "
                 "GPU's."
           : (says & FRAG_SAYS_PINNED) != 0
               ? "The computer's own memory, pinned for the device, ran out, not a GPU's."
           : (says & FRAG_SAYS_DISK) != 0 ? "A file system is full, not a GPU's memory."
           : (says & FRAG_SAYS_KILLED) != 0
               ? "The program used too much of the computer's own memory, not of a GPU's, and was "
                 "ended by the kernel, its container or the batch system."
               : "It is the computer's own memory that ran out, not a GPU's.";
}

static void diagnose_other(const frag_message *message, frag_diagnosis *diagnosis)
{
    bool is_guess = (message->says & FRAG_SAYS_GUESS) != 0;
    diagnosis->confidence = is_guess ? FRAG_CONFIDENCE_MEDIUM : FRAG_CONFIDENCE_HIGH;
    diagnosis->is_survived = message->kind == FRAG_MESSAGE_HARMLESS;
    for (size_t i = 0; i < FRAG_FIGURE_COUNT; i++)
        diagnosis->figures[i] = message->figures[i];
    frag_text_add(&diagnosis->because, "%s",
                  message->kind == FRAG_MESSAGE_HOST
                      ? host_text(message->says)
                      : "It is a warning: the program got along without that memory.");
}

/* A program that nobody knows: what was read is likely, but not sure. */
static void doubt(const frag_message *message, frag_diagnosis *diagnosis)
{
    frag_text told = diagnosis->because;
    diagnosis->because = (frag_text){0};
    diagnosis->confidence = FRAG_CONFIDENCE_LOW;
    /* Figures of an unknown wording that contradict each other were not understood. */
    if (diagnosis->verdict == FRAG_OOM_VERDICT_PLATFORM) {
        diagnosis->verdict = FRAG_OOM_VERDICT_NO_FIGURES;
        frag_text_clear(&told);
        frag_text_add(&told, "Its figures do not explain it.");
    }
    if (message->framework == FRAG_FRAMEWORK_UNKNOWN)
        frag_text_add(&diagnosis->because,
                      "It looks like an out of memory of a program that fraglab does not know. %s",
                      told.bytes);
    else
        frag_text_add(&diagnosis->because,
                      "It looks like an out of memory of %s, in words that fraglab does not know. "
                      "%s",
                      frag_framework_title(message->framework), told.bytes);
    frag_text_destroy(&told);
}

void frag_diagnose_text(const frag_messages *messages, frag_diagnosis *diagnosis)
{
    const frag_message *best = frag_messages_best(messages);
    if (best != NULL) {
        frag_diagnose(best, diagnosis);
        return;
    }
    *diagnosis = (frag_diagnosis){.verdict = FRAG_OOM_VERDICT_NOT_AN_OOM};
    bool is_error = (messages->scenes & FRAG_SCENE_OTHER_ERROR) != 0;
    bool has_memory = (messages->scenes & FRAG_SCENE_MEMORY) != 0;
    bool has_failure = (messages->scenes & FRAG_SCENE_FAILURE) != 0;
    if ((messages->scenes & (FRAG_SCENE_EMPTY | FRAG_SCENE_BINARY)) != 0) {
        diagnosis->confidence = FRAG_CONFIDENCE_LOW;
        frag_text_add(&diagnosis->because, "%s",
                      (messages->scenes & FRAG_SCENE_EMPTY) != 0
                          ? "The input is empty: there is nothing to explain."
                          : "It is neither text nor a recording that fraglab knows, and no "
                            "message is in it.");
        return;
    }
    diagnosis->confidence = has_failure   ? FRAG_CONFIDENCE_LOW
                            : is_error    ? FRAG_CONFIDENCE_HIGH
                            : !has_memory ? FRAG_CONFIDENCE_MEDIUM
                                          : FRAG_CONFIDENCE_LOW;
    frag_text_add(&diagnosis->because, "%s",
                  has_failure ? "The text speaks of memory that ran out, but not as a program "
                                "reports it: paste what the program printed when it failed."
                  : is_error  ? "The text shows an error, but not one of memory that ran out."
                  : has_memory
                      ? "The text speaks of memory, but shows no error: paste what the program "
                        "printed when it failed."
                      : "The text shows no error and does not speak of memory.");
}

void frag_diagnose(const frag_message *message, frag_diagnosis *diagnosis)
{
    *diagnosis = (frag_diagnosis){.verdict = FRAG_OOM_VERDICT_NOT_AN_OOM};
    if (message->kind != FRAG_MESSAGE_OOM) {
        diagnose_other(message, diagnosis);
        return;
    }
    for (size_t i = 0; i < FRAG_FIGURE_COUNT; i++)
        diagnosis->figures[i] = message->figures[i];
    diagnosis->tokens = message->tokens;
    complete(message, diagnosis);
    const frag_amount *figures = diagnosis->figures;
    case_file file = {
        .message = message,
        .diagnosis = diagnosis,
        .figures = figures,
        .requested = figures[FRAG_FIGURE_REQUESTED].bytes,
        .segment = segment_of(message, figures[FRAG_FIGURE_REQUESTED].bytes),
        .total = figures[FRAG_FIGURE_TOTAL].bytes,
        .free = figures[FRAG_FIGURE_FREE].bytes,
        .held = figures[FRAG_FIGURE_RESERVED].is_known ? figures[FRAG_FIGURE_RESERVED].bytes
                                                       : figures[FRAG_FIGURE_ALLOCATED].bytes,
        .idle = figures[FRAG_FIGURE_IDLE].bytes,
        .outside = diagnosis->outside.bytes,
    };
    if (!decide_by_words(&file)) {
        decide_by_figures(&file);
        diagnosis->is_own = diagnosis->verdict == FRAG_OOM_VERDICT_OTHER_MEMORY && is_own(&file);
    }
    if ((message->says & FRAG_SAYS_GUESS) != 0)
        doubt(message, diagnosis);
}

void frag_diagnosis_destroy(frag_diagnosis *diagnosis)
{
    frag_text_destroy(&diagnosis->because);
}
