/* Byte quantities as people write and read them, and whole-number parsing for all of fraglab. */
#ifndef FRAG_BASE_BYTES_H
#define FRAG_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A policy in a shared object may call these. */
#pragma GCC visibility push(default)

#define FRAG_KIB ((uint64_t)1 << 10)
#define FRAG_MIB ((uint64_t)1 << 20)
#define FRAG_GIB ((uint64_t)1 << 30)
#define FRAG_UNLIMITED UINT64_MAX

/* "1.5GiB", "64KiB", "2MB", "4096", "unlimited". A fraction needs a unit and is rounded down to
 * whole bytes; "64K" is refused because it could mean either. */
bool frag_bytes_parse(const char *text, uint64_t *bytes, frag_error *error);

/* Decimal digits only, the whole text, in [min, max]. */
bool frag_count_parse(const char *text, uint64_t min, uint64_t max, uint64_t *count,
                      frag_error *error);

/* A decimal number such as 0.8 or 1e-3, the whole text, finite, in [min, max]. */
bool frag_ratio_parse(const char *text, double min, double max, double *ratio, frag_error *error);

#define FRAG_BYTES_TEXT_MAX 32

/* For tables: "512 B", "1.50 MiB", "7.96 GiB"; exact bytes below 1 KiB. Returns text. */
const char *frag_bytes_text(uint64_t bytes, char text[FRAG_BYTES_TEXT_MAX]);

/* 61214 as "61,214". Returns text. */
const char *frag_count_text(uint64_t count, char text[FRAG_BYTES_TEXT_MAX]);

/* The same for one expression: the text lasts until the block around it ends. */
#define FRAG_BYTES(bytes) frag_bytes_text((bytes), (char[FRAG_BYTES_TEXT_MAX]){0})
#define FRAG_COUNT(count) frag_count_text((count), (char[FRAG_BYTES_TEXT_MAX]){0})

#pragma GCC visibility pop

#endif
