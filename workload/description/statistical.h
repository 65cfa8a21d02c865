/* What a statistical workload says: requests whose sizes and lifetimes are drawn, in phases.
 *
 * The models are those of the literature on synthetic traces. Sizes and lifetimes by distributions,
 * or as often as they were recorded: MEAN and CDF of Zorn and Grunwald, Evaluating models of memory
 * allocation, TOMACS 4(1), 1994. Blocks released at random once so many bytes are live: Knuth, The
 * Art of Computer Programming 1, section 2.5; Shore, CACM 18(8), 1975. An adversary: Robson, JACM
 * 21(3), 1974. What all but the last leave out: Wilson, Johnstone, Neely, Boles, Dynamic storage
 * allocation, 1995. */
#ifndef FRAG_DESCRIPTION_STATISTICAL_H
#define FRAG_DESCRIPTION_STATISTICAL_H

#include "base/formats/yaml.h"
#include "workload/description/description.h"

enum {
    FRAG_CLASSES_MAX = 256, /* of a phase */
    FRAG_PHASES_MAX = 64,
    FRAG_STATISTICAL_REQUESTS_MAX = 10000000,
};

typedef enum frag_pattern {
    FRAG_PATTERN_MIXTURE, /* requests of the classes, in random order */
    FRAG_PATTERN_ROBSON,
} frag_pattern;

/* Which block goes first where more would be live than may be. */
typedef enum frag_release {
    FRAG_RELEASE_RANDOM,
    FRAG_RELEASE_OLDEST,
    FRAG_RELEASE_NEWEST,
    FRAG_RELEASE_DUE, /* that whose lifetime ends first */
} frag_release;

/* Requests that are alike. */
typedef struct frag_request_class {
    uint64_t share; /* of the requests of a phase */
    uint64_t count; /* exactly so many of them instead; 0: by share */
    frag_draw bytes;
    uint64_t multiple;  /* of which sizes are rounded up to one */
    frag_draw lifetime; /* requests that come before its release; FRAG_UNLIMITED: is not released */
    frag_draw stream;   /* raw handle */
} frag_request_class;

typedef struct frag_request_phase {
    char name[FRAG_NAME_BYTES]; /* of its marks; "": its number */
    uint64_t pattern;           /* frag_pattern */
    uint64_t requests;
    uint64_t repeat;  /* so many times, one after the other */
    frag_draw live;   /* bytes at most; from one number to another: in the course of the phase; 0 */
    uint64_t release; /* frag_release */
    double stretch;   /* lifetimes are so many times as long */
    double survivors; /* share of the phase's live blocks that its end leaves */
    uint64_t holes;   /* every so many of the rest are released; 0: none */
    uint64_t largest; /* bytes of Robson's last requests */
    frag_request_class *classes; /* at least one */
    uint32_t class_count;
} frag_request_phase;

typedef struct frag_statistical {
    uint64_t seed;
    uint64_t rounds; /* of all phases */
    frag_request_phase *phases;
    uint32_t phase_count;
} frag_statistical;

/* The mapping 'statistical' of a file; description must be {0}, the caller destroys it in any case.
 */
bool frag_statistical_read(const frag_yaml_node *mapping, frag_statistical *description,
                           frag_error *error);
/* A phase with one class and all fields at their defaults. */
void frag_request_phase_init(frag_request_phase *phase);
void frag_statistical_destroy(frag_statistical *description);

/* All phases, rounds and repeats together. */
uint64_t frag_statistical_requests(const frag_statistical *description);
/* Brings that to about requests: every phase has its share, but no fewer than the counts of its
 * classes. false: there is a phase whose requests follow from its pattern, or more than
 * FRAG_STATISTICAL_REQUESTS_MAX would come of it. */
bool frag_statistical_scale(frag_statistical *description, uint64_t requests, frag_error *error);

#endif
