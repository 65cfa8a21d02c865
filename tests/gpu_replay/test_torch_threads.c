/* Every policy serves a program of several threads and streams through libfraglab_torch.so. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "tests/gpu_replay/torch_program.h"

/* ---- a program of several threads */

#define THREADS 4
#define STEPS 1500
#define HELD_MAX 48

typedef struct held_block {
    uint64_t address;
    uint64_t bytes;
} held_block;

/* What all threads hold, to see that no two blocks share a byte. */
static struct {
    pthread_mutex_t lock;
    held_block blocks[THREADS * HELD_MAX];
    size_t count;
    uint64_t requests;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hold(uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&world.lock);
    for (size_t i = 0; i < world.count; i++) {
        const held_block *other = &world.blocks[i];
        EXPECT(address >= other->address + other->bytes || other->address >= address + bytes);
    }
    world.blocks[world.count++] = (held_block){address, bytes};
    world.requests++;
    pthread_mutex_unlock(&world.lock);
}

/* Before the free: another thread may be granted the address at once. */
static void let_go(uint64_t address)
{
    pthread_mutex_lock(&world.lock);
    size_t i = 0;
    while (i < world.count && world.blocks[i].address != address)
        i++;
    EXPECT(i < world.count);
    world.blocks[i] = world.blocks[--world.count];
    pthread_mutex_unlock(&world.lock);
}

static uint64_t draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

typedef struct worker {
    served_program *program;
    uint64_t seed;
    frag_cuda_stream streams[3];
} worker;

static void *work(void *context)
{
    worker *self = context;
    served_program *program = self->program;
    held_block mine[HELD_MAX];
    size_t count = 0;
    for (int step = 0; step < STEPS || count > 0; step++) {
        bool is_full = step >= STEPS || count == HELD_MAX;
        if (!is_full && (count == 0 || draw(&self->seed) % 2 == 0)) {
            uint64_t bytes = 1 + (draw(&self->seed) >> (40 + draw(&self->seed) % 20));
            frag_cuda_stream stream = self->streams[draw(&self->seed) % 3];
            void *memory = program->alloc((ssize_t)bytes, 0, stream);
            EXPECT(memory != NULL);
            hold((uint64_t)(uintptr_t)memory, bytes);
            if (draw(&self->seed) % 8 == 0)
                program->record_stream(memory, self->streams[draw(&self->seed) % 3]);
            mine[count++] = (held_block){(uint64_t)(uintptr_t)memory, bytes};
        } else {
            size_t at = draw(&self->seed) % count;
            let_go(mine[at].address);
            program->free((void *)(uintptr_t)mine[at].address, (ssize_t)mine[at].bytes, 0,
                          self->streams[draw(&self->seed) % 3]);
            mine[at] = mine[--count];
        }
    }
    return NULL;
}

static void be_busy(served_program *program, const char *name)
{
    (void)name;
    worker workers[THREADS];
    pthread_t threads[THREADS];
    frag_cuda_stream streams[3] = {NULL, NULL, NULL};
    for (int i = 1; i < 3; i++)
        EXPECT(program->cudaStreamCreateWithFlags(&streams[i], 1) == 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){program, (uint64_t)i + 1, {streams[0], streams[1], streams[2]}};
        EXPECT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(program->stat(0, "requested_bytes.all.current") == 0);
    EXPECT(program->stat(0, "allocation.all.allocated") == (long long)world.requests);
    EXPECT(program->stat(0, "allocation.all.current") == 0);
    /* What still waits for a stream is looked at when the cache is emptied. */
    program->complete(UINT64_MAX);
    program->empty_cache();
    EXPECT(program->stat(0, "active_bytes.all.current") == 0);
    EXPECT(program->stat(0, "active.all.current") == 0);
    EXPECT(program->stat(0, "reserved_bytes.all.peak") >=
           program->stat(0, "allocated_bytes.all.peak"));
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

/* Does a replay put the blocks where they were, up to one offset? cuda-async looks which streams
 * have come how far, which no recording of requests tells; gmlake breaks ties by the addresses of
 * ranges that it puts together anew; frugal spaces its areas by how many pools there may be. */
static bool is_retraceable(const char *policy)
{
    return strcmp(policy, "cuda-async") != 0 && strcmp(policy, "frugal") != 0 &&
           strcmp(policy, "gmlake") != 0;
}

static void every_policy_serves_threads_and_streams_and_its_recording_replays_alike(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const char *policy = frag_policy_table[i]->name;
        if (frag_policy_engine_of(frag_policy_table[i])->planner != NULL)
            continue; /* needs a trace in advance */
        if (strcmp(policy, "rmm-fixed-size") == 0)
            policy = "rmm-fixed-size:block_size=16MiB"; /* larger requests are refused */
        torch_program_forget_files();
        torch_program_run(be_busy, "", policy, NULL, "capacity=64GiB,lag=3");
        assert_true(torch_program_file_has("stats", policy));
        if (!is_retraceable(policy))
            continue;
        uint64_t reserved_peak = torch_program_replay(policy, 64 * FRAG_GIB);
        char peak[64];
        char text[FRAG_BYTES_TEXT_MAX];
        snprintf(peak, sizeof peak, "%s at the peak", frag_bytes_text(reserved_peak, text));
        assert_true(torch_program_file_has("stats", peak));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_serves_threads_and_streams_and_its_recording_replays_alike),
    };
    return cmocka_run_group_tests(tests, torch_program_set_up, torch_program_tear_down);
}
