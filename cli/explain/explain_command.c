/* `fraglab explain`: options, and whether the input is the text of a message or a recording. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/threads.h"
#include "cli/explain/explain_job.h"
#include "cli/inputs.h"
#include "studies/explain/explain_recording.h"
#include "studies/explain/explain_text.h"

/* A log of this size is read whole; of a longer one the end says most. */
#define TEXT_BYTES_MAX (256 * FRAG_MIB)

static const frag_command_option options[] = {
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for a person, or one JSON object (default: table)"},
    {"capacity", "SIZE",
     .help = "recordings: memory of the device (default: what was held and free when it ran out)"},
    {"memory-fraction", "F",
     .help = "recordings: the program called set_per_process_memory_fraction(F)"},
    {"with", "FILE",
     .help = "recordings: a recording of the same program that did not run out of memory; it "
             "holds the requests after the one that failed"},
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "recordings: try this one too; repeat it for several"},
    FRAG_LOAD_OPTIONS,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

static bool read_text(frag_input *input, frag_text *text, frag_error *error)
{
    for (;;) {
        const unsigned char *bytes = NULL;
        size_t count = 0;
        if (!frag_input_peek(input, 1, &bytes, &count, error))
            return frag_error_in(error, frag_input_name(input));
        if (count == 0)
            return true;
        if (text->length + count > TEXT_BYTES_MAX)
            return frag_fail_in(
                error, FRAG_E_INPUT, frag_input_name(input),
                "more than 256 MiB of text; give the end of it: tail -c 32M FILE | fraglab "
                "explain -");
        frag_text_add_bytes(text, (const char *)bytes, count);
        frag_input_skip(input, count);
    }
}

/* What was asked for. */
typedef struct request {
    frag_context context;
    frag_explain_options options;
    frag_trace_format format;
    FILE *stream;
    bool is_json;
} request;

/* What was given for a recording says nothing of a message. */
static void tell_unused(const request *given)
{
    const frag_explain_options *asked = &given->options;
    if (asked->whole_path != NULL || asked->fraction != NULL || asked->extra.count > 0 ||
        asked->capacity_bytes != FRAG_UNLIMITED)
        frag_context_warn(&given->context,
                          "a message is explained by its own figures: other recordings, policies "
                          "and capacities are for recordings, and are not used");
}

static void explain_text(const request *given, const char *text, size_t length)
{
    tell_unused(given);
    frag_explain_message(given->stream, text, length,
                         given->is_json ? frag_explain_print_json : frag_explain_print_text);
}

/* A recording tells itself by its first bytes; all else is text. */
static bool is_recording(frag_input *input, bool *is_one, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    frag_trace_format format;
    if (!frag_input_peek(input, FRAG_FORMAT_LOOK_BYTES, &bytes, &count, error))
        return frag_error_in(error, frag_input_name(input));
    *is_one = frag_trace_format_detect(bytes, count, &format);
    return true;
}

/* A file of text that is no recording; what comes through a pipe can be read only once. */
static bool is_log(const char *operand)
{
    struct stat what;
    frag_error error = {0};
    const unsigned char *bytes = NULL;
    size_t count = 0;
    bool is_one = true;
    bool is_file = stat(operand, &what) == 0 && S_ISREG(what.st_mode);
    frag_input *input = is_file ? frag_input_open(operand, &error) : NULL;
    bool is_text = input != NULL && is_recording(input, &is_one, &error) && !is_one &&
                   frag_input_peek(input, FRAG_FORMAT_LOOK_BYTES, &bytes, &count, &error) &&
                   count > 0 && memchr(bytes, 0, count) == NULL;
    frag_input_close(input);
    return is_text;
}

/* Beside a log nothing else is used: that is said of a recording, and another log is refused. */
static bool refuse_logs(const frag_arguments *arguments, const request *given, frag_error *error)
{
    size_t count = frag_arguments_operand_count(arguments);
    for (size_t i = frag_explain_is_job(arguments) ? 0 : 1;
         i < count && given->format == FRAG_FORMAT_AUTO; i++) {
        const char *operand = frag_arguments_operand(arguments, i);
        if (is_log(operand))
            return frag_fail_in(error, FRAG_E_INPUT, operand,
                                "it is text, and logs are explained one at a time; for several: "
                                "cat FILE... | fraglab explain -");
    }
    return true;
}

static int explain_recording(frag_input *input, const request *given)
{
    frag_recording recording;
    frag_findings findings = {0};
    frag_load_options load = {.format = given->format, .with_sites = true, .with_columns = true};
    frag_error error = {0};
    if (!frag_recording_load_input(input, &load, &recording, &findings, &error))
        return frag_report(&error);
    bool ok = frag_explain_recording(&given->context, &recording, &given->options, given->stream,
                                     given->is_json, &error);
    frag_recording_destroy(&recording);
    if (frag_is_cancelled(&given->context))
        return 130;
    return ok ? 0 : frag_report(&error);
}

static int explain_input(frag_input *input, const request *given)
{
    frag_error error = {0};
    frag_text text = {0};
    bool is_one = given->format != FRAG_FORMAT_AUTO;
    if (!is_one && !is_recording(input, &is_one, &error))
        return frag_report(&error);
    if (is_one)
        return explain_recording(input, given);
    bool ok = read_text(input, &text, &error);
    if (ok)
        explain_text(given, text.bytes != NULL ? text.bytes : "", text.length);
    frag_text_destroy(&text);
    return ok ? 0 : frag_report(&error);
}

/* A message has blanks in it, or letters or marks of a script that needs none. */
static bool is_message(const char *operand)
{
    static const char *const marks[] = {"，", "。", "、", "：", "！", "？"};
    bool is_wide = false;
    for (const char *at = operand; *at != '\0'; at++)
        is_wide |= (unsigned char)*at >= 0xe3;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(operand, marks[i]) != NULL)
            return true;
    return strpbrk(operand, " \n\t") != NULL || (is_wide && strpbrk(operand, "./") == NULL);
}

/* The operand names a file or is the message itself, which is no file. */
static int explain_operand(const char *operand, const request *given)
{
    frag_error error = {0};
    frag_input *input = frag_input_open(operand, &error);
    if (input != NULL) {
        int code = explain_input(input, given);
        frag_input_close(input);
        return code;
    }
    if (!is_message(operand))
        return frag_report(&error);
    explain_text(given, operand, strlen(operand));
    return 0;
}

/* The ranks of a job, and behind them the one that runs out of memory first. */
static int explain_job(const frag_arguments *arguments, request *given)
{
    frag_error error = {0};
    const char *first = NULL;
    frag_input *input = frag_input_open(frag_arguments_operand(arguments, 0), &error);
    if (input == NULL && strpbrk(frag_arguments_operand(arguments, 0), "./") == NULL) {
        bool are_many = frag_arguments_operand_count(arguments) > 2;
        error = (frag_error){0};
        frag_fail(
            &error, FRAG_E_USAGE,
            "unexpected argument '%s'; put a message of several words in quotes; see 'fraglab "
            "explain --help'",
            frag_arguments_operand(arguments, are_many ? 2 : 1));
    }
    if (input == NULL)
        return frag_report(&error);
    frag_input_close(input);
    bool ok = frag_explain_job(arguments, &given->context, given->format, &given->options,
                               given->stream, &first, &error);
    if (frag_is_cancelled(&given->context))
        return 130;
    return !ok ? frag_report(&error) : first != NULL ? explain_operand(first, given) : 0;
}

static bool read_options(const frag_arguments *arguments, request *given, frag_error *error)
{
    uint64_t threads = frag_core_count();
    double fraction = 0;
    given->options.capacity_bytes = FRAG_UNLIMITED;
    given->options.fraction = frag_arguments_value(arguments, "memory-fraction");
    given->options.whole_path = frag_arguments_value(arguments, "with");
    if (frag_explain_is_job(arguments)) {
        if (given->options.whole_path != NULL || given->options.fraction != NULL)
            return frag_fail(error, FRAG_E_USAGE,
                             "--with and --memory-fraction are for one recording; the ranks of a "
                             "job take --capacity");
    } else if (frag_arguments_operand_count(arguments) > 1) {
        if (given->options.whole_path != NULL)
            return frag_fail_in(error, FRAG_E_USAGE, "--with",
                                "the rest is given twice; leave the second file out");
        given->options.whole_path = frag_arguments_operand(arguments, 1);
    }
    if (given->options.fraction != NULL &&
        !frag_ratio_parse(given->options.fraction, 0, 1, &fraction, error))
        return frag_error_in(error, "--memory-fraction");
    for (size_t i = 0; i < frag_arguments_value_count(arguments, "policy"); i++)
        if (!frag_policy_specs_parse(frag_arguments_value_at(arguments, "policy", i),
                                     &given->options.extra.specs, &given->options.extra.count,
                                     error))
            return frag_error_in(error, "--policy");
    if (!frag_inputs_format(arguments, &given->format, error) ||
        !frag_arguments_bytes(arguments, "capacity", &given->options.capacity_bytes, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, error))
        return false;
    given->context = *frag_arguments_context(arguments);
    given->context.threads = (uint32_t)threads;
    if (given->options.capacity_bytes == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "--capacity",
                            "a device without memory serves nothing; write a size such as 24GiB");
    return true;
}

static int explain_command(const frag_arguments *arguments)
{
    frag_error error = {0};
    request given = {.is_json = frag_arguments_is(arguments, "format", "jsonl")};
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &given, &error) || !refuse_logs(arguments, &given, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        given.stream = frag_output_stream(output);
        code = frag_explain_is_job(arguments)
                   ? explain_job(arguments, &given)
                   : explain_operand(frag_arguments_operand(arguments, 0), &given);
        if (!frag_output_end(output, code == 0, &error))
            code = frag_report(&error);
    }
    frag_policy_list_destroy(&given.options.extra);
    return code;
}

const frag_command frag_command_explain = {
    .name = "explain",
    .operands = "MESSAGE|FILE|TRACE|FOLDER|- [WHOLE]...",
    .summary = "explain a CUDA out of memory: what happened, what would have fit, what to do",
    .description =
        "Reads an out-of-memory message of PyTorch, TensorFlow, JAX, CuPy, RMM, ggml and others, "
        "alone or anywhere in a log, and says what the figures in it mean: a verdict, the "
        "arithmetic behind it, how sure that is, and what to do, in order. MESSAGE is the text "
        "itself in quotes, '-' is stdin.\n"
        "\n"
        "Given a recording that ran out of memory (or would, with --capacity), it shows which "
        "code holds the memory at that moment, and replays the same requests under other settings "
        "and policies: which of them get past the request that failed, and with how much memory "
        "left. What the program would have requested after that is not in the recording: as "
        "WHOLE, or with --with, give a recording of the same program that did not run out of "
        "memory.\n"
        "\n"
        "A folder, three recordings or more, or two with different numbers behind 'rank' in their "
        "names are the ranks of one job: what each needs, which runs out of memory first and in "
        "which step, one setting for all of them, and the explanation of the first rank.",
    .examples =
        "fraglab explain train.log  # finds the message in it\n"
        "fraglab explain --format jsonl -  # one JSON object for a message on stdin\n"
        "fraglab explain oom.pickle  # which settings get past the request that failed\n"
        "fraglab explain oom.pickle whole.pickle  # which fit to the end\n"
        "fraglab explain job/  # the ranks of a job: which runs out first, one setting for all\n"
        "fraglab explain train.pickle --capacity 8GiB  # if the card were smaller",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = explain_command,
};
