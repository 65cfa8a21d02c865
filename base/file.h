/* Files in and out.
 *
 * Input is read through a window, decompressed on the way when its content says so; "-" is stdin.
 * Output goes to a file without a name, on the file system of its destination, that takes the
 * destination's place when everything has been written: a run that failed or was killed leaves an
 * older result whole and nothing beside it. Where the file system has no such files, a temporary
 * one is renamed. "-" and /dev/stdout are stdout. */
#ifndef FRAG_BASE_FILE_H
#define FRAG_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/context.h"
#include "base/error.h"

/* ---- input */
typedef struct frag_input frag_input;

frag_input *frag_input_open(const char *path, frag_error *error); /* NULL on failure */
/* From where the descriptor stands to its end; it stays open. name is for people. */
frag_input *frag_input_from_descriptor(int descriptor, const char *name, frag_error *error);
/* The bytes are the caller's and outlive the input. They are decompressed like a file's. */
frag_input *frag_input_from_memory(const void *bytes, size_t count, const char *name);
void frag_input_close(frag_input *input);
/* Reading fails from when the context is cancelled on. */
void frag_input_stop_by(frag_input *input, const frag_context *context);

/* Makes at least wanted unread bytes visible at *bytes if the input still has them; *count is how
 * many are visible (less than wanted: the end is near). false: read or decompression failed. The
 * pointer is good until the next call. wanted is at most 16 MiB. */
bool frag_input_peek(frag_input *input, size_t wanted, const unsigned char **bytes, size_t *count,
                     frag_error *error);
/* Marks count of the visible bytes as read. */
void frag_input_skip(frag_input *input, size_t count);
/* Copies exactly count bytes; at the end of the input FRAG_E_INPUT "ends at byte N". */
bool frag_input_read(frag_input *input, void *out, size_t count, frag_error *error);

/* Goes on reading at that byte, wherever it has read so far. false: this input cannot (a pipe,
 * compressed), or the byte is not within it; then it goes on as before. */
bool frag_input_seek(frag_input *input, uint64_t offset);

/* Unread bytes that are in memory already, after decompression: all of a small compressed file,
 * else less than follow. Tells how large arrays may have to be. */
size_t frag_input_visible_bytes(const frag_input *input);
uint64_t frag_input_offset(const frag_input *input);     /* decompressed bytes read so far */
uint64_t frag_input_raw_offset(const frag_input *input); /* bytes taken from the file itself */
uint64_t
frag_input_raw_bytes(const frag_input *input); /* size of the file, 0 when not known (pipe) */
/* As frag_grow, of items that are made of the input: many grow to what all of it is likely to need.
 */
void *frag_input_grow(const frag_input *input, void *items, size_t *capacity, size_t count,
                      size_t item_bytes);
bool frag_input_is_compressed(const frag_input *input);
/* Has a compressed file grown to more than so many items, those that are free and so many for each
 * byte taken from it? No real one does. Never true of another file. */
bool frag_input_outgrows(const frag_input *input, uint64_t count, uint64_t free,
                         uint64_t each_byte);
const char *frag_input_name(const frag_input *input);
/* Where a library that opens files itself finds the same bytes: the path of a regular file that is
 * not compressed, else NULL. */
const char *frag_input_plain_path(const frag_input *input);

/* ---- output */
typedef struct frag_output frag_output;

/* Is it stdout and no file: "-", "/dev/stdout"? */
bool frag_output_is_stdout(const char *path);
/* Refuses to overwrite an existing file unless may_overwrite; what takes its place has its
 * permissions. A symbolic link is followed. NULL on failure. */
frag_output *frag_output_open(const char *path, bool may_overwrite, frag_error *error);
/* Where to print; errors are collected and reported by frag_output_finish. */
FILE *frag_output_stream(frag_output *output);
/* Flushes, puts in place, frees. false: nothing was put in place (disk full, ...). */
bool frag_output_finish(frag_output *output, frag_error *error);
/* Leaves the destination as it was and frees. NULL is nothing. */
void frag_output_abandon(frag_output *output);
/* Finishes what is whole and abandons the rest; NULL is nothing. false: it could not be finished.
 */
bool frag_output_end(frag_output *output, bool is_whole, frag_error *error);

#endif
