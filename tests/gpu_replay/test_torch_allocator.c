/* libfraglab_torch.so over its C interface: what it refuses, orders, records and leaves behind. */
#include <sys/wait.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/gpu_replay/torch_program.h"

/* ---- single cases */

static void ask_for_too_much(served_program *program, const char *name)
{
    (void)name;
    void *half = program->alloc(40 << 20, 0, NULL);
    EXPECT(half != NULL);
    EXPECT(program->alloc(40 << 20, 0, NULL) == NULL);
    EXPECT(strstr(program->last_error(), "CUDA out of memory") != NULL);
    EXPECT(program->alloc(-1, 0, NULL) == NULL);
    program->free(half, 40 << 20, 0, NULL);
    half = program->alloc(40 << 20, 0, NULL);
    EXPECT(half != NULL);
    program->free(half, 40 << 20, 0, NULL);
    EXPECT(program->stat(0, "num_ooms") == 1);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void what_does_not_fit_is_refused_with_words_and_recorded_as_failed(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch", "best-fit", "direct", "buddy"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        torch_program_forget_files();
        torch_program_run(ask_for_too_much, "", policies[i], "64MiB", "");
        assert_true(torch_program_file_has("stderr", "CUDA out of memory"));
        assert_true(torch_program_file_has("stats", "1 out of memory"));
        (void)torch_program_replay(policies[i], 64 * FRAG_MIB);
    }
}

static void see_the_driver_refuse(served_program *program, const char *name)
{
    (void)name;
    EXPECT(program->alloc(1 << 20, 0, NULL) == NULL);
    EXPECT(strstr(program->last_error(), "cudaErrorIllegalAddress") != NULL);
    EXPECT(strstr(program->last_error(), "out of memory") == NULL);
    EXPECT(program->alloc(1 << 20, 0, NULL) == NULL);
    torch_program_close(program);
}

static void an_error_of_the_driver_is_told_in_its_words(void **state)
{
    (void)state;
    torch_program_run(see_the_driver_refuse, "", "pytorch", NULL, "fail=malloc:1:700:all");
}

static void be_refused(served_program *program, const char *name)
{
    EXPECT(strstr(program->last_error(), name) != NULL);
    EXPECT(program->alloc(512, 0, NULL) == NULL);
    EXPECT(program->call_count("cudaMalloc") == 0);
    int other = 0;
    program->free(&other, 4, 0, NULL);
    program->empty_cache();
    torch_program_close(program);
}

static void settings_that_are_wrong_serve_nothing_and_say_why(void **state)
{
    (void)state;
    torch_program_run(be_refused, "did you mean 'best-fit'", "best-fti", NULL, "");
    assert_true(torch_program_file_has("stderr", "FRAGLAB_POLICY: there is no policy 'best-fti'"));
    torch_program_run(be_refused, "not a power of two", "buddy:min_block=1000", NULL, "");
    torch_program_run(be_refused, "FRAGLAB_POLICY", "pytorch:recorded", NULL, "");
    torch_program_run(be_refused, "with the whole trace at hand", "offline", NULL, "");
    torch_program_run(be_refused, "FRAGLAB_CAPACITY", NULL, "8G", "");
    torch_program_run(be_refused, "FRAGLAB_CAPACITY", NULL, "0", "");
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:no", 1);
    torch_program_run(be_refused, "FRAGLAB_POLICY", NULL, NULL, "");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
}

static void read_the_settings_of_pytorch(served_program *program, const char *name)
{
    (void)name;
    void *memory = program->alloc(1 << 20, 0, NULL);
    EXPECT(memory != NULL);
    EXPECT(program->call_count("cudaMalloc") == 0);
    EXPECT(program->call_count("cuMemMap") > 0);
    program->free(memory, 1 << 20, 0, NULL);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void without_a_policy_pytorch_serves_with_the_settings_of_the_environment(void **state)
{
    (void)state;
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
    torch_program_run(read_the_settings_of_pytorch, "", NULL, NULL, "");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
}

static void hand_in_nonsense(served_program *program, const char *name)
{
    (void)name;
    int other = 0;
    EXPECT(program->alloc(0, 0, NULL) == NULL);
    program->free(NULL, 0, 0, NULL);
    program->record_stream(&other, NULL);
    program->free(&other, 4, 0, NULL);
    void *memory = program->alloc(1000, 0, NULL);
    EXPECT(memory != NULL);
    program->free((char *)memory + 1, 4, 0, NULL);
    program->free(memory, 1000, 7, NULL);
    program->free(memory, 1000, 0, NULL);
    EXPECT(program->alloc(1000, -1, NULL) == NULL);
    EXPECT(program->alloc(1000, 1, NULL) == NULL);
    EXPECT(program->stat(0, "nothing.of.this.name") == -1);
    EXPECT(program->stat(5, "num_ooms") == -1);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void frees_of_strange_pointers_are_counted_and_harm_nothing(void **state)
{
    (void)state;
    torch_program_run(hand_in_nonsense, "", "best-fit", NULL, "");
    assert_true(torch_program_file_has("stderr", "which is not fraglab's"));
    assert_true(torch_program_file_has("stats", "3 frees of memory that is not fraglab's"));
}

static void use_two_devices(served_program *program, const char *name)
{
    (void)name;
    EXPECT(program->cudaSetDevice(0) == 0);
    frag_software_usage before;
    frag_software_usage after;
    void *first = program->alloc(100 << 20, 1, NULL);
    EXPECT(first != NULL);
    EXPECT(program->get_usage(1, &before));
    EXPECT(before.used_bytes >= 100 << 20);
    void *second = program->alloc(10 << 20, 0, NULL);
    EXPECT(second != NULL);
    EXPECT(program->get_usage(1, &after));
    EXPECT(after.used_bytes == before.used_bytes);
    int current = -1;
    EXPECT(program->cudaGetDevice(&current) == 0);
    EXPECT(current == 0);
    program->free(first, 100 << 20, 1, NULL);
    program->free(second, 10 << 20, 0, NULL);
    EXPECT(program->cudaGetDevice(&current) == 0);
    EXPECT(current == 0);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void devices_have_a_policy_each_and_the_current_one_stays(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch", "direct", "best-fit"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        torch_program_forget_files();
        torch_program_run(use_two_devices, "", policies[i], NULL, "devices=2");
        frag_recording recording = {0};
        torch_program_load(&recording);
        assert_int_equal(recording.trace_count, 2);
        assert_int_equal(recording.traces[1].stats.peak_requested_bytes, 100 << 20);
        frag_recording_destroy(&recording);
    }
}

static void free_what_another_stream_uses(served_program *program, const char *name)
{
    (void)name;
    frag_cuda_stream side = NULL;
    EXPECT(program->cudaStreamCreateWithFlags(&side, 1) == 0);
    void *first = program->alloc(5 << 20, 0, NULL);
    program->record_stream(first, side);
    program->free(first, 5 << 20, 0, NULL);
    EXPECT(program->stat(0, "requested_bytes.all.current") == 0);
    EXPECT(program->stat(0, "active_bytes.all.current") >= 5 << 20);
    void *second = program->alloc(5 << 20, 0, NULL);
    EXPECT(second != NULL && second != first);
    program->complete(UINT64_MAX);
    void *third = program->alloc(5 << 20, 0, NULL);
    EXPECT(third == first);
    program->free(second, 5 << 20, 0, NULL);
    program->free(third, 5 << 20, 0, NULL);
    EXPECT(program->stat(0, "active_bytes.all.current") == 0);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void a_block_that_another_stream_uses_waits_for_it(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch", "best-fit", "tlsf"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        torch_program_forget_files();
        torch_program_run(free_what_another_stream_uses, "", policies[i], NULL, "lag=told");
        frag_recording recording = {0};
        torch_program_load(&recording);
        assert_int_equal(recording.traces[0].stats.op_counts[FRAG_OP_COMPLETE], 1);
        frag_recording_destroy(&recording);
    }
}

static void move_memory_between_streams(served_program *program, const char *name)
{
    bool waits = strcmp(name, "waits") == 0;
    frag_cuda_stream side = NULL;
    EXPECT(program->cudaStreamCreateWithFlags(&side, 1) == 0);
    program->free(program->alloc(5 << 20, 0, NULL), 5 << 20, 0, NULL);
    program->free(program->alloc(5 << 20, 0, NULL), 5 << 20, 0, NULL);
    EXPECT(program->call_count("cudaStreamWaitEvent") == 0);
    void *taken = program->alloc(5 << 20, 0, side);
    EXPECT(program->call_count("cudaStreamWaitEvent") == (waits ? 1 : 0));
    void *more = program->alloc(5 << 20, 0, side);
    EXPECT(program->call_count("cudaStreamWaitEvent") == (waits ? 1 : 0));
    program->free(taken, 5 << 20, 0, side);
    program->free(more, 5 << 20, 0, side);
    void *back = program->alloc(5 << 20, 0, NULL);
    EXPECT(program->call_count("cudaStreamWaitEvent") == (waits ? 2 : 0));
    program->free(back, 5 << 20, 0, NULL);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void policies_that_ignore_streams_get_them_in_order(void **state)
{
    (void)state;
    torch_program_run(move_memory_between_streams, "waits", "best-fit", NULL, "");
    torch_program_run(move_memory_between_streams, "does not", "pytorch", NULL, "");
}

/* ---- private pools, with a filter as libstdc++ would hand it over */

static int filters_alive;

static bool manage_filter(void *to, const void *from, int operation)
{
    if (operation == 2)
        memcpy(to, from, sizeof(void *));
    filters_alive += operation == 2 ? 1 : operation == 3 ? -1 : 0;
    return false;
}

static bool is_stream(const void *functor, frag_cuda_stream *stream)
{
    frag_cuda_stream wanted = NULL;
    memcpy(&wanted, functor, sizeof(void *));
    return *stream == wanted;
}

static void capture_a_graph(served_program *program, const char *name)
{
    bool is_refused = strcmp(name, "refused") == 0;
    frag_cuda_stream side = NULL;
    EXPECT(program->cudaStreamCreateWithFlags(&side, 1) == 0);
    frag_torch_filter filter = {
        .functor = {side, NULL}, .manage = manage_filter, .call = is_stream};
    frag_pool_id pool = {0, 7};
    program->free(program->alloc(3 << 20, 0, side), 3 << 20, 0, side);
    program->begin_allocate_to_pool(0, pool, &filter);
    if (is_refused) {
        EXPECT(strstr(program->last_error(), "private pools") != NULL);
        return;
    }
    EXPECT(filters_alive == 1);
    size_t bytes = 0;
    void *inside = program->alloc(3 << 20, 0, side);
    void *inside_segment = program->base_allocation(inside, &bytes);
    EXPECT(bytes == 20 << 20);
    void *outside = program->alloc(3 << 20, 0, NULL);
    EXPECT(inside != NULL && outside != NULL);
    EXPECT(program->base_allocation(outside, &bytes) != inside_segment);
    program->end_allocate_to_pool(0, pool);
    EXPECT(filters_alive == 0);
    void *later = program->alloc(3 << 20, 0, side);
    EXPECT(program->base_allocation(later, &bytes) != inside_segment);
    program->free(inside, 3 << 20, 0, side);
    /* What came from another stream meanwhile is none of the pool's. */
    program->free(outside, 3 << 20, 0, NULL);
    EXPECT(program->alloc(3 << 20, 0, NULL) == outside);
    program->free(outside, 3 << 20, 0, NULL);
    program->free(later, 3 << 20, 0, side);
    program->release_pool(0, pool);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void requests_of_a_capture_go_to_its_pool_where_the_policy_has_pools(void **state)
{
    (void)state;
    torch_program_run(capture_a_graph, "served", "pytorch", NULL, "");
    frag_recording recording = {0};
    torch_program_load(&recording);
    const frag_trace *trace = &recording.traces[0];
    uint64_t in_pool = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        in_pool += trace->events[i].op == FRAG_OP_ALLOC && trace->pools[i] != 0 ? 1 : 0;
    assert_int_equal(in_pool, 1);
    frag_recording_destroy(&recording);
    (void)torch_program_replay("pytorch", 80 * FRAG_GIB);
    torch_program_run(capture_a_graph, "refused", "best-fit", NULL, "");
}

static void empty_and_limit(served_program *program, const char *name)
{
    (void)name;
    program->free(program->alloc(30 << 20, 0, NULL), 30 << 20, 0, NULL);
    EXPECT(program->stat(0, "reserved_bytes.all.current") == 30 << 20);
    program->empty_cache();
    EXPECT(program->stat(0, "reserved_bytes.all.current") == 0);
    program->set_memory_fraction(0.5, 0);
    EXPECT(program->alloc(600 << 20, 0, NULL) == NULL);
    void *memory = program->alloc(400 << 20, 0, NULL);
    EXPECT(memory != NULL);
    program->free(memory, 400 << 20, 0, NULL);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void empty_a_range(served_program *program, const char *name)
{
    (void)name;
    program->free(program->alloc(30 << 20, 0, NULL), 30 << 20, 0, NULL);
    EXPECT(program->stat(0, "reserved_bytes.all.current") >= 30 << 20);
    uint64_t waits = program->call_count("cudaDeviceSynchronize");
    program->empty_cache();
    EXPECT(program->stat(0, "reserved_bytes.all.current") == 0);
    EXPECT(program->call_count("cudaDeviceSynchronize") > waits);
    torch_program_close(program);
    torch_program_expect_nothing_held(program);
}

static void pages_go_only_when_the_card_is_idle(void **state)
{
    (void)state;
    torch_program_run(empty_a_range, "", "best-fit", NULL, "");
    torch_program_run(empty_a_range, "", "buddy", NULL, "");
}

static void the_cache_can_be_emptied_and_limited(void **state)
{
    (void)state;
    torch_program_run(empty_and_limit, "", "pytorch", "1GiB", "");
    (void)torch_program_replay("pytorch", FRAG_GIB);
}

/* ---- forks and ends */

static void fork_in_the_middle(served_program *program, const char *name)
{
    (void)name;
    void *memory = program->alloc(1000, 0, NULL);
    EXPECT(memory != NULL);
    uint64_t calls = program->call_count("cudaMalloc");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(program->alloc(1000, 0, NULL) == NULL);
        EXPECT(strstr(program->last_error(), "forked") != NULL);
        program->free(memory, 1000, 0, NULL);
        program->empty_cache();
        torch_program_close(program);
        EXPECT(program->call_count("cudaMalloc") == calls);
        _exit(access(getenv("FRAGLAB_RECORD"), F_OK) == 0 ? 3 : 0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    program->free(memory, 1000, 0, NULL);
    torch_program_close(program);
    EXPECT(access(getenv("FRAGLAB_RECORD"), F_OK) == 0);
}

static void a_forked_child_is_served_nothing_and_writes_nothing(void **state)
{
    (void)state;
    torch_program_forget_files();
    torch_program_run(fork_in_the_middle, "", "pytorch", NULL, "");
}

static void leave_blocks_behind(served_program *program, const char *name)
{
    (void)name;
    void *kept = program->alloc(3 << 20, 0, NULL);
    EXPECT(kept != NULL);
    program->free(program->alloc(30 << 20, 0, NULL), 30 << 20, 0, NULL);
    exit(0);
}

static void the_end_is_quiet_whatever_the_driver_says(void **state)
{
    (void)state;
    torch_program_forget_files();
    torch_program_run(leave_blocks_behind, "", "pytorch", NULL, "fail=free:2:4:all");
    assert_true(torch_program_file_has("stats", "2 requests served"));
    (void)torch_program_replay("pytorch", 80 * FRAG_GIB);
    torch_program_run(leave_blocks_behind, "", "best-fit", NULL, "fail=cuMemUnmap:1:4:all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused_with_words_and_recorded_as_failed),
        cmocka_unit_test(an_error_of_the_driver_is_told_in_its_words),
        cmocka_unit_test(settings_that_are_wrong_serve_nothing_and_say_why),
        cmocka_unit_test(without_a_policy_pytorch_serves_with_the_settings_of_the_environment),
        cmocka_unit_test(frees_of_strange_pointers_are_counted_and_harm_nothing),
        cmocka_unit_test(devices_have_a_policy_each_and_the_current_one_stays),
        cmocka_unit_test(a_block_that_another_stream_uses_waits_for_it),
        cmocka_unit_test(policies_that_ignore_streams_get_them_in_order),
        cmocka_unit_test(requests_of_a_capture_go_to_its_pool_where_the_policy_has_pools),
        cmocka_unit_test(pages_go_only_when_the_card_is_idle),
        cmocka_unit_test(the_cache_can_be_emptied_and_limited),
        cmocka_unit_test(a_forked_child_is_served_nothing_and_writes_nothing),
        cmocka_unit_test(the_end_is_quiet_whatever_the_driver_says),
    };
    return cmocka_run_group_tests(tests, torch_program_set_up, torch_program_tear_down);
}
