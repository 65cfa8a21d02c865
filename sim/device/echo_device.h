/* A device that repeats the answers of another one.
 *
 * The requests of a run to its device and the answers are recorded during the run; the same run on
 * an echo of these answers then gives the same layout, without a GPU and any number of times. */
#ifndef FRAG_DEVICE_ECHO_DEVICE_H
#define FRAG_DEVICE_ECHO_DEVICE_H

#include "sim/device.h"

typedef struct frag_answer_list {
    frag_device_answer *items;
    size_t count;
    size_t capacity;
} frag_answer_list;

/* For frag_device.on_answer, with a list as context. */
void frag_answer_list_keep(void *list, const frag_device_answer *answer);
void frag_answer_list_destroy(frag_answer_list *list);

typedef struct frag_echo_options {
    const frag_answer_list *answers; /* outlive the device */
    uint64_t capacity_bytes;         /* as the device said */
    uint64_t free_bytes;             /* before the run; FRAG_UNLIMITED: without end */
    uint64_t page_bytes;
    uint32_t ordinal;
} frag_echo_options;

/* The first of the calls that is not the next one of the list fails the device: the run was another
 * one. */
frag_device *frag_echo_device_create(const frag_echo_options *options);

#endif
