/* The settings of the software device: a list "name=value,name=value" (docs/software-cuda.md). */
#ifndef FRAG_SOFTWARE_SOFT_SETTINGS_H
#define FRAG_SOFTWARE_SOFT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu_replay/software/soft_calls.h"
#include "gpu_replay/software/software_cuda.h"

#define FRAG_SOFT_DEVICES_MAX 8
#define FRAG_SOFT_FAULTS_MAX 32
#define FRAG_SOFT_OTHERS_MAX 32
#define FRAG_SOFT_PATH_MAX 1024
#define FRAG_SOFT_LAG_TOLD UINT64_MAX
#define FRAG_SOFT_DEVICE_ALL UINT32_MAX

typedef enum frag_soft_addresses {
    FRAG_SOFT_FIRST_FIT, /* the lowest gap that is large enough; freed ranges are used again */
    FRAG_SOFT_BUMP,      /* never used again; the bases of FIRST_FIT */
    FRAG_SOFT_SNAPSHOT,  /* never used again; the bases of recordings made without a GPU */
} frag_soft_addresses;

/* Calls first to first + count - 1 of one function fail. */
typedef struct frag_soft_fault {
    frag_soft_call_id call;
    uint64_t first; /* from 1 */
    uint64_t count;
    int32_t code;
} frag_soft_fault;

/* From call number from on other processes hold bytes. */
typedef struct frag_soft_others {
    uint64_t bytes;
    uint64_t from;
    uint32_t device;
} frag_soft_others;

/* One call in one_in fails, drawn from a seeded sequence. */
typedef struct frag_soft_chance {
    frag_soft_call_id call;
    uint64_t one_in; /* 0: never */
    uint64_t seed;
    int32_t code;
} frag_soft_chance;

typedef struct frag_soft_settings {
    uint32_t device_count;
    uint64_t capacity_bytes[FRAG_SOFT_DEVICES_MAX];
    uint64_t context_bytes;
    uint64_t reserved_bytes; /* of the card, outside capacity_bytes */
    uint64_t granularity_bytes;
    uint64_t pool_growth_bytes;
    uint64_t mapping_count_max; /* 0: no limit */
    bool has_classes;           /* small requests are charged by class, not whole pages */
    frag_soft_addresses addresses;
    uint64_t lag;
    bool lag_counts_calls;
    bool takes_any_stream;
    bool takes_any_handle_type; /* for sharing memory: fabric handles too, not only descriptors */
    bool shows_processes;       /* to NVML */
    uint32_t driver_version;
    frag_software_card card;     /* of every device; 0: what its compute capability makes usual */
    uint64_t shadow_bytes;       /* the largest piece written by the host that is kept */
    uint64_t shadow_total_bytes; /* kept in all */
    bool answers_low;            /* sizes that are uncertain: the lower end of their range */
    uint32_t fault_count;
    frag_soft_fault faults[FRAG_SOFT_FAULTS_MAX];
    frag_soft_chance chance;
    uint32_t others_count;
    frag_soft_others others[FRAG_SOFT_OTHERS_MAX];
    uint64_t sticky_from; /* 0: never */
    int32_t sticky_code;
    bool logs_memory_only;
    char log_path[FRAG_SOFT_PATH_MAX];    /* "": none */
    char leaks_path[FRAG_SOFT_PATH_MAX];  /* "": none; "stderr" */
    char report_path[FRAG_SOFT_PATH_MAX]; /* "": none */
    char cards_path[FRAG_SOFT_PATH_MAX];  /* shared with other processes; "": none */
} frag_soft_settings;

void frag_soft_settings_default(frag_soft_settings *settings);

/* Applies a list to settings. is_running: only what may change later is taken. */
bool frag_soft_settings_apply(frag_soft_settings *settings, const char *list, bool is_running,
                              frag_error *error);

/* The function that a name stands for: its own, or without "cuda", "cu" or "cuMem", in any case. A
 * trailing _v2 is ignored. */
bool frag_soft_call_find(const char *name, frag_soft_call_id *call);
const char *frag_soft_call_name(frag_soft_call_id call);
frag_soft_about frag_soft_call_about(frag_soft_call_id call);

#endif
