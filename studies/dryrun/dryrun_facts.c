#include "studies/dryrun/dryrun_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "base/text.h"

#define FACTS_BYTES_MAX ((size_t)16 << 20)

/* The whole input. */
static bool read_all(frag_input *input, frag_text *text, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, FACTS_BYTES_MAX, &bytes, &count, error))
        return false;
    frag_text_add_bytes(text, (const char *)bytes, count);
    return true;
}

static char *copy_member(const frag_json *json, const char *path)
{
    const char *value = NULL;
    return frag_json_find_text(json, path, &value) ? frag_copy_text(value) : NULL;
}

static bool read_member(const frag_json_value *object, const char *name, uint64_t *value);

typedef struct member {
    const char *name;
    const frag_json_value *found;
} member;

static bool is_it(void *context, const char *key, const frag_json_value *value)
{
    member *wanted = context;
    if (strcmp(key, wanted->name) == 0)
        wanted->found = value;
    return true;
}

static const frag_json_value *member_of(const frag_json_value *object, const char *name)
{
    member wanted = {.name = name, .found = NULL};
    frag_json_each_in(object, is_it, &wanted);
    return wanted.found;
}

static bool read_member(const frag_json_value *object, const char *name, uint64_t *value)
{
    return frag_json_read_number(member_of(object, name), value);
}

static void read_marks(const frag_json *json, frag_dryrun_facts *facts)
{
    const frag_json_value *marks = frag_json_at(json, "marks");
    size_t count = frag_json_count(marks);
    facts->marks = frag_alloc(count, sizeof *facts->marks);
    for (size_t i = 0; i < count; i++) {
        const frag_json_value *item = frag_json_item(marks, i);
        const frag_json_value *requests = member_of(item, "requests");
        frag_dryrun_mark *mark = &facts->marks[facts->mark_count];
        const char *name = NULL;
        if (!frag_json_read_text(member_of(item, "name"), &name))
            continue;
        snprintf(mark->name, sizeof mark->name, "%s", name);
        for (size_t device = 0; device < FRAG_DRYRUN_DEVICES_MAX; device++)
            frag_json_read_number(frag_json_item(requests, device), &mark->requests[device]);
        facts->mark_count++;
    }
}

static void read_memory(const frag_json *json, frag_dryrun_facts *facts)
{
    const frag_json_value *memory = frag_json_at(json, "memory");
    for (size_t i = 0; i < frag_json_count(memory); i++) {
        const frag_json_value *item = frag_json_item(memory, i);
        uint64_t device = 0;
        if (!read_member(item, "device", &device) || device >= FRAG_DRYRUN_DEVICES_MAX)
            continue;
        facts->cards[device] = device;
        read_member(item, "used_bytes_max", &facts->used_bytes_max[device]);
        read_member(item, "card", &facts->cards[device]);
        read_member(item, "card_bytes_max", &facts->card_bytes_max[device]);
        read_member(item, "refused_others_bytes", &facts->refused_others_bytes[device]);
    }
}

static void add_note(frag_dryrun_facts *facts, const char *kind, const char *text, uint64_t count)
{
    for (size_t i = 0; i < facts->note_count; i++)
        if (strcmp(facts->notes[i].kind, kind) == 0 && strcmp(facts->notes[i].text, text) == 0) {
            facts->notes[i].count += count;
            return;
        }
    facts->notes = frag_realloc(facts->notes, facts->note_count + 1, sizeof *facts->notes);
    frag_dryrun_note *note = &facts->notes[facts->note_count++];
    *note = (frag_dryrun_note){.text = frag_copy_text(text), .count = count};
    snprintf(note->kind, sizeof note->kind, "%s", kind);
    frag_text_make_plain(note->text);
}

static void read_notes(const frag_json *json, frag_dryrun_facts *facts)
{
    const frag_json_value *notes = frag_json_at(json, "notes");
    for (size_t i = 0; i < frag_json_count(notes); i++) {
        const char *text = NULL;
        if (frag_json_read_text(frag_json_item(notes, i), &text))
            add_note(facts, "note", text, 1);
    }
}

static void read_decisions(const frag_json *json, frag_dryrun_facts *facts)
{
    const frag_json_value *list = frag_json_at(json, "decisions");
    for (size_t i = 0; i < frag_json_count(list); i++) {
        const frag_json_value *item = frag_json_item(list, i);
        const char *where = NULL;
        uint64_t count = 0;
        if (frag_json_read_text(member_of(item, "where"), &where) &&
            read_member(item, "count", &count))
            add_note(facts, "decision", where, count);
    }
}

static void read_selections(const frag_json *json, frag_dryrun_facts *facts)
{
    const frag_json_value *list = frag_json_at(json, "selections");
    size_t count = frag_json_count(list);
    facts->selections = frag_alloc(count, sizeof *facts->selections);
    for (size_t i = 0; i < count; i++) {
        const frag_json_value *item = frag_json_item(list, i);
        frag_dryrun_selection *selection = &facts->selections[facts->selection_count];
        const char *where = NULL;
        if (!frag_json_read_text(member_of(item, "where"), &where) ||
            !read_member(item, "elements", &selection->elements) ||
            !read_member(item, "count", &selection->count))
            continue;
        selection->where = frag_copy_text(where);
        frag_text_make_plain(selection->where);
        facts->selection_count++;
    }
}

/* The same size is reported again by every flush. */
static void add_uncertain(frag_dryrun_facts *facts, const frag_json *json)
{
    uint64_t answered = frag_json_number_at(json, "answered", 0);
    for (size_t i = 0; i < facts->uncertain_count; i++)
        if (facts->uncertain[i].answered_bytes == answered) {
            facts->uncertain[i].count += frag_json_number_at(json, "count", 1);
            return;
        }
    facts->uncertain =
        frag_realloc(facts->uncertain, facts->uncertain_count + 1, sizeof *facts->uncertain);
    facts->uncertain[facts->uncertain_count++] = (frag_dryrun_uncertain){
        .function = copy_member(json, "function"),
        .what = copy_member(json, "what"),
        .low_bytes = frag_json_number_at(json, "low", 0),
        .high_bytes = frag_json_number_at(json, "high", 0),
        .answered_bytes = answered,
        .count = frag_json_number_at(json, "count", 1),
    };
}

static void add_report_line(frag_dryrun_facts *facts, const frag_json *json)
{
    const char *kind = "";
    const char *text = "";
    const char *library = "";
    uint64_t count = frag_json_number_at(json, "count", 1);
    frag_json_find_text(json, "kind", &kind);
    if (strcmp(kind, "uncertain") == 0) {
        add_uncertain(facts, json);
    } else if (strcmp(kind, "unknown") == 0 && frag_json_find_text(json, "function", &text)) {
        frag_text name = {0};
        frag_json_find_text(json, "library", &library);
        frag_text_add(&name, "%s of %s", text, library);
        add_note(facts, kind, name.bytes, count);
        frag_text_destroy(&name);
    } else if (strcmp(kind, "value") == 0 && frag_json_find_text(json, "where", &text)) {
        add_note(facts, kind, text, count);
    } else if (strcmp(kind, "note") == 0 && frag_json_find_text(json, "text", &text)) {
        add_note(facts, kind, text, count);
    }
}

/* A line that was cut off, by a process that was killed, says nothing. */
static void read_report(frag_input *input, frag_dryrun_facts *facts)
{
    frag_text text = {0};
    frag_error error = {0};
    if (!read_all(input, &text, &error))
        return;
    for (char *line = text.bytes; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        size_t length = end != NULL ? (size_t)(end - line) : strlen(line);
        frag_json *json = length > 0 ? frag_json_parse(line, length, &error) : NULL;
        if (json != NULL) {
            add_report_line(facts, json);
            frag_json_destroy(json);
        }
        line = end != NULL ? end + 1 : NULL;
    }
    frag_text_destroy(&text);
}

bool frag_dryrun_facts_read_inputs(frag_input *input, frag_input *report, frag_dryrun_facts *facts,
                                   frag_error *error)
{
    frag_text text = {0};
    *facts = (frag_dryrun_facts){.rank = UINT64_MAX};
    if (!read_all(input, &text, error))
        return false;
    frag_json *json = frag_json_parse(text.bytes != NULL ? text.bytes : "", text.length, error);
    frag_text_destroy(&text);
    if (json == NULL)
        return frag_error_in(error, frag_input_name(input));
    facts->pid = frag_json_number_at(json, "pid", 0);
    facts->rank = frag_json_number_at(json, "rank", UINT64_MAX);
    facts->release = copy_member(json, "torch");
    facts->ended_by = copy_member(json, "ended_by");
    facts->exception = copy_member(json, "exception");
    facts->oom_text = copy_member(json, "oom_text");
    facts->no_recording = copy_member(json, "no_recording");
    facts->steps = frag_json_number_at(json, "steps", 0);
    facts->oom_count = frag_json_number_at(json, "oom_count", 0);
    facts->limit_bytes = frag_json_number_at(json, "limit", UINT64_MAX);
    facts->selected_percent = frag_json_number_at(json, "selected", 100);
    read_marks(json, facts);
    read_memory(json, facts);
    read_notes(json, facts);
    read_selections(json, facts);
    read_decisions(json, facts);
    frag_json_destroy(json);
    if (report != NULL)
        read_report(report, facts);
    return true;
}

bool frag_dryrun_facts_read(const char *path, const char *report, frag_dryrun_facts *facts,
                            frag_error *error)
{
    frag_error ignored = {0};
    *facts = (frag_dryrun_facts){.rank = UINT64_MAX};
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    frag_input *lines = access(report, R_OK) == 0 ? frag_input_open(report, &ignored) : NULL;
    bool ok = frag_dryrun_facts_read_inputs(input, lines, facts, error);
    frag_input_close(lines);
    frag_input_close(input);
    return ok;
}

void frag_dryrun_facts_destroy(frag_dryrun_facts *facts)
{
    for (size_t i = 0; i < facts->uncertain_count; i++) {
        frag_free(facts->uncertain[i].function);
        frag_free(facts->uncertain[i].what);
    }
    for (size_t i = 0; i < facts->note_count; i++)
        frag_free(facts->notes[i].text);
    for (size_t i = 0; i < facts->selection_count; i++)
        frag_free(facts->selections[i].where);
    frag_free(facts->uncertain);
    frag_free(facts->selections);
    frag_free(facts->notes);
    frag_free(facts->marks);
    frag_free(facts->release);
    frag_free(facts->ended_by);
    frag_free(facts->exception);
    frag_free(facts->oom_text);
    frag_free(facts->no_recording);
    *facts = (frag_dryrun_facts){0};
}

const frag_dryrun_mark *frag_dryrun_find_mark(const frag_dryrun_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->mark_count; i++)
        if (strcmp(facts->marks[i].name, name) == 0)
            return &facts->marks[i];
    return NULL;
}
