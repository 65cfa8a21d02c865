#include "gpu_replay/recorder/record_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(frag_device_record) == FRAG_DEVICE_LOG_RECORD_BYTES, "as documented");
_Static_assert(offsetof(frag_device_record, number) == 56, "as documented");
_Static_assert(sizeof(frag_device_log_header) == 80, "as documented");
_Static_assert(offsetof(frag_device_log_header, begun_count) == 64, "as documented");

/* Records are mapped a chunk at a time: a thousand calls or so for each system call, and at most
 * this much more on disk than was written. */
#define CHUNK_RECORDS 4096u
#define CHUNK_BYTES ((size_t)CHUNK_RECORDS * FRAG_DEVICE_LOG_RECORD_BYTES)
#define CHUNKS_MAX 65536u /* 2^28 calls, 16 GiB */

enum { LOG_CLOSED, LOG_OPEN, LOG_STOPPED };

/* A recorder lives in a program that knows nothing of it: there is nobody to hand it its state. */
static struct {
    uint32_t recorded_by;
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    pthread_mutex_t mutex; /* for opening and growing */
    atomic_int status;
    frag_device_log_header *header;
    _Atomic(unsigned char *) chunks[CHUNKS_MAX];
    uint64_t chunk_end; /* chunks from here on are not mapped */
    atomic_bool is_versioned;
} recorder = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local uint32_t thread_id;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t frag_record_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* The mutex is held. */
static void stop(const char *what, int code)
{
    fprintf(stderr, "fraglab: recording of process %d ends: %s %s (%s)\n", (int)getpid(), what,
            recorder.path[0] != '\0' ? recorder.path : recorder.folder, strerror(code));
    if (recorder.header != NULL)
        recorder.header->flags |= FRAG_DEVICE_LOG_STOPPED;
    atomic_store(&recorder.status, LOG_STOPPED);
}

/* Makes room in the file and maps it; the file is opened anew each time, as a program may close
 * any descriptor that it did not open. NULL with errno. */
static void *map_part(off_t offset, size_t bytes)
{
    /* Beyond this limit the kernel would end the program instead of answering. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)offset + bytes > limit.rlim_cur) {
        errno = EFBIG;
        return NULL;
    }
    int descriptor = open(recorder.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return NULL;
    /* With the room taken beforehand a full disk is an answer here and not a signal later. */
    int code = posix_fallocate(descriptor, offset, (off_t)bytes);
    void *part = MAP_FAILED;
    if (code == 0) {
        part = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor,
                    offset);
        code = part == MAP_FAILED ? errno : 0;
    }
    close(descriptor);
    errno = code;
    return part == MAP_FAILED ? NULL : part;
}

static void fill_command(char *command)
{
    int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    ssize_t length = read(descriptor, command, FRAG_DEVICE_LOG_COMMAND_BYTES - 1);
    close(descriptor);
    for (ssize_t i = 0; i + 1 < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
}

/* A program may become another one by exec and keep its number: each has a log of its own. */
static bool create_file(void)
{
    for (uint32_t i = 0; i < 10000; i++) {
        snprintf(recorder.path, sizeof recorder.path, "%s/%d-%u" FRAG_DEVICE_LOG_ENDING,
                 recorder.folder, (int)getpid(), i);
        int descriptor =
            open(recorder.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (descriptor >= 0) {
            close(descriptor);
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    return false;
}

/* The mutex is held. */
static void open_log(void)
{
    if (!create_file()) {
        stop("cannot make", errno);
        return;
    }
    frag_device_log_header *header = map_part(0, FRAG_DEVICE_LOG_HEADER_BYTES);
    if (header == NULL) {
        stop("cannot write", errno);
        unlink(recorder.path);
        return;
    }
    header->major = FRAG_DEVICE_LOG_MAJOR;
    header->header_bytes = FRAG_DEVICE_LOG_HEADER_BYTES;
    header->record_bytes = FRAG_DEVICE_LOG_RECORD_BYTES;
    header->pid = (uint32_t)getpid();
    header->parent_pid = (uint32_t)getppid();
    header->recorded_by = recorder.recorded_by;
    header->start_unix_ns = clock_ns(CLOCK_REALTIME);
    header->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    fill_command((char *)header + FRAG_DEVICE_LOG_COMMAND_OFFSET);
    /* Last, so that a log which has it has all of its header. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, FRAG_DEVICE_LOG_MAGIC, FRAG_DEVICE_LOG_MAGIC_BYTES);
    recorder.header = header;
    atomic_store(&recorder.status, LOG_OPEN);
}

static bool is_open(void)
{
    int status = atomic_load_explicit(&recorder.status, memory_order_acquire);
    if (status != LOG_CLOSED)
        return status == LOG_OPEN;
    int saved = errno;
    pthread_mutex_lock(&recorder.mutex);
    if (atomic_load(&recorder.status) == LOG_CLOSED && recorder.recorded_by != 0)
        open_log();
    pthread_mutex_unlock(&recorder.mutex);
    errno = saved;
    return atomic_load(&recorder.status) == LOG_OPEN;
}

/* The child shares the mapped pages of its parent, and must never write there. */
static void begin_anew_in_child(void)
{
    if (recorder.header != NULL)
        munmap(recorder.header, FRAG_DEVICE_LOG_HEADER_BYTES);
    for (uint64_t i = 0; i < recorder.chunk_end; i++) {
        unsigned char *chunk = atomic_load(&recorder.chunks[i]);
        if (chunk != NULL)
            munmap(chunk, CHUNK_BYTES);
        atomic_store(&recorder.chunks[i], NULL);
    }
    recorder.chunk_end = 0;
    atomic_store(&recorder.is_versioned, false);
    recorder.header = NULL;
    recorder.path[0] = '\0';
    thread_id = 0;
    pthread_mutex_init(&recorder.mutex, NULL);
    atomic_store(&recorder.status, LOG_CLOSED);
}

void frag_record_start(uint32_t recorded_by)
{
    const char *folder = getenv(FRAG_DEVICE_LOG_FOLDER_VARIABLE);
    if (folder == NULL || folder[0] == '\0')
        folder = ".";
    /* The program may change its folder before its first call. */
    if (realpath(folder, recorder.folder) == NULL)
        snprintf(recorder.folder, sizeof recorder.folder, "%s", folder);
    recorder.recorded_by = recorded_by;
    pthread_atfork(NULL, NULL, begin_anew_in_child);
}

void frag_record_end(bool has_driver)
{
    if (atomic_load(&recorder.status) == LOG_CLOSED && has_driver && is_open())
        recorder.header->flags |= FRAG_DEVICE_LOG_DRIVER_LOADED;
    if (atomic_load(&recorder.status) == LOG_OPEN)
        recorder.header->end_monotonic_ns = frag_record_now();
}

/* The chunk of a place, mapped by the first thread that reaches it. */
static unsigned char *grow(uint64_t chunk)
{
    int saved = errno;
    pthread_mutex_lock(&recorder.mutex);
    unsigned char *mapped = atomic_load(&recorder.chunks[chunk]);
    if (mapped == NULL && atomic_load(&recorder.status) == LOG_OPEN) {
        mapped = map_part((off_t)(FRAG_DEVICE_LOG_HEADER_BYTES + chunk * CHUNK_BYTES), CHUNK_BYTES);
        if (mapped == NULL)
            stop("cannot write", errno);
        recorder.chunk_end = chunk >= recorder.chunk_end ? chunk + 1 : recorder.chunk_end;
        atomic_store_explicit(&recorder.chunks[chunk], mapped, memory_order_release);
    }
    pthread_mutex_unlock(&recorder.mutex);
    errno = saved;
    return mapped;
}

uint64_t frag_record_claim(void)
{
    if (!is_open())
        return FRAG_RECORD_NONE;
    /* The count lies in the file itself, so that it too outlives the program. */
    _Atomic uint64_t *begun = (_Atomic uint64_t *)&recorder.header->begun_count;
    uint64_t place = atomic_fetch_add_explicit(begun, 1, memory_order_acq_rel);
    if (place / CHUNK_RECORDS < CHUNKS_MAX)
        return place;
    pthread_mutex_lock(&recorder.mutex);
    if (atomic_load(&recorder.status) == LOG_OPEN)
        stop("2^28 calls are the most that fit into", EFBIG);
    pthread_mutex_unlock(&recorder.mutex);
    return FRAG_RECORD_NONE;
}

void frag_record_write(uint64_t place, const frag_device_record *record)
{
    if (place == FRAG_RECORD_NONE)
        return;
    uint64_t chunk = place / CHUNK_RECORDS;
    unsigned char *mapped = atomic_load_explicit(&recorder.chunks[chunk], memory_order_acquire);
    if (mapped == NULL)
        mapped = grow(chunk);
    if (mapped == NULL)
        return;
    if (thread_id == 0)
        thread_id = (uint32_t)syscall(SYS_gettid);
    unsigned char *bytes = mapped + place % CHUNK_RECORDS * FRAG_DEVICE_LOG_RECORD_BYTES;
    frag_device_record *written = (frag_device_record *)(void *)bytes;
    *written = *record;
    written->thread = thread_id;
    atomic_store_explicit((_Atomic uint32_t *)&written->number, (uint32_t)(place + 1),
                          memory_order_release);
}

bool frag_record_wants_versions(void)
{
    return !atomic_load_explicit(&recorder.is_versioned, memory_order_relaxed) && is_open() &&
           !atomic_exchange(&recorder.is_versioned, true);
}

void frag_record_versions(uint32_t runtime_version, uint32_t driver_version)
{
    if (!is_open())
        return;
    recorder.header->runtime_version = runtime_version;
    recorder.header->driver_version = driver_version;
}
