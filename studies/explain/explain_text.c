#include "studies/explain/explain_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

enum { COLUMNS = 96, LABEL_COLUMNS = 11, FOUND_LINES = 10 };

/* Broken into lines of at most 96 columns; those after the first are indented. */
static void wrap(FILE *stream, const char *text, unsigned indent)
{
    size_t column = indent;
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > COLUMNS) {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        fwrite(text, 1, word, stream);
        column += word;
        text += word;
        text += *text == ' ';
    }
    fputc('\n', stream);
}

static const char *sure_text(frag_confidence confidence)
{
    return confidence == FRAG_CONFIDENCE_HIGH     ? "clear"
           : confidence == FRAG_CONFIDENCE_MEDIUM ? "likely"
                                                  : "a guess";
}

static void print_label(FILE *stream, const char *label)
{
    fprintf(stream, "%-*s", LABEL_COLUMNS, label);
}

void frag_explain_print_verdict(FILE *stream, const frag_diagnosis *diagnosis, bool is_simulated)
{
    bool has_room = is_simulated && diagnosis->verdict == FRAG_OOM_VERDICT_NOT_AN_OOM;
    print_label(stream, "verdict");
    fprintf(stream, "%s (%s): %s\n", frag_oom_verdict_name(diagnosis->verdict),
            sure_text(diagnosis->confidence),
            has_room ? "a device of that size serves what was recorded"
                     : frag_diagnosis_meaning(diagnosis));
    print_label(stream, "why");
    wrap(stream, diagnosis->because.bytes, LABEL_COLUMNS);
}

void frag_explain_print_steps(FILE *stream, const frag_advice *advice)
{
    if (advice->count == 0)
        return;
    fprintf(stream, "\nwhat to do\n");
    for (size_t i = 0; i < advice->count; i++) {
        fprintf(stream, "%3zu. ", i + 1);
        wrap(stream, advice->steps[i].text.bytes, 5);
    }
}

static void print_source(FILE *stream, const frag_explained *explained)
{
    const frag_message *best = explained->best;
    size_t count = explained->messages->oom_count;
    if (best == NULL)
        return;
    print_label(stream, "message");
    /* A library's words do not tell who called it. */
    bool is_library = (best->says & FRAG_SAYS_LIBRARY) != 0;
    bool is_guess = (best->says & FRAG_SAYS_GUESS) != 0;
    fprintf(stream, "%s",
            best->release != NULL ? best->release
            : is_guess && best->framework == FRAG_FRAMEWORK_UNKNOWN
                ? "a program that fraglab does not know"
            : best->kind == FRAG_MESSAGE_HOST && best->framework == FRAG_FRAMEWORK_UNKNOWN
                ? "the system or a library"
                : frag_framework_title(is_library ? FRAG_FRAMEWORK_UNKNOWN : best->framework));
    if (best->release != NULL && best->framework != FRAG_FRAMEWORK_PYTORCH)
        fprintf(stream, " (%s)", frag_framework_title(best->framework));
    if (best->has_device)
        fprintf(stream, ", GPU %" PRIu64, best->device);
    fprintf(stream, ", line %" PRIu64, best->line);
    if (count > 1)
        fprintf(stream, "; of %zu messages the one that says most", count);
    fputc('\n', stream);
}

static void print_figure(FILE *stream, const char *label, frag_amount amount, const char *rest)
{
    if (!amount.is_known)
        return;
    print_label(stream, label);
    fprintf(stream, "%10s  %s\n", FRAG_BYTES(amount.bytes), rest);
}

static void print_figures(FILE *stream, const frag_explained *explained)
{
    const frag_diagnosis *diagnosis = explained->diagnosis;
    const frag_amount *figures = diagnosis->figures;
    const frag_message *best = explained->best;
    bool is_whole = best != NULL && (best->says & FRAG_SAYS_WHOLE) != 0;
    bool is_share = best != NULL && (best->says & FRAG_SAYS_UTILISATION) != 0;
    bool is_cache = best != NULL && best->framework == FRAG_FRAMEWORK_VLLM &&
                    (best->says & FRAG_SAYS_POOL_FULL) != 0;
    print_figure(stream, "asked", figures[FRAG_FIGURE_REQUESTED],
                 is_share   ? "to be taken in all"
                 : is_cache ? "needed by the cache"
                            : "in one request");
    bool is_host = best != NULL && best->kind == FRAG_MESSAGE_HOST;
    print_figure(stream, is_host ? "computer" : "device", figures[FRAG_FIGURE_TOTAL], "in all");
    print_figure(stream, "allowed", figures[FRAG_FIGURE_LIMIT], "by a limit");
    print_figure(stream, "in use", figures[FRAG_FIGURE_ALLOCATED],
                 is_whole ? "needed by the program" : "by the program's own data");
    if (!figures[FRAG_FIGURE_ALLOCATED].is_known)
        print_figure(stream, "held", figures[FRAG_FIGURE_RESERVED], "by the allocator");
    print_figure(stream, "idle", figures[FRAG_FIGURE_IDLE], "in the allocator's cache");
    print_figure(stream, "private", figures[FRAG_FIGURE_PRIVATE], "idle in pools of CUDA graphs");
    print_figure(stream, "free", figures[FRAG_FIGURE_FREE],
                 is_cache  ? "left for the cache"
                 : is_host ? "on the computer"
                           : "on the device");
    if (figures[FRAG_FIGURE_OTHERS].bytes > 0)
        print_figure(stream, "others", figures[FRAG_FIGURE_OTHERS],
                     best != NULL && best->framework == FRAG_FRAMEWORK_PYTORCH_MPS
                         ? "in Metal, beside PyTorch's allocator"
                         : "held by other programs");
    print_figure(stream, "elsewhere", diagnosis->outside,
                 "neither free nor the allocator's: driver, libraries, other programs");
}

/* Of several messages each with its line, as far as a screen goes. */
static void print_found(FILE *stream, const frag_explained *explained)
{
    const frag_messages *messages = explained->messages;
    uint64_t shown = 0;
    if (messages->oom_count < 2)
        return;
    fprintf(stream, "\nmessages in this text\n");
    for (size_t i = 0; i < messages->count && shown < FOUND_LINES; i++) {
        const frag_message *message = &messages->items[i];
        const frag_amount *asked = &message->figures[FRAG_FIGURE_REQUESTED];
        frag_diagnosis diagnosis;
        if (message->kind != FRAG_MESSAGE_OOM)
            continue;
        frag_diagnose(message, &diagnosis);
        shown++;
        fprintf(stream, "  line %-7" PRIu64 " %-17s %10s  ", message->line,
                frag_oom_verdict_name(diagnosis.verdict),
                asked->is_known ? FRAG_BYTES(asked->bytes) : "");
        if (message->has_device)
            fprintf(stream, "GPU %" PRIu64 ", ", message->device);
        fprintf(stream, "%s%s\n", frag_framework_title(message->framework),
                message == explained->best ? ", the one above" : "");
        frag_diagnosis_destroy(&diagnosis);
    }
    if (messages->oom_count > shown)
        fprintf(stream, "  and %" PRIu64 " more\n", messages->oom_count - shown);
}

void frag_explain_print_text(FILE *stream, const frag_explained *explained)
{
    frag_explain_print_verdict(stream, explained->diagnosis, false);
    print_source(stream, explained);
    print_figures(stream, explained);
    print_found(stream, explained);
    frag_explain_print_steps(stream, explained->advice);
}

void frag_explain_message(FILE *stream, const char *text, size_t length,
                          void (*print)(FILE *stream, const frag_explained *explained))
{
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_messages_read(&messages, text, length);
    const frag_message *best = frag_messages_best(&messages);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, best, &diagnosis, &advice);
    const frag_explained explained = {
        .messages = &messages, .best = best, .diagnosis = &diagnosis, .advice = &advice};
    print(stream, &explained);
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
}
