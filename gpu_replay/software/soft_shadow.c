/* Shadow memory: bytes of devices whose value is known, because the host wrote them, or because
 * they were copied or filled from such. They are kept in chunks of 512 bytes, below pages of 2 MiB
 * that a hash table finds; what is not kept reads as zeros.
 *
 * A kernel does nothing here, so what it would have written cannot be known. Two rules keep old
 * bytes from being taken for its results. Memory that is given back is forgotten: at once for what
 * goes through the driver, and for blocks of PyTorch's caching allocator when it says that they are
 * freed (frag_soft_shadow_toggle), as it hands out the same addresses again and again. And a fill
 * or copy of unknown bytes makes its target unknown. What remains is a kernel that changes a block
 * in place which the host wrote before: the value before the change is read, and whoever handles
 * scalar reads is asked about it (is it older than the last launch?). */
#include "gpu_replay/software/soft_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

#define CHUNK_BITS 9
#define PAGE_BITS 21
#define CHUNK_BYTES ((uint64_t)1 << CHUNK_BITS)
#define PAGE_BYTES ((uint64_t)1 << PAGE_BITS)
#define CHUNKS_PER_PAGE ((uint64_t)1 << (PAGE_BITS - CHUNK_BITS))
#define WORD_BITS 64u
#define STEP_BYTES 4096u

typedef struct chunk {
    uint64_t known[CHUNK_BYTES / WORD_BITS]; /* a bit for each byte */
    uint64_t launch;                         /* launches before it was last written */
    unsigned char bytes[CHUNK_BYTES];
} chunk;

typedef struct page {
    uint64_t number;
    uint64_t
        starts[CHUNKS_PER_PAGE / WORD_BITS];    /* chunks at which a block of an allocator begins */
    uint64_t held[CHUNKS_PER_PAGE / WORD_BITS]; /* chunks that are not NULL */
    uint32_t start_count;
    uint32_t chunk_count;
    chunk **chunks; /* NULL while there is none */
} page;

static struct {
    page **slots; /* linear probing */
    size_t slot_count;
    size_t page_count;
    uint64_t kept_bytes;
    uint64_t launch_count;
} shadow;

/* ---- pages */

static size_t slot_of(uint64_t number)
{
    return (size_t)((number * 11400714819323198485u) >> 20) & (shadow.slot_count - 1);
}

static size_t find_slot(uint64_t number)
{
    size_t slot = slot_of(number);
    while (shadow.slots[slot] != NULL && shadow.slots[slot]->number != number)
        slot = (slot + 1) & (shadow.slot_count - 1);
    return slot;
}

static page *find_page(uint64_t number)
{
    return shadow.page_count == 0 ? NULL : shadow.slots[find_slot(number)];
}

static void enlarge(void)
{
    page **old = shadow.slots;
    size_t old_count = shadow.slot_count;
    shadow.slot_count = old_count == 0 ? 64 : old_count * 2;
    shadow.slots = calloc(shadow.slot_count, sizeof(page *));
    FRAG_ASSERT(shadow.slots != NULL);
    for (size_t i = 0; i < old_count; i++)
        if (old[i] != NULL)
            shadow.slots[find_slot(old[i]->number)] = old[i];
    free(old);
}

static page *make_page(uint64_t number)
{
    page *found = find_page(number);
    if (found != NULL)
        return found;
    if (shadow.page_count * 2 >= shadow.slot_count)
        enlarge();
    found = calloc(1, sizeof *found);
    FRAG_ASSERT(found != NULL);
    found->number = number;
    shadow.slots[find_slot(number)] = found;
    shadow.page_count++;
    return found;
}

/* Takes an unused page out; those behind it move up to where a search finds them. */
static void drop_if_unused(page *unused)
{
    if (unused->chunk_count != 0 || unused->start_count != 0)
        return;
    size_t hole = find_slot(unused->number);
    size_t mask = shadow.slot_count - 1;
    for (size_t at = (hole + 1) & mask; shadow.slots[at] != NULL; at = (at + 1) & mask) {
        size_t home = slot_of(shadow.slots[at]->number);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        shadow.slots[hole] = shadow.slots[at];
        hole = at;
    }
    shadow.slots[hole] = NULL;
    shadow.page_count--;
    free(unused->chunks);
    free(unused);
}

/* The first chunk from place on whose bit is set in a page's map; CHUNKS_PER_PAGE: none. */
static uint64_t next_of(const uint64_t *map, uint64_t place)
{
    for (uint64_t w = place / WORD_BITS; w < CHUNKS_PER_PAGE / WORD_BITS; w++) {
        uint64_t word = map[w];
        if (w == place / WORD_BITS)
            word &= ~(uint64_t)0 << (place % WORD_BITS);
        if (word != 0)
            return w * WORD_BITS + frag_bit_low(word);
    }
    return CHUNKS_PER_PAGE;
}

/* ---- chunks */

static chunk *find_chunk(uint64_t address)
{
    const page *in = find_page(address >> PAGE_BITS);
    return in == NULL || in->chunks == NULL
               ? NULL
               : in->chunks[(address >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1)];
}

/* NULL: no more may be kept. */
static chunk *make_chunk(uint64_t address)
{
    page *in = make_page(address >> PAGE_BITS);
    if (in->chunks == NULL) {
        in->chunks = calloc(CHUNKS_PER_PAGE, sizeof(chunk *));
        FRAG_ASSERT(in->chunks != NULL);
    }
    chunk **place = &in->chunks[(address >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1)];
    if (*place != NULL)
        return *place;
    if (shadow.kept_bytes + CHUNK_BYTES > frag_soft.settings.shadow_total_bytes) {
        drop_if_unused(in);
        return NULL;
    }
    *place = calloc(1, sizeof **place);
    FRAG_ASSERT(*place != NULL);
    uint64_t number = (uint64_t)(place - in->chunks);
    in->held[number / WORD_BITS] |= (uint64_t)1 << (number % WORD_BITS);
    in->chunk_count++;
    shadow.kept_bytes += CHUNK_BYTES;
    return *place;
}

/* Bytes from first on, count of them, as bits of one word of the map. */
static uint64_t bits_of(uint64_t first, uint64_t count)
{
    return (count == WORD_BITS ? UINT64_MAX : ((uint64_t)1 << count) - 1) << first;
}

/* Sets or clears the known bits of a range of a chunk; false: none is left. */
static bool mark(chunk *marked, uint64_t first, uint64_t count, bool is_known)
{
    uint64_t left = 0;
    for (uint64_t w = 0; w < CHUNK_BYTES / WORD_BITS; w++) {
        uint64_t from = w * WORD_BITS > first ? w * WORD_BITS : first;
        uint64_t end = (w + 1) * WORD_BITS < first + count ? (w + 1) * WORD_BITS : first + count;
        uint64_t bits = from < end ? bits_of(from % WORD_BITS, end - from) : 0;
        marked->known[w] = is_known ? marked->known[w] | bits : marked->known[w] & ~bits;
        left |= marked->known[w];
    }
    return left != 0;
}

static void drop_chunk(page *in, uint64_t place)
{
    free(in->chunks[place]);
    in->chunks[place] = NULL;
    in->held[place / WORD_BITS] &= ~((uint64_t)1 << (place % WORD_BITS));
    in->chunk_count--;
    shadow.kept_bytes -= CHUNK_BYTES;
}

/* ---- ranges */

/* How much of a range lies in the chunk of its address. */
static uint64_t in_chunk(uint64_t address, uint64_t bytes)
{
    uint64_t room = CHUNK_BYTES - (address & (CHUNK_BYTES - 1));
    return bytes < room ? bytes : room;
}

static void forget_in_page(page *in, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    while (address < end && in->chunk_count > 0) {
        uint64_t place = (address >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1);
        uint64_t held = next_of(in->held, place);
        if (held != place) {
            address = (address & ~(CHUNK_BYTES - 1)) + (held - place) * CHUNK_BYTES;
            continue;
        }
        uint64_t count = in_chunk(address, end - address);
        if (count == CHUNK_BYTES ||
            !mark(in->chunks[place], address & (CHUNK_BYTES - 1), count, false))
            drop_chunk(in, place);
        address += count;
    }
}

void frag_soft_shadow_forget(uint64_t address, uint64_t bytes)
{
    while (bytes > 0 && shadow.kept_bytes > 0) {
        uint64_t room = PAGE_BYTES - (address & (PAGE_BYTES - 1));
        uint64_t count = bytes < room ? bytes : room;
        page *in = find_page(address >> PAGE_BITS);
        if (in != NULL && in->chunk_count > 0) {
            forget_in_page(in, address, count);
            drop_if_unused(in);
        }
        address += count;
        bytes -= count;
    }
}

/* from: NULL writes value into every byte. */
static void write_bytes(uint64_t address, const unsigned char *from, int value, uint64_t bytes)
{
    if (bytes > frag_soft.settings.shadow_bytes) {
        frag_soft_shadow_forget(address, bytes);
        return;
    }
    while (bytes > 0) {
        uint64_t count = in_chunk(address, bytes);
        uint64_t first = address & (CHUNK_BYTES - 1);
        chunk *kept = make_chunk(address);
        if (kept == NULL) {
            frag_soft_shadow_forget(address, bytes);
            return;
        }
        if (from != NULL)
            memcpy(kept->bytes + first, from, count);
        else
            memset(kept->bytes + first, value, count);
        kept->launch = shadow.launch_count;
        mark(kept, first, count, true);
        from = from == NULL ? NULL : from + count;
        address += count;
        bytes -= count;
    }
}

void frag_soft_shadow_write(uint64_t address, const void *from, uint64_t bytes)
{
    write_bytes(address, from, 0, bytes);
}

void frag_soft_shadow_fill(uint64_t address, uint32_t value, uint32_t value_bytes, uint64_t count)
{
    unsigned char pattern[STEP_BYTES];
    if (value_bytes == 1) {
        write_bytes(address, NULL, (int)(value & 0xff), count);
        return;
    }
    uint64_t bytes = count * value_bytes;
    if (bytes > frag_soft.settings.shadow_bytes) {
        frag_soft_shadow_forget(address, bytes);
        return;
    }
    for (size_t i = 0; i < sizeof pattern; i += value_bytes)
        memcpy(pattern + i, &value, value_bytes); /* low bytes first */
    for (uint64_t done = 0; done < bytes; done += STEP_BYTES)
        write_bytes(address + done, pattern, 0,
                    bytes - done < STEP_BYTES ? bytes - done : STEP_BYTES);
}

/* Copies the known bytes of one chunk; returns how many there are. */
static uint64_t read_chunk(const chunk *kept, uint64_t first, unsigned char *out, uint64_t count)
{
    uint64_t known = 0;
    for (uint64_t i = 0; i < count;) {
        uint64_t at = first + i;
        uint64_t word = kept->known[at / WORD_BITS];
        uint64_t run = 1;
        if (at % WORD_BITS == 0 && count - i >= WORD_BITS && (word == 0 || word == UINT64_MAX))
            run = WORD_BITS;
        if ((word >> (at % WORD_BITS) & 1) != 0) {
            memcpy(out + i, kept->bytes + at, run);
            known += run;
        }
        i += run;
    }
    return known;
}

frag_soft_known frag_soft_shadow_read(uint64_t address, unsigned char *out, uint64_t bytes)
{
    frag_soft_known known = {0};
    memset(out, 0, (size_t)bytes);
    while (bytes > 0 && shadow.kept_bytes > 0) {
        const page *in = find_page(address >> PAGE_BITS);
        uint64_t count = in_chunk(address, bytes);
        if (in == NULL || in->chunk_count == 0) {
            uint64_t room = PAGE_BYTES - (address & (PAGE_BYTES - 1));
            count = bytes < room ? bytes : room;
        } else {
            const chunk *kept = in->chunks[(address >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1)];
            if (kept != NULL) {
                known.bytes += read_chunk(kept, address & (CHUNK_BYTES - 1), out, count);
                known.is_older = known.is_older || kept->launch != shadow.launch_count;
            }
        }
        address += count;
        out += count;
        bytes -= count;
    }
    return known;
}

/* Chunk by chunk of the target, by way of a buffer, since the two may overlap. */
void frag_soft_shadow_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (to == from)
        return;
    if (shadow.kept_bytes == 0 || bytes > frag_soft.settings.shadow_bytes) {
        frag_soft_shadow_forget(to, bytes);
        return;
    }
    unsigned char *all = malloc((size_t)bytes);
    FRAG_ASSERT(all != NULL);
    uint64_t known = frag_soft_shadow_read(from, all, bytes).bytes;
    if (known == bytes) {
        frag_soft_shadow_write(to, all, bytes);
    } else {
        unsigned char *is_known = calloc(1, (size_t)bytes);
        FRAG_ASSERT(is_known != NULL);
        for (uint64_t i = 0; known > 0 && i < bytes; i++) {
            const chunk *kept = find_chunk(from + i);
            uint64_t at = (from + i) & (CHUNK_BYTES - 1);
            is_known[i] =
                kept != NULL && (kept->known[at / WORD_BITS] >> (at % WORD_BITS) & 1) != 0;
        }
        frag_soft_shadow_forget(to, bytes);
        for (uint64_t i = 0; known > 0 && i < bytes; i++)
            if (is_known[i])
                frag_soft_shadow_write(to + i, all + i, 1);
        free(is_known);
    }
    free(all);
}

void frag_soft_shadow_launch(void)
{
    shadow.launch_count++;
}

void frag_soft_scalar_note(frag_soft_scalar *read, frag_soft_known known)
{
    enum { BYTES_MAX = 16 };
    if (read->bytes == 0 || read->bytes > BYTES_MAX || frag_soft_is_device_address(read->to) ||
        !frag_soft_is_device_address(read->from) || (known.bytes == read->bytes && !known.is_older))
        return;
    read->is_asked = true;
    read->known_bytes = known.bytes;
    read->count = ++frag_soft.scalar_count;
    read->handler = frag_soft.scalar_handler;
    read->context = frag_soft.scalar_context;
}

void frag_soft_scalar_ask(const frag_soft_scalar *read, const void *caller)
{
    char where[256] = "";
    if (!read->is_asked)
        return;
    frag_software_scalar scalar = {
        .device_address = (const void *)(uintptr_t)read->from,
        .host_address = (void *)(uintptr_t)read->to,
        .bytes = (size_t)read->bytes,
        .known_bytes = (size_t)read->known_bytes,
        .count = read->count,
        .caller = caller,
        .where = where,
        .where_bytes = sizeof where,
    };
    bool is_answered = read->handler != NULL && read->handler(&scalar, read->context);
    if (is_answered || read->known_bytes == read->bytes)
        return;
    if (where[0] == '\0')
        frag_soft_place_text(caller, where, sizeof where);
    frag_software_note_value(where);
}

/* ---- blocks of an allocator */

/* Where the block that begins at address ends at the latest: at the next one, or with the memory,
 * which may be mapped in pieces. */
static uint64_t block_end(uint64_t address)
{
    frag_soft_extent extent;
    uint64_t end = address;
    uint64_t at = address + CHUNK_BYTES;
    while (at < end || (frag_soft_extent_find(end, &extent) &&
                        (end = extent.address + extent.bytes, at < end))) {
        const page *in = find_page(at >> PAGE_BITS);
        if (in != NULL && in->start_count > 0) {
            uint64_t place = next_of(in->starts, (at >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1));
            if (place < CHUNKS_PER_PAGE)
                return (at & ~(PAGE_BYTES - 1)) + place * CHUNK_BYTES;
        }
        at = (at & ~(PAGE_BYTES - 1)) + PAGE_BYTES;
    }
    return end;
}

void frag_soft_shadow_toggle(uint64_t address)
{
    page *in = make_page(address >> PAGE_BITS);
    uint64_t place = (address >> CHUNK_BITS) & (CHUNKS_PER_PAGE - 1);
    uint64_t bit = (uint64_t)1 << (place % WORD_BITS);
    bool was_live = (in->starts[place / WORD_BITS] & bit) != 0;
    in->starts[place / WORD_BITS] ^= bit;
    in->start_count += was_live ? -1u : 1u;
    uint64_t bytes = shadow.kept_bytes > 0 || frag_soft.open_capture_count > 0
                         ? block_end(address) - address
                         : 0;
    frag_soft_shadow_forget(address, bytes);
    frag_soft_captures_forget(address, bytes);
    in = find_page(address >> PAGE_BITS);
    if (in != NULL)
        drop_if_unused(in);
}

void frag_soft_shadow_stop(void)
{
    for (size_t i = 0; i < shadow.slot_count; i++) {
        page *in = shadow.slots[i];
        for (uint64_t c = 0; in != NULL && in->chunks != NULL && c < CHUNKS_PER_PAGE; c++)
            free(in->chunks[c]);
        if (in != NULL)
            free(in->chunks);
        free(in);
    }
    free(shadow.slots);
    memset(&shadow, 0, sizeof shadow);
}

/* ---- for the stand-ins */

void frag_software_handle_scalars(frag_software_scalar_handler *handler, void *context)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    frag_soft.scalar_handler = handler;
    frag_soft.scalar_context = context;
    frag_soft_leave();
}

void frag_software_handle_late(frag_software_late_handler *handler)
{
    atomic_store(&frag_soft.late_handler, handler);
}

void frag_soft_late_ask(uint64_t address, uint64_t bytes, bool is_read)
{
    frag_software_late_handler *handler = atomic_load(&frag_soft.late_handler);
    if (handler != NULL && bytes > 0)
        handler((const void *)(uintptr_t)address, (size_t)bytes, is_read);
}

size_t frag_software_read(const void *device_address, void *out, size_t bytes)
{
    int32_t ignored = 0;
    frag_soft_late_ask((uint64_t)(uintptr_t)device_address, bytes, true);
    frag_soft_enter(&ignored);
    uint64_t known = frag_soft_shadow_read((uint64_t)(uintptr_t)device_address, out, bytes).bytes;
    frag_soft_leave();
    return (size_t)known;
}

void frag_software_write(void *device_address, const void *from, size_t bytes)
{
    int32_t ignored = 0;
    uint64_t address = (uint64_t)(uintptr_t)device_address;
    frag_soft_enter(&ignored);
    if (frag_soft_range_is_usable(address, bytes))
        frag_soft_shadow_write(address, from, bytes);
    frag_soft_leave();
}

void frag_software_copy(void *to, const void *from, size_t bytes)
{
    int32_t ignored = 0;
    uint64_t address = (uint64_t)(uintptr_t)to;
    frag_soft_enter(&ignored);
    if (frag_soft_range_is_usable(address, bytes))
        frag_soft_shadow_copy(address, (uint64_t)(uintptr_t)from, bytes);
    frag_soft_leave();
}

uint64_t frag_software_get_kept_max(void)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    uint64_t bytes = frag_soft.settings.shadow_bytes;
    frag_soft_leave();
    return bytes;
}

void frag_software_forget(void *device_address, size_t bytes)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    frag_soft_shadow_forget((uint64_t)(uintptr_t)device_address, bytes);
    frag_soft_leave();
}
