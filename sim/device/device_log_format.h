/* The device log: what a recorder writes while a program runs, one record for each call by which
 * the program asked the device for memory or gave it back. Byte by byte in docs/recording.md.
 *
 * gpu_replay/recorder writes it, traces/exchange/device_log.c reads it; this header is all that
 * they share. Numbers are little-endian. Layout: a header of FRAG_DEVICE_LOG_HEADER_BYTES, then
 * records of FRAG_DEVICE_LOG_RECORD_BYTES. The header counts the records that were begun, so that a
 * reader knows how much of a log is missing, whatever ended its program. */
#ifndef FRAG_DEVICE_DEVICE_LOG_FORMAT_H
#define FRAG_DEVICE_DEVICE_LOG_FORMAT_H

#include <stdint.h>

#define FRAG_DEVICE_LOG_MAGIC                                                                      \
    "\x89"                                                                                         \
    "FDL\r\n\x1a\n"
#define FRAG_DEVICE_LOG_MAGIC_BYTES 8
/* Environment variable that names the folder for logs, and how their names end. */
#define FRAG_DEVICE_LOG_FOLDER_VARIABLE "FRAGLAB_RECORD"
#define FRAG_DEVICE_LOG_ENDING ".devlog"
#define FRAG_DEVICE_LOG_MAJOR 1
#define FRAG_DEVICE_LOG_HEADER_BYTES 4096
#define FRAG_DEVICE_LOG_RECORD_BYTES 64
#define FRAG_DEVICE_LOG_COMMAND_OFFSET 256
#define FRAG_DEVICE_LOG_COMMAND_BYTES (FRAG_DEVICE_LOG_HEADER_BYTES - 256)

/* Who wrote the log. */
enum { FRAG_RECORDED_BY_PRELOAD = 1, FRAG_RECORDED_BY_CUPTI = 2 };

/* In the header's flags. */
enum {
    FRAG_DEVICE_LOG_DRIVER_LOADED = 1, /* the driver was there though no call was seen */
    FRAG_DEVICE_LOG_STOPPED = 2        /* the log could not grow: what came later is not in it */
};

/* In a record's flags. */
enum {
    FRAG_LOG_BY_DRIVER = 1, /* cu..., not cuda... */
    FRAG_LOG_OF_HOST = 2    /* memory of the host */
};

#define FRAG_DEVICE_UNKNOWN UINT16_MAX

/* X(enumerator, code, name): codes are never given another meaning. Fields not named are 0.
 * Where a call that takes memory fails for lack of it (result 2), address is what was free. */
#define FRAG_LOG_CALLS(X)                                                                          \
    X(MALLOC, 1, "malloc")              /* device, bytes; address that came back */                \
    X(FREE, 2, "free")                  /* address */                                              \
    X(MALLOC_ASYNC, 3, "malloc_async")  /* as malloc; stream; other = pool, 0: the current one */  \
    X(FREE_ASYNC, 4, "free_async")      /* address, stream */                                      \
    X(RESERVE, 5, "reserve")            /* bytes; address that came back */                        \
    X(UNRESERVE, 6, "unreserve")        /* address, bytes */                                       \
    X(CREATE, 7, "create")              /* device, bytes; other = handle that came back */         \
    X(RELEASE, 8, "release")            /* other = handle */                                       \
    X(MAP, 9, "map")                    /* address, bytes, other = handle */                       \
    X(UNMAP, 10, "unmap")               /* address, bytes */                                       \
    X(SET_ACCESS, 11, "set_access")     /* address, bytes */                                       \
    X(RETAIN, 12, "retain")             /* address; other = handle that came back */               \
    X(POOL_CREATE, 13, "pool_create")   /* device, bytes = most it may hold; other = pool */       \
    X(POOL_DESTROY, 14, "pool_destroy") /* other = pool */                                         \
    X(POOL_TRIM, 15, "pool_trim")       /* other = pool, bytes = to keep */                        \
    X(POOL_SET, 16, "pool_set")         /* other = pool, address = attribute, bytes = value */     \
    X(DEVICE_RESET, 17, "device_reset") /* device: everything on it is gone */                     \
    X(MANAGED, 18, "managed")           /* as malloc: memory that host and device share */         \
    X(HOST_MALLOC, 19, "host_malloc")   /* bytes; address that came back */                        \
    X(HOST_FREE, 20, "host_free")       /* address */                                              \
    X(ACTIVITY_ALLOC, 21, "activity_alloc") /* as malloc_async, told by CUPTI afterwards */        \
    X(ACTIVITY_FREE, 22, "activity_free")   /* as free_async, told by CUPTI afterwards */

typedef enum frag_log_call {
#define FRAG_LOG_CALL_ENUM(name, code, text) FRAG_LOG_##name = code,
    FRAG_LOG_CALLS(FRAG_LOG_CALL_ENUM)
#undef FRAG_LOG_CALL_ENUM
} frag_log_call;

/* As it lies in the file: a recorder writes it straight into the mapped log. */
typedef struct frag_device_record {
    uint64_t time_ns; /* monotonic, when the call began */
    uint64_t address;
    uint64_t bytes;
    uint64_t stream; /* raw handle */
    uint64_t other;
    uint32_t thread;
    uint32_t duration_ns; /* UINT32_MAX: that long or longer */
    int32_t result;       /* cudaError_t or CUresult */
    uint16_t device;
    uint8_t call;
    uint8_t flags;
    uint32_t number; /* of the record, from 1, modulo 2^32; written last: 0 is no record */
    uint32_t reserved;
} frag_device_record;

typedef struct frag_device_log_header {
    char magic[FRAG_DEVICE_LOG_MAGIC_BYTES];
    uint16_t major;
    uint16_t minor;
    uint32_t header_bytes;
    uint32_t record_bytes;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t recorded_by;
    uint64_t start_unix_ns;      /* Unix time ... */
    uint64_t start_monotonic_ns; /* ... and what the clock of the records said then */
    uint32_t runtime_version;    /* 12040 is CUDA 12.4; 0: not known */
    uint32_t driver_version;
    uint64_t flags;
    uint64_t begun_count;      /* records begun, those that were never finished included */
    uint64_t end_monotonic_ns; /* when the program ended in order; 0: it did not */
} frag_device_log_header;

#endif
