/* The memory that the ranks of a communicator share. */
#include "gpu_replay/software/libraries/nccl/nccl_types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char magic[8] = "fragnccl";

typedef struct frag_nccl_pair {
    _Atomic uint64_t taken;
    unsigned char padding[56];
    frag_nccl_slot slots[FRAG_NCCL_SLOTS];
} frag_nccl_pair;

static size_t rings_offset(int rank_count)
{
    size_t bytes = sizeof(frag_nccl_region) + (size_t)rank_count * sizeof(frag_nccl_member) + 63;
    return bytes / 64 * 64;
}

static size_t pairs_offset(int rank_count)
{
    return rings_offset(rank_count) + (size_t)rank_count * FRAG_NCCL_SLOTS * sizeof(frag_nccl_slot);
}

static size_t region_bytes(int rank_count)
{
    return pairs_offset(rank_count) +
           (size_t)rank_count * (size_t)rank_count * sizeof(frag_nccl_pair);
}

static unsigned char *at(const frag_nccl_communicator *communicator, size_t offset)
{
    return (unsigned char *)communicator->region + offset;
}

frag_nccl_slot *frag_nccl_ring(const frag_nccl_communicator *communicator, int rank,
                               uint64_t sequence)
{
    frag_nccl_slot *slots =
        (frag_nccl_slot *)(void *)at(communicator, rings_offset(communicator->rank_count));
    return &slots[(size_t)rank * FRAG_NCCL_SLOTS + sequence % FRAG_NCCL_SLOTS];
}

static frag_nccl_pair *get_pair(const frag_nccl_communicator *communicator, int from, int to)
{
    frag_nccl_pair *pairs =
        (frag_nccl_pair *)(void *)at(communicator, pairs_offset(communicator->rank_count));
    return &pairs[(size_t)from * (size_t)communicator->rank_count + (size_t)to];
}

frag_nccl_slot *frag_nccl_mailbox(const frag_nccl_communicator *communicator, int from, int to,
                                  uint64_t sequence)
{
    return &get_pair(communicator, from, to)->slots[sequence % FRAG_NCCL_SLOTS];
}

_Atomic uint64_t *frag_nccl_taken(const frag_nccl_communicator *communicator, int from, int to)
{
    return &get_pair(communicator, from, to)->taken;
}

bool frag_nccl_make_id(frag_nccl_id *id)
{
    frag_nccl_place place = {.process = getpid()};
    memset(id, 0, sizeof *id);
    memcpy(place.magic, magic, sizeof magic);
    /* By their numbers: glibc has them as functions only since 2.25 and 2.27. */
    place.file = (int)syscall(SYS_memfd_create, "fraglab-nccl", MFD_CLOEXEC);
    if (place.file < 0 ||
        syscall(SYS_getrandom, &place.nonce, sizeof place.nonce, 0) != (long)sizeof place.nonce ||
        pwrite(place.file, &place.nonce, sizeof place.nonce, 0) != (ssize_t)sizeof place.nonce)
        return false;
    memcpy(id->bytes, &place, sizeof place);
    return true;
}

/* A file of the region; -1: it cannot be reached from here. */
static int open_region(const frag_nccl_place *place)
{
    char path[64];
    if (memcmp(place->magic, magic, sizeof magic) != 0)
        return -1;
    if (place->process == getpid())
        return fcntl(place->file, F_DUPFD_CLOEXEC, 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", place->process, place->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool map_region(frag_nccl_communicator *communicator, const frag_nccl_place *place, int file)
{
    size_t bytes = region_bytes(communicator->rank_count);
    uint64_t nonce = 0;
    struct stat status;
    if (pread(file, &nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce || nonce != place->nonce ||
        fstat(file, &status) != 0 ||
        ((size_t)status.st_size < bytes && ftruncate(file, (off_t)bytes) != 0))
        return false;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        return false;
    communicator->region = map;
    return true;
}

static bool make_counts(frag_nccl_communicator *communicator)
{
    size_t count = (size_t)communicator->rank_count;
    communicator->process_files = malloc(count * sizeof *communicator->process_files);
    communicator->sent_counts = calloc(count, sizeof *communicator->sent_counts);
    communicator->received_counts = calloc(count, sizeof *communicator->received_counts);
    if (communicator->process_files == NULL || communicator->sent_counts == NULL ||
        communicator->received_counts == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        communicator->process_files[i] = -1;
    return true;
}

frag_nccl_result frag_nccl_join(frag_nccl_communicator *communicator)
{
    frag_nccl_place place;
    memcpy(&place, communicator->id.bytes, sizeof place);
    if (!make_counts(communicator)) {
        snprintf(communicator->message, sizeof communicator->message, "out of host memory");
        return FRAG_NCCL_SYSTEM_ERROR;
    }
    int file = open_region(&place);
    bool is_mapped = file >= 0 && map_region(communicator, &place, file);
    if (file >= 0)
        close(file);
    if (!is_mapped) {
        snprintf(communicator->message, sizeof communicator->message,
                 "cannot reach the communicator of process %d: all ranks of a dry run must run on "
                 "one machine, as one user",
                 place.process);
        return FRAG_NCCL_SYSTEM_ERROR;
    }
    frag_nccl_member *member = &communicator->region->members[communicator->rank];
    member->process = getpid();
    if (atomic_exchange(&member->state, FRAG_NCCL_JOINED) != FRAG_NCCL_ABSENT) {
        snprintf(communicator->message, sizeof communicator->message,
                 "rank %d of %d is there twice", communicator->rank, communicator->rank_count);
        return FRAG_NCCL_INVALID_USAGE;
    }
    return FRAG_NCCL_SUCCESS;
}

bool frag_nccl_all_joined(const frag_nccl_communicator *communicator)
{
    for (int i = 0; i < communicator->rank_count; i++)
        if (atomic_load(&communicator->region->members[i].state) == FRAG_NCCL_ABSENT)
            return false;
    return true;
}

void frag_nccl_leave(frag_nccl_communicator *communicator)
{
    if (communicator->region == NULL)
        return;
    atomic_store(&communicator->region->members[communicator->rank].state, FRAG_NCCL_LEFT);
    for (int i = 0; i < communicator->rank_count; i++)
        if (communicator->process_files[i] >= 0)
            close(communicator->process_files[i]);
    frag_nccl_region *region = communicator->region;
    communicator->region = NULL;
    munmap(region, region_bytes(communicator->rank_count));
    free(communicator->process_files);
    free(communicator->sent_counts);
    free(communicator->received_counts);
}

/* Also of a process that nobody has waited for yet, where the kernel can tell. */
static bool has_process_ended(frag_nccl_communicator *communicator, int rank)
{
    int32_t process = communicator->region->members[rank].process;
    if (process == getpid())
        return false;
    if (communicator->process_files[rank] < 0)
        communicator->process_files[rank] = (int)syscall(SYS_pidfd_open, process, 0);
    if (communicator->process_files[rank] < 0)
        return kill(process, 0) != 0 && errno == ESRCH;
    struct pollfd ended = {.fd = communicator->process_files[rank], .events = POLLIN};
    return poll(&ended, 1, 0) > 0;
}

bool frag_nccl_has_ended(frag_nccl_communicator *communicator, int rank)
{
    int state = atomic_load(&communicator->region->members[rank].state);
    return state == FRAG_NCCL_LEFT ||
           (state == FRAG_NCCL_JOINED && has_process_ended(communicator, rank));
}

static double seconds_of(const char *variable, double usual)
{
    const char *text = getenv(variable);
    char *end = NULL;
    double seconds = text != NULL ? strtod(text, &end) : 0;
    return text != NULL && end != text && *end == '\0' && seconds > 0 ? seconds : usual;
}

double frag_nccl_timeout_seconds(void)
{
    return seconds_of("FRAGLAB_SOFTWARE_NCCL_TIMEOUT", 300);
}

double frag_nccl_notice_seconds(void)
{
    return seconds_of("FRAGLAB_SOFTWARE_NCCL_NOTICE", 10);
}
