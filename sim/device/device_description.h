/* Device descriptions: what is known of a card, as a file that people and programs read.
 *
 * `fraglab device probe` writes one from measurements; the simulated device takes capacity,
 * footprint, granularity and the time of calls from it. A latency table is a description that
 * holds nothing but a name and calls. docs/device-description.md is the format. */
#ifndef FRAG_DEVICE_DEVICE_DESCRIPTION_H
#define FRAG_DEVICE_DEVICE_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "sim/device/footprint.h"
#include "sim/device/latency.h"

typedef enum frag_origin {
    FRAG_ORIGIN_UNSTATED, /* a latency table */
    FRAG_ORIGIN_MEASURED, /* by the probe, on the card */
    FRAG_ORIGIN_SOFTWARE, /* by the probe, on a software CUDA */
    FRAG_ORIGIN_NOMINAL,  /* from a data sheet: more than a program can have */
    FRAG_ORIGIN_REPORTED  /* what the driver told programs on such cards, as they have published it
                           */
} frag_origin;

/* Where a malloc lands when memory of the same size was freed just before. */
typedef enum frag_reuse {
    FRAG_REUSE_UNKNOWN,
    FRAG_REUSE_LOWEST, /* in the lowest free range that is large enough */
    FRAG_REUSE_LATEST, /* where the latest free was */
    FRAG_REUSE_NEVER,  /* at a new address */
    FRAG_REUSE_OTHER   /* none of these */
} frag_reuse;

/* A question that a probe may leave open. */
typedef enum frag_answer { FRAG_ANSWER_UNKNOWN, FRAG_ANSWER_NO, FRAG_ANSWER_YES } frag_answer;

#define FRAG_CARD_NAMES_MAX 8u
#define FRAG_CARD_NAME_BYTES 32u

/* Other names of a card, as its file has them. */
typedef struct frag_card_aliases {
    char names[FRAG_CARD_NAMES_MAX][FRAG_CARD_NAME_BYTES];
    uint32_t count;
} frag_card_aliases;

/* What programs ask of a card besides memory. */
typedef struct frag_compute {
    char capability[16]; /* "8.9", "gfx942" */
    uint32_t multiprocessor_count;
    uint32_t threads_per_multiprocessor;
    uint64_t shared_per_block_bytes; /* the most that a kernel can opt in to */
    uint64_t l2_bytes;
    uint64_t bandwidth_bytes; /* of memory, a second */
} frag_compute;

/* Bytes that are not known are 0, texts "". */
typedef struct frag_device_description {
    char name[64];
    frag_origin origin;
    char source[256]; /* where the figures come from */
    char driver[64];
    char cuda[64];
    char date[11]; /* "2026-11-21" */
    char hardware[256];
    uint64_t total_bytes; /* 0: the description says nothing of memory */
    uint64_t context_bytes;
    uint64_t nominal_bytes; /* of the data sheet, its GB read as GiB */
    frag_card_aliases aliases;
    frag_card_aliases meanings; /* names of several cards, for which this one is taken */
    frag_compute compute;
    frag_footprint footprint; /* of mallocs; unit_bytes is never 0 */
    uint64_t alignment_bytes; /* of every malloc's address */
    uint64_t large_alignment_bytes;
    frag_reuse reuse;
    frag_answer serves_scattered; /* a large malloc from free pages that lie apart */
    uint64_t vmm_granularity_bytes;
    uint64_t vmm_recommended_bytes;
    uint64_t pool_first_bytes;          /* reserved after the first small malloc_async */
    uint64_t pool_step_bytes;           /* the pool grows in multiples of this */
    frag_answer pool_releases_at_sync;  /* with threshold 0, free memory goes at synchronize */
    frag_answer pool_keeps_below_limit; /* with a high threshold it stays */
    frag_latency_table latency;         /* named as the description */
    bool has_latency;
    char digest[FRAG_DIGEST_TEXT_BYTES]; /* of all of the above, after reading */
} frag_device_description;

/* A description in which nothing is known: pages of 2 MiB, no texts, no points. The
 * module that drives a card calls it, too. */
#pragma GCC visibility push(default)
void frag_device_description_clear(frag_device_description *description);
#pragma GCC visibility pop

/* Reads a file ("-": stdin) or bytes in memory. false: file, line and column in error, and
 * *description is as it was. */
bool frag_device_description_load(const char *path, frag_device_description *description,
                                  frag_error *error);
bool frag_device_description_parse(const void *bytes, size_t count,
                                   frag_device_description *description, frag_error *error);

/* The file's text, the same for equal descriptions. Reads back as the same description if its
 * fields keep the limits of the format. */
void frag_device_description_write(const frag_device_description *description, frag_text *text);

/* Page of a simulated device: what policies round segments and mappings to. */
uint64_t frag_device_description_page(const frag_device_description *description);

/* What is said behind the card's name wherever figures were made with it: " (nominal)" where its
 * memory is that of a data sheet; else nothing. */
const char *frag_device_description_mark(const frag_device_description *description);

/* "measured", "software", "nominal", "reported"; "unstated". */
const char *frag_origin_name(frag_origin origin);

#endif
