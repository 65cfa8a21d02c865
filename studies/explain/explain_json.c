#include "studies/explain/explain_json.h"

#include "base/bytes.h"
#include "base/text.h"
#include "sim/version.h"

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
        frag_json *item = frag_json_add(json, "advice");
        frag_json_text(item, "action", step->action);
        frag_json_text(item, "setting", step->setting);
        add_amount(item, "gain_bytes", step->gain);
        frag_json_text(item, "text", step->text.bytes);
    }
}

/* Every size of the message, in order, or of a text without one; "as" is what the words say. */
static void add_sizes(frag_json *json, const frag_message *message)
{
    frag_json_array(json, "sizes");
    for (uint32_t i = 0; i < message->size_count; i++) {
        const frag_message_quantity *size = &message->sizes[i];
        frag_json *item = frag_json_add(json, "sizes");
        frag_json_number(item, "bytes", size->amount.bytes);
        frag_json_text(item, "as", size->is_labelled ? frag_figure_field(size->figure) : NULL);
    }
    frag_json_array(json, "processes");
    for (uint32_t i = 0; i < message->process_count; i++) {
        frag_json *item = frag_json_add(json, "processes");
        frag_json_number(item, "pid", message->process_ids[i]);
        frag_json_number(item, "bytes", message->processes[i]);
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
        frag_json *item = frag_json_add(json, "found");
        frag_diagnosis diagnosis;
        frag_diagnose(message, &diagnosis);
        frag_json_number(item, "line", message->line);
        frag_json_text(item, "framework", frag_framework_name(message->framework));
        frag_json_number(item, "device", message->has_device ? message->device : FRAG_UNLIMITED);
        frag_json_text(item, "judged", frag_oom_verdict_name(diagnosis.verdict));
        add_amount(item, "requested_bytes", message->figures[FRAG_FIGURE_REQUESTED]);
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
    add_sizes(json, best != NULL ? best : &explained->messages->rest);
    frag_explain_add_advice(json, explained->advice);
    add_found(json, explained->messages);
    frag_json_write(json, stream, false);
}
