#include "sim/image.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/system/pages.h"

/* A page in /proc/self/pagemap: 64 bits, two of which say that it is in memory or was swapped out
 * (Linux, Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_IS_WRITTEN ((uint64_t)3 << 62)
#define PAGES_AT_ONCE 4096u

/* Pages of an arena that were written, without a gap. */
typedef struct page_run {
    size_t start; /* bytes from the base of the arena */
    size_t bytes;
} page_run;

void frag_image_empty(frag_image *image)
{
    image->count = 0;
    image->at = 0;
}

void frag_image_rewind(frag_image *image)
{
    image->at = 0;
}

void frag_image_destroy(frag_image *image)
{
    frag_free(image->bytes);
    *image = (frag_image){0};
}

void frag_image_add(frag_image *image, const void *memory, size_t bytes)
{
    if (bytes == 0)
        return;
    image->bytes = frag_grow(image->bytes, &image->capacity, image->count + bytes, 1);
    memcpy(image->bytes + image->count, memory, bytes);
    image->count += bytes;
}

void frag_image_take(frag_image *image, void *memory, size_t bytes)
{
    if (bytes == 0)
        return;
    FRAG_ASSERT(bytes <= image->count - image->at);
    memcpy(memory, image->bytes + image->at, bytes);
    image->at += bytes;
}

static void add_run(frag_image *image, const frag_arena *arena, page_run run)
{
    if (run.bytes == 0)
        return;
    frag_image_add(image, &run, sizeof run);
    frag_image_add(image, arena->base + run.start, run.bytes);
}

/* Entries of /proc/self/pagemap. */
static bool look_at_pages(size_t first, size_t count, uint64_t *seen)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return false;
    ssize_t bytes = (ssize_t)(count * sizeof *seen);
    bool ok = pread(pagemap, seen, (size_t)bytes, (off_t)(first * sizeof *seen)) == bytes;
    close(pagemap);
    return ok;
}

static bool add_runs(frag_image *image, const frag_arena *arena)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (arena->used_bytes + page - 1) / page;
    size_t before = (size_t)(uintptr_t)arena->base / page;
    page_run run = {0};
    uint64_t seen[PAGES_AT_ONCE];
    for (size_t first = 0; first < pages; first += PAGES_AT_ONCE) {
        size_t count = pages - first < PAGES_AT_ONCE ? pages - first : PAGES_AT_ONCE;
        if (!look_at_pages(before + first, count, seen))
            return false;
        for (size_t i = 0; i < count; i++) {
            if ((seen[i] & PAGE_IS_WRITTEN) == 0)
                continue;
            size_t start = (first + i) * page;
            if (run.bytes == 0 || run.start + run.bytes != start) {
                add_run(image, arena, run);
                run = (page_run){start, 0};
            }
            run.bytes += page;
        }
    }
    add_run(image, arena, run);
    frag_image_add(image, &(page_run){arena->reserved_bytes, 0}, sizeof run);
    return true;
}

bool frag_image_add_arena(frag_image *image, const frag_arena *arena)
{
    size_t count = image->count;
    bool ok = add_runs(image, arena);
    if (!ok)
        image->count = count;
    return ok;
}

void frag_image_take_arena(frag_image *image, const frag_arena *arena)
{
    size_t at = 0;
    page_run run;
    do {
        frag_image_take(image, &run, sizeof run);
        if (run.start > at && !frag_pages_zero(arena->base + at, run.start - at))
            memset(arena->base + at, 0, run.start - at);
        frag_image_take(image, arena->base + run.start, run.bytes);
        at = run.start + run.bytes;
    } while (run.bytes > 0);
}
