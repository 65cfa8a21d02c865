/* SQLite databases for tests, as bytes. */
#ifndef FRAG_SUPPORT_DATABASE_BYTES_H
#define FRAG_SUPPORT_DATABASE_BYTES_H

#include <stddef.h>

/* The database that the statements make, with pages of 512 bytes; the caller frees it. */
unsigned char *frag_database_bytes(const char *statements, size_t *count);

#endif
