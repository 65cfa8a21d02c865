/* The functions of a stand-in, as its table has them, for a test that calls them all. The tables of
 * calls are turned into C by gpu_replay/software/libraries/generate.awk. */
#ifndef FRAG_GPU_REPLAY_STANDIN_CALLS_H
#define FRAG_GPU_REPLAY_STANDIN_CALLS_H

#include <stdint.h>

typedef enum frag_test_kind {
    FRAG_TEST_NUMBER,
    FRAG_TEST_REAL,
    FRAG_TEST_STRUCTURE,
    FRAG_TEST_HANDLE,
    FRAG_TEST_READ,
    FRAG_TEST_DEVICE,
    FRAG_TEST_FREE,    /* may be written or not */
    FRAG_TEST_WRITTEN, /* bytes of it */
    FRAG_TEST_NEW,
    FRAG_TEST_NEW_NUMBER,
    FRAG_TEST_GONE,
    FRAG_TEST_GONE_NUMBER,
} frag_test_kind;

typedef struct frag_test_argument {
    frag_test_kind kind;
    int64_t number;
    void *pointer;
    uint64_t bytes;
} frag_test_argument;

enum { FRAG_TEST_ARGUMENTS = 40 };

/* Any function; the caller knows its type. */
typedef void frag_test_function(void);

typedef struct frag_test_call {
    const char *name; /* NULL: the end */
    uint32_t argument_count;
    /* Sets kinds, and from the numbers in the arguments the bytes. */
    void (*shape)(frag_test_argument *arguments);
    void (*call)(frag_test_function *function, frag_test_argument *arguments);
} frag_test_call;

typedef struct frag_test_library {
    const char *name;
    const char *soname;
    int major;
    const frag_test_call *calls;
} frag_test_library;

/* All of them, both releases of CUDA; ends with NULL. */
extern const frag_test_library *const frag_test_libraries[];

#endif
