/* `fraglab plot`: its kinds of figures as subcommands, from their options to the exit code. */
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/plot/plot_gnuplot.h"

/* Options that every kind has. */
#define FRAG_PLOT_OPTIONS                                                                          \
    {"format", "FORMAT", .choices = "svg|png|pdf|terminal|csv",                                    \
     .help = "what is written: a figure, characters for a terminal, or the data it is drawn "      \
             "from (default: by the ending of the name after -o; without "                         \
             "-o: terminal)"},                                                                     \
        {"output", "FILE", .letter = 'o', .help = "write there instead of to stdout"},             \
        {"data", "FILE", .help = "also write the data of the figure there, as CSV"},               \
        {"script", "FILE",                                                                         \
         .help = "write the figure there as a gnuplot script with its data, to change and to "     \
                 "draw with 'gnuplot FILE'; without -o nothing else is written"},                  \
        {"force", .letter = 'f', .help = "overwrite the files written"},                           \
        {"title", "TEXT", .help = "title of the figure; '' for none"},                             \
        {"width", "N",                                                                             \
         .help = "pixels, for pdf at 96 an inch (default: 800; png: 1600), or columns of the "     \
                 "terminal"},                                                                      \
    {                                                                                              \
        "height", "N",                                                                             \
            .help = "pixels (default: in proportion to --width), or lines of "                     \
                    "the terminal"                                                                 \
    }

#define FRAG_PLOT_DEVICE_OPTION                                                                    \
    {                                                                                              \
        "trace-device", "N",                                                                       \
            .help = "draw this device of a recording that has several (default: that with the "    \
                    "greatest peak of requested bytes)"                                            \
    }

/* ---- from the options to the exit code */

/* Options of one command, with all values that were given. */
static frag_plot_setting *read_settings(const frag_arguments *arguments,
                                        const frag_command_option *options, size_t *count)
{
    frag_plot_setting *settings = NULL;
    size_t capacity = 0;
    *count = 0;
    for (const frag_command_option *at = options; at->name != NULL; at++)
        for (size_t i = 0; i < frag_arguments_value_count(arguments, at->name); i++) {
            const char *value = frag_arguments_value_at(arguments, at->name, i);
            settings = frag_grow(settings, &capacity, *count + 1, sizeof *settings);
            settings[(*count)++] =
                (frag_plot_setting){.name = at->name, .value = value != NULL ? value : ""};
        }
    return settings;
}

/* policies: what is replayed if none is named; NULL: the kind replays nothing. */
static int draw(const frag_arguments *arguments, const frag_command_option *options,
                const char *policies, frag_plot_kind *kind)
{
    frag_error error = {0};
    frag_policy_list listed = {0};
    frag_device_spec device;
    frag_device_description gpu;
    frag_context context = *frag_arguments_context(arguments);
    size_t operand_count = frag_arguments_operand_count(arguments);
    const char **operands = frag_alloc(operand_count, sizeof *operands);
    for (size_t i = 0; i < operand_count; i++)
        operands[i] = frag_arguments_operand(arguments, i);
    frag_plot_request request = {.context = &context,
                                 .operands = operands,
                                 .operand_count = operand_count,
                                 .policies = &listed,
                                 .device = &device};
    frag_plot_setting *settings = read_settings(arguments, options, &request.setting_count);
    request.settings = settings;
    bool ok = (policies == NULL || (frag_inputs_policies(arguments, policies, &listed, &error) &&
                                    frag_inputs_device(arguments, &device, &gpu, &error))) &&
              (!frag_arguments_knows(arguments, "from") ||
               frag_inputs_format(arguments, &request.input_format, &error));
    if (frag_arguments_knows(arguments, "jobs"))
        context.threads = (uint32_t)frag_arguments_number(arguments, "jobs", context.threads);
    ok = ok && frag_plot_with_gnuplot(arguments, &request, kind, &error);
    frag_policy_list_destroy(&listed);
    frag_free(settings);
    frag_free(operands);
    int code = ok ? 0 : frag_report(&error);
    return frag_is_interrupted() ? 130 : code;
}

/* ---- timeline */

static const frag_command_option timeline_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"on-oom", "WHAT", .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop, or skip the request and go on "
             "(default: stop)"},
    {"x", "AXIS", .choices = "events|time",
     .help = "the horizontal axis (default: events; time needs a recording that has times)"},
    {"samples", "N", .help = "points of a line; peaks are never lost (default: 4000)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_timeline(const frag_arguments *arguments)
{
    return draw(arguments, timeline_options, "pytorch", frag_plot_timeline);
}

static const frag_command timeline = {
    .name = "timeline",
    .operands = "TRACE",
    .summary = "requested, allocated and reserved bytes over events or time",
    .description =
        "Draws what the program requested (filled) and what each policy reserved for it. If the "
        "recording shows what its own allocator reserved, that is a dotted line. A cross marks "
        "where a run ended in an OOM. With one policy its allocated bytes are drawn too.",
    .examples =
        "fraglab plot timeline train.pickle  # on the terminal\n"
        "fraglab plot timeline train.pickle --policy pytorch,best-fit --capacity 8GiB -o oom.pdf",
    .options = timeline_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_timeline,
};

/* ---- map */

static const frag_command_option map_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"x", "AXIS", .choices = "events|time",
     .help = "the horizontal axis (default: events; time needs a recording that has times)"},
    {"colour", "WHAT", .choices = "size|site|stream",
     .help =
         "what the colour of a block says: its size, the call site it was requested from, or its "
         "stream (default: size)"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_map(const frag_arguments *arguments)
{
    return draw(arguments, map_options, "pytorch", frag_plot_map);
}

static const frag_command map = {
    .name = "map",
    .operands = "TRACE",
    .summary = "where every block lay, address over events or time",
    .description =
        "Draws the memory of one policy: segments one above the other in order of their "
        "addresses, each block from its request to when its place was free again, and the holes "
        "between them in white. Where no segment was held it is grey. A block smaller than a "
        "pixel tints the pixel by the share that it covers.",
    .examples =
        "fraglab plot map train.pickle -o map.png\n"
        "fraglab plot map train.pickle --policy best-fit --colour site --capacity 8GiB -o map.pdf",
    .options = map_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_map,
};

/* ---- bars */

static const frag_command_option bars_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"jobs", "N", .letter = 'j', .help = "threads (default: all cores); the figure is the same"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_bars(const frag_arguments *arguments)
{
    return draw(arguments, bars_options, "all", frag_plot_bars);
}

static const frag_command bars = {
    .name = "bars",
    .operands = "TRACE|ROWS...",
    .summary = "where reserved bytes are at their peak, for each policy",
    .description =
        "Draws for each policy what its reserved bytes consist of at their peak: requested bytes, "
        "rounding, remainders that were not split off, holes, cached segments, blocks that wait "
        "for a stream, page slack. Operands are traces, which are replayed, or rows that 'fraglab "
        "run --format jsonl' wrote. A run that ended in an OOM is marked; its peak is the one "
        "before the OOM. --bounds draws the bounds of each trace across its bars; for rows, the "
        "bounds stored in them.",
    .examples =
        "fraglab plot bars train.pickle -o bars.pdf\n"
        "fraglab run *.pickle --policy all --format jsonl | fraglab plot bars - -o bars.svg",
    .options = bars_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = draw_bars,
};

/* ---- survival */

static const frag_command_option survival_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"samples", "N",
     .help = "replays of each policy at most. If the result changes at more capacities than that, "
             "the curve is coarser; the least surviving capacity stays exact (default: 400)"},
    {"jobs", "N", .letter = 'j', .help = "threads (default: all cores); the figure is the same"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_survival(const frag_arguments *arguments)
{
    return draw(arguments, survival_options, "pytorch", frag_plot_survival);
}

static const frag_command survival = {
    .name = "survival",
    .operands = "TRACE",
    .summary = "how far the trace gets, for every capacity",
    .description =
        "Draws for each policy the share of the requests that are served before the first OOM, "
        "for capacities from the peak of requested bytes to the one with which no device call "
        "fails. The least capacity that survives is marked and printed in the legend, exact to 2 "
        "MiB. --bounds marks what a policy that knew the future would need.",
    .examples = "fraglab plot survival train.pickle --policy pytorch,best-fit,tlsf -o survival.pdf",
    .options = survival_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_survival,
};

/* ---- front */

static const frag_command_option front_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    FRAG_LOAD_OPTIONS,
    {"by", "COST", .choices = "calls|time",
     .help = "the cost beside memory: calls that move memory, or their modelled time (default: "
             "time if --latency or --gpu gives latencies, else calls)"},
    FRAG_BOUNDS_OPTION,
    FRAG_JOBS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_front(const frag_arguments *arguments)
{
    return draw(arguments, front_options, "all", frag_plot_front);
}

static const frag_command front = {
    .name = "front",
    .operands = "TRACE",
    .summary = "memory against device calls or their time, and the policies that no other beats "
               "in both",
    .description =
        "Draws each policy as a point: how far its peak of reserved bytes is above the bound, the "
        "peak of requested bytes, and what it cost in device calls, or in their modelled time. A "
        "policy is on the front when no other is at least as good in both and better in one. "
        "Policies that know the trace in advance, such as offline, are drawn hollow and are never "
        "on the front; those that run out of memory are not drawn. --bounds draws what a policy "
        "that knew the future would need.",
    .examples = "fraglab plot front train.pickle -o front.svg\n"
                "fraglab plot front train.pickle --policy pytorch,best-fit,frugal --latency "
                "docs/latency-example.yaml -o front.pdf",
    .options = front_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_front,
};

/* ---- fragmentation */

static const frag_command_option fragmentation_options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"on-oom", "WHAT", .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop, or skip the request and go on "
             "(default: stop)"},
    {"x", "AXIS", .choices = "events|time",
     .help = "the horizontal axis (default: events; time needs a recording that has times)"},
    {"sizes", "SIZE,...",
     .help = "request sizes to draw, at most 8: sizes, percentiles of the trace's requests (p90: "
             "nine in ten are no larger), max (default: p50,p90,p99,max)"},
    {"samples", "N", .help = "points of a line; peaks are never lost (default: 3000)"},
    {"every", "N",
     .help = "look at the holes only after every N events: faster, but changes in between are "
             "missed (default: 1)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_fragmentation(const frag_arguments *arguments)
{
    return draw(arguments, fragmentation_options, "pytorch", frag_plot_fragmentation);
}

static const frag_command fragmentation = {
    .name = "fragmentation",
    .operands = "TRACE",
    .summary = "utilisation, the largest hole, and what free memory is too small for, over time",
    .description =
        "Draws how one policy uses its memory: blocks, the largest hole and the other holes, "
        "which add up to reserved bytes; below, utilisation and the largest hole as a share of "
        "all free memory; and below that, for several request sizes, the share of free memory "
        "that lies in holes too small for them. A hole is a free range inside a segment; policies "
        "that move pages or stitch holes can use several for one request.",
    .examples =
        "fraglab plot fragmentation train.pickle -o holes.svg\n"
        "fraglab plot fragmentation train.pickle --policy best-fit --x time --sizes p90,2MiB -o "
        "holes.pdf",
    .options = fragmentation_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_fragmentation,
};

/* ---- sites */

static const frag_command_option sites_options[] = {
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"by", "WHAT", .choices = "site|stream|pool|size-class",
     .help = "what a layer stands for: the place in the program that asked, the stream, the pool, "
             "or requests of about one size (default: site)"},
    {"top", "N",
     .help = "number of layers, the largest at the peak first; everything else is one more layer "
             "(default: 8)"},
    {"x", "AXIS", .choices = "events|time",
     .help = "the horizontal axis (default: events; time needs a recording that has times)"},
    {"samples", "N", .help = "points of a layer's edge; peaks are never lost (default: 1800)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_sites(const frag_arguments *arguments)
{
    return draw(arguments, sites_options, NULL, frag_plot_sites);
}

static const frag_command sites = {
    .name = "sites",
    .operands = "TRACE",
    .summary = "requested bytes over events or time, layer by layer: who holds the memory",
    .description =
        "Draws what the program holds as layers that add up to it exactly: the call sites that "
        "hold most at the peak, each with its share, and all others above. Memory that is held "
        "throughout lies at the bottom. A call site is the innermost line of the program's own "
        "code; frames of a framework are skipped. Layers can be streams, pools or sizes instead. "
        "No policy is involved.",
    .examples = "fraglab plot sites train.pickle  # on the terminal\n"
                "fraglab plot sites train.pickle --by size-class --top 5 --x time -o sizes.pdf",
    .options = sites_options,
    .operand_min = 1,
    .operand_max = 1,
    .run = draw_sites,
};

/* ---- heat */

static const frag_command_option heat_options[] = {
    {"x", "FIELD",
     .help = "the horizontal axis: a field of the rows, such as policy.max_split_size_mb"},
    {"y", "FIELD", .help = "the vertical axis: a field of the rows, such as capacity"},
    {"z", "FIELD",
     .help = "what the colour shows (default: peak.reserved_bytes): a field, or over_bound or "
             "over_packing: how far peak reserved is above that bound of the row"},
    {"where", "FIELD=VALUE", .help = "only rows with that value; repeat it for several fields"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

static int draw_heat(const frag_arguments *arguments)
{
    return draw(arguments, heat_options, NULL, frag_plot_heat);
}

static const frag_command heat = {
    .name = "heat",
    .operands = "ROWS...",
    .summary = "a figure of result rows over two options of a sweep",
    .description =
        "Draws rows of 'fraglab sweep' or 'fraglab run --format jsonl' as a grid of two of their "
        "fields, coloured by a third. Fields are named by their path in the rows, or by the end "
        "of it if that is unambiguous. A run that ended in an OOM shows that instead of a value; "
        "a combination without a row is grey. Rows that also differ in another field are refused: "
        "choose with --where.",
    .examples =
        "fraglab plot heat rows.jsonl --x policy.max_split_size_mb --y capacity -o heat.svg\n"
        "fraglab plot heat rows.jsonl --x sli --y grow --z utilisation --where "
        "trace.name=unet.pickle.zst -o heat.pdf",
    .options = heat_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = draw_heat,
};

/* ---- the command */

static const frag_command *const kinds[] = {
    &timeline, &map, &bars, &survival, &front, &fragmentation, &sites, &heat, NULL,
};

const frag_command frag_command_plot = {
    .name = "plot",
    .operands = "KIND",
    .summary = "draw timelines, memory maps, holes, call sites, sweeps, survival curves, fronts",
    .description =
        "Draws a figure with gnuplot: svg, pdf or png for a paper, characters for a terminal, or "
        "the "
        "data alone as CSV. The scripts are in plots/; docs/plots.md says how to draw from the CSV "
        "by hand.",
    .subcommands = kinds,
};
