#include "base/text_stream.h"

#include <stdbool.h>

#include "base/memory.h"
#include "base/scope.h"

struct frag_text_stream {
    FILE *file;
    char *bytes; /* of the C library, known once the file is closed or flushed */
    size_t length;
};

static void release_stream(void *thing, size_t bytes)
{
    frag_text_stream *stream = thing;
    (void)bytes;
    fclose(stream->file);
    frag_free(stream->bytes);
}

frag_text_stream *frag_text_stream_open(void)
{
    frag_text_stream *stream = frag_alloc(1, sizeof *stream);
    stream->file = open_memstream(&stream->bytes, &stream->length);
    if (stream->file == NULL)
        frag_scope_fail(1, BUFSIZ);
    frag_scope_own(stream, 0, release_stream);
    return stream;
}

FILE *frag_text_stream_file(frag_text_stream *stream)
{
    return stream->file;
}

char *frag_text_stream_close(frag_text_stream *stream, size_t *length)
{
    /* A stream in memory fails for want of memory alone. */
    bool ok = fflush(stream->file) == 0 && ferror(stream->file) == 0;
    if (!ok)
        frag_scope_fail(1, stream->length);
    char *bytes = NULL;
    frag_scope_disown(stream);
    ok = fclose(stream->file) == 0;
    bytes = stream->bytes;
    frag_scope_add(bytes);
    if (length != NULL)
        *length = stream->length;
    frag_free(stream);
    if (!ok || bytes == NULL)
        frag_scope_fail(1, BUFSIZ);
    return bytes;
}

void frag_text_stream_abandon(frag_text_stream *stream)
{
    frag_scope_disown(stream);
    release_stream(stream, 0);
    frag_free(stream);
}
