/* Robson's adversary: with power-of-two sizes up to n words and M words live it makes any policy
 * need M (1 + log2(n) / 2) - n + 1 words. Source: Robson, JACM 21(3), 1974. */
#ifndef FRAG_STATISTICAL_ROBSON_H
#define FRAG_STATISTICAL_ROBSON_H

#include "workload/statistical/live_set.h"

/* The program adapts to where blocks are. A trace cannot: it is written for a policy of one growing
 * range which coalesces. All such place its requests alike, since no hole is large enough for any
 * of them, but that at the top. */
void frag_robson_run(frag_live_set *set, const frag_request_phase *phase);

#endif
