#include "cli/explain/explain_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/version.h"

enum { COLUMNS = 96, LABEL_COLUMNS = 11, FOUND_LINES = 10 };

void frag_explain_wrap(FILE *stream, const char *text, unsigned indent)
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

void frag_explain_print_verdict(FILE *stream, const frag_diagnosis *diagnosis)
{
    print_label(stream, "verdict");
    fprintf(stream, "%s (%s): %s\n", frag_oom_verdict_name(diagnosis->verdict),
            sure_text(diagnosis->confidence), frag_oom_verdict_meaning(diagnosis->verdict));
    print_label(stream, "why");
    frag_explain_wrap(stream, diagnosis->because.bytes, LABEL_COLUMNS);
}

void frag_explain_print_steps(FILE *stream, const frag_advice *advice)
{
    if (advice->count == 0)
        return;
    fprintf(stream, "\nwhat to do\n");
    for (size_t i = 0; i < advice->count; i++) {
        fprintf(stream, "%3zu. ", i + 1);
        frag_explain_wrap(stream, advice->steps[i].text.bytes, 5);
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
            : is_guess
                ? "a program that fraglab does not know"
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
    print_figure(stream, "device", figures[FRAG_FIGURE_TOTAL], "in all");
    print_figure(stream, "allowed", figures[FRAG_FIGURE_LIMIT], "by a limit");
    print_figure(stream, "in use", figures[FRAG_FIGURE_ALLOCATED],
                 is_whole ? "needed by the program" : "by the program's own data");
    print_figure(stream, "idle", figures[FRAG_FIGURE_IDLE], "in the allocator's cache");
    print_figure(stream, "private", figures[FRAG_FIGURE_PRIVATE], "idle in pools of CUDA graphs");
    print_figure(stream, "free", figures[FRAG_FIGURE_FREE],
                 is_cache ? "left for the cache" : "on the device");
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
    frag_explain_print_verdict(stream, explained->diagnosis);
    print_source(stream, explained);
    print_figures(stream, explained);
    print_found(stream, explained);
    frag_explain_print_steps(stream, explained->advice);
}

/* ---- JSON */
frag_json *frag_explain_begin_json(const char *kind, const frag_diagnosis *diagnosis)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.explain/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "source.kind", kind);
    frag_json_text(json, "verdict", frag_oom_verdict_name(diagnosis->verdict));
    frag_json_text(json, "confidence", frag_confidence_name(diagnosis->confidence));
    frag_json_text(json, "because", diagnosis->because.bytes);
    return json;
}

static void add_amount(frag_json *json, const char *path, frag_amount amount)
{
    frag_json_number(json, path, amount.is_known ? amount.bytes : FRAG_UNLIMITED);
}

void frag_explain_add_advice(frag_json *json, const frag_advice *advice)
{
    frag_json_array(json, "advice");
    for (size_t i = 0; i < advice->count; i++) {
        const frag_advice_step *step = &advice->steps[i];
        frag_json *item = frag_json_create();
        frag_json_text(item, "action", step->action);
        frag_json_text(item, "setting", step->setting);
        add_amount(item, "gain_bytes", step->gain);
        frag_json_text(item, "text", step->text.bytes);
        frag_json_append(json, "advice", item);
    }
}

/* Every size of the message, in order, whatever it is about; "as" is what the words say. */
static void add_sizes(frag_json *json, const frag_message *message)
{
    frag_json_array(json, "sizes");
    for (uint32_t i = 0; message != NULL && i < message->size_count; i++) {
        const frag_message_quantity *size = &message->sizes[i];
        frag_json *item = frag_json_create();
        frag_json_number(item, "bytes", size->amount.bytes);
        frag_json_text(item, "as", size->is_labelled ? frag_figure_field(size->figure) : NULL);
        frag_json_append(json, "sizes", item);
    }
    frag_json_array(json, "processes");
    for (uint32_t i = 0; message != NULL && i < message->process_count; i++) {
        frag_json *item = frag_json_create();
        frag_json_number(item, "pid", message->process_ids[i]);
        frag_json_number(item, "bytes", message->processes[i]);
        frag_json_append(json, "processes", item);
    }
}

/* Which memory ran out, by the words of the message. */
static const char *memory_name(const frag_message *message)
{
    static const struct {
        uint32_t says;
        const char *name;
    } names[] = {{FRAG_SAYS_ON_CHIP, "on-chip"},
                 {FRAG_SAYS_SHM, "shared"},
                 {FRAG_SAYS_PINNED, "pinned"},
                 {FRAG_SAYS_DISK, "disk"}};
    if (message == NULL || message->kind == FRAG_MESSAGE_HARMLESS)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((message->says & names[i].says) != 0)
            return names[i].name;
    return message->kind == FRAG_MESSAGE_OOM ? "device" : "host";
}

static void add_found(frag_json *json, const frag_messages *messages)
{
    frag_json_array(json, "found");
    for (size_t i = 0; i < messages->count; i++) {
        const frag_message *message = &messages->items[i];
        frag_json *item = frag_json_create();
        frag_diagnosis diagnosis;
        frag_diagnose(message, &diagnosis);
        frag_json_number(item, "line", message->line);
        frag_json_text(item, "framework", frag_framework_name(message->framework));
        frag_json_number(item, "device", message->has_device ? message->device : FRAG_UNLIMITED);
        frag_json_text(item, "judged", frag_oom_verdict_name(diagnosis.verdict));
        add_amount(item, "requested_bytes", message->figures[FRAG_FIGURE_REQUESTED]);
        frag_json_append(json, "found", item);
        frag_diagnosis_destroy(&diagnosis);
    }
}

void frag_explain_print_json(FILE *stream, const frag_explained *explained)
{
    const frag_message *best = explained->best;
    const frag_diagnosis *diagnosis = explained->diagnosis;
    frag_json *json = frag_explain_begin_json("message", diagnosis);
    frag_json_number(json, "source.messages", explained->messages->oom_count);
    frag_json_number(json, "source.line", best != NULL ? best->line : FRAG_UNLIMITED);
    frag_json_text(json, "source.framework",
                   best != NULL ? frag_framework_name(best->framework) : NULL);
    frag_json_text(json, "source.release", best != NULL ? best->release : NULL);
    frag_json_number(json, "source.device",
                     best != NULL && best->has_device ? best->device : FRAG_UNLIMITED);
    frag_json_text(json, "source.memory", memory_name(best));
    frag_json_flag(json, "source.is_guess", best != NULL && (best->says & FRAG_SAYS_GUESS) != 0);
    frag_text path = {0};
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++) {
        frag_text_clear(&path);
        frag_text_add(&path, "figures.%s", frag_figure_field(i));
        add_amount(json, path.bytes, diagnosis->figures[i]);
    }
    frag_text_destroy(&path);
    add_amount(json, "figures.outside_bytes", diagnosis->outside);
    add_amount(json, "figures.missing_bytes", diagnosis->missing);
    add_sizes(json, best);
    frag_explain_add_advice(json, explained->advice);
    add_found(json, explained->messages);
    frag_json_write(json, stream, false);
}
