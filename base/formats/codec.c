#include "base/formats/codec.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"
#include "base/scope.h"

struct frag_decoder {
    frag_codec codec;
    ZSTD_DCtx *zstd;
    z_stream gzip;
    bool is_gzip_open;
    bool is_between_frames;
};

struct frag_unpacker {
    ZSTD_DCtx *zstd;
};

frag_codec frag_codec_detect(const unsigned char *bytes, size_t count)
{
    if (count >= 4 && bytes[0] == 0x28 && bytes[1] == 0xb5 && bytes[2] == 0x2f && bytes[3] == 0xfd)
        return FRAG_CODEC_ZSTD;
    if (count >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return FRAG_CODEC_GZIP;
    return FRAG_CODEC_PLAIN;
}

frag_codec frag_codec_of_path(const char *path)
{
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".zst") == 0)
        return FRAG_CODEC_ZSTD;
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        return FRAG_CODEC_GZIP;
    return FRAG_CODEC_PLAIN;
}

size_t frag_compress_bound(size_t bytes)
{
    return ZSTD_compressBound(bytes);
}

static void release_zstd(void *zstd, size_t bytes)
{
    (void)bytes;
    ZSTD_freeDCtx(zstd);
}

static ZSTD_DCtx *create_zstd(void)
{
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    if (zstd == NULL)
        frag_scope_fail(1, 1);
    frag_scope_own(zstd, 0, release_zstd);
    return zstd;
}

static void destroy_zstd(ZSTD_DCtx *zstd)
{
    frag_scope_disown(zstd);
    ZSTD_freeDCtx(zstd);
}

/* The library ran out of memory in the middle; anything else is for the caller to judge. */
static void check_memory(size_t result)
{
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        frag_scope_fail(1, 1);
}

size_t frag_compress(void *out, size_t out_capacity, const void *in, size_t count)
{
    size_t result = ZSTD_compress(out, out_capacity, in, count, 3);
    check_memory(result);
    FRAG_ASSERT(!ZSTD_isError(result));
    return result;
}

frag_unpacker *frag_unpacker_create(void)
{
    frag_unpacker *unpacker = frag_alloc(1, sizeof *unpacker);
    unpacker->zstd = create_zstd();
    return unpacker;
}

void frag_unpacker_destroy(frag_unpacker *unpacker)
{
    if (unpacker == NULL)
        return;
    destroy_zstd(unpacker->zstd);
    frag_free(unpacker);
}

bool frag_decompress(frag_unpacker *unpacker, void *out, size_t out_count, const void *in,
                     size_t count, frag_error *error)
{
    size_t result = ZSTD_decompressDCtx(unpacker->zstd, out, out_count, in, count);
    check_memory(result);
    if (ZSTD_isError(result))
        return frag_fail(error, FRAG_E_INPUT,
                         "the compressed data is broken (zstd: %s); the file is damaged",
                         ZSTD_getErrorName(result));
    if (result != out_count)
        return frag_fail(error, FRAG_E_INPUT, "a compressed piece holds %zu bytes; expected %zu",
                         result, out_count);
    return true;
}

/* zlib counts in 32 bits at a time. */
static uInt piece_of(size_t count)
{
    return count < INT32_MAX ? (uInt)count : INT32_MAX;
}

static void release_deflate(void *gzip, size_t bytes)
{
    (void)bytes;
    deflateEnd(gzip);
}

static void release_inflate(void *gzip, size_t bytes)
{
    (void)bytes;
    inflateEnd(gzip);
}

static void *pack_gzip(const void *in, size_t count, size_t *out_count)
{
    z_stream *gzip = frag_alloc(1, sizeof *gzip);
    size_t capacity = 0;
    unsigned char *out = NULL;
    const unsigned char *next = in;
    int code = deflateInit2(gzip, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    if (code == Z_MEM_ERROR)
        frag_scope_fail(1, sizeof *gzip);
    frag_scope_own(gzip, 0, release_deflate);
    *out_count = 0;
    while (code == Z_OK) {
        out = frag_grow(out, &capacity, *out_count + 65536, 1);
        uInt room = piece_of(capacity - *out_count);
        uInt offered = piece_of(count);
        gzip->next_in = (z_const Bytef *)(uintptr_t)next;
        gzip->avail_in = offered;
        gzip->next_out = out + *out_count;
        gzip->avail_out = room;
        code = deflate(gzip, offered == count ? Z_FINISH : Z_NO_FLUSH);
        next += offered - gzip->avail_in;
        count -= offered - gzip->avail_in;
        *out_count += room - gzip->avail_out;
    }
    FRAG_ASSERT(code == Z_STREAM_END);
    frag_scope_disown(gzip);
    deflateEnd(gzip);
    frag_free(gzip);
    return out;
}

void *frag_codec_pack(frag_codec codec, const void *in, size_t count, size_t *out_count)
{
    FRAG_ASSERT(codec != FRAG_CODEC_PLAIN);
    if (codec == FRAG_CODEC_GZIP)
        return pack_gzip(in, count, out_count);
    void *out = frag_alloc(frag_compress_bound(count), 1);
    *out_count = frag_compress(out, frag_compress_bound(count), in, count);
    return out;
}

frag_decoder *frag_decoder_create(frag_codec codec)
{
    frag_decoder *decoder = frag_alloc(1, sizeof *decoder);
    decoder->codec = codec;
    decoder->is_between_frames = true;
    if (codec == FRAG_CODEC_ZSTD) {
        decoder->zstd = create_zstd();
        /* A frame may ask for a window of gigabytes; 128 MiB covers every level but --ultra --long.
         */
        ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, 27);
    } else if (codec == FRAG_CODEC_GZIP) {
        int code = inflateInit2(&decoder->gzip, 15 + 16);
        if (code == Z_MEM_ERROR)
            frag_scope_fail(1, sizeof decoder->gzip);
        decoder->is_gzip_open = code == Z_OK;
        FRAG_ASSERT(decoder->is_gzip_open);
        frag_scope_own(&decoder->gzip, 0, release_inflate);
    }
    return decoder;
}

static bool zstd_step(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                      size_t *in_used, unsigned char *out, size_t out_count, size_t *out_used,
                      frag_error *error)
{
    ZSTD_inBuffer input = {in, in_count, 0};
    ZSTD_outBuffer output = {out, out_count, 0};
    size_t left = ZSTD_decompressStream(decoder->zstd, &output, &input);
    check_memory(left);
    if (ZSTD_isError(left))
        return frag_fail(error, FRAG_E_INPUT,
                         "the compressed data is broken (zstd: %s); the file is damaged",
                         ZSTD_getErrorName(left));
    *in_used = input.pos;
    *out_used = output.pos;
    decoder->is_between_frames = left == 0;
    return true;
}

static bool gzip_step(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                      size_t *in_used, unsigned char *out, size_t out_count, size_t *out_used,
                      frag_error *error)
{
    size_t in_part = in_count < ((size_t)1 << 30) ? in_count : (size_t)1 << 30;
    size_t out_part = out_count < ((size_t)1 << 30) ? out_count : (size_t)1 << 30;
    if (decoder->is_between_frames && in_part > 0 && decoder->gzip.total_out > 0) {
        if (inflateReset(&decoder->gzip) != Z_OK)
            return frag_fail(error, FRAG_E_SYSTEM, "zlib could not be reset; try again");
    }
    unsigned char scratch[1] = {0};
    /* zlib's input pointer is not const; it does not write through it. */
    decoder->gzip.next_in = in_part == 0 ? scratch : (z_const Bytef *)(uintptr_t)in;
    decoder->gzip.avail_in = (uInt)in_part;
    decoder->gzip.next_out = out;
    decoder->gzip.avail_out = (uInt)out_part;
    int result = inflate(&decoder->gzip, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR)
        frag_scope_fail(1, 1);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return frag_fail(error, FRAG_E_INPUT,
                         "the compressed data is broken (gzip: %s); the file is damaged",
                         decoder->gzip.msg != NULL ? decoder->gzip.msg : "unexpected end");
    *in_used = in_part - decoder->gzip.avail_in;
    *out_used = out_part - decoder->gzip.avail_out;
    decoder->is_between_frames = result == Z_STREAM_END;
    return true;
}

bool frag_decoder_step(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                       size_t *in_used, unsigned char *out, size_t out_count, size_t *out_used,
                       bool *is_at_end, frag_error *error)
{
    bool ok = decoder->codec == FRAG_CODEC_ZSTD
                  ? zstd_step(decoder, in, in_count, in_used, out, out_count, out_used, error)
                  : gzip_step(decoder, in, in_count, in_used, out, out_count, out_used, error);
    *is_at_end = ok && decoder->is_between_frames;
    return ok;
}

size_t frag_decoder_frame_bytes(const frag_decoder *decoder, const unsigned char *in, size_t count)
{
    if (decoder->codec != FRAG_CODEC_ZSTD || ZSTD_isError(ZSTD_findFrameCompressedSize(in, count)))
        return 0;
    unsigned long long bytes = ZSTD_getFrameContentSize(in, count);
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX; /* larger ones say "not known" */
}

bool frag_decoder_frame(frag_decoder *decoder, const unsigned char *in, size_t in_count,
                        size_t *in_used, unsigned char *out, size_t out_capacity, size_t *out_used)
{
    *in_used = ZSTD_findFrameCompressedSize(in, in_count);
    *out_used = ZSTD_decompressDCtx(decoder->zstd, out, out_capacity, in, *in_used);
    check_memory(*out_used);
    if (!ZSTD_isError(*out_used))
        return true;
    ZSTD_DCtx_reset(decoder->zstd, ZSTD_reset_session_only);
    *in_used = 0;
    *out_used = 0;
    return false;
}

void frag_decoder_destroy(frag_decoder *decoder)
{
    if (decoder == NULL)
        return;
    if (decoder->zstd != NULL)
        destroy_zstd(decoder->zstd);
    if (decoder->is_gzip_open) {
        frag_scope_disown(&decoder->gzip);
        inflateEnd(&decoder->gzip);
    }
    frag_free(decoder);
}

const char *frag_codec_library_version(frag_codec codec)
{
    return codec == FRAG_CODEC_GZIP ? zlibVersion() : ZSTD_versionString();
}
