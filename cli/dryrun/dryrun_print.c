#include "cli/dryrun/dryrun_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text_table.h"
#include "studies/explain/explain_text.h"
#include "studies/explain/explain_trace.h"

enum { NOTES_SHOWN = 6 };

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- fits or not */

static uint64_t left_of(const frag_dryrun_gpu *gpu, uint64_t reserved)
{
    uint64_t used = reserved + gpu->memory.context_bytes;
    return used < gpu->memory.capacity_bytes ? gpu->memory.capacity_bytes - used : 0;
}

uint64_t frag_dryrun_left(const frag_dryrun_gpu *gpu, const frag_dryrun_process *process)
{
    uint64_t left = left_of(gpu, process->answer->run.peak.reserved_bytes);
    uint32_t device = process->main->device;
    uint64_t all = device < FRAG_DRYRUN_DEVICES_MAX ? process->facts.card_bytes_max[device] : 0;
    uint64_t capacity = gpu->memory.capacity_bytes;
    uint64_t of_all = all < capacity ? capacity - all : 0;
    return of_all < left ? of_all : left;
}

static uint64_t refused_others_bytes(const frag_dryrun_process *process)
{
    uint32_t device = process->main->device;
    return device < FRAG_DRYRUN_DEVICES_MAX ? process->facts.refused_others_bytes[device] : 0;
}

bool frag_dryrun_is_crowded(const frag_dryrun_process *process)
{
    return process->answer->has_failed && process->answer->run.fits &&
           refused_others_bytes(process) > 0;
}

static void print_unknown(FILE *stream, const frag_dryrun_shown *shown,
                          const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    const frag_dryrun_result *result = shown->result;
    if (answer != NULL && answer->has_failed && result->is_low_run &&
        result->low_fits == FRAG_DRYRUN_FITS)
        fprintf(stream,
                "hangs on sizes that NVIDIA's libraries decide: out of memory with the largest; "
                "run with the smallest it fits, %s left\n",
                FRAG_BYTES(left_of(shown->gpu, result->low_reserved_bytes)));
    else if (answer != NULL && answer->has_failed && process->facts.selection_count > 0)
        fprintf(stream,
                "hangs on masks of the GPU: out of memory when they select every element (below); "
                "--selected 50 takes half\n");
    else if (answer != NULL && answer->has_failed && answer->other.fits)
        fprintf(stream,
                "hangs on sizes that NVIDIA's libraries decide: out of memory with the largest, "
                "not with the smallest\n");
    else if (answer != NULL && answer->uncertain_requests > 0 &&
             (answer->has_failed ||
              (process->facts.exception == NULL &&
               (!answer->other.fits || answer->draws_served < answer->draws))))
        fprintf(stream,
                "hangs on sizes that NVIDIA's libraries decide: %s with the largest, served in "
                "%" PRIu64 " of %" PRIu64 " replays with sizes between\n",
                answer->has_failed ? "out of memory" : "served", answer->draws_served,
                answer->draws);
    else if (!shown->gpu->is_given && process->facts.exception == NULL)
        fprintf(stream, "no card was named; with --gpu NAME the answer is for that one\n");
    else if (process->facts.no_recording != NULL)
        fprintf(stream, "not known: %s\n", process->facts.no_recording);
    else
        fprintf(stream, "not known: the script ended early, before memory ran out (%s)\n",
                process->facts.exception != NULL ? process->facts.exception
                                                 : process->facts.ended_by);
}

static bool is_decision(const frag_dryrun_note *note)
{
    return strcmp(note->kind, "decision") == 0;
}

static size_t decisions_of(const frag_dryrun_facts *facts)
{
    size_t count = 0;
    for (size_t i = 0; i < facts->note_count; i++)
        count += is_decision(&facts->notes[i]);
    return count;
}

/* That memory runs out with the smallest too may be known by a run; then draws say nothing. */
static void print_sure(FILE *stream, const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    fprintf(stream, " (sure: with the smallest and the largest of %s uncertain size%s",
            FRAG_COUNT(answer->uncertain_requests), plural(answer->uncertain_requests));
    if (answer->draws > 0 && (process->fits == FRAG_DRYRUN_FITS || answer->draws_served == 0))
        fprintf(stream, ", and %" PRIu64 " draws between", answer->draws);
    fprintf(stream, ")\n");
}

static void print_verdict(FILE *stream, const frag_dryrun_shown *shown,
                          const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    const char *card = shown->gpu->card.name;
    fprintf(stream, "answer     ");
    if (process->fits == FRAG_DRYRUN_FITS_UNKNOWN) {
        print_unknown(stream, shown, process);
        return;
    }
    if (process->fits == FRAG_DRYRUN_FITS)
        fprintf(stream, "fits on %s", card);
    else
        fprintf(stream, "does not fit on %s", card);
    if (process->fits == FRAG_DRYRUN_FITS && answer != NULL)
        fprintf(stream, ", %s left", FRAG_BYTES(frag_dryrun_left(shown->gpu, process)));
    if (answer == NULL)
        fprintf(stream, "\n");
    else if (process->facts.selection_count > 0)
        fprintf(stream, " (with as many elements as masks are said to select, see below)\n");
    else if (decisions_of(&process->facts) > 0)
        fprintf(stream, " (as the script decides when values of the GPU are 0, see below)\n");
    else if (answer->uncertain_requests == 0)
        fprintf(stream, " (sure: no request's size is uncertain)\n");
    else
        print_sure(stream, process);
    if (process->fits == FRAG_DRYRUN_FITS_NOT && process->facts.exception == NULL)
        fprintf(stream, "           the script caught the error and went on\n");
}

/* ---- the run */

static void print_run(FILE *stream, const frag_dryrun_process *process)
{
    const frag_dryrun_facts *facts = &process->facts;
    fprintf(stream, "dry run    real PyTorch %s, software CUDA; ", facts->release);
    if (facts->steps > 0)
        fprintf(stream, "%s step%s, ", FRAG_COUNT(facts->steps), plural(facts->steps));
    if (process->main != NULL)
        fprintf(stream, "%s request%s, ", FRAG_COUNT(process->main->stats.request_count),
                plural(process->main->stats.request_count));
    fprintf(stream, "ended by %s\n", facts->ended_by);
}

static void add_level(frag_text_table *table, const char *name, const frag_level *level)
{
    frag_text_table_add(table, name);
    frag_text_table_add(table, FRAG_BYTES(level->requested_bytes));
    frag_text_table_add(table, FRAG_BYTES(level->allocated_bytes));
    frag_text_table_add(table, FRAG_BYTES(level->reserved_bytes));
}

static void print_peaks(FILE *stream, const frag_dryrun_process *process)
{
    const frag_dryrun_answer *answer = process->answer;
    frag_text_table table = {.columns = 4};
    static const char *const titles[] = {"peak", "requested", "allocated", "reserved"};
    frag_text_table_add_line(&table, titles);
    for (size_t i = 0; i < answer->phase_count; i++)
        add_level(&table, answer->phases[i].name, &answer->phases[i].peak);
    add_level(&table, "whole run", &answer->run.peak);
    if (answer->uncertain_requests > 0)
        add_level(&table, "at the least", &answer->other.peak);
    fprintf(stream, "\n");
    frag_text_table_print(&table, false, stream);
    if (!answer->is_repeated && !frag_dryrun_is_crowded(process))
        fprintf(stream, "the replay of the recording differs from what was run: see 'fraglab "
                        "verify'\n");
}

static void print_memory(FILE *stream, const frag_dryrun_shown *shown,
                         const frag_dryrun_process *process)
{
    const frag_dryrun_gpu *gpu = shown->gpu;
    const frag_dryrun_facts *facts = &process->facts;
    uint64_t reserved = process->answer->run.peak.reserved_bytes;
    uint32_t device = process->main->device;
    uint64_t used = device < FRAG_DRYRUN_DEVICES_MAX ? facts->used_bytes_max[device] : 0;
    if (!gpu->is_given)
        return;
    fprintf(stream, "\ncard       %10s  in all\n", FRAG_BYTES(gpu->memory.capacity_bytes));
    fprintf(stream, "           %10s  context%s\n", FRAG_BYTES(gpu->memory.context_bytes),
            gpu->is_nameless ? " (a size was given: all of it is the program's)"
                             : " of a process, which belongs to the card and the driver");
    fprintf(stream, "           %10s  reserved by PyTorch at its peak\n", FRAG_BYTES(reserved));
    if (used > reserved + gpu->memory.context_bytes)
        fprintf(stream, "           %10s  taken past PyTorch's allocator, at most\n",
                FRAG_BYTES(used - reserved - gpu->memory.context_bytes));
    if (device < FRAG_DRYRUN_DEVICES_MAX && facts->card_bytes_max[device] > 0)
        fprintf(stream, "           %10s  held by all processes on it together, at most\n",
                FRAG_BYTES(facts->card_bytes_max[device]));
    fprintf(stream, "           %10s  left\n", FRAG_BYTES(frag_dryrun_left(gpu, process)));
    if (gpu->is_nameless)
        fprintf(stream, "           a card of this size, for the rest like an A100: compute "
                        "capability and multiprocessors decide some sizes\n");
}

/* ---- out of memory */

static void print_explanation(void *user, const frag_trace_explanation *explanation)
{
    FILE *stream = user;
    fprintf(stream, "\n");
    frag_explain_print_verdict(stream, &explanation->diagnosis, true);
    frag_explain_print_steps(stream, &explanation->advice);
    for (size_t i = 1; i < explanation->candidate_count; i++) {
        const frag_candidate *candidate = &explanation->candidates[i];
        if (candidate->is_run && candidate->gets_past && candidate->setting != NULL &&
            candidate->fraction == NULL)
            fprintf(stream, "  gets past it: --conf %s, %s to spare\n", candidate->setting,
                    FRAG_BYTES(candidate->spare_bytes));
    }
}

static const char *message_of(const frag_dryrun_process *process)
{
    if (process->facts.oom_text != NULL)
        return process->facts.oom_text;
    const frag_oom *oom = &process->answer->run.oom;
    return oom->has_happened && oom->message[0] != '\0' ? oom->message : NULL;
}

static void print_oom(FILE *stream, const frag_dryrun_shown *shown,
                      const frag_dryrun_process *process)
{
    const char *message = message_of(process);
    frag_dryrun_card card = frag_dryrun_limited(shown->gpu, &process->facts);
    frag_explain_options options = {.capacity_bytes = card.capacity_bytes - card.context_bytes};
    frag_error error = {0};
    if (message != NULL)
        fprintf(stream, "\nmessage    %s\n", message);
    if (frag_dryrun_is_crowded(process)) {
        fprintf(stream,
                "\nwhy        other processes held %s of the card then (below); alone on it this "
                "one fits\n",
                FRAG_BYTES(refused_others_bytes(process)));
        return;
    }
    if (!frag_explain_trace(shown->context, &process->recording, process->main, &options,
                            print_explanation, stream, &error))
        fprintf(stream, "\nthe failure cannot be explained: %s\n", error.sentence);
}

/* ---- what is not known, what comes next */

static void print_selections(FILE *stream, const frag_dryrun_facts *facts)
{
    for (size_t i = 0; i < facts->selection_count && i < NOTES_SHOWN; i++) {
        const frag_dryrun_selection *selection = &facts->selections[i];
        fprintf(stream, "mask       %s: how many of %s elements it selects only a GPU would know; ",
                selection->where, FRAG_COUNT(selection->elements));
        if (facts->selected_percent == 100)
            fprintf(stream, "all were taken, %s time%s\n", FRAG_COUNT(selection->count),
                    plural(selection->count));
        else
            fprintf(stream, "%" PRIu64 " %% were taken, %s time%s\n", facts->selected_percent,
                    FRAG_COUNT(selection->count), plural(selection->count));
    }
    if (facts->selection_count > NOTES_SHOWN)
        fprintf(stream, "           and %zu more places; --report FILE has all of them\n",
                facts->selection_count - NOTES_SHOWN);
}

static void print_decisions(FILE *stream, const frag_dryrun_facts *facts)
{
    size_t shown = 0, count = decisions_of(facts);
    for (size_t i = 0; i < facts->note_count && shown < NOTES_SHOWN; i++) {
        const frag_dryrun_note *note = &facts->notes[i];
        if (!is_decision(note))
            continue;
        fprintf(stream,
                "decision   %s: what comes next hangs on a value that only a GPU would know, %s "
                "time%s\n",
                note->text, FRAG_COUNT(note->count), plural(note->count));
        shown++;
    }
    if (count > shown)
        fprintf(stream, "           and %zu more places; --report FILE has all of them\n",
                count - shown);
}

/* Are both what one function said for one purpose? */
static bool is_alike(const frag_dryrun_uncertain *a, const frag_dryrun_uncertain *b)
{
    return strcmp(a->function != NULL ? a->function : "", b->function != NULL ? b->function : "") ==
               0 &&
           strcmp(a->what != NULL ? a->what : "", b->what != NULL ? b->what : "") == 0;
}

/* A line for all sizes of one purpose, where the first of them stands. */
static void print_uncertain(FILE *stream, const frag_dryrun_facts *facts)
{
    for (size_t i = 0; i < facts->uncertain_count; i++) {
        const frag_dryrun_uncertain *size = &facts->uncertain[i];
        uint64_t low = size->low_bytes;
        uint64_t high = size->high_bytes;
        uint64_t count = 1;
        size_t first = 0;
        while (!is_alike(&facts->uncertain[first], size))
            first++;
        for (size_t k = i + 1; k < facts->uncertain_count && first == i; k++) {
            const frag_dryrun_uncertain *other = &facts->uncertain[k];
            if (!is_alike(other, size))
                continue;
            low = other->low_bytes < low ? other->low_bytes : low;
            high = other->high_bytes > high ? other->high_bytes : high;
            count++;
        }
        if (first < i)
            continue;
        fprintf(stream, "uncertain  %s (%s): ", size->function != NULL ? size->function : "",
                size->what != NULL ? size->what : "");
        if (count > 1)
            fprintf(stream, "%s sizes, ", FRAG_COUNT(count));
        fprintf(stream, "%s to %s\n", FRAG_BYTES(low), FRAG_BYTES(high));
    }
}

static void print_notes(FILE *stream, const frag_dryrun_facts *facts)
{
    size_t shown = 0, count = facts->note_count - decisions_of(facts);
    print_selections(stream, facts);
    print_decisions(stream, facts);
    print_uncertain(stream, facts);
    for (size_t i = 0; i < facts->note_count && shown < NOTES_SHOWN; i++) {
        const frag_dryrun_note *note = &facts->notes[i];
        if (is_decision(note))
            continue;
        if (strcmp(note->kind, "value") == 0)
            fprintf(stream, "value      read %s time%s at %s: only a GPU would know it; it was 0\n",
                    FRAG_COUNT(note->count), plural(note->count), note->text);
        else if (strcmp(note->kind, "unknown") == 0)
            fprintf(stream, "unknown    %s did nothing but return\n", note->text);
        else
            fprintf(stream, "note       %s\n", note->text);
        shown++;
    }
    if (count > shown)
        fprintf(stream, "           and %zu more; --report FILE has all of them\n", count - shown);
}

static void print_next(FILE *stream, const frag_dryrun_shown *shown,
                       const frag_dryrun_process *process)
{
    frag_text path = {0};
    bool is_oom = process->fits != FRAG_DRYRUN_FITS && process->answer->has_failed;
    if (!shown->keeps_recording) {
        fprintf(stream, "next       -o run.pickle keeps the recording, for fraglab %s\n",
                is_oom ? "explain" : "run, plot and verify");
        return;
    }
    frag_text_add_word(&path, process->path);
    if (is_oom)
        fprintf(stream, "next       fraglab explain %s\n", path.bytes);
    else
        fprintf(stream, "next       fraglab run %s --policy all; fraglab verify %s\n", path.bytes,
                path.bytes);
    frag_text_destroy(&path);
}

static void print_process(FILE *stream, const frag_dryrun_shown *shown,
                          const frag_dryrun_process *process)
{
    fprintf(stream, "\n");
    if (process->facts.rank != UINT64_MAX)
        fprintf(stream, "rank       %" PRIu64 "\n", process->facts.rank);
    else if (shown->result->count > 1)
        fprintf(stream, "process    %" PRIu64 "\n", process->facts.pid);
    print_verdict(stream, shown, process);
    print_run(stream, process);
    if (process->answer != NULL) {
        print_peaks(stream, process);
        print_memory(stream, shown, process);
    }
    if (process->answer != NULL && process->answer->has_failed)
        print_oom(stream, shown, process);
    if (process->facts.uncertain_count + process->facts.selection_count +
            process->facts.note_count >
        0)
        fprintf(stream, "\n");
    print_notes(stream, &process->facts);
    if (process->answer != NULL)
        print_next(stream, shown, process);
}

void frag_dryrun_print_text(FILE *stream, const frag_dryrun_shown *shown)
{
    for (size_t i = 0; i < shown->result->count; i++)
        print_process(stream, shown, &shown->result->processes[i]);
}
