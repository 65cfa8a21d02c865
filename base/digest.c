#include "base/digest.h"

#include <stdio.h>
#include <xxhash.h>

#include "base/scope.h"

static void release_state(void *state, size_t bytes)
{
    (void)bytes;
    XXH3_freeState(state);
}

frag_digest *frag_digest_create(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        frag_scope_fail(1, 1);
    frag_scope_own(state, 0, release_state);
    XXH3_128bits_reset(state);
    /* The library's state is the object; the struct name only hides it from callers. */
    return (frag_digest *)(void *)state;
}

void frag_digest_add(frag_digest *digest, const void *bytes, size_t count)
{
    XXH3_128bits_update((XXH3_state_t *)(void *)digest, bytes, count);
}

void frag_digest_finish(frag_digest *digest, char text[FRAG_DIGEST_TEXT_BYTES])
{
    XXH3_state_t *state = (XXH3_state_t *)(void *)digest;
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(text, FRAG_DIGEST_TEXT_BYTES, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    frag_scope_disown(state);
    XXH3_freeState(state);
}

uint64_t frag_hash_bytes(const void *bytes, size_t count)
{
    return XXH3_64bits(bytes, count);
}

uint32_t frag_digest_library_version(void)
{
    return XXH_versionNumber();
}
