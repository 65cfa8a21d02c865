/* The core of the software CUDA device: start and exit, fork, the log of calls, injected failures,
 * and the report of leaks. */
#include "gpu_replay/software/soft_processes.h"
#include "gpu_replay/software/soft_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_BUFFER_BYTES 65536
#define LOG_LINE_MAX 512
#define SETTINGS_VARIABLE "FRAGLAB_SOFTWARE_CUDA"

frag_soft_state frag_soft;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t thread_count;
static uint32_t epoch = 1; /* counts resets: what threads remember is of one epoch */

/* What a thread remembers. */
static _Thread_local struct {
    uint32_t number; /* from 1; 0: not seen yet */
    uint32_t epoch;
    uint32_t device;
} own;

static struct {
    int file;
    bool was_opened;
    bool is_off;
    size_t used;
    char bytes[LOG_BUFFER_BYTES];
} call_log = {.file = -1};

/* ---- the log, and the report at the end */

void frag_soft_expand_path(const char *path, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (const char *c = path; *c != '\0' && used + 24 < out_bytes; c++) {
        if (c[0] == '%' && c[1] == 'p') {
            used += (size_t)snprintf(out + used, out_bytes - used, "%ld", (long)getpid());
            c++;
        } else {
            out[used++] = *c;
        }
    }
    out[used] = '\0';
}

void frag_soft_write_all(int file, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(file, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        count -= (size_t)written;
    }
}

static void log_flush(void)
{
    if (call_log.file >= 0)
        frag_soft_write_all(call_log.file, call_log.bytes, call_log.used);
    call_log.used = 0;
}

static bool log_open(void)
{
    if (call_log.file >= 0)
        return true;
    if (call_log.is_off || frag_soft.settings.log_path[0] == '\0')
        return false;
    char path[FRAG_SOFT_PATH_MAX + 64];
    frag_soft_expand_path(frag_soft.settings.log_path, path, sizeof path);
    call_log.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    call_log.was_opened = true;
    if (call_log.file < 0) {
        fprintf(stderr, "software CUDA: cannot write the log '%s': %s\n", path, strerror(errno));
        call_log.is_off = true;
        return false;
    }
    return true;
}

static void log_close(void)
{
    log_flush();
    if (call_log.file >= 0)
        close(call_log.file);
    call_log.file = -1;
    call_log.is_off = false;
}

static void log_call(const frag_software_call *call)
{
    if (frag_soft.settings.log_path[0] == '\0' ||
        (frag_soft.settings.logs_memory_only && !call->is_memory) || !log_open())
        return;
    if (LOG_BUFFER_BYTES - call_log.used < LOG_LINE_MAX)
        log_flush();
    char *line = call_log.bytes + call_log.used;
    int length = snprintf(line, LOG_LINE_MAX, "%" PRIu64 " %" PRIu32 " %s", call->sequence,
                          call->thread, call->name);
    for (uint32_t i = 0; i < call->argument_count; i++) {
        const frag_software_argument *argument = &call->arguments[i];
        length += snprintf(line + length, LOG_LINE_MAX - (size_t)length,
                           argument->is_address ? " %s=0x%" PRIx64 : " %s=%" PRIu64, argument->name,
                           argument->value);
    }
    length +=
        snprintf(line + length, LOG_LINE_MAX - (size_t)length, " = %" PRId32 "\n", call->result);
    call_log.used += (size_t)length;
}

static void count_held(frag_software_held *held)
{
    memset(held, 0, sizeof *held);
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++) {
        const frag_soft_device *device = &frag_soft.devices[d];
        const frag_soft_arena *arenas[] = {&device->pages, &device->small};
        for (int a = 0; a < 2; a++) {
            for (size_t i = 0; i < arenas[a]->count; i++) {
                if (arenas[a]->ranges[i].tag != 0)
                    continue;
                held->malloc_count++;
                held->malloc_bytes += arenas[a]->ranges[i].asked_bytes;
            }
        }
    }
    for (uint32_t p = 0; p < frag_soft.pool_handles.count; p++) {
        const frag_soft_pool *pool = &frag_soft.pools[p];
        for (size_t i = 0; i < pool->block_count; i++) {
            if (pool->blocks[i].is_free)
                continue;
            held->pool_count++;
            held->pool_bytes += pool->blocks[i].asked_bytes;
        }
        held->created_pool_count += frag_soft.pool_handles.slots[p].is_live && !pool->is_default;
    }
    for (uint32_t m = 0; m < frag_soft.memory_handles.count; m++) {
        if (frag_soft.memories[m].bytes == 0)
            continue;
        held->handle_count++;
        held->handle_bytes += frag_soft.memories[m].bytes;
    }
    for (size_t i = 0; i < frag_soft.mapping_count; i++)
        held->mapping_bytes += frag_soft.mappings[i].bytes;
    held->mapping_count = frag_soft.mapping_count;
    for (size_t i = 0; i < frag_soft.reservations.count; i++)
        held->reservation_bytes += frag_soft.reservations.ranges[i].asked_bytes;
    held->reservation_count = frag_soft.reservations.count;
    held->stream_count = frag_soft.stream_handles.live_count;
    held->event_count = frag_soft.event_handles.live_count;
    for (size_t i = 0; i < frag_soft.host_count; i++)
        held->host_bytes += frag_soft.hosts[i].bytes;
    held->host_count = frag_soft.host_count;
}

static void report_leaks(void)
{
    if (frag_soft.settings.leaks_path[0] == '\0' || frag_soft.is_broken)
        return;
    frag_software_held held;
    count_held(&held);
    const struct {
        const char *kind;
        uint64_t count;
        uint64_t bytes;
    } rows[] = {
        {"malloc", held.malloc_count, held.malloc_bytes},
        {"pool-allocation", held.pool_count, held.pool_bytes},
        {"handle", held.handle_count, held.handle_bytes},
        {"mapping", held.mapping_count, held.mapping_bytes},
        {"reservation", held.reservation_count, held.reservation_bytes},
        {"host", held.host_count, held.host_bytes},
        {"pool", held.created_pool_count, 0},
        {"stream", held.stream_count, 0},
        {"event", held.event_count, 0},
    };
    char text[1024];
    size_t used = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "held: %s count=%" PRIu64 " bytes=%" PRIu64 "\n", rows[i].kind,
                                     rows[i].count, rows[i].bytes);
    if (used == 0)
        used = (size_t)snprintf(text, sizeof text, "held: nothing\n");
    if (strcmp(frag_soft.settings.leaks_path, "stderr") == 0) {
        frag_soft_write_all(STDERR_FILENO, text, used);
        return;
    }
    char path[FRAG_SOFT_PATH_MAX + 64];
    frag_soft_expand_path(frag_soft.settings.leaks_path, path, sizeof path);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        fprintf(stderr, "software CUDA: cannot write '%s': %s\n", path, strerror(errno));
        return;
    }
    frag_soft_write_all(file, text, used);
    close(file);
}

/* After every destructor of what uses this library. A thread that still runs may hold the lock for
 * ever, so it is not waited for. */
__attribute__((destructor)) static void at_end(void)
{
    bool is_mine = pthread_mutex_trylock(&lock) == 0;
    log_flush();
    frag_soft_report_flush();
    if (frag_soft.is_started)
        report_leaks();
    if (is_mine) {
        frag_soft_processes_stop();
        pthread_mutex_unlock(&lock);
    }
}

/* ---- fork: as the real driver, whose contexts do not survive it */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    log_flush();
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    /* The log belongs to the parent, unless its name tells processes apart. */
    if (call_log.was_opened && strstr(frag_soft.settings.log_path, "%p") == NULL)
        call_log.is_off = true;
    if (call_log.file >= 0)
        close(call_log.file);
    call_log.file = -1;
    call_log.used = 0;
    frag_soft_processes_forget();
    frag_soft_report_stop(); /* what was noted so far is the parent's to write */
    frag_soft.observer = NULL;
    frag_soft.scalar_handler = NULL;
    if (frag_soft.is_used)
        frag_soft.is_broken = true;
    pthread_mutex_unlock(&lock);
}

/* ---- starting */

static void start_parts(void)
{
    epoch++;
    frag_soft.chance_state = frag_soft.settings.chance.seed;
    frag_soft_cards_start();
    frag_soft_memory_start();
    frag_soft_vmm_start();
    frag_soft_streams_start();
    frag_soft_pools_start();
}

static void stop_parts(void)
{
    frag_soft_processes_stop();
    frag_soft_report_stop();
    frag_soft_shadow_stop();
    frag_soft_ipc_stop();
    frag_soft_hosts_stop();
    frag_soft_pools_stop();
    frag_soft_streams_stop();
    frag_soft_vmm_stop();
    frag_soft_memory_stop();
}

static bool start(const char *list, frag_error *error)
{
    frag_soft_settings_default(&frag_soft.settings);
    frag_soft.is_broken =
        list != NULL && !frag_soft_settings_apply(&frag_soft.settings, list, false, error);
    frag_soft.is_started = true;
    frag_soft_cards_choose(NULL);
    start_parts();
    return !frag_soft.is_broken;
}

static void start_once(void)
{
    if (frag_soft.is_started)
        return;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    frag_error error = {0};
    if (!start(getenv(SETTINGS_VARIABLE), &error)) {
        char text[1024];
        frag_error_text(&error, text, sizeof text);
        fprintf(stderr, "software CUDA: " SETTINGS_VARIABLE ": %s\n", text);
    }
}

/* ---- calls */

uint32_t frag_soft_device_current(void)
{
    return own.epoch == epoch ? own.device : 0;
}

int32_t frag_soft_device_choose(int64_t device)
{
    if (device < 0 || device >= (int64_t)frag_soft.settings.device_count)
        return FRAG_CUDA_INVALID_DEVICE;
    own.epoch = epoch;
    own.device = (uint32_t)device;
    return FRAG_CUDA_OK;
}

static uint32_t thread_number(void)
{
    if (own.number == 0)
        own.number = ++thread_count;
    return own.number - 1;
}

/* A draw from a linear congruential sequence: Knuth's MMIX multiplier, the high bits. */
static bool chance_strikes(const frag_soft_chance *chance)
{
    frag_soft.chance_state = frag_soft.chance_state * 6364136223846793005u + 1442695040888963407u;
    return (frag_soft.chance_state >> 33) % chance->one_in == 0;
}

static int32_t injected_code(frag_soft_call_id id)
{
    const frag_soft_settings *settings = &frag_soft.settings;
    bool is_query = frag_soft_call_about(id) == FRAG_ABOUT_QUERY;
    if (settings->sticky_from != 0 && frag_soft.sequence >= settings->sticky_from && !is_query)
        return settings->sticky_code;
    uint64_t number = frag_soft.call_counts[id];
    for (uint32_t i = 0; i < settings->fault_count; i++) {
        const frag_soft_fault *fault = &settings->faults[i];
        if (fault->call == id && number >= fault->first && number - fault->first < fault->count)
            return fault->code;
    }
    if (settings->chance.one_in != 0 && settings->chance.call == id &&
        chance_strikes(&settings->chance))
        return settings->chance.code;
    return FRAG_CUDA_OK;
}

/* What every call meets before its own work. */
static int32_t state_code(bool is_query)
{
    if (frag_soft.is_broken)
        return FRAG_CUDA_NOT_INITIALIZED;
    if (is_query)
        return FRAG_CUDA_OK;
    if (frag_soft.settings.driver_version == 0)
        return FRAG_CUDA_INSUFFICIENT_DRIVER;
    if (frag_soft.settings.device_count == 0)
        return FRAG_CUDA_NO_DEVICE;
    return FRAG_CUDA_OK;
}

/* At the first call of CUDA, so that a program may set the variable until then. */
static void choose_cards(void)
{
    if (frag_soft.sequence > 0)
        return;
    frag_soft_cards_choose(getenv("CUDA_VISIBLE_DEVICES"));
    frag_soft_cards_start();
}

bool frag_soft_begin(frag_soft_call *call, frag_soft_call_id id)
{
    pthread_mutex_lock(&lock);
    start_once();
    choose_cards();
    frag_soft_about about = frag_soft_call_about(id);
    frag_soft.sequence++;
    frag_soft.call_counts[id]++;
    if (frag_soft.settings.lag_counts_calls)
        frag_soft.clock++;
    call->id = id;
    call->seen = (frag_software_call){
        .sequence = frag_soft.sequence,
        .thread = thread_number(),
        .name = frag_soft_call_name(id),
        .is_memory = about == FRAG_ABOUT_MEMORY,
    };
    int32_t code = state_code(about == FRAG_ABOUT_QUERY);
    if (code == FRAG_CUDA_OK && about != FRAG_ABOUT_QUERY) {
        frag_soft.is_used = true;
        if (id != FRAG_CALL_cudaSetDevice && id != FRAG_CALL_cudaInitDevice)
            frag_soft_device_touch(frag_soft_device_current());
    }
    if (code == FRAG_CUDA_OK)
        code = injected_code(id);
    call->seen.result = code;
    return code == FRAG_CUDA_OK;
}

int32_t frag_soft_end(frag_soft_call *call)
{
    int32_t result = call->seen.result;
    if (result != FRAG_CUDA_OK)
        frag_soft.failure_counts[call->id]++;
    log_call(&call->seen);
    if (frag_soft.observer != NULL)
        frag_soft.observer(&call->seen, frag_soft.observer_context);
    pthread_mutex_unlock(&lock);
    return result;
}

bool frag_soft_enter(int32_t *result)
{
    pthread_mutex_lock(&lock);
    start_once();
    *result = state_code(false);
    return *result == FRAG_CUDA_OK;
}

void frag_soft_leave(void)
{
    pthread_mutex_unlock(&lock);
}

static void note(frag_soft_call *call, const char *name, uint64_t value, bool is_address)
{
    FRAG_ASSERT(call->seen.argument_count < FRAG_SOFTWARE_ARGUMENTS_MAX);
    call->seen.arguments[call->seen.argument_count++] = (frag_software_argument){
        .name = name,
        .value = value,
        .is_address = is_address,
    };
}

void frag_soft_note(frag_soft_call *call, const char *name, uint64_t value)
{
    note(call, name, value, false);
}

void frag_soft_note_address(frag_soft_call *call, const char *name, uint64_t value)
{
    note(call, name, value, true);
}

void frag_soft_fail(frag_soft_call *call, int32_t code)
{
    call->seen.result = code;
}

/* ---- the control interface */

static bool tell(const frag_error *error, char *sentence, size_t sentence_bytes)
{
    if (sentence != NULL && sentence_bytes > 0)
        frag_error_text(error, sentence, sentence_bytes);
    return false;
}

bool frag_software_reset(const char *settings, char *sentence, size_t sentence_bytes)
{
    pthread_mutex_lock(&lock);
    start_once();
    log_close();
    stop_parts();
    frag_software_observer *observer = frag_soft.observer;
    void *context = frag_soft.observer_context;
    memset(&frag_soft, 0, sizeof frag_soft);
    frag_soft.observer = observer;
    frag_soft.observer_context = context;
    frag_error error = {0};
    bool is_right = start(settings != NULL ? settings : getenv(SETTINGS_VARIABLE), &error);
    pthread_mutex_unlock(&lock);
    return is_right || tell(&error, sentence, sentence_bytes);
}

bool frag_software_set(const char *settings, char *sentence, size_t sentence_bytes)
{
    pthread_mutex_lock(&lock);
    start_once();
    frag_error error = {0};
    uint64_t seed = frag_soft.settings.chance.seed;
    bool is_right = frag_soft_settings_apply(&frag_soft.settings, settings, true, &error);
    frag_soft_cards_start();
    if (is_right && frag_soft.settings.chance.seed != seed)
        frag_soft.chance_state = frag_soft.settings.chance.seed;
    pthread_mutex_unlock(&lock);
    return is_right || tell(&error, sentence, sentence_bytes);
}

void frag_software_complete(uint64_t stream)
{
    pthread_mutex_lock(&lock);
    start_once();
    for (uint32_t i = 0; i < frag_soft.stream_count; i++)
        if (stream == UINT64_MAX || frag_soft.streams[i].handle == stream)
            frag_soft_stream_complete(i, frag_soft.streams[i].position);
    pthread_mutex_unlock(&lock);
}

void frag_software_set_capturing(int status)
{
    pthread_mutex_lock(&lock);
    start_once();
    frag_soft.capturing = status;
    pthread_mutex_unlock(&lock);
}

static uint64_t count_of(const char *name, const uint64_t *counts)
{
    frag_soft_call_id id = 0;
    if (!frag_soft_call_find(name, &id))
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t count = counts[id];
    pthread_mutex_unlock(&lock);
    return count;
}

uint64_t frag_software_call_count(const char *name)
{
    return count_of(name, frag_soft.call_counts);
}

uint64_t frag_software_failure_count(const char *name)
{
    return count_of(name, frag_soft.failure_counts);
}

uint64_t frag_software_sequence(void)
{
    pthread_mutex_lock(&lock);
    uint64_t sequence = frag_soft.sequence;
    pthread_mutex_unlock(&lock);
    return sequence;
}

void frag_software_get_held(frag_software_held *held)
{
    pthread_mutex_lock(&lock);
    start_once();
    count_held(held);
    pthread_mutex_unlock(&lock);
}

static uint64_t others_bytes(uint32_t device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < frag_soft.settings.others_count; i++) {
        const frag_soft_others *others = &frag_soft.settings.others[i];
        if (others->from <= frag_soft.sequence &&
            (others->device == FRAG_SOFT_DEVICE_ALL || others->device == frag_soft.card_of[device]))
            bytes = others->bytes;
    }
    return bytes;
}

bool frag_software_get_usage(int device, frag_software_usage *usage)
{
    pthread_mutex_lock(&lock);
    start_once();
    bool is_there = device >= 0 && device < (int)frag_soft.settings.device_count;
    if (is_there) {
        uint32_t card = frag_soft.card_of[device];
        *usage = (frag_software_usage){
            .capacity_bytes = frag_soft.settings.capacity_bytes[device],
            .used_bytes = frag_soft.devices[device].used_bytes,
            .used_bytes_max = frag_soft.devices[device].used_bytes_max,
            .others_bytes = others_bytes((uint32_t)device) + frag_soft_processes_bytes(card),
            .refused_others_bytes = frag_soft_processes_at_refusal(card),
            .card = card,
        };
        frag_soft_processes_peak(card, &usage->card_bytes_max, &usage->process_count_max);
    }
    pthread_mutex_unlock(&lock);
    return is_there;
}

uint64_t frag_soft_free_bytes(uint32_t device)
{
    uint64_t capacity = frag_soft.settings.capacity_bytes[device];
    uint64_t used = frag_soft.devices[device].used_bytes;
    uint64_t others = others_bytes(device) + frag_soft_processes_bytes(frag_soft.card_of[device]);
    return used >= capacity || others >= capacity - used ? 0 : capacity - used - others;
}

void frag_software_flush(void)
{
    pthread_mutex_lock(&lock);
    log_flush();
    frag_soft_report_flush();
    pthread_mutex_unlock(&lock);
}

void frag_software_observe(frag_software_observer *observer, void *context)
{
    pthread_mutex_lock(&lock);
    frag_soft.observer = observer;
    frag_soft.observer_context = context;
    pthread_mutex_unlock(&lock);
}
