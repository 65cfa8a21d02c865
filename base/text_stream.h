/* A stream that prints into memory. */
#ifndef FRAG_BASE_TEXT_STREAM_H
#define FRAG_BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

typedef struct frag_text_stream frag_text_stream;

frag_text_stream *frag_text_stream_open(void);
FILE *frag_text_stream_file(frag_text_stream *stream);
/* What was printed, with a zero byte behind it; the caller frees. length may be NULL. */
char *frag_text_stream_close(frag_text_stream *stream, size_t *length);
/* Forgets what was printed. */
void frag_text_stream_abandon(frag_text_stream *stream);

#endif
