/* libfraglab-objects.so.1: C++ objects of the size of a tensor get addresses that follow from how
 * many of them the main thread has made before, and from nothing else.
 *
 * Autocast keeps its casted weights in a hash table by the address of the weight's object, and
 * frees them in the order of that table. Where the objects lie would otherwise depend on what other
 * threads, autograd's before all, have given back to malloc by then: a matter of microseconds. So
 * their places are taken one behind the other at a fixed address and never twice. A page whose
 * objects are all gone is given back to the system.
 *
 * This is operator new and delete of C++: preloaded, they stand in the place of libstdc++'s. All
 * other sizes and threads are malloc's, as libstdc++ has it. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

/* A tensor's object has 184 bytes in PyTorch 2.4 to 2.12, and 176 in 2.15. */
#define OBJECT_BYTES_MIN 160
#define OBJECT_BYTES_MAX 208
/* Below the addresses of the software CUDA, above those that a system gives by itself. */
#define PLACES_BEGIN UINT64_C(0x180000000000)
#define PLACES_END UINT64_C(0x200000000000)
#define CHUNK_BYTES ((uint64_t)1 << 20)
#define PAGE_BYTES ((uint64_t)1 << 12)

#define EXPORTED __attribute__((visibility("default")))

/* Begins each page. The first page of a chunk has no objects: its count is that of the chunk. */
typedef struct counter {
    atomic_uint count; /* of objects, and 1 while the page is filled; of pages not given back */
    char padding[60];
} counter;

/* Of the main thread alone. */
static struct {
    counter *page; /* the one that is filled; NULL: none yet, or no more to be had */
    uint64_t next;
    uint64_t page_end;
    uint64_t chunk_end; /* the next chunk begins there */
} places = {.page_end = PLACES_BEGIN, .chunk_end = PLACES_BEGIN};

static bool is_main_thread(void)
{
    static _Thread_local int known;
    if (known == 0)
        known = syscall(SYS_gettid) == getpid() ? 1 : 2;
    return known == 1;
}

static counter *counter_at(uint64_t address, uint64_t unit)
{
    return (counter *)(uintptr_t)(address / unit * unit);
}

static void drop(uint64_t address)
{
    counter *page = counter_at(address, PAGE_BYTES);
    counter *chunk = counter_at(address, CHUNK_BYTES);
    if (atomic_fetch_sub(&page->count, 1) != 1)
        return;
    madvise(page, PAGE_BYTES, MADV_DONTNEED);
    if (atomic_fetch_sub(&chunk->count, 1) == 1)
        munmap(chunk, CHUNK_BYTES);
}

static bool add_chunk(void)
{
    if (places.chunk_end == PLACES_END)
        return false;
    void *wanted = (void *)(uintptr_t)places.chunk_end;
    void *found = mmap(wanted, CHUNK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (found != wanted) {
        if (found != MAP_FAILED) /* a kernel before 4.17, for which the address is a hint */
            munmap(found, CHUNK_BYTES);
        places.page_end = places.chunk_end = PLACES_END;
        return false;
    }
    atomic_store(&((counter *)found)->count, CHUNK_BYTES / PAGE_BYTES - 1);
    places.page_end = places.chunk_end + PAGE_BYTES;
    places.chunk_end += CHUNK_BYTES;
    return true;
}

/* Another page; places.page is NULL when there is none. */
static void begin_page(void)
{
    if (places.page != NULL)
        drop((uint64_t)(uintptr_t)places.page);
    places.page = NULL;
    if (places.page_end == places.chunk_end && !add_chunk())
        return;
    places.page = (counter *)(uintptr_t)places.page_end;
    atomic_store(&places.page->count, 1);
    places.next = places.page_end + sizeof(counter);
    places.page_end += PAGE_BYTES;
}

static void *take_place(size_t bytes)
{
    uint64_t rounded = (bytes + 15) / 16 * 16;
    if (places.page == NULL || places.next + rounded > places.page_end)
        begin_page();
    if (places.page == NULL)
        return NULL;
    void *place = (void *)(uintptr_t)places.next;
    places.next += rounded;
    atomic_fetch_add(&places.page->count, 1);
    return place;
}

/* std::bad_alloc, by the C++ library of whoever asked: it may be visible to nobody else. */
static _Noreturn void throw_bad_alloc(void *caller)
{
    Dl_info info = {0};
    void *library =
        dladdr(caller, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = dlsym(library != NULL ? library : RTLD_DEFAULT, "_ZSt17__throw_bad_allocv");
    if (found != NULL) {
        void (*throw_it)(void) = NULL;
        *(void **)(void *)&throw_it = found;
        throw_it();
    }
    abort();
}

/* operator new(std::size_t) and operator delete(void *), with and without the size. */
EXPORTED void *frag_object_new(size_t bytes) __asm__("_Znwm");
EXPORTED void frag_object_delete(void *object) __asm__("_ZdlPv");
EXPORTED void frag_object_delete_sized(void *object, size_t bytes) __asm__("_ZdlPvm");

void *frag_object_new(size_t bytes)
{
    void *found = NULL;
    if (bytes >= OBJECT_BYTES_MIN && bytes <= OBJECT_BYTES_MAX && is_main_thread())
        found = take_place(bytes);
    if (found == NULL)
        found = malloc(bytes);
    if (found == NULL)
        throw_bad_alloc(FRAG_CALLER());
    return found;
}

void frag_object_delete(void *object)
{
    uint64_t address = (uint64_t)(uintptr_t)object;
    if (address - PLACES_BEGIN < PLACES_END - PLACES_BEGIN)
        drop(address);
    else
        free(object);
}

void frag_object_delete_sized(void *object, size_t bytes)
{
    (void)bytes;
    frag_object_delete(object);
}
