#include "cli/machine/doctor_gpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/system/process.h"
#include "base/text.h"
#include "cli/machine/nvml.h"

#define NAME_WIDTH 12

#define BYTES_OR(bytes) ((bytes) == FRAG_UNLIMITED ? "unknown" : FRAG_BYTES(bytes))

/* "gpu 0", "gpu 0 mig 2" */
static const char *view_name(const frag_gpu_view *view, char name[40])
{
    if (view->instance == UINT32_MAX)
        snprintf(name, 40, "gpu %u", (unsigned)view->index);
    else
        snprintf(name, 40, "gpu %u mig %u", (unsigned)view->index, (unsigned)view->instance);
    return name;
}

/* ---- for people */

static void print_memory(const frag_gpu_view *view)
{
    if (view->total_bytes == FRAG_UNLIMITED) {
        printf("memory not reported%s\n", view->has_mig ? "; see its instances" : "");
        return;
    }
    printf("%s, ", BYTES_OR(view->total_bytes));
    printf("%s used, ", BYTES_OR(view->used_bytes));
    if (view->reserved_bytes != FRAG_UNLIMITED)
        printf("%s reserved by the driver, ", BYTES_OR(view->reserved_bytes));
    printf("%s free%s\n", BYTES_OR(view->free_bytes),
           view->reserved_bytes == FRAG_UNLIMITED ? " (used holds what the driver reserves)" : "");
}

static void print_process(const frag_gpu_process *process)
{
    char pid[16];
    snprintf(pid, sizeof pid, "  %u", (unsigned)process->pid);
    printf("%-*s %s  ", NAME_WIDTH, pid, BYTES_OR(process->bytes));
    if (process->name[0] == '\0')
        printf("not seen from here (another container, or it has ended)\n");
    else
        printf("%s, %s%s\n", process->name, process->is_mine ? "yours" : process->user,
               process->is_pytorch ? ", with PyTorch" : "");
}

static void print_sums(const frag_gpu_view *view)
{
    uint64_t unlisted = frag_gpu_unlisted_bytes(view);
    printf("%-*s %s with PyTorch, ", NAME_WIDTH, "  in all", FRAG_BYTES(view->pytorch_bytes));
    printf("%s in other programs, ", FRAG_BYTES(view->other_bytes));
    printf("%s not yours", FRAG_BYTES(view->not_mine_bytes));
    if (unlisted != FRAG_UNLIMITED)
        printf("; %s used by no process listed", FRAG_BYTES(unlisted));
    putchar('\n');
}

static void print_view(const frag_gpu_view *view)
{
    char name[40];
    printf("%-*s %s%s, ", NAME_WIDTH, view_name(view, name), view->name,
           view->has_mig ? " divided by MIG" : "");
    print_memory(view);
    for (size_t i = 0; i < view->process_count; i++)
        print_process(&view->processes[i]);
    if (view->process_count > 0)
        print_sums(view);
    else
        printf("%-*s %s\n", NAME_WIDTH, "  processes",
               view->has_processes ? "none" : "the driver does not list them");
}

void frag_doctor_gpus(void)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_nvml *nvml = frag_nvml_open(&error);
    frag_gpu_view *views = NULL;
    size_t count = 0;
    if (nvml == NULL || !frag_nvml_look(nvml, &views, &count, &error)) {
        printf("%-*s %s\n", NAME_WIDTH, "nvml", error.sentence);
        frag_nvml_close(nvml);
        return;
    }
    printf("%-*s driver %s", NAME_WIDTH, "nvml", frag_nvml_driver(nvml));
    int cuda = frag_nvml_cuda(nvml);
    if (cuda > 0)
        printf(", CUDA up to %d.%d", cuda / 1000, cuda % 1000 / 10);
    puts(count == 0 ? ", no GPU" : "");
    for (size_t i = 0; i < count; i++)
        print_view(&views[i]);
    frag_nvml_views_destroy(views, count);
    frag_nvml_close(nvml);
}

/* ---- for programs, and for watching */

static void time_text(char text[32])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void print_object(const frag_nvml *nvml, const frag_gpu_view *view, const char *now)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.gpu/1");
    frag_json_text(json, "time", now);
    frag_json_text(json, "driver", frag_nvml_driver(nvml));
    frag_json_number(json, "gpu", view->index);
    frag_json_number(json, "mig", view->instance == UINT32_MAX ? FRAG_UNLIMITED : view->instance);
    frag_json_text(json, "name", view->name);
    frag_json_number(json, "total_bytes", view->total_bytes);
    frag_json_number(json, "used_bytes", view->used_bytes);
    frag_json_number(json, "reserved_bytes", view->reserved_bytes);
    frag_json_number(json, "free_bytes", view->free_bytes);
    uint64_t none = FRAG_UNLIMITED;
    frag_json_number(json, "pytorch_bytes", view->has_processes ? view->pytorch_bytes : none);
    frag_json_number(json, "other_bytes", view->has_processes ? view->other_bytes : none);
    frag_json_number(json, "not_mine_bytes", view->has_processes ? view->not_mine_bytes : none);
    frag_json_number(json, "unlisted_bytes", frag_gpu_unlisted_bytes(view));
    if (!view->has_processes)
        frag_json_null(json, "processes");
    else
        frag_json_array(json, "processes");
    for (size_t i = 0; i < view->process_count; i++) {
        const frag_gpu_process *process = &view->processes[i];
        frag_json *item = frag_json_add(json, "processes");
        frag_json_number(item, "pid", process->pid);
        frag_json_number(item, "bytes", process->bytes);
        frag_json_text(item, "name", process->name[0] != '\0' ? process->name : NULL);
        frag_json_text(item, "user", process->user[0] != '\0' ? process->user : NULL);
        frag_json_flag(item, "is_mine", process->is_mine);
        frag_json_flag(item, "is_pytorch", process->is_pytorch);
    }
    frag_json_write(json, stdout, false);
}

static void print_row(const frag_gpu_view *view, const char *now)
{
    char name[40];
    printf("%s  %s  used %s", now, view_name(view, name), BYTES_OR(view->used_bytes));
    printf("  free %s", BYTES_OR(view->free_bytes));
    if (view->has_processes) {
        printf("  PyTorch %s", FRAG_BYTES(view->pytorch_bytes));
        printf("  others %s", FRAG_BYTES(view->other_bytes));
        printf("  not listed %s", BYTES_OR(frag_gpu_unlisted_bytes(view)));
        printf("  not yours %s", FRAG_BYTES(view->not_mine_bytes));
    }
    putchar('\n');
}

static bool look_once(frag_nvml *nvml, bool is_json, frag_error *error)
{
    frag_gpu_view *views = NULL;
    size_t count = 0;
    char now[32];
    if (!frag_nvml_look(nvml, &views, &count, error))
        return false;
    if (count == 0)
        return frag_fail(error, FRAG_E_SYSTEM, "the driver %s shows no GPU",
                         frag_nvml_driver(nvml));
    time_text(now);
    for (size_t i = 0; i < count; i++)
        if (is_json)
            print_object(nvml, &views[i], now);
        else
            print_row(&views[i], now);
    fflush(stdout);
    frag_nvml_views_destroy(views, count);
    return true;
}

int frag_doctor_gpu_objects(void)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_nvml *nvml = frag_nvml_open(&error);
    bool ok = nvml != NULL && look_once(nvml, true, &error);
    frag_nvml_close(nvml);
    return ok ? 0 : frag_report(&error);
}

/* Until the next multiple of the interval, so that slow answers do not add up; an interrupt ends
 * the wait. */
static void wait_until(const struct timespec *start, double seconds)
{
    struct timespec until = *start;
    double whole = (double)until.tv_nsec / 1e9 + seconds;
    until.tv_sec += (time_t)whole;
    until.tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9);
    frag_process_sleep_until(&until);
}

int frag_doctor_watch(double seconds, bool is_json)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_nvml *nvml = frag_nvml_open(&error);
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    bool ok = nvml != NULL;
    for (uint64_t round = 1; ok && !frag_is_interrupted() && !ferror(stdout); round++) {
        ok = look_once(nvml, is_json, &error);
        if (ok && !frag_is_interrupted())
            wait_until(&start, seconds * (double)round);
    }
    frag_nvml_close(nvml);
    return ok ? 0 : frag_report(&error);
}
