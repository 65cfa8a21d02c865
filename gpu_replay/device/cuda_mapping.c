#include "gpu_replay/device/cuda_mapping.h"

#include <stdlib.h>

#include "base/memory.h"

static size_t cut(frag_cuda_mapper *mapper, const frag_cuda_place *range, uint64_t address,
                  uint64_t bytes, uint64_t unit_bytes)
{
    size_t count = 0;
    for (uint64_t end = address + bytes; address < end;) {
        uint64_t piece = unit_bytes - (address - range->address) % unit_bytes;
        piece = piece < end - address ? piece : end - address;
        *FRAG_APPEND(mapper->pieces, count, mapper->piece_capacity) = (frag_cuda_place){
            .address = address,
            .bytes = piece,
            .real = range->real + (address - range->address),
            .kind = FRAG_CUDA_PLACE_MAPPING,
        };
        address += piece;
    }
    return count;
}

static int create_all(frag_cuda_mapper *mapper, size_t count, size_t *created)
{
    mapper->call = "cuMemCreate";
    for (*created = 0; *created < count; ++*created) {
        frag_cuda_place *piece = &mapper->pieces[*created];
        int code =
            mapper->cuda->cuMemCreate(&piece->handle, (size_t)piece->bytes, &mapper->properties, 0);
        if (code != FRAG_CUDA_OK)
            return code;
    }
    return FRAG_CUDA_OK;
}

static int map_all(frag_cuda_mapper *mapper, size_t count, size_t *mapped)
{
    mapper->call = "cuMemMap";
    for (*mapped = 0; *mapped < count; ++*mapped) {
        const frag_cuda_place *piece = &mapper->pieces[*mapped];
        int code = mapper->cuda->cuMemMap(piece->real, (size_t)piece->bytes, 0, piece->handle, 0);
        if (code != FRAG_CUDA_OK)
            return code;
    }
    return FRAG_CUDA_OK;
}

static int allow_access(frag_cuda_mapper *mapper, uint64_t bytes)
{
    mapper->call = "cuMemSetAccess";
    frag_cuda_access access = {mapper->properties.location, FRAG_CUDA_READ_WRITE};
    return mapper->cuda->cuMemSetAccess(mapper->pieces[0].real, (size_t)bytes, &access, 1);
}

/* Maps the pieces, which have handles, and keeps them; or nothing. */
static int map_pieces(frag_cuda_mapper *mapper, frag_cuda_place *range, size_t count,
                      uint64_t bytes)
{
    size_t mapped = 0;
    int code = map_all(mapper, count, &mapped);
    if (code == FRAG_CUDA_OK)
        code = allow_access(mapper, bytes);
    if (code != FRAG_CUDA_OK) {
        for (size_t i = 0; i < mapped; i++)
            mapper->cuda->cuMemUnmap(mapper->pieces[i].real, (size_t)mapper->pieces[i].bytes);
        return code;
    }
    for (size_t i = 0; i < count; i++)
        frag_cuda_places_add(&mapper->mappings, &mapper->pieces[i]);
    range->mapped_bytes += bytes;
    return FRAG_CUDA_OK;
}

int frag_cuda_mapper_map(frag_cuda_mapper *mapper, frag_cuda_place *range, uint64_t address,
                         uint64_t bytes, uint64_t unit_bytes)
{
    size_t count = cut(mapper, range, address, bytes, unit_bytes);
    size_t created = 0;
    if (count == 0)
        return FRAG_CUDA_OK;
    int code = create_all(mapper, count, &created);
    if (code == FRAG_CUDA_OK)
        code = map_pieces(mapper, range, count, bytes);
    for (size_t i = 0; code != FRAG_CUDA_OK && i < created; i++)
        mapper->cuda->cuMemRelease(mapper->pieces[i].handle);
    return code;
}

/* Each piece gets the handle of the one that lies as far behind the source as it behind the first.
 */
static bool share_handles(frag_cuda_mapper *mapper, size_t count, uint64_t source)
{
    for (size_t i = 0; i < count; i++) {
        frag_cuda_place *piece = &mapper->pieces[i];
        uint64_t address = source + (piece->address - mapper->pieces[0].address);
        size_t at = frag_cuda_places_find(&mapper->mappings, address);
        if (at == mapper->mappings.count || mapper->mappings.items[at].address != address ||
            mapper->mappings.items[at].bytes != piece->bytes)
            return false;
        piece->handle = mapper->mappings.items[at].handle;
        piece->is_second = true;
    }
    return true;
}

int frag_cuda_mapper_map_again(frag_cuda_mapper *mapper, frag_cuda_place *range,
                               frag_cuda_place place, uint64_t source, uint64_t unit_bytes)
{
    size_t count = cut(mapper, range, place.address, place.bytes, unit_bytes);
    mapper->call = "cuMemMap";
    if (count == 0 || !share_handles(mapper, count, source))
        return count == 0 ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_VALUE;
    return map_pieces(mapper, range, count, place.bytes);
}

/* How many mappings from first on make up this place; 0: its borders are not theirs. */
static size_t count_whole(const frag_cuda_mapper *mapper, size_t first, uint64_t address,
                          uint64_t bytes)
{
    const frag_cuda_places *mappings = &mapper->mappings;
    size_t count = 0;
    uint64_t at = address;
    while (at < address + bytes) {
        if (first + count == mappings->count || mappings->items[first + count].address != at)
            return 0;
        at += mappings->items[first + count++].bytes;
    }
    return at == address + bytes ? count : 0;
}

static int take_off(frag_cuda_mapper *mapper, const frag_cuda_place *mapping)
{
    mapper->call = "cuMemUnmap";
    int code = mapper->cuda->cuMemUnmap(mapping->real, (size_t)mapping->bytes);
    if (code != FRAG_CUDA_OK || mapping->is_second)
        return code;
    mapper->call = "cuMemRelease";
    return mapper->cuda->cuMemRelease(mapping->handle);
}

int frag_cuda_mapper_unmap(frag_cuda_mapper *mapper, frag_cuda_place *range, uint64_t address,
                           uint64_t bytes)
{
    mapper->call = "cuMemUnmap";
    size_t first = frag_cuda_places_find(&mapper->mappings, address);
    size_t count = count_whole(mapper, first, address, bytes);
    if (count == 0)
        return FRAG_CUDA_INVALID_VALUE;
    size_t done = 0;
    int code = FRAG_CUDA_OK;
    while (done < count && code == FRAG_CUDA_OK) {
        code = take_off(mapper, &mapper->mappings.items[first + done]);
        done += code == FRAG_CUDA_OK ? 1 : 0;
    }
    for (size_t i = 0; i < done; i++)
        range->mapped_bytes -= mapper->mappings.items[first + i].bytes;
    frag_cuda_places_remove(&mapper->mappings, first, done);
    return code;
}

void frag_cuda_mapper_empty(frag_cuda_mapper *mapper)
{
    for (size_t i = 0; i < mapper->mappings.count; i++) {
        const frag_cuda_place *mapping = &mapper->mappings.items[i];
        mapper->cuda->cuMemUnmap(mapping->real, (size_t)mapping->bytes);
        if (!mapping->is_second)
            mapper->cuda->cuMemRelease(mapping->handle);
    }
    mapper->mappings.count = 0;
}

void frag_cuda_mapper_destroy(frag_cuda_mapper *mapper)
{
    frag_cuda_places_destroy(&mapper->mappings);
    free(mapper->pieces);
    mapper->pieces = NULL;
}
