/* Pages of memory that the process took from the system (mmap). Linux says which of them were
 * written and takes them back; elsewhere the answers are false, and callers do without. */
#ifndef FRAG_SYSTEM_PAGES_H
#define FRAG_SYSTEM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Private memory, which reads as zero from now on; its pages go back to the system. start and bytes
 * are multiples of the page. False: nothing was changed. */
bool frag_pages_zero(void *start, size_t bytes);

/* Bit 0 of seen[i] says whether page i of these bytes is in memory; one that never was is zero.
 * False: the system does not say. */
bool frag_pages_seen(void *start, size_t bytes, unsigned char *seen);

/* Large pages would serve these bytes, multiples of a large page. A hint. */
void frag_pages_prefer_large(void *start, size_t bytes);

/* The file is so long, with all its room taken on the disk, so that no write to a mapping of it can
 * fail; elsewhere a disk that is full then ends the program. 0, or what errno would say. */
int frag_pages_take_room(int file, size_t bytes);

#endif
