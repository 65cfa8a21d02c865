/* Large arrays of a process whose memory is limited: those that do not fit lie in temporary files.
 *
 * frag_alloc, frag_realloc and frag_free (base/memory.h) ask here first. A large array is a mapping
 * of its own. While the mappings that are only in memory stay below the limit it is one of these;
 * beyond it is a mapping of a file that has no name, which the system writes out and reads again as
 * memory is needed. Arenas and small arrays do not count: what a replay works on stays in memory.
 * Until frag_spill_begin is called, which is for a program's main, nothing here does anything. */
#ifndef FRAG_SYSTEM_SPILL_H
#define FRAG_SYSTEM_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* From now on large arrays take at most limit_bytes of memory, and the rest is in files of the
 * folder, which is copied; NULL: of $TMPDIR, else /var/tmp. FRAG_E_SYSTEM: no file can be made
 * there, and nothing has changed. Before other threads start. */
bool frag_spill_begin(uint64_t limit_bytes, const char *folder, frag_error *error);

/* Is this one of the arrays, or would one of so many bytes be? */
bool frag_spill_concerns(const void *memory, size_t bytes);

/* The array, NULL or any other memory with so many bytes now; what is added is zero. Where memory
 * was not one of the arrays it is freed. NULL: neither memory nor a file can be had. */
void *frag_spill_resize(void *memory, size_t bytes);

/* Gives an array back, or, as free() does, memory of the C library. */
void frag_spill_free(void *memory);

/* Where the files are; NULL: memory is not limited. */
const char *frag_spill_folder(void);

/* Bytes of the arrays that are in files, and of those in memory. */
uint64_t frag_spill_file_bytes(void);
uint64_t frag_spill_memory_bytes(void);

#endif
