/* The verdict on a trace that ran out of memory, from what `fraglab explain --format jsonl` says.
 */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "report/markup.h"
#include "report/page.h"

static const char *text_at(const frag_json *json, const char *path, const char *otherwise)
{
    const char *text = otherwise;
    frag_json_find_text(json, path, &text);
    return text;
}

static void write_bytes(FILE *stream, uint64_t bytes)
{
    fprintf(stream, "<span title=\"%" PRIu64 " bytes\">%s</span>", bytes, FRAG_BYTES(bytes));
}

static void write_figure(FILE *stream, const frag_json *json, const char *path, const char *name)
{
    uint64_t bytes = 0;
    if (!frag_json_find_number(json, path, &bytes))
        return;
    fprintf(stream, "<div><dt>%s</dt><dd>", name);
    write_bytes(stream, bytes);
    fputs("</dd></div>\n", stream);
}

static void write_figures(FILE *stream, const frag_json *json)
{
    uint64_t event = 0;
    fputs("<dl class=\"facts\">\n", stream);
    if (frag_json_find_number(json, "oom.event", &event))
        fprintf(stream, "<div><dt>at event</dt><dd>%s</dd></div>\n", FRAG_COUNT(event));
    write_figure(stream, json, "figures.requested_bytes", "asked");
    write_figure(stream, json, "figures.total_bytes", "device");
    write_figure(stream, json, "figures.allocated_bytes", "in use by live blocks");
    write_figure(stream, json, "figures.idle_bytes", "idle in the cache");
    write_figure(stream, json, "figures.largest_hole_bytes", "largest hole");
    write_figure(stream, json, "figures.free_bytes", "free on the device");
    write_figure(stream, json, "least_capacity_bytes", "least device that fits as recorded");
    fputs("</dl>\n", stream);
}

static bool read_step(void *context, const char *key, const frag_json_value *value)
{
    if (strcmp(key, "text") == 0)
        frag_json_read_text(value, (const char **)context);
    return true;
}

static void write_advice(FILE *stream, const frag_json_value *advice)
{
    if (frag_json_count(advice) == 0)
        return;
    fputs("<h4>What to do, in this order</h4>\n<ol class=\"advice\">\n", stream);
    for (size_t i = 0; i < frag_json_count(advice); i++) {
        const char *text = "";
        frag_json_each_in(frag_json_item(advice, i), read_step, &text);
        fputs("<li>", stream);
        frag_markup_text(stream, text);
        fputs("</li>\n", stream);
    }
    fputs("</ol>\n", stream);
}

typedef struct candidate {
    const char *label;
    bool gets_past;
    bool fits;
    bool has_fits;
    bool has_spare;
    bool has_oom;
    uint64_t spare_bytes;
    uint64_t oom_event;
} candidate;

static bool read_oom(void *context, const char *key, const frag_json_value *value)
{
    candidate *into = context;
    if (strcmp(key, "event") == 0)
        into->has_oom = frag_json_read_number(value, &into->oom_event);
    return true;
}

static bool read_candidate(void *context, const char *key, const frag_json_value *value)
{
    candidate *into = context;
    if (strcmp(key, "label") == 0)
        frag_json_read_text(value, &into->label);
    else if (strcmp(key, "gets_past") == 0)
        frag_json_read_flag(value, &into->gets_past);
    else if (strcmp(key, "fits") == 0)
        into->has_fits = frag_json_read_flag(value, &into->fits);
    else if (strcmp(key, "spare_bytes") == 0)
        into->has_spare = frag_json_read_number(value, &into->spare_bytes);
    else if (strcmp(key, "oom") == 0)
        frag_json_each_in(value, read_oom, context);
    return true;
}

static void write_candidate(FILE *stream, const frag_json_value *value)
{
    candidate found = {.label = ""};
    frag_json_each_in(value, read_candidate, &found);
    bool helps = found.has_fits ? found.fits : found.gets_past;
    fputs("<tr><th scope=\"row\" class=\"policy\">", stream);
    frag_markup_text(stream, found.label);
    fprintf(stream, "</th><td class=\"%s\">", helps ? "good" : "bad");
    if (found.has_fits && found.fits)
        fputs("fits", stream);
    else if (found.gets_past && found.has_oom)
        fprintf(stream, "gets past, fails at event %s", FRAG_COUNT(found.oom_event));
    else if (found.gets_past)
        fputs("gets past this request", stream);
    else if (found.has_oom)
        fprintf(stream, "fails at event %s", FRAG_COUNT(found.oom_event));
    else
        fputs("fails", stream);
    fputs("</td><td>", stream);
    if (helps && found.has_spare)
        write_bytes(stream, found.spare_bytes);
    else
        fputs("–", stream);
    fputs("</td></tr>\n", stream);
}

static void write_candidates(FILE *stream, const frag_json_value *candidates)
{
    if (frag_json_count(candidates) == 0)
        return;
    fputs("<div class=\"scroll\"><table class=\"candidates\">\n<caption>Would these have fitted? "
          "The same requests, replayed</caption>\n<thead><tr><th scope=\"col\">setting or policy"
          "</th><th scope=\"col\">outcome</th><th scope=\"col\">to spare</th></tr></thead>\n"
          "<tbody>\n",
          stream);
    for (size_t i = 0; i < frag_json_count(candidates); i++)
        write_candidate(stream, frag_json_item(candidates, i));
    fputs("</tbody></table></div>\n", stream);
}

static void write_one(FILE *stream, const frag_json *json)
{
    fputs("<section class=\"verdict\">\n<h3>Verdict: <strong>", stream);
    frag_markup_text(stream, text_at(json, "verdict", "none"));
    fputs("</strong> <small>confidence ", stream);
    frag_markup_text(stream, text_at(json, "confidence", "unknown"));
    fputs("</small></h3>\n<p>", stream);
    frag_markup_text(stream, text_at(json, "because", ""));
    fputs("</p>\n", stream);
    write_figures(stream, json);
    write_advice(stream, frag_json_at(json, "advice"));
    write_candidates(stream, frag_json_at(json, "candidates"));
    fputs("</section>\n", stream);
}

/* Where memory ran out, and what the device had: the first figures of the trace. */
static void write_oom_facts(FILE *stream, const frag_json *json)
{
    uint64_t event = 0;
    uint64_t asked = 0;
    uint64_t capacity = 0;
    bool is_recorded = false;
    bool is_given = false;
    frag_json_read_flag(frag_json_at_path(json, "oom.is_recorded"), &is_recorded);
    frag_json_read_flag(frag_json_at_path(json, "device.is_given"), &is_given);
    if (frag_json_find_number(json, "oom.event", &event) &&
        frag_json_find_number(json, "oom.requested_bytes", &asked)) {
        fprintf(stream, "<div class=\"oom\"><dt>out of memory%s</dt><dd>event %s, asked ",
                is_recorded ? " when recorded" : "", FRAG_COUNT(event));
        write_bytes(stream, asked);
        fputs("</dd></div>\n", stream);
    }
    if (frag_json_find_number(json, "device.capacity_bytes", &capacity)) {
        fprintf(stream, "<div class=\"oom\"><dt>%s</dt><dd>",
                is_given ? "capacity" : "capacity when recorded");
        write_bytes(stream, capacity);
        fputs("</dd></div>\n", stream);
    }
}

void frag_page_write_oom_facts(const char *explanation, FILE *stream)
{
    frag_error error = {0};
    frag_json *json = frag_json_parse(explanation, strlen(explanation), &error);
    FRAG_ASSERT(json != NULL);
    write_oom_facts(stream, json);
    frag_json_destroy(json);
}

void frag_page_write_verdict(const char *explanation, FILE *stream)
{
    frag_error error = {0};
    frag_json *json = frag_json_parse(explanation, strlen(explanation), &error);
    FRAG_ASSERT(json != NULL);
    write_one(stream, json);
    frag_json_destroy(json);
}
