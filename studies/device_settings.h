/* The card and the table of latencies of a simulated device, as its user names them. */
#ifndef FRAG_STUDIES_DEVICE_SETTINGS_H
#define FRAG_STUDIES_DEVICE_SETTINGS_H

#include "base/context.h"
#include "sim/device/device_description.h"
#include "sim/run.h"

typedef struct frag_device_settings {
    const char *gpu;          /* a card's name, or a file; NULL: none */
    const char *latency;      /* a file, whose calls are taken instead of the card's; NULL: none */
    bool has_capacity;        /* the user names one besides */
    const char *gpu_option;   /* what the user calls the first: "--gpu" */
    const char *latency_hint; /* and how to name the second: "to --latency" */
} frag_device_settings;

/* A device as they say, without limit where there is no card. *gpu must outlive it. */
bool frag_device_settings_read(const frag_device_settings *settings, const frag_context *context,
                               frag_device_spec *device, frag_device_description *gpu,
                               frag_error *error);

#endif
