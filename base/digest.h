/* Content digests: XXH3, 128 bits, as 32 hexadecimal digits. Not cryptographic. */
#ifndef FRAG_BASE_DIGEST_H
#define FRAG_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define FRAG_DIGEST_TEXT_BYTES 33

typedef struct frag_digest frag_digest;

frag_digest *frag_digest_create(void);
void frag_digest_add(frag_digest *digest, const void *bytes, size_t count);
/* Writes the digest as text and frees it. */
void frag_digest_finish(frag_digest *digest, char text[FRAG_DIGEST_TEXT_BYTES]);

/* 64-bit hash of some bytes, the same on every machine. */
uint64_t frag_hash_bytes(const void *bytes, size_t count);

/* 10000 x major + 100 x minor + release, as linked. */
uint32_t frag_digest_library_version(void);

#endif
