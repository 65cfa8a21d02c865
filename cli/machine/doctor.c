/* `fraglab doctor`: prints build, libraries, GPU and machine for a bug report. */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/formats/codec.h"
#include "base/digest.h"
#include "base/formats/sqlite_file.h"
#include "base/formats/yaml.h"
#include "base/json.h"
#include "base/threads.h"
#include "cli/gpu_run.h"
#include "cli/machine/doctor_gpu.h"
#include "cli/ranks.h"
#include "sim/version.h"

static void print_fact(const char *name, const char *value)
{
    printf("%-12s %s\n", name, value);
}

/* The first line of a stream, without its end; "" when there is none. */
static void read_line(FILE *stream, char line[256])
{
    if (stream == NULL || fgets(line, 256, stream) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static void print_libraries(void)
{
    char text[256];
    uint32_t xxhash = frag_digest_library_version();
    snprintf(
        text, sizeof text, "zstd %s, zlib %s, xxhash %u.%u.%u, jansson %s, libyaml %s, sqlite %s",
        frag_codec_library_version(FRAG_CODEC_ZSTD), frag_codec_library_version(FRAG_CODEC_GZIP),
        xxhash / 10000, xxhash / 100 % 100, xxhash % 100, frag_json_library_version(),
        frag_yaml_library_version(), frag_sqlite_library_version());
    print_fact("libraries", text);
}

static void print_gnuplot(void)
{
    char line[256];
    FILE *pipe = popen("gnuplot --version 2>/dev/null", "r");
    read_line(pipe, line);
    if (pipe != NULL)
        pclose(pipe);
    print_fact("gnuplot",
               line[0] != '\0' ? line : "not found; 'fraglab plot' needs it (package gnuplot-nox)");
}

static void print_gpu(void)
{
    char line[256];
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    read_line(file, line);
    if (file != NULL)
        fclose(file);
    print_fact("gpu driver",
               line[0] != '\0' ? line : "none found; the simulated device needs none");
}

static void print_mpi(void)
{
    char text[256];
    frag_error error = {0};
    bool is_there = frag_ranks_library(text, sizeof text, &error);
    print_fact("mpi", is_there ? text : error.sentence);
}

/* Every card that the CUDA runtime shows, or why there is none. */
static void print_cards(const char *cudart)
{
    frag_gpu_choice choice = {.cudart = cudart};
    for (;; choice.ordinal++) {
        char name[16];
        char text[1024];
        frag_gpu_facts facts;
        frag_error error = {0};
        bool is_there = frag_gpu_look(&choice, &facts, &error);
        if (!is_there && choice.ordinal > 0)
            return;
        snprintf(name, sizeof name, "cuda:%u", choice.ordinal);
        if (!is_there) {
            print_fact(name, error.sentence);
            return;
        }
        snprintf(text, sizeof text,
                 "%s, %s, %s free, compute %d.%d, PCI %s, driver %d.%d, runtime %d.%d (%s)",
                 facts.name[0] != '\0' ? facts.name : "a card without a name",
                 FRAG_BYTES(facts.total_bytes), FRAG_BYTES(facts.free_bytes), facts.capability / 10,
                 facts.capability % 10, facts.pci, facts.driver_version / 1000,
                 facts.driver_version / 10 % 100, facts.runtime_version / 1000,
                 facts.runtime_version / 10 % 100, facts.runtime_path);
        print_fact(name, text);
    }
}

static void print_machine(void)
{
    char text[256];
    struct utsname host;
    if (uname(&host) == 0) {
        snprintf(text, sizeof text, "%.60s %.60s %.60s", host.sysname, host.release, host.machine);
        print_fact("system", text);
    }
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    snprintf(text, sizeof text, "%u cores, %s", frag_core_count(), FRAG_BYTES(bytes));
    print_fact("machine", text);
}

static const frag_command_option options[] = {
    {"watch", "SECONDS",
     .help = "print only who uses the memory of the GPUs, every so many seconds until ^C"},
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "jsonl: only the GPUs, an object for each"},
    FRAG_CUDART_OPTION,
    {.name = NULL},
};

static int run_doctor(const frag_arguments *arguments)
{
    const char *interval = frag_arguments_value(arguments, "watch");
    bool is_json = frag_arguments_is(arguments, "format", "jsonl");
    double seconds = 0;
    frag_error error = {.code = FRAG_E_NONE};
    if (interval != NULL && !frag_ratio_parse(interval, 0.05, 86400, &seconds, &error)) {
        error.code = FRAG_E_USAGE;
        frag_error_in(&error, "--watch");
        return frag_report(&error);
    }
    if (interval != NULL)
        return frag_doctor_watch(seconds, is_json);
    if (is_json)
        return frag_doctor_gpu_objects();
    char text[256];
    snprintf(text, sizeof text, "%s (%s), %s build, %s", frag_version(), frag_commit(),
             frag_build_mode(), frag_compiler());
    print_fact("fraglab", text);
    print_libraries();
    print_gnuplot();
    print_mpi();
    print_machine();
    print_gpu();
    frag_doctor_gpus();
    print_cards(frag_arguments_value(arguments, "cudart"));
    return 0;
}

const frag_command frag_command_doctor = {
    .name = "doctor",
    .summary = "print build, libraries, GPU and machine, for a bug report",
    .description =
        "Prints what a bug report needs: the build, the libraries with their versions, whether "
        "gnuplot, MPI and a GPU driver are there, the size of the machine, and for each GPU its "
        "memory and the processes that use it: yours or not, with PyTorch's library loaded or not. "
        "The GPUs are seen through NVML, which comes with the driver; that takes no memory on "
        "them. Then the CUDA runtime is asked, in a process of its own, whether it drives them. "
        "Within a container the driver may list no process, or those of the host by their numbers "
        "there.",
    .examples = "fraglab doctor\n"
                "fraglab doctor --watch 2  # while a program runs elsewhere\n"
                "fraglab doctor --watch 0.5 --format jsonl > memory.jsonl",
    .options = options,
    .run = run_doctor,
};
