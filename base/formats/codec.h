/* Compression: the only file that knows zstd and zlib.
 *
 * Compressed files that are read are recognised by their first bytes, never by name. */
#ifndef FRAG_FORMATS_CODEC_H
#define FRAG_FORMATS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum frag_codec { FRAG_CODEC_PLAIN, FRAG_CODEC_ZSTD, FRAG_CODEC_GZIP } frag_codec;

/* Looks at the first bytes of a file (4 are enough). */
frag_codec frag_codec_detect(const unsigned char *bytes, size_t count);
/* What a file to be written is compressed with: by its ending, ".zst" or ".gz". */
frag_codec frag_codec_of_path(const char *path);

/* ---- whole pieces, zstd */
size_t frag_compress_bound(size_t bytes);
/* Returns the compressed size; out must hold frag_compress_bound(count). Same bytes on every run.
 */
size_t frag_compress(void *out, size_t out_capacity, const void *in, size_t count);
/* What decompressing many pieces needs once. */
typedef struct frag_unpacker frag_unpacker;
frag_unpacker *frag_unpacker_create(void);
void frag_unpacker_destroy(frag_unpacker *unpacker);

/* Decompresses one zstd frame of exactly out_count bytes; FRAG_E_INPUT otherwise. */
bool frag_decompress(frag_unpacker *unpacker, void *out, size_t out_count, const void *in,
                     size_t count, frag_error *error);

/* ---- whole files, zstd and gzip; the caller frees. Same bytes on every run. */
void *frag_codec_pack(frag_codec codec, const void *in, size_t count, size_t *out_count);

/* ---- streams, zstd and gzip, several frames or members in a row */
typedef struct frag_decoder frag_decoder;

frag_decoder *frag_decoder_create(frag_codec codec);
/* Consumes from in (*in_used) and produces into out (*out_used). *is_at_end: the last frame is
 * complete and nothing is left inside the decoder. FRAG_E_INPUT on broken data. */
bool frag_decoder_step(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                       size_t *in_used, unsigned char *out, size_t out_count, size_t *out_used,
                       bool *is_at_end, frag_error *error);
/* How many bytes the first frame of in holds, if all of the frame is there: SIZE_MAX when it does
 * not say; 0 when there is none, or it is not of zstd. */
size_t frag_decoder_frame_bytes(const frag_decoder *decoder, const unsigned char *in, size_t count);
/* Decodes such a frame at once, which saves the copy that pieces take, before any step. false: it
 * is damaged or needs more than out_capacity; steps from its beginning tell. */
bool frag_decoder_frame(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                        size_t *in_used, unsigned char *out, size_t out_capacity, size_t *out_used);
void frag_decoder_destroy(frag_decoder *decoder);

/* Of zstd or zlib, as linked. */
const char *frag_codec_library_version(frag_codec codec);

#endif
