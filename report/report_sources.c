/* The files of a report: result files, recordings, and recordings that rows speak of. */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/threads.h"
#include "report/report_state.h"

static frag_report_source *add_source(frag_report_state *report, const char *path)
{
    frag_report_source *source =
        FRAG_APPEND(report->sources, report->source_count, report->source_capacity);
    *source = (frag_report_source){.path = frag_copy_text(path)};
    return source;
}

static frag_window part_of(const frag_report_state *report)
{
    const frag_window *window = report->wishes->window;
    return window != NULL ? *window : (frag_window){.kind = FRAG_WINDOW_ALL};
}

/* stdin is read here: it cannot be opened again. */
static bool load_stream(frag_report_state *report, frag_input *input, frag_error *error)
{
    frag_report_source *source = add_source(report, "-");
    frag_findings findings = {0};
    frag_window window = part_of(report);
    frag_load_options options = {.format = report->wishes->format,
                                 .with_sites = true,
                                 .with_columns = true,
                                 .window = window.kind != FRAG_WINDOW_ALL ? &window : NULL};
    source->is_loaded =
        frag_recording_load_input(input, &options, &source->recording, &findings, error);
    return source->is_loaded;
}

static bool read_operand(frag_report_state *report, const char *path, frag_error *error)
{
    bool is_rows = false;
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    bool ok = report->wishes->format != FRAG_FORMAT_AUTO ||
              frag_stored_rows_detect(input, &is_rows, error);
    if (ok && is_rows) {
        ok = frag_stored_rows_read(input, &report->rows, error);
        report->rows_path = path;
    } else if (ok && strcmp(path, "-") == 0) {
        ok = load_stream(report, input, error);
    } else if (ok) {
        add_source(report, path);
    }
    frag_input_close(input);
    return ok || frag_error_in(error, path);
}

/* ---- recordings that rows name */

static bool has_source(const frag_report_state *report, const char *path)
{
    for (size_t i = 0; i < report->source_count; i++)
        if (strcmp(report->sources[i].path, path) == 0)
            return true;
    return false;
}

static void add_found(frag_report_state *report, const char *path)
{
    if (!has_source(report, path) && access(path, R_OK) == 0)
        add_source(report, path)->is_optional = true;
}

/* Beside the result file, or here. A row has the name of a file without folders: a name with a
 * slash in it leads elsewhere and is not followed. */
static void look_for(frag_report_state *report, const char *name)
{
    const char *slash = strrchr(report->rows_path, '/');
    if (strchr(name, '/') != NULL || *name == '\0' || strcmp(name, "-") == 0)
        return;
    if (slash != NULL) {
        frag_text path = {0};
        frag_text_add(&path, "%.*s/%s", (int)(slash - report->rows_path), report->rows_path, name);
        add_found(report, path.bytes);
        frag_text_destroy(&path);
    }
    add_found(report, name);
}

static void load_source(void *context, uint64_t index)
{
    frag_report_state *report = context;
    frag_report_source *source = &report->sources[index];
    frag_window window = part_of(report);
    if (!source->is_loaded)
        source->is_loaded = frag_recording_load_part(source->path, report->wishes->format, true,
                                                     &window, &source->recording, &source->error);
    if (source->is_loaded)
        frag_recorded_by(&source->recording, source->recorded_by);
    frag_progress_add(report->progress, 1);
}

static void load_sources(frag_report_state *report)
{
    report->progress =
        frag_progress_start(report->wishes->context, "loading", "recordings", report->source_count);
    frag_for_each(frag_context_threads(report->wishes->context), report->source_count, load_source,
                  report);
    frag_progress_end(report->progress);
}

const frag_trace *frag_report_trace_of(const frag_report_state *report, const frag_row_group *group,
                                       frag_report_source **source)
{
    for (size_t i = 0; i < report->source_count; i++) {
        const frag_recording *recording = &report->sources[i].recording;
        for (uint32_t t = 0; report->sources[i].is_loaded && t < recording->trace_count; t++)
            if (strcmp(recording->traces[t].digest, group->trace.digest) == 0 &&
                recording->traces[t].device == group->trace.device) {
                *source = &report->sources[i];
                return &recording->traces[t];
            }
    }
    return NULL;
}

bool frag_report_load(frag_report_state *report, frag_error *error)
{
    for (size_t i = 0; i < report->wishes->operand_count; i++)
        if (!read_operand(report, report->wishes->operands[i], error))
            return false;
    for (size_t i = 0; i < report->wishes->recording_count; i++) {
        frag_report_source *source = add_source(report, report->wishes->recordings[i]->name);
        source->recording = *report->wishes->recordings[i];
        source->is_loaded = source->is_borrowed = true;
    }
    for (size_t i = 0; i < report->rows.count; i++)
        look_for(report, report->rows.items[i]->row.trace_name);
    load_sources(report);
    for (size_t i = 0; i < report->source_count; i++)
        if (!report->sources[i].is_loaded && !report->sources[i].is_optional) {
            *error = report->sources[i].error;
            return false;
        }
    for (size_t i = 0; i < report->rows.group_count; i++) {
        frag_report_source *source = NULL;
        if (frag_report_trace_of(report, report->rows.groups[i], &source) != NULL)
            source->is_for_rows = true;
    }
    return true;
}
