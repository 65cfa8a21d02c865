/* `fraglab device probe`: measures a real card, in a child process, and writes its device
 * description. */
#include "cli/machine/device_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/gpu_load.h"
#include "cli/inputs.h"
#include "cli/machine/nvml.h"
#include "sim/version.h"

typedef struct probe_run {
    const char *runtime_path;
    uint32_t ordinal;
    bool may_fill;
    /* what NVML says, in the child */
    frag_nvml *nvml;
    frag_gpu_view *before;
    size_t before_count;
    char pci[32];
} probe_run;

/* "cuda", "cuda:1" */
static bool read_device(const frag_arguments *arguments, uint32_t *ordinal, frag_error *error)
{
    const char *text = frag_arguments_value(arguments, "device");
    uint64_t number = 0;
    *ordinal = 0;
    if (text == NULL || strcmp(text, "cuda") == 0)
        return true;
    if (strncmp(text, "cuda:", 5) != 0)
        frag_fail(error, FRAG_E_USAGE, "'%s' is not a GPU; expected cuda or cuda:N", text);
    else if (frag_count_parse(text + 5, 0, 1023, &number, error))
        *ordinal = (uint32_t)number;
    if (error->code == FRAG_E_NONE)
        return true;
    error->code = FRAG_E_USAGE;
    return frag_error_in(error, "--device");
}

static const frag_gpu_view *find_view(const frag_gpu_view *views, size_t count, uint32_t index)
{
    for (size_t i = 0; i < count; i++)
        if (views[i].index == index && views[i].instance == UINT32_MAX && !views[i].has_mig)
            return &views[i];
    return NULL;
}

/* By how much the memory in use grew since before the context. */
static bool context_bytes(void *context, uint64_t *bytes)
{
    probe_run *state = context;
    frag_gpu_view *now = NULL;
    size_t count = 0;
    uint32_t index = 0;
    frag_error unused = {.code = FRAG_E_NONE};
    if (state->nvml == NULL || !frag_nvml_find(state->nvml, state->pci, &index) ||
        !frag_nvml_look(state->nvml, &now, &count, &unused))
        return false;
    const frag_gpu_view *was = find_view(state->before, state->before_count, index);
    const frag_gpu_view *is = find_view(now, count, index);
    bool ok = was != NULL && is != NULL && was->used_bytes != FRAG_UNLIMITED &&
              is->used_bytes != FRAG_UNLIMITED && is->used_bytes > was->used_bytes;
    if (ok)
        *bytes = is->used_bytes - was->used_bytes;
    frag_nvml_views_destroy(now, count);
    return ok;
}

static void read_processor(char text[128])
{
    char line[256];
    FILE *stream = fopen("/proc/cpuinfo", "r");
    snprintf(text, 128, "unknown processor");
    while (stream != NULL && fgets(line, sizeof line, stream) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        snprintf(text, 128, "%.100s", value + 2);
        text[strcspn(text, "\n")] = '\0';
        break;
    }
    if (stream != NULL)
        fclose(stream);
}

static void describe_machine(const probe_run *state, frag_device_description *card)
{
    char processor[128];
    struct utsname host = {.sysname = ""};
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(card->date, sizeof card->date, "%Y-%m-%d", &parts);
    uname(&host);
    read_processor(processor);
    snprintf(card->hardware, sizeof card->hardware, "%s, %u cores, %.20s %.40s", processor,
             frag_core_count(), host.sysname, host.release);
    snprintf(card->source, sizeof card->source, "fraglab device probe %s", frag_version());
    snprintf(card->driver, sizeof card->driver, "%.60s",
             state->nvml != NULL ? frag_nvml_driver(state->nvml) : "unknown, for want of NVML");
}

static bool probe(probe_run *state, frag_text *text, frag_error *error)
{
    frag_device_description card;
    frag_gpu_facts facts;
    frag_error unused = {.code = FRAG_E_NONE};
    const frag_gpu_probe_options options = {
        .may_fill = state->may_fill, .context_bytes = context_bytes, .context = state};
    const frag_gpu_module *module = frag_gpu_module_load(error);
    if (module == NULL)
        return false;
    state->nvml = frag_nvml_open(&unused);
    if (state->nvml != NULL)
        frag_nvml_look(state->nvml, &state->before, &state->before_count, &unused);
    frag_gpu *gpu = module->open(state->runtime_path, state->ordinal, error);
    bool ok = gpu != NULL && module->facts(gpu, &facts, error);
    if (ok) {
        snprintf(state->pci, sizeof state->pci, "%s", facts.pci);
        ok = module->probe(gpu, &options, &card, error);
    }
    if (ok) {
        describe_machine(state, &card);
        frag_device_description_write(&card, text);
    }
    if (gpu != NULL)
        module->close(gpu);
    frag_nvml_views_destroy(state->before, state->before_count);
    frag_nvml_close(state->nvml);
    return ok;
}

/* In the child, with everything that loads a library of the driver: an error, then the text. */
static void probe_in_child(void *context, FILE *stream)
{
    frag_text text = {.bytes = NULL};
    frag_error error = {.code = FRAG_E_NONE};
    probe(context, &text, &error);
    fwrite(&error, sizeof error, 1, stream);
    fwrite(text.bytes, 1, text.length, stream);
    frag_text_destroy(&text);
}

/* What cannot be read back would be of no use. */
static bool read_answer(const unsigned char *bytes, size_t count, frag_error *error)
{
    frag_device_description card;
    if (count < sizeof *error)
        return frag_fail(error, FRAG_E_SYSTEM, "the process that used the GPU said nothing");
    memcpy(error, bytes, sizeof *error);
    return error->code == FRAG_E_NONE &&
           frag_device_description_parse(bytes + sizeof *error, count - sizeof *error, &card,
                                         error);
}

static int run_device_probe(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_output *output = NULL;
    unsigned char *bytes = NULL;
    size_t count = 0;
    probe_run state = {
        .runtime_path = frag_arguments_value(arguments, "cudart"),
        .may_fill = !frag_arguments_has(arguments, "no-fill"),
    };
    if (!read_device(arguments, &state.ordinal, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL)
        return frag_report(&error);
    bool ok = frag_child_run(probe_in_child, &state, &bytes, &count, &error) &&
              read_answer(bytes, count, &error);
    bool is_whole = ok && !frag_is_interrupted();
    if (is_whole)
        fwrite(bytes + sizeof error, 1, count - sizeof error, frag_output_stream(output));
    ok = frag_output_end(output, is_whole, &error) && ok;
    frag_free(bytes);
    return ok || frag_is_interrupted() ? 0 : frag_report(&error);
}

static const frag_command_option options[] = {
    {"device", "cuda[:N]", .help = "the GPU, counted from 0 (default: cuda:0)"},
    {"cudart", "FILE", .help = "the CUDA runtime to use (default: libcudart.so.13, else .12)"},
    {"no-fill",
     .help = "never take all memory of the card; whether scattered pages serve a large malloc is "
             "then left open"},
    FRAG_OUTPUT_OPTIONS,
    {.name = NULL},
};

const frag_command frag_command_device_probe = {
    .name = "probe",
    .summary = "measure a GPU and write its description",
    .description =
        "Measures what 'fraglab run --gpu' takes from a card: its memory and what the context "
        "takes, the footprint of mallocs by size, page and granularity, alignment, whether "
        "addresses are used again, how the driver's pool grows and gives back, and the time of "
        "each call by size with its spread. It takes a few seconds, on an idle card best, needs "
        "512 MiB of free memory and holds at most a quarter of what is free; at the end, for a "
        "moment, all of it, to see whether scattered pages serve a large malloc (not with "
        "--no-fill). Nothing is held afterwards.\n\n"
        "Exit: 0 ok; 2 usage; 4 no GPU, or the driver refused.",
    .examples = "fraglab device probe -o my-card.yaml\n"
                "fraglab run train.pickle --policy all --gpu ./my-card.yaml",
    .options = options,
    .run = run_device_probe,
};
