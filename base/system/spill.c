#include "base/system/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/system/pages.h"

/* Smaller arrays are left to the C library; no mapping of its own begins at a whole page. */
#define LARGE_BYTES ((size_t)4 << 20)
#define PAGE_BYTES ((size_t)4096)
#define NO_FILE (-1)
#define TEMPLATE "/fraglab-XXXXXX"

typedef struct block {
    unsigned char *start;
    size_t bytes;
    int file; /* NO_FILE: in memory */
} block;

/* Of the process, as memory is. */
static struct {
    bool is_on;
    char *folder;
    uint64_t limit_bytes;
    uint64_t memory_bytes;
    uint64_t file_bytes;
    pthread_mutex_t lock;
    block *blocks;
    size_t count;
    size_t capacity;
} spill = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A file without a name, of no bytes; NO_FILE: errno says why. */
static int make_file(const char *folder)
{
    char *path = malloc(strlen(folder) + sizeof TEMPLATE);
    if (path == NULL)
        return NO_FILE;
    strcpy(path, folder);
    strcat(path, TEMPLATE);
    int file = mkstemp(path);
    if (file >= 0) {
        (void)unlink(path);
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    }
    free(path);
    return file;
}

bool frag_spill_begin(uint64_t limit_bytes, const char *folder, frag_error *error)
{
    const char *usual = getenv("TMPDIR");
    if (folder == NULL)
        folder = usual != NULL && usual[0] != '\0' ? usual : "/var/tmp";
    char *copy = strdup(folder);
    int file = copy != NULL ? make_file(copy) : NO_FILE;
    if (file == NO_FILE) {
        frag_fail(
            error, FRAG_E_SYSTEM,
            "no temporary file can be made in %s (%s); large arrays that do not fit in memory "
            "need a folder on a disk",
            folder, strerror(errno));
        free(copy);
        return false;
    }
    close(file);
    pthread_mutex_lock(&spill.lock);
    free(spill.folder);
    spill.folder = copy;
    spill.limit_bytes = limit_bytes;
    spill.is_on = true;
    pthread_mutex_unlock(&spill.lock);
    return true;
}

static block *find(const void *memory)
{
    for (size_t i = 0; i < spill.count; i++)
        if (spill.blocks[i].start == memory)
            return &spill.blocks[i];
    return NULL;
}

/* Without a look at the list: most memory is none. */
static bool may_be_array(const void *memory)
{
    return spill.is_on && memory != NULL && (uintptr_t)memory % PAGE_BYTES == 0;
}

bool frag_spill_concerns(const void *memory, size_t bytes)
{
    if (spill.is_on && bytes >= LARGE_BYTES)
        return true;
    if (!may_be_array(memory))
        return false;
    pthread_mutex_lock(&spill.lock);
    bool is_one = find(memory) != NULL;
    pthread_mutex_unlock(&spill.lock);
    return is_one;
}

static void add_bytes(const block *one, bool is_added)
{
    uint64_t *sum = one->file == NO_FILE ? &spill.memory_bytes : &spill.file_bytes;
    *sum = is_added ? *sum + one->bytes : *sum - one->bytes;
}

/* Maps so many bytes, in memory where they may be there, else in a file; false: neither. A file has
 * all its room on the disk at once, so that a full disk is an error here and no signal later. */
static bool map(block *made, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    *made = (block){.bytes = bytes, .file = NO_FILE};
    if (spill.memory_bytes + bytes > spill.limit_bytes) {
        made->file = make_file(spill.folder);
        if (made->file == NO_FILE)
            return false;
        if (frag_pages_take_room(made->file, bytes) != 0) {
            close(made->file);
            return false;
        }
        flags = MAP_SHARED;
    }
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, made->file, 0);
    if (start == MAP_FAILED && made->file != NO_FILE)
        close(made->file);
    if (start == MAP_FAILED)
        return false;
    made->start = start;
    add_bytes(made, true);
    return true;
}

static void unmap(block *one)
{
    munmap(one->start, one->bytes);
    if (one->file != NO_FILE)
        close(one->file);
    add_bytes(one, false);
}

/* The array of a file is not copied: the file grows, and is mapped anew. */
static bool grow_file(block *one, size_t bytes)
{
    if (frag_pages_take_room(one->file, bytes) != 0)
        return false;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, one->file, 0);
    if (start == MAP_FAILED)
        return false;
    munmap(one->start, one->bytes);
    add_bytes(one, false);
    one->start = start;
    one->bytes = bytes;
    add_bytes(one, true);
    return true;
}

/* Room for one more block; NULL: out of memory. */
static block *append(void)
{
    if (spill.count == spill.capacity) {
        size_t capacity = spill.capacity == 0 ? 64 : 2 * spill.capacity;
        block *blocks = realloc(spill.blocks, capacity * sizeof *blocks);
        if (blocks == NULL)
            return NULL;
        spill.blocks = blocks;
        spill.capacity = capacity;
    }
    return &spill.blocks[spill.count];
}

/* Memory of the C library, whose size it does not say, becomes one of the arrays. */
static block *take_over(void *memory, size_t bytes)
{
    unsigned char *old = memory == NULL ? NULL : realloc(memory, LARGE_BYTES);
    block *made = append();
    if ((memory != NULL && old == NULL) || made == NULL || !map(made, bytes))
        return NULL;
    spill.count++;
    if (old != NULL)
        memcpy(made->start, old, LARGE_BYTES);
    free(old);
    return made;
}

static block *resize(block *one, size_t bytes)
{
    if (one->file != NO_FILE)
        return grow_file(one, bytes) ? one : NULL;
    block made;
    if (!map(&made, bytes))
        return NULL;
    memcpy(made.start, one->start, one->bytes < bytes ? one->bytes : bytes);
    unmap(one);
    *one = made;
    return one;
}

void *frag_spill_resize(void *memory, size_t bytes)
{
    size_t whole = (size_t)frag_round_up(bytes == 0 ? 1 : bytes, PAGE_BYTES);
    pthread_mutex_lock(&spill.lock);
    block *one = memory == NULL ? NULL : find(memory);
    if (one == NULL)
        one = take_over(memory, whole);
    else if (one->bytes != whole)
        one = resize(one, whole);
    void *start = one != NULL ? one->start : NULL;
    pthread_mutex_unlock(&spill.lock);
    return start;
}

void frag_spill_free(void *memory)
{
    block *one = NULL;
    if (may_be_array(memory)) {
        pthread_mutex_lock(&spill.lock);
        one = find(memory);
        if (one != NULL) {
            unmap(one);
            *one = spill.blocks[--spill.count];
        }
        pthread_mutex_unlock(&spill.lock);
    }
    if (one == NULL)
        free(memory);
}

const char *frag_spill_folder(void)
{
    return spill.is_on ? spill.folder : NULL;
}

uint64_t frag_spill_file_bytes(void)
{
    return spill.file_bytes;
}

uint64_t frag_spill_memory_bytes(void)
{
    return spill.memory_bytes;
}
