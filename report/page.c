#include "report/page.h"

#include <string.h>

#include "report/markup.h"
#include "report/page_parts.h"
#include "sim/version.h"

static void write_policy(const frag_page *page, FILE *stream)
{
    fprintf(stream,
            "default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; %s"
            "base-uri 'none'; form-action 'none'",
            frag_page_script_hash, frag_page_style_hash,
            page->data_folder != NULL ? "frame-src 'self'; " : "");
}

static void write_summary(const frag_page *page, FILE *stream)
{
    size_t runs = 0;
    for (size_t i = 0; i < page->trace_count; i++)
        runs += page->traces[i].run_count;
    fprintf(stream, "%zu %s, %zu %s · fraglab %s (%s)", page->trace_count,
            page->trace_count == 1 ? "trace" : "traces", runs, runs == 1 ? "run" : "runs",
            frag_version(), frag_commit());
}

/* The places of report/page/page.html that are filled in: {{title}} and so on. */
static void write_place(frag_page *page, const char *name, size_t length, FILE *stream)
{
    static const char *const names[] = {"title", "policy",  "style", "summary",
                                        "rows",  "command", "data",  "script"};
    size_t place = 0;
    while (strlen(names[place]) != length || memcmp(names[place], name, length) != 0)
        FRAG_ASSERT(++place < sizeof names / sizeof names[0]);
    switch (place) {
    case 0:
        frag_markup_text(stream, page->title);
        break;
    case 1:
        write_policy(page, stream);
        break;
    case 2:
        fwrite(frag_page_style, 1, frag_page_style_bytes, stream);
        break;
    case 3:
        write_summary(page, stream);
        break;
    case 4:
        for (size_t i = 0; i < page->trace_count; i++)
            frag_page_write_rows(&page->traces[i], i, stream);
        break;
    case 5:
        frag_markup_text(stream, page->command);
        break;
    case 6:
        frag_page_write_data(page, stream);
        break;
    default:
        fwrite(frag_page_script, 1, frag_page_script_bytes, stream);
    }
}

static const char *find(const char *from, const char *end, const char *wanted)
{
    size_t length = strlen(wanted);
    for (; (size_t)(end - from) >= length; from++)
        if (memcmp(from, wanted, length) == 0)
            return from;
    return end;
}

void frag_page_write(frag_page *page, FILE *stream)
{
    frag_page_draw(page);
    const char *at = (const char *)frag_page_template;
    const char *end = at + frag_page_template_bytes;
    while (at < end) {
        const char *place = find(at, end, "{{");
        fwrite(at, 1, (size_t)(place - at), stream);
        if (place == end)
            break;
        const char *close = find(place, end, "}}");
        FRAG_ASSERT(close < end);
        write_place(page, place + 2, (size_t)(close - place) - 2, stream);
        at = close + 2;
    }
    frag_page_drop(page);
}
