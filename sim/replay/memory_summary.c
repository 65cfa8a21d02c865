/* The table of torch.cuda.memory_summary(): four figures of each statistic, in the unit that fits
 * the total of both pools. */
#include <inttypes.h>
#include <string.h>

#include "sim/replay/memory_stats.h"

#define WIDTH 75

static const char *const figures[] = {"current", "peak", "allocated", "freed"};
#define FIGURE_COUNT (sizeof figures / sizeof figures[0])

/* How large figures are shown: the unit grows while the leading figure reaches a limit. */
typedef struct unit_scale {
    int64_t step;
    double limit;
    int digits;
    const char *const *units;
    size_t unit_count;
} unit_scale;

static const char *const size_units[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
static const char *const count_units[] = {"  ", "K ", "M "};
static const unit_scale sizes = {1024, 768.0 * 1024, 6, size_units, 6};
static const unit_scale counts = {1000, 750.0 * 1000, 7, count_units, 3};

/* Division that rounds down, also below zero. */
static int64_t shrink(int64_t value, int64_t step)
{
    return value / step - (value % step < 0 ? 1 : 0);
}

static void print_rule(FILE *stream, char mark)
{
    fputc('|', stream);
    for (int i = 0; i < WIDTH; i++)
        fputc(mark, stream);
    fputs("|\n", stream);
}

/* leading: the figure that chooses the unit. */
static void print_figure(FILE *stream, const unit_scale *scale, int64_t value, int64_t leading)
{
    double left = (double)leading;
    size_t unit = 0;
    while (unit + 1 < scale->unit_count && left >= scale->limit) {
        unit++;
        value = shrink(value, scale->step);
        left /= (double)scale->step;
    }
    fprintf(stream, " | %*" PRId64 " %s", scale->digits, value, scale->units[unit]);
}

/* The statistic "GROUP.pool.figure", or "GROUP.figure" where pool is "". */
static bool find(const frag_stats *stats, const char *group, const char *pool, const char *figure,
                 int64_t *value)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%s.%s", group, pool[0] != '\0' ? "." : "", pool, figure);
    return frag_stats_find(stats, name, value);
}

/* leading_pool: whose figures choose the units. */
static void print_line(FILE *stream, const frag_stats *stats, const unit_scale *scale,
                       const char *title, const char *group, const char *pool,
                       const char *leading_pool)
{
    fprintf(stream, "| %-21s", title);
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        int64_t value = 0;
        int64_t leading = 0;
        if (find(stats, group, pool, figures[i], &value) &&
            find(stats, group, leading_pool, figures[i], &leading))
            print_figure(stream, scale, value, leading);
        else
            fprintf(stream, " | %10s", "-"); /* digits and unit */
    }
    fputs(" |\n", stream);
}

static void print_total(FILE *stream, const frag_stats *stats, const char *name, int width)
{
    int64_t value = 0;
    if (frag_stats_find(stats, name, &value))
        fprintf(stream, "%-*" PRId64, width, value);
    else
        fprintf(stream, "%-*s", width, "-");
}

static void print_head(FILE *stream, const frag_stats *stats, uint32_t device)
{
    print_rule(stream, '=');
    fprintf(stream, "|%18sPyTorch CUDA memory summary, device ID %-17" PRIu32 " |\n", "", device);
    print_rule(stream, '-');
    fprintf(stream, "|%12sCUDA OOMs: ", "");
    print_total(stream, stats, "num_ooms", 12);
    fprintf(stream, " | %7scudaMalloc retries: ", "");
    print_total(stream, stats, "num_alloc_retries", 8);
    fputs("  |\n", stream);
    print_rule(stream, '=');
    fputs("|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n",
          stream);
}

void frag_stats_summary(const frag_stats *stats, uint32_t device, FILE *stream)
{
    static const struct {
        const char *group;
        const char *title;
        const unit_scale *scale;
        bool has_pools;
    } metrics[] = {
        {"allocated_bytes", "Allocated memory", &sizes, true},
        {"active_bytes", "Active memory", &sizes, true},
        {"requested_bytes", "Requested memory", &sizes, true},
        {"reserved_bytes", "GPU reserved memory", &sizes, true},
        {"inactive_split_bytes", "Non-releasable memory", &sizes, true},
        {"allocation", "Allocations", &counts, true},
        {"active", "Active allocs", &counts, true},
        {"segment", "GPU reserved segments", &counts, true},
        {"inactive_split", "Non-releasable allocs", &counts, true},
        {"oversize_allocations", "Oversize allocations", &counts, false},
        {"oversize_segments", "Oversize GPU segments", &counts, false},
    };
    print_head(stream, stats, device);
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const char *group = metrics[i].group;
        const char *all = metrics[i].has_pools ? "all" : "";
        print_rule(stream, '-');
        print_line(stream, stats, metrics[i].scale, metrics[i].title, group, all, all);
        if (!metrics[i].has_pools)
            continue;
        print_line(stream, stats, metrics[i].scale, "      from large pool", group, "large_pool",
                   all);
        print_line(stream, stats, metrics[i].scale, "      from small pool", group, "small_pool",
                   all);
    }
    print_rule(stream, '=');
}
