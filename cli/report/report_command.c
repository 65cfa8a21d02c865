/* `fraglab report`: collects runs, verdicts and plans and writes them as one HTML page. */
#include <string.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/inputs.h"
#include "report/report.h"
#include "studies/rows/result_rows.h"

typedef struct report_call {
    frag_report_wishes wishes;
    frag_context context;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_window window;
} report_call;

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    FRAG_WINDOW_OR_ALL_OPTIONS,
    {"trace-device", "N",
     .help = "the GPU of the program whose part is shown, if there are several", .min = 0,
     .max = UINT32_MAX},
    {"on-oom", "WHAT", .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop the run, or skip the request and "
             "go on (default: stop)"},
    {"format", "FORMAT", .choices = "html|table|csv|jsonl|markdown",
     .help =
         "html: the page; the others print rows of result files as 'fraglab run' does (default: "
         "html)"},
    {"title", "TEXT", .help = "title of the page"},
    {"page-limit", "SIZE",
     .help = "where the page would be larger, its pictures and lists show a part of the events, "
             "around the peak or up to where memory ran out; unlimited: all of them (default: "
             "10 MB)"},
    {"data-dir", "DIR",
     .help = "write the data of the pictures to files in this folder beside the page, which reads "
             "them from there: all events are drawn, however large they are"},
    FRAG_BOUNDS_OPTION,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

/* With less there is no room for the pictures beside scripts and tables. */
#define PAGE_LIMIT_MIN (1000 * 1000u)

static bool read_page_limit(const frag_arguments *arguments, uint64_t *limit, frag_error *error)
{
    if (!frag_arguments_bytes(arguments, "page-limit", limit, error))
        return false;
    return !frag_arguments_has(arguments, "page-limit") || *limit >= PAGE_LIMIT_MIN ||
           frag_fail(error, FRAG_E_USAGE, "--page-limit %s: a page needs at least 1 MB",
                     frag_arguments_value(arguments, "page-limit"));
}

static bool read_window(const frag_arguments *arguments, frag_window *window, frag_error *error)
{
    if (!frag_inputs_window(arguments, "--trace-device", window, error))
        return false;
    return window->kind != FRAG_WINDOW_ALL || !window->has_device ||
           frag_fail(error, FRAG_E_USAGE,
                     "--trace-device goes with --events, --time or --marks; the page has all "
                     "devices otherwise");
}

static bool read_options(const frag_arguments *arguments, report_call *report, frag_error *error)
{
    uint64_t threads = frag_core_count();
    bool has_policies = frag_arguments_value_count(arguments, "policy") > 0;
    frag_report_wishes *wishes = &report->wishes;
    report->context = *frag_arguments_context(arguments);
    if ((has_policies && !frag_inputs_policies(arguments, NULL, &report->policies, error)) ||
        !frag_inputs_device(arguments, &report->device, &report->gpu, error) ||
        !frag_inputs_format(arguments, &wishes->format, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, error) ||
        !read_page_limit(arguments, &wishes->page_limit_bytes, error) ||
        !read_window(arguments, &report->window, error))
        return false;
    report->context.threads = (uint32_t)threads;
    wishes->context = &report->context;
    wishes->policies = has_policies ? &report->policies : NULL;
    wishes->device = &report->device;
    wishes->window = &report->window;
    wishes->is_oom_skipped = frag_arguments_is(arguments, "on-oom", "skip");
    wishes->has_bounds = frag_arguments_has(arguments, "bounds");
    wishes->title = frag_arguments_value(arguments, "title");
    return true;
}

/* ---- the page */

/* What makes the page again. Where it is written to is left out: it is the same page anywhere. */
static void spell_command(const frag_arguments *arguments, frag_text *text)
{
    static const char *const kept[] = {"capacity",     "gpu",     "used-by-others", "address-rule",
                                       "fail-call",    "latency", "from",           "on-oom",
                                       "page-limit",   "events",  "time",           "marks",
                                       "trace-device", "data-dir"};
    frag_text_add(text, "fraglab report");
    for (size_t i = 0; i < frag_arguments_operand_count(arguments); i++)
        frag_text_add(text, " %s", frag_arguments_operand(arguments, i));
    for (size_t i = 0; i < frag_arguments_value_count(arguments, "policy"); i++)
        frag_text_add(text, " --policy %s", frag_arguments_value_at(arguments, "policy", i));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (frag_arguments_has(arguments, kept[i]))
            frag_text_add(text, " --%s %s", kept[i], frag_arguments_value(arguments, kept[i]));
    if (frag_arguments_has(arguments, "bounds"))
        frag_text_add(text, " --bounds");
}

/* ---- other views, of result files alone */

static bool write_view(const frag_arguments *arguments, const char *format, FILE *stream,
                       frag_error *error)
{
    frag_stored_rows rows = {0};
    bool ok = true;
    frag_result_format view = FRAG_RESULT_TABLE;
    for (size_t i = 0; ok && i < frag_arguments_operand_count(arguments); i++) {
        const char *path = frag_arguments_operand(arguments, i);
        frag_input *input = frag_input_open(path, error);
        bool is_rows = false;
        ok = input != NULL && frag_stored_rows_detect(input, &is_rows, error);
        if (ok && !is_rows)
            ok = frag_fail(error, FRAG_E_USAGE,
                           "is not a file of rows; 'fraglab run --format %s' replays a recording",
                           format);
        ok = ok && frag_stored_rows_read(input, &rows, error);
        frag_input_close(input);
        if (!ok)
            frag_error_in(error, path);
    }
    if (ok && frag_result_format_find(format, &view))
        frag_stored_rows_print(&rows, view, stream);
    frag_stored_rows_destroy(&rows);
    return ok;
}

static bool is_page(const frag_arguments *arguments)
{
    const char *format = frag_arguments_value(arguments, "format");
    return format == NULL || strcmp(format, "html") == 0;
}

static bool write_report(const frag_arguments *arguments, report_call *report, FILE *stream,
                         frag_error *error)
{
    if (!is_page(arguments))
        return write_view(arguments, frag_arguments_value(arguments, "format"), stream, error);
    frag_text command = {0};
    size_t count = frag_arguments_operand_count(arguments);
    const char **operands = frag_alloc(count, sizeof *operands);
    for (size_t i = 0; i < count; i++)
        operands[i] = frag_arguments_operand(arguments, i);
    spell_command(arguments, &command);
    report->wishes.operands = operands;
    report->wishes.operand_count = count;
    report->wishes.command = command.bytes;
    bool ok = frag_report_write(&report->wishes, stream, error);
    frag_text_destroy(&command);
    frag_free(operands);
    return ok;
}

/* The page names its data by the name of their folder alone, so that both can be moved together. */
static bool make_data_folder(const frag_arguments *arguments, frag_report_wishes *wishes,
                             frag_error *error)
{
    const char *folder = frag_arguments_value(arguments, "data-dir");
    const char *path = frag_arguments_value(arguments, "output");
    if (folder == NULL)
        return true;
    size_t in = path == NULL ? 0 : frag_path_folder_bytes(path);
    const char *name = folder + frag_path_folder_bytes(folder);
    if (path == NULL || strcmp(path, "-") == 0 || !is_page(arguments))
        return frag_fail(error, FRAG_E_USAGE,
                         "--data-dir goes with a page in a file beside it; add -o page.html");
    if (in != frag_path_folder_bytes(folder) || strncmp(path, folder, in) != 0 || name[0] == '\0' ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "--data-dir %s: the folder is to be beside the page; expected %.*sNAME",
                         folder, (int)in, path);
    wishes->data_folder = folder;
    return frag_folder_make(folder, error);
}

/* Nobody reads a page on a terminal. */
static bool check_place(const frag_arguments *arguments, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "output");
    if (!is_page(arguments) || path != NULL || !frag_is_terminal(1))
        return true;
    return frag_fail(error, FRAG_E_USAGE,
                     "the page is for a browser; write it to a file: -o page.html");
}

static int report_command(const frag_arguments *arguments)
{
    report_call report = {.wishes = {.format = FRAG_FORMAT_AUTO}};
    frag_error error = {0};
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &report, &error) || !check_place(arguments, &error) ||
        !make_data_folder(arguments, &report.wishes, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        bool ok = write_report(arguments, &report, frag_output_stream(output), &error);
        ok = frag_output_end(output, ok && !frag_is_interrupted(), &error) && ok;
        code = ok || frag_is_interrupted() ? 0 : frag_report(&error);
    }
    frag_policy_list_destroy(&report.policies);
    frag_window_destroy(&report.window);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_report = {
    .name = "report",
    .operands = "TRACE|RESULT|FOLDER...",
    .summary = "one HTML page: results, timeline, memory map at any event, verdict",
    .description =
        "Replays each trace through each policy and writes one page that holds everything: the "
        "results with their bounds, where reserved bytes are, the timeline, the memory map at any "
        "event, who holds the memory there, and the verdict with its advice where memory runs out "
        "(with --capacity, or where the recording did). The page needs no network and no other "
        "file; any browser opens it from any folder. Without --policy it shows the recorded "
        "settings of PyTorch, expandable segments, best-fit and frugal.\n"
        "\n"
        "RESULT is a file of rows (JSON Lines) of 'fraglab run' or 'fraglab sweep'. A row is "
        "replayed if its recording is found by its name beside the file or in the current folder, "
        "or is given as an operand, and has the same digest; otherwise the page shows only the "
        "row and says so. --format prints rows of result files in another form.",
    .examples =
        "fraglab report train.pickle -o train.html  # then open train.html\n"
        "fraglab report train.pickle --capacity 8GiB -o small.html  # on a smaller card\n"
        "fraglab report rows.jsonl train.pickle -o rows.html  # rows, with their recording\n"
        "fraglab report rows.jsonl --format markdown  # a table to paste",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = report_command,
};
