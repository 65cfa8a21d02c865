#include "gpu_replay/software/soft_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "gpu_replay/software/soft_state.h"

#define MAGIC 0x3173647261636766u /* "fgcards1" */
#define NO_RANK (-1)

/* One process. Only itself writes its bytes; a slot is taken and freed under the lock. */
typedef struct slot {
    _Atomic int64_t process; /* 0: free */
    uint64_t started;        /* a number that is given to another process has another time */
    int64_t rank;
    _Atomic uint64_t bytes[FRAG_SOFT_DEVICES_MAX];
} slot;

/* The nvidia-smi of dry runs reads it too. */
typedef struct table {
    uint64_t magic; /* 0: a new file */
    uint64_t bytes_max[FRAG_SOFT_DEVICES_MAX];
    uint32_t sharers_max[FRAG_SOFT_DEVICES_MAX];
    slot slots[FRAG_SOFT_PROCESSES_MAX];
} table;

/* Who held what when a request was refused. */
typedef struct refusal {
    uint64_t others_bytes;
    char text[1024];
} refusal;

static struct {
    table *table; /* NULL: not opened */
    slot *own;
    int file;
    bool is_off; /* it cannot be opened */
    refusal last[FRAG_SOFT_DEVICES_MAX];
    refusal *latest;
} shared = {.file = -1};

/* ---- whether a process lives */

typedef struct life {
    bool is_there;
    uint64_t started; /* ticks since the machine began */
} life;

/* A process that has ended and was not waited for has given its memory back; one whose first
 * thread alone has ended has not. */
static life look_at(int64_t process)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", process);
    FILE *stream = fopen(path, "r");
    size_t length = stream != NULL ? fread(text, 1, sizeof text - 1, stream) : 0;
    text[length] = '\0';
    if (stream != NULL)
        fclose(stream);
    char *name_end = strrchr(text, ')');
    if (name_end == NULL)
        return (life){.is_there = false};
    enum { THREADS = 17, STARTED = 19 }; /* how many fields after the state */
    char state = name_end[1] != '\0' ? name_end[2] : '\0';
    uint64_t fields[STARTED + 1] = {0};
    char *rest = NULL;
    char *field = strtok_r(name_end + 1, " ", &rest);
    for (int i = 0; i <= STARTED && field != NULL; i++, field = strtok_r(NULL, " ", &rest))
        fields[i] = strtoull(field, NULL, 10);
    bool has_ended = (state == 'Z' || state == 'X') && fields[THREADS] <= 1;
    return (life){.is_there = field != NULL && !has_ended, .started = fields[STARTED]};
}

static bool is_alive(const slot *of)
{
    life found = look_at(of->process);
    return found.is_there && found.started == of->started;
}

/* ---- the file */

static void turn_off(const char *path)
{
    fprintf(stderr, "software CUDA: cards=%s: %s; memory of other processes is not seen\n", path,
            strerror(errno));
    shared.is_off = true;
    if (shared.file >= 0)
        close(shared.file);
    shared.file = -1;
}

static table *map(int file)
{
    off_t bytes = lseek(file, 0, SEEK_END);
    if (bytes < 0 || (bytes < (off_t)sizeof(table) && ftruncate(file, sizeof(table)) != 0))
        return NULL;
    table *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (mapped->magic != 0 && mapped->magic != MAGIC) {
        munmap(mapped, sizeof *mapped);
        errno = EINVAL;
        return NULL;
    }
    mapped->magic = MAGIC;
    return mapped;
}

/* A slot of a process that is gone, or of this one before it became another program, is as good as
 * a free one. */
static slot *take_slot(void)
{
    int64_t process = getpid();
    slot *taken = NULL;
    for (size_t i = 0; i < FRAG_SOFT_PROCESSES_MAX; i++) {
        slot *of = &shared.table->slots[i];
        if (of->process == process)
            return of;
        if (taken == NULL && (of->process == 0 || !is_alive(of)))
            taken = of;
    }
    return taken;
}

static bool enter(void)
{
    const char *rank = getenv("RANK");
    slot *own = take_slot();
    if (own == NULL) {
        errno = EUSERS;
        return false;
    }
    for (size_t card = 0; card < FRAG_SOFT_DEVICES_MAX; card++)
        own->bytes[card] = 0;
    own->started = look_at(getpid()).started;
    own->rank = rank != NULL && rank[0] != '\0' ? strtoll(rank, NULL, 10) : NO_RANK;
    own->process = getpid();
    shared.own = own;
    return true;
}

static bool open_table(void)
{
    const char *path = frag_soft.settings.cards_path;
    if (shared.own != NULL || shared.is_off || path[0] == '\0')
        return shared.own != NULL;
    shared.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (shared.file < 0 || flock(shared.file, LOCK_EX) != 0) {
        turn_off(path);
        return false;
    }
    shared.table = map(shared.file);
    bool ok = shared.table != NULL && enter();
    if (ok)
        flock(shared.file, LOCK_UN);
    else
        turn_off(path);
    return ok;
}

void frag_soft_processes_lock(void)
{
    if (open_table())
        flock(shared.file, LOCK_EX); /* the end of a process gives it back */
}

void frag_soft_processes_unlock(void)
{
    if (shared.own != NULL)
        flock(shared.file, LOCK_UN);
}

/* ---- what others hold */

uint32_t frag_soft_processes_list(uint32_t card, frag_soft_process found[FRAG_SOFT_PROCESSES_MAX])
{
    uint32_t count = 0;
    for (size_t i = 0; open_table() && i < FRAG_SOFT_PROCESSES_MAX; i++) {
        const slot *of = &shared.table->slots[i];
        uint64_t bytes = of->bytes[card];
        if (of != shared.own && of->process != 0 && bytes > 0 && is_alive(of))
            found[count++] = (frag_soft_process){of->process, bytes};
    }
    return count;
}

uint64_t frag_soft_processes_bytes(uint32_t card)
{
    frag_soft_process found[FRAG_SOFT_PROCESSES_MAX];
    uint64_t bytes = 0;
    uint32_t count = frag_soft_processes_list(card, found);
    for (uint32_t i = 0; i < count; i++)
        bytes += found[i].bytes;
    return bytes;
}

void frag_soft_processes_raise(uint32_t card, uint64_t bytes)
{
    if (!open_table())
        return;
    frag_soft_process found[FRAG_SOFT_PROCESSES_MAX];
    uint32_t count = frag_soft_processes_list(card, found);
    uint64_t all = bytes;
    for (uint32_t i = 0; i < count; i++)
        all += found[i].bytes;
    count += bytes > 0;
    shared.own->bytes[card] = bytes;
    if (all > shared.table->bytes_max[card])
        shared.table->bytes_max[card] = all;
    if (count > shared.table->sharers_max[card])
        shared.table->sharers_max[card] = count;
}

void frag_soft_processes_lower(uint32_t card, uint64_t bytes)
{
    if (shared.own != NULL)
        shared.own->bytes[card] = bytes;
}

void frag_soft_processes_peak(uint32_t card, uint64_t *bytes, uint32_t *count)
{
    bool is_open = open_table();
    *bytes = is_open ? shared.table->bytes_max[card] : 0;
    *count = is_open ? shared.table->sharers_max[card] : 0;
}

/* ---- requests that were refused */

static size_t add_holder(char *out, size_t room, const slot *of, uint64_t bytes, bool is_first)
{
    int length = snprintf(out, room, "%s", is_first ? "" : ", ");
    if (of->rank != NO_RANK)
        length += snprintf(out + length, room - (size_t)length,
                           "rank %" PRId64 " (process %" PRId64 ") %s", of->rank,
                           (int64_t)of->process, FRAG_BYTES(bytes));
    else
        length += snprintf(out + length, room - (size_t)length, "process %" PRId64 " %s",
                           (int64_t)of->process, FRAG_BYTES(bytes));
    return (size_t)length;
}

/* As many holders as a line has room for. */
void frag_soft_processes_refused(uint32_t card, uint64_t bytes)
{
    enum { HOLDER_MAX = 128 };
    if (!open_table())
        return;
    refusal *last = &shared.last[card];
    *last = (refusal){.others_bytes = 0};
    size_t used =
        (size_t)snprintf(last->text, sizeof last->text,
                         "GPU %" PRIu32 " had no %s left for process %" PRId64 "; it was held by ",
                         card, FRAG_BYTES(bytes), (int64_t)getpid());
    bool is_first = true;
    for (size_t i = 0; i < FRAG_SOFT_PROCESSES_MAX; i++) {
        const slot *of = &shared.table->slots[i];
        uint64_t held = of->bytes[card];
        if (of->process == 0 || held == 0 || (of != shared.own && !is_alive(of)))
            continue;
        if (sizeof last->text - used > HOLDER_MAX)
            used += add_holder(last->text + used, sizeof last->text - used, of, held, is_first);
        is_first = false;
        last->others_bytes += of != shared.own ? held : 0;
    }
    shared.latest = last;
}

uint64_t frag_soft_processes_at_refusal(uint32_t card)
{
    return shared.last[card].others_bytes;
}

bool frag_soft_processes_tell(char *out, size_t out_bytes)
{
    if (shared.latest == NULL || shared.latest->others_bytes == 0)
        return false;
    snprintf(out, out_bytes, "%s", shared.latest->text);
    shared.latest = NULL;
    return true;
}

/* ---- the end */

void frag_soft_processes_forget(void)
{
    if (shared.table != NULL)
        munmap(shared.table, sizeof *shared.table);
    if (shared.file >= 0)
        close(shared.file);
    memset(&shared, 0, sizeof shared);
    shared.file = -1;
}

void frag_soft_processes_stop(void)
{
    if (shared.own != NULL) {
        for (size_t card = 0; card < FRAG_SOFT_DEVICES_MAX; card++)
            shared.own->bytes[card] = 0;
        shared.own->process = 0;
    }
    frag_soft_processes_forget();
}
