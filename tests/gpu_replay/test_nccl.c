/* The stand-in of NCCL: several ranks, one process each or all in one, tell each other what the
 * host wrote; and nobody waits for a rank that is gone. Each rank is a child that loads the
 * libraries itself, as a device that was used cannot be passed on. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

enum { INT32 = 2, FLOAT = 7, HALF = 6 };
enum { SUM = 0, MAX = 2, AVERAGE = 4 };
enum { REMOTE_ERROR = 6 };
enum { RANKS = 3, SECONDS_MAX = 60 };

typedef struct unique_id {
    char bytes[128];
} unique_id;

static struct {
    int (*get_id)(unique_id *);
    int (*init)(void **, int, unique_id, int);
    int (*init_all)(void **, int, const int *);
    int (*split)(void *, int, int, void **, void *);
    int (*shrink)(void *, int *, int, void **, void *, int);
    int (*grow)(void *, int, const void *, int, void **, void *);
    int (*get_comm_id)(void *, unique_id *);
    int (*destroy)(void *);
    int (*abort)(void *);
    int (*count)(void *, int *);
    int (*rank)(void *, int *);
    int (*async_error)(void *, int *);
    const char *(*last_error)(void *);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
    int (*reduce)(const void *, void *, size_t, int, int, int, void *, void *);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, void *);
    int (*broadcast)(const void *, void *, size_t, int, int, void *, void *);
    int (*all_gather)(const void *, void *, size_t, int, void *, void *);
    int (*all_to_all)(const void *, void *, size_t, int, void *, void *);
    int (*gather)(const void *, void *, size_t, int, int, void *, void *);
    int (*scatter)(const void *, void *, size_t, int, int, void *, void *);
    int (*send)(const void *, size_t, int, int, void *, void *);
    int (*receive)(void *, size_t, int, int, void *, void *);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*memory)(void **, size_t);
    int (*release)(void *);
    void (*write)(void *, const void *, size_t);
    size_t (*read)(const void *, void *, size_t);
    bool (*set)(const char *, char *, size_t);
} nccl;

/* Shared by all ranks of a test. */
static struct {
    atomic_int has_id;
    unique_id id;
    atomic_int step;
} * board;

/* In a child there is no test to fail: it says what was wrong and ends. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void find_all(void *library)
{
    const struct {
        const char *name;
        void *field;
    } functions[] = {
        {"ncclGetUniqueId", &nccl.get_id},
        {"ncclCommInitRank", &nccl.init},
        {"ncclCommInitAll", &nccl.init_all},
        {"ncclCommSplit", &nccl.split},
        {"ncclCommShrink", &nccl.shrink},
        {"ncclCommGrow", &nccl.grow},
        {"ncclCommGetUniqueId", &nccl.get_comm_id},
        {"ncclCommDestroy", &nccl.destroy},
        {"ncclCommAbort", &nccl.abort},
        {"ncclCommCount", &nccl.count},
        {"ncclCommUserRank", &nccl.rank},
        {"ncclCommGetAsyncError", &nccl.async_error},
        {"ncclGetLastError", &nccl.last_error},
        {"ncclAllReduce", &nccl.all_reduce},
        {"ncclReduce", &nccl.reduce},
        {"ncclReduceScatter", &nccl.reduce_scatter},
        {"ncclBroadcast", &nccl.broadcast},
        {"ncclAllGather", &nccl.all_gather},
        {"ncclAlltoAll", &nccl.all_to_all},
        {"ncclGather", &nccl.gather},
        {"ncclScatter", &nccl.scatter},
        {"ncclSend", &nccl.send},
        {"ncclRecv", &nccl.receive},
        {"ncclGroupStart", &nccl.group_start},
        {"ncclGroupEnd", &nccl.group_end},
        {"ncclMemAlloc", &nccl.memory},
        {"ncclMemFree", &nccl.release},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        software_find(library, functions[i].name, functions[i].field);
    software_find(NULL, "frag_software_write", &nccl.write);
    software_find(NULL, "frag_software_read", &nccl.read);
    software_find(NULL, "frag_software_set", &nccl.set);
}

static void load(void)
{
    char folder[4096], path[4200];
    software_load_all();
    software_start("devices=2");
    cuda_entries_software_folder(folder, sizeof folder);
    /* The stand-in looks the runtime up among what a program has loaded. */
    snprintf(path, sizeof path, "%s/12/libcudart.so.12", folder);
    CHECK(dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL);
    snprintf(path, sizeof path, "%s/12/libnccl.so.2", folder);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    find_all(library);
}

static void *join(int rank, int count)
{
    void *communicator = NULL;
    load();
    if (rank == 0) {
        CHECK(nccl.get_id(&board->id) == 0);
        atomic_store(&board->has_id, 1);
    }
    while (atomic_load(&board->has_id) == 0)
        usleep(1000);
    CHECK(nccl.init(&communicator, count, board->id, rank) == 0);
    return communicator;
}

typedef void rank_body(int rank, int count);

/* Runs the ranks as children; returns how many ended badly. */
static int run_ranks(rank_body *body, int count)
{
    pid_t children[RANKS];
    int failed = 0;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    fflush(NULL);
    for (int rank = 0; rank < count; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0) {
            alarm(SECONDS_MAX);
            body(rank, count);
            _exit(0);
        }
    }
    for (int rank = 0; rank < count; rank++) {
        int status = 0;
        assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
        failed += status != 0;
    }
    munmap(board, sizeof *board);
    return failed;
}

static void *take(size_t bytes)
{
    void *memory = NULL;
    CHECK(nccl.memory(&memory, bytes) == 0);
    return memory;
}

/* Device memory that holds these numbers. */
static void *put(const int *numbers, size_t count)
{
    void *memory = take(count * sizeof *numbers);
    nccl.write(memory, numbers, count * sizeof *numbers);
    return memory;
}

static void check_numbers(const void *memory, const int *wanted, size_t count, int line)
{
    int found[64];
    size_t bytes = count * sizeof *found;
    size_t known = nccl.read(memory, found, bytes);
    if (known == bytes && memcmp(found, wanted, bytes) == 0)
        return;
    fprintf(stderr, "line %d: %zu of %zu bytes known; %d %d %d\n", line, known, bytes, found[0],
            found[1], found[2]);
    _exit(1);
}
#define HOLDS(memory, ...)                                                                         \
    check_numbers(memory, (int[]){__VA_ARGS__}, sizeof(int[]){__VA_ARGS__} / sizeof(int), __LINE__)

static void exchange(int rank, int count)
{
    int found = 0x5a5a5a5a;
    void *c = join(rank, count);
    CHECK(nccl.count(c, &found) == 0 && found == count);
    CHECK(nccl.rank(c, &found) == 0 && found == rank);
    void *own = put((int[]){rank, 10 * rank, 7}, 3), *out = take(64 * sizeof(int));
    CHECK(nccl.all_reduce(own, out, 3, INT32, SUM, c, NULL) == 0);
    HOLDS(out, 3, 30, 21);
    CHECK(nccl.all_reduce(own, out, 3, INT32, MAX, c, NULL) == 0);
    HOLDS(out, 2, 20, 7);
    CHECK(nccl.all_reduce(own, out, 3, INT32, AVERAGE, c, NULL) == 0);
    HOLDS(out, 1, 10, 7);
    CHECK(nccl.broadcast(own, out, 3, INT32, 2, c, NULL) == 0);
    HOLDS(out, 2, 20, 7);
    CHECK(nccl.all_gather(own, out, 2, INT32, c, NULL) == 0);
    HOLDS(out, 0, 0, 1, 10, 2, 20);
    CHECK(nccl.reduce_scatter(own, out, 1, INT32, SUM, c, NULL) == 0);
    HOLDS(out, (int[]){3, 30, 21}[rank]);
    CHECK(nccl.all_to_all(own, out, 1, INT32, c, NULL) == 0);
    HOLDS(out,
          rank == 0   ? 0
          : rank == 1 ? 0
                      : 7,
          rank == 0   ? 1
          : rank == 1 ? 10
                      : 7,
          rank == 0   ? 2
          : rank == 1 ? 20
                      : 7);
    CHECK(nccl.scatter(own, out, 1, INT32, 1, c, NULL) == 0);
    HOLDS(out, (int[]){1, 10, 7}[rank]);
    CHECK(nccl.gather(own, out, 1, INT32, 1, c, NULL) == 0);
    if (rank == 1)
        HOLDS(out, 0, 1, 2);
    CHECK(nccl.reduce(own, own, 3, INT32, SUM, 0, c, NULL) == 0);
    HOLDS(own, rank == 0 ? 3 : rank, rank == 0 ? 30 : 10 * rank, rank == 0 ? 21 : 7);
    CHECK(nccl.destroy(c) == 0);
    CHECK(nccl.all_reduce(own, out, 3, INT32, SUM, c, NULL) != 0);
}

static void carries_what_the_host_wrote_in_every_collective(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(exchange, RANKS), 0);
}

/* A ring of messages, more than there are slots, in groups and one by one. */
static void send_messages(int rank, int count)
{
    void *c = join(rank, count);
    void *out = take(40 * sizeof(int));
    nccl.group_start();
    for (int i = 0; i < 40; i++) {
        void *own = put(&(int){100 * rank + i}, 1);
        CHECK(nccl.send(own, 1, INT32, (rank + 1) % count, c, NULL) == 0);
        CHECK(nccl.receive((int *)out + i, 1, INT32, (rank + count - 1) % count, c, NULL) == 0);
    }
    CHECK(nccl.group_end() == 0);
    int before = 100 * ((rank + count - 1) % count);
    HOLDS((int *)out + 36, before + 36, before + 37, before + 38, before + 39);
    if (rank == 0)
        CHECK(nccl.send(put(&(int){5}, 1), 1, INT32, 1, c, NULL) == 0);
    if (rank == 1)
        CHECK(nccl.receive(out, 1, INT32, 0, c, NULL) == 0);
    if (rank == 1)
        HOLDS(out, 5);
}

static void passes_messages_in_groups_and_alone(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(send_messages, RANKS), 0);
}

enum { LARGE_BYTES = 9 * 65536 + 4 };

static void fill_large(unsigned char *bytes, int rank)
{
    for (int i = 0; i < LARGE_BYTES; i++)
        bytes[i] = (unsigned char)(i / 251 + i + 7 * rank);
}

static void check_large(const void *memory, int rank)
{
    static unsigned char found[LARGE_BYTES], wanted[LARGE_BYTES];
    fill_large(wanted, rank);
    CHECK(nccl.read(memory, found, LARGE_BYTES) == LARGE_BYTES);
    CHECK(memcmp(found, wanted, LARGE_BYTES) == 0);
}

/* More than fits in all slots of a ring or a mailbox. */
static void send_large(int rank, int count)
{
    static unsigned char bytes[LARGE_BYTES];
    void *c = join(rank, count);
    unsigned char *own = take(LARGE_BYTES);
    unsigned char *all = take((size_t)count * LARGE_BYTES);
    CHECK(nccl.set("shadow=16MiB/64MiB", NULL, 0));
    fill_large(bytes, rank);
    nccl.write(own, bytes, LARGE_BYTES);
    CHECK(nccl.all_gather(own, all, LARGE_BYTES, 0, c, NULL) == 0);
    for (int i = 0; i < count; i++)
        check_large(all + (size_t)i * LARGE_BYTES, i);
    nccl.group_start();
    CHECK(nccl.send(own, LARGE_BYTES, 0, (rank + 1) % count, c, NULL) == 0);
    CHECK(nccl.receive(all, LARGE_BYTES, 0, (rank + count - 1) % count, c, NULL) == 0);
    CHECK(nccl.group_end() == 0);
    check_large(all, (rank + count - 1) % count);
    CHECK(nccl.broadcast(own, own, LARGE_BYTES, 0, 1, c, NULL) == 0);
    check_large(own, 1);
}

static void carries_large_pieces_where_they_are_kept(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(send_large, RANKS), 0);
}

/* Unknown bytes stay unknown, floats of 16 bits are rounded, and what is large does not wait. */
static void reduce_unknown(int rank, int count)
{
    void *c = join(rank, count);
    void *out = take((size_t)4 << 20);
    unsigned char bytes[8];
    CHECK(nccl.all_reduce(rank == 0 ? put((int[]){1, 2}, 2) : take(8), out, 2, INT32, SUM, c,
                          NULL) == 0);
    CHECK(nccl.read(out, bytes, 8) == 0);
    const uint16_t half = rank == 0 ? 0x3c00 : rank == 1 ? 0x1000 : 0; /* 1 and 2^-11 */
    nccl.write(out, &half, 2);
    CHECK(nccl.all_reduce(out, out, 1, HALF, SUM, c, NULL) == 0);
    CHECK(nccl.read(out, bytes, 2) == 2 && bytes[0] == 0x00 && bytes[1] == 0x3c);
    if (rank == 0)
        CHECK(nccl.all_reduce(out, out, (size_t)1 << 20, FLOAT, SUM, c, NULL) == 0);
    CHECK(rank != 0 || nccl.read(out, bytes, 2) == 0);
}

static void keeps_unknown_what_no_host_wrote(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(reduce_unknown, RANKS), 0);
}

static void split(int rank, int count)
{
    void *parts[2] = {NULL, NULL}, *rest = NULL, *c = join(rank, count);
    int found = 0x5a5a5a5a;
    /* Ranks 2 and 0, in that order; 1 alone. */
    CHECK(nccl.split(c, rank % 2, -rank, &parts[0], NULL) == 0);
    CHECK(nccl.rank(parts[0], &found) == 0 && found == (rank == 0));
    void *own = put(&(int){rank + 1}, 1);
    CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, parts[0], NULL) == 0);
    HOLDS(own, rank == 1 ? 2 : 4);
    CHECK(nccl.split(c, rank == 0 ? -1 : 5, 0, &parts[1], NULL) == 0);
    CHECK((parts[1] == NULL) == (rank == 0));
    if (rank == 1)
        return;
    CHECK(nccl.shrink(c, &(int){1}, 1, &rest, NULL, 0) == 0);
    own = put(&(int){rank + 1}, 1);
    CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, rest, NULL) == 0);
    HOLDS(own, 4);
}

static void splits_and_shrinks_communicators(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(split, RANKS), 0);
}

/* Ranks 0 and 1 work together before 2 comes: 1 has the id for it, 0 gives none. */
static void grow(int rank, int count)
{
    unique_id id;
    void *grown = NULL, *c = NULL;
    int found = 0x5a5a5a5a;
    if (rank < 2) {
        c = join(rank, 2);
        void *own = put(&(int){rank + 1}, 1);
        CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, c, NULL) == 0);
        HOLDS(own, 3);
        CHECK(nccl.grow(c, 2, NULL, -1, &grown, NULL) != 0 && grown == NULL); /* no more than now */
        if (rank == 1) {
            CHECK(nccl.get_comm_id(c, &id) == 0);
            board->id = id;
            atomic_store(&board->step, 1);
        }
        CHECK(nccl.grow(c, count, rank == 1 ? &id : NULL, -1, &grown, NULL) == 0);
    } else {
        load();
        while (atomic_load(&board->step) == 0)
            usleep(1000);
        id = board->id;
        CHECK(nccl.grow(NULL, count, NULL, rank, &grown, NULL) != 0 && grown == NULL);
        CHECK(nccl.grow(NULL, count, &id, rank, &grown, NULL) == 0);
    }
    CHECK(nccl.rank(grown, &found) == 0 && found == rank);
    CHECK(nccl.count(grown, &found) == 0 && found == count);
    void *own = put(&(int){rank + 1}, 1);
    CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, grown, NULL) == 0);
    HOLDS(own, 6);
    if (rank == 2)
        return;
    own = put(&(int){rank + 1}, 1); /* the old one goes on */
    CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, c, NULL) == 0);
    HOLDS(own, 3);
}

static void grows_a_communicator_by_new_ranks(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(grow, RANKS), 0);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Rank 1 has done its part and left long before rank 2 comes. */
static void leave_early(int rank, int count)
{
    void *c = join(rank, count);
    void *own = put(&(int){rank + 1}, 1);
    if (rank == 2)
        usleep(300000);
    CHECK(nccl.reduce(own, own, 1, INT32, SUM, 0, c, NULL) == 0);
    if (rank == 0)
        HOLDS(own, 6);
    CHECK(nccl.destroy(c) == 0);
}

static void a_rank_may_leave_after_its_part(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(leave_early, RANKS), 0);
}

static void lose_a_rank(int rank, int count)
{
    int error = 0x5a5a5a5a;
    void *c = join(rank, count);
    if (rank == 1)
        _exit(0);
    double before = now_seconds();
    void *own = put(&(int){1}, 1);
    CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, c, NULL) == REMOTE_ERROR);
    CHECK(now_seconds() - before < 30);
    CHECK(nccl.async_error(c, &error) == 0 && error == REMOTE_ERROR);
    CHECK(strstr(nccl.last_error(c), "rank 1 has ended") != NULL);
    CHECK(nccl.destroy(c) == 0);
}

static void does_not_wait_for_a_rank_that_has_ended(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(lose_a_rank, 2), 0);
}

static void wait_in_vain(int rank, int count)
{
    setenv("FRAGLAB_SOFTWARE_NCCL_TIMEOUT", rank == 0 ? "0.3" : "30", 1);
    void *c = join(rank, count);
    if (rank == 0) {
        void *own = put(&(int){1}, 1);
        CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, c, NULL) == REMOTE_ERROR);
        CHECK(strstr(nccl.last_error(c), "rank 1 did not come in time") != NULL);
        atomic_store(&board->step, 1);
    }
    while (atomic_load(&board->step) == 0)
        usleep(1000);
}

static void gives_up_at_the_time_out(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(wait_in_vain, 2), 0);
}

/* Rank 0 reads what rank 1 never sends: said once, long before the time is out. */
static void receive_in_vain(int rank, int count)
{
    char text[1024] = "";
    int number = 0;
    char path[] = "/tmp/fraglab-nccl-XXXXXX";
    setenv("FRAGLAB_SOFTWARE_NCCL_TIMEOUT", "2", 1);
    setenv("FRAGLAB_SOFTWARE_NCCL_NOTICE", "0.2", 1);
    void *c = join(rank, count);
    if (rank == 0) {
        int file = mkstemp(path), old = dup(2);
        void *first = take(sizeof(int)), *second = take(2 * sizeof(int));
        dup2(file, 2);
        CHECK(nccl.receive(first, 1, INT32, 1, c, NULL) == 0);
        CHECK(nccl.receive(second, 2, INT32, 1, c, NULL) == 0);
        nccl.read(second, &number, sizeof number);
        CHECK(pread(file, text, sizeof text - 1, 0) > 0);
        dup2(old, 2);
        unlink(path);
        const char *said =
            "software NCCL: rank 0 of 2 has waited 0 seconds in ncclRecv of message 2 "
            "from rank 1, 8 bytes, for rank 1; it goes on waiting for 2 "
            "(FRAGLAB_SOFTWARE_NCCL_TIMEOUT)\n";
        CHECK(strcmp(text, said) == 0);
        CHECK(strstr(nccl.last_error(c),
                     "ncclRecv of message 2 from rank 1, 8 bytes, on rank 0 of 2: "
                     "rank 1 did not come in time") != NULL);
        atomic_store(&board->step, 1);
    } else {
        nccl.send(put(&number, 1), 1, INT32, 0, c, NULL);
    }
    while (atomic_load(&board->step) == 0)
        usleep(1000);
}

static void says_which_receive_waits(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(receive_in_vain, 2), 0);
}

static void *abort_soon(void *communicator)
{
    usleep(50000);
    nccl.abort(communicator);
    return NULL;
}

static void abort_while_waiting(int rank, int count)
{
    pthread_t thread;
    void *c = join(rank, count);
    if (rank == 0) {
        void *own = put(&(int){1}, 1);
        CHECK(pthread_create(&thread, NULL, abort_soon, c) == 0);
        CHECK(nccl.all_reduce(own, own, 1, INT32, SUM, c, NULL) == REMOTE_ERROR);
        CHECK(pthread_join(thread, NULL) == 0);
        atomic_store(&board->step, 1);
    }
    while (atomic_load(&board->step) == 0)
        usleep(1000);
}

static void an_abort_ends_the_waiting(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(abort_while_waiting, 2), 0);
}

/* As pipelines do: the real library only puts a receive on a stream. Both ranks ask before either
 * sends, and both have come as far before one goes on. */
static void receive_first(int rank, int count)
{
    void *c = join(rank, count);
    void *first = put(&(int){-1}, 1), *second = take(sizeof(int)), *third = take(sizeof(int));
    CHECK(nccl.receive(first, 1, INT32, 1 - rank, c, NULL) == 0);
    nccl.group_start();
    CHECK(nccl.receive(second, 1, INT32, 1 - rank, c, NULL) == 0);
    CHECK(nccl.receive(third, 1, INT32, 1 - rank, c, NULL) == 0);
    CHECK(nccl.group_end() == 0);
    atomic_fetch_add(&board->step, 1);
    while (atomic_load(&board->step) < count)
        usleep(1000);
    for (int i = 0; i < 3; i++)
        CHECK(nccl.send(put(&(int){10 * rank + i}, 1), 1, INT32, 1 - rank, c, NULL) == 0);
    HOLDS(third, 10 * (1 - rank) + 2);
    HOLDS(first, 10 * (1 - rank));
    HOLDS(second, 10 * (1 - rank) + 1);
}

static void a_receive_does_not_wait_for_its_bytes(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(receive_first, 2), 0);
}

/* As DataParallel does: one thread works for two devices. */
static void work_alone(int rank, int count)
{
    void *both[2] = {NULL, NULL}, *memory[2];
    (void)rank, (void)count;
    load();
    CHECK(nccl.init_all(both, 2, (int[]){0, 1}) == 0);
    memory[0] = put((int[]){4, 5, 6}, 3);
    memory[1] = take(12);
    nccl.group_start();
    for (int i = 0; i < 2; i++)
        CHECK(nccl.broadcast(memory[i], memory[i], 3, INT32, 0, both[i], NULL) == 0);
    CHECK(nccl.group_end() == 0);
    HOLDS(memory[1], 4, 5, 6);
    CHECK(nccl.destroy(both[0]) == 0 && nccl.destroy(both[1]) == 0);
    CHECK(nccl.release(memory[0]) == 0);
}

static void serves_two_devices_of_one_process(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(work_alone, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_what_the_host_wrote_in_every_collective),
        cmocka_unit_test(passes_messages_in_groups_and_alone),
        cmocka_unit_test(a_receive_does_not_wait_for_its_bytes),
        cmocka_unit_test(carries_large_pieces_where_they_are_kept),
        cmocka_unit_test(keeps_unknown_what_no_host_wrote),
        cmocka_unit_test(splits_and_shrinks_communicators),
        cmocka_unit_test(grows_a_communicator_by_new_ranks),
        cmocka_unit_test(a_rank_may_leave_after_its_part),
        cmocka_unit_test(does_not_wait_for_a_rank_that_has_ended),
        cmocka_unit_test(gives_up_at_the_time_out),
        cmocka_unit_test(says_which_receive_waits),
        cmocka_unit_test(an_abort_ends_the_waiting),
        cmocka_unit_test(serves_two_devices_of_one_process),
    };
    return cmocka_run_group_tests_name("nccl", tests, NULL, NULL);
}
