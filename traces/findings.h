/* What readers found in recordings that does not fit together, or had to guess. */
#ifndef FRAG_TRACES_FINDINGS_H
#define FRAG_TRACES_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Counted by kind, with the first of each explained. */
#define FRAG_FINDING_KINDS_MAX 32
typedef struct frag_finding {
    const char *kind;    /* static: "free-of-unknown-block" */
    const char *meaning; /* static: one line for people: what it means and how it was treated */
    uint64_t count;
    uint32_t device;       /* of the first */
    uint64_t event;        /* of the first: index of the entry in the recording */
    char first[160];       /* what was seen there */
    bool is_inconsistency; /* false: a note (ambiguous, guessed), which does not make check fail */
} frag_finding;

typedef struct frag_findings {
    frag_finding items[FRAG_FINDING_KINDS_MAX];
    uint32_t count;
} frag_findings;

void frag_findings_add(frag_findings *findings, const char *kind, const char *meaning,
                       bool is_inconsistency, uint32_t device, uint64_t event, const char *format,
                       ...) __attribute__((format(printf, 7, 8)));
uint64_t frag_findings_inconsistencies(const frag_findings *findings);

/* Metadata of a recording whose releases were guessed, for people: rows and reports show it. */
#define FRAG_GUESSED_KEY "guessed"
#define FRAG_GUESSED_PAIRS "releases paired by size (a guess)"

#endif
