/* Tests of the software CUDA: settings, memory, injected failures, mappings. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

/* ---- settings */

static void refuses_settings_that_are_wrong(void **state)
{
    static const char *const wrong[] = {
        "capacity",
        "capacity=",
        "capacity=8Gi",
        "capacity=0",
        "capacity=2TiB",
        "capacity=1GiB/9",
        "devices=9",
        "devices=-1",
        "devices=x",
        "colour=red",
        "lag=-1",
        "lag=soon",
        "lag-unit=seconds",
        "fail=malloc",
        "fail=malloc:0:2",
        "fail=malloc:1",
        "fail=malloc:1:0",
        "fail=nothing:1:2",
        "fail=malloc:1:2:0",
        "random=malloc:0:2",
        "sticky=700",
        "sticky=0@5",
        "others=1GiB@0",
        "addresses=random",
        "footprint=bytes",
        "granularity=3MiB",
        "granularity=1KiB",
        "streams=none",
        "handles=none",
        "processes=all",
        "compute-capability=8.x",
        "compute-capability=49",
        "compute-capability=13.0",
        "name=",
        "multiprocessors=0",
        "threads-per-multiprocessor=31",
        "shared=2MiB",
        "shared-per-multiprocessor=1KiB",
        "l2=0",
        "clock=fast",
        "memory-clock=0",
        "bus=0",
        "shadow=some",
        "shadow=1KiB/some",
        "workspaces=middle",
        "report=",
        "log=",
        "log-calls=some",
        "driver=x",
        "max-mappings=many",
        "=",
        "capacity=1GiB,context=2GiB",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char sentence[256] = "";
        void *address = NULL;
        if (software.reset(wrong[i], sentence, sizeof sentence))
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(strlen(sentence) > 10);
        assert_int_equal(cuda.malloc(&address, 1), NOT_INITIALIZED);
    }
    software_start("");
    assert_int_equal(software_free_bytes(), 80 * 1024 * MIB);
}

static void changes_only_what_may_change_in_use(void **state)
{
    char sentence[256] = "";
    (void)state;
    software_start("capacity=8MiB");
    software_take(8 * MIB);
    assert_true(software.set("capacity=12MiB", sentence, sizeof sentence));
    assert_int_equal(software_free_bytes(), 4 * MIB);
    assert_false(software.set("devices=2", sentence, sizeof sentence));
    assert_non_null(strstr(sentence, "devices"));
    assert_false(software.set("capacity=16MiB,addresses=bump", sentence, sizeof sentence));
    assert_int_equal(software_free_bytes(), 4 * MIB);
}

static void has_as_many_devices_as_set(void **state)
{
    int count = 0;
    (void)state;
    software_start("devices=3,capacity=8MiB,capacity=16MiB/2");
    assert_int_equal(cuda.get_device_count(&count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(cuda.set_device(3), 101);
    assert_int_equal(cuda.set_device(2), 0);
    assert_int_equal(software_free_bytes(), 16 * MIB);
    software_take(16 * MIB);
    assert_int_equal(cuda.set_device(1), 0);
    assert_int_equal(software_free_bytes(), 8 * MIB);
    assert_true(software.reset("devices=0", NULL, 0));
    assert_int_equal(cuda.get_device_count(&count), 100);
    assert_int_equal(count, 0);
    assert_true(software.reset("driver=0", NULL, 0));
    assert_int_equal(cuda.get_device_count(&count), 35);
}

/* ---- accounting and addresses */

static void both_runtimes_share_one_state(void **state)
{
    size_t left = 0;
    size_t total = 0;
    void *address = NULL;
    (void)state;
    software_start("capacity=8MiB");
    software_take(6 * MIB);
    assert_int_equal(cuda12.get_info(&left, &total), 0);
    assert_int_equal(left, 2 * MIB);
    assert_int_equal(total, 8 * MIB);
    assert_int_equal(cuda12.malloc(&address, 4 * MIB), OUT_OF_MEMORY);
    assert_int_equal(cuda.get_last_error(), 0);
    assert_int_equal(cuda12.get_last_error(), OUT_OF_MEMORY);
}

static void gives_the_lowest_gap_again(void **state)
{
    (void)state;
    software_start("devices=2");
    uint64_t first = software_take(1);
    uint64_t second = software_take(3 * MIB);
    uint64_t third = software_take(PAGE);
    assert_int_equal(first, 0x700000000000);
    assert_int_equal(second, first + PAGE);
    assert_int_equal(third, second + 2 * PAGE);
    software_give(second);
    assert_int_equal(software_take(3 * PAGE), third + PAGE);
    assert_int_equal(software_take(2 * PAGE), second);
    assert_int_equal(cuda.set_device(1), 0);
    assert_int_equal(software_take(1), 0x710000000000);
}

static void gives_no_address_twice_when_bumping(void **state)
{
    (void)state;
    software_start("addresses=bump");
    uint64_t first = software_take(PAGE);
    software_give(first);
    assert_int_equal(software_take(PAGE), first + PAGE);
    software_start("addresses=snapshot");
    assert_int_equal(software_take(PAGE), 0x200000000000);
}

static void charges_whole_pages_to_the_last(void **state)
{
    void *address = NULL;
    (void)state;
    software_start("capacity=5MiB");
    software_take(1);
    assert_int_equal(software_free_bytes(), 3 * MIB);
    software_take(PAGE);
    assert_int_equal(software_free_bytes(), MIB);
    assert_int_equal(cuda.malloc(&address, 1), OUT_OF_MEMORY);
}

static void charges_by_class_when_asked_to(void **state)
{
    static const size_t rows[][2] = {
        {1, 8192},           {4096, 8192},         {10 << 10, 16384},  {16 << 10, 24576},
        {384 << 10, 417792}, {768 << 10, 1 << 20}, {1 << 20, 1 << 20}, {(1 << 20) + 1, 2 << 20},
        {3 << 20, 4 << 20},
    };
    (void)state;
    software_start("footprint=classes");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t before = software_free_bytes();
        uint64_t address = software_take(rows[i][0]);
        assert_int_equal(before - software_free_bytes(), rows[i][1]);
        software_give(address);
        assert_int_equal(software_free_bytes(), before);
    }
}

static void charges_a_context_at_first_use(void **state)
{
    frag_software_usage usage;
    (void)state;
    assert_true(software.reset("devices=2,context=100MiB,capacity=1GiB", NULL, 0));
    assert_true(software.get_usage(1, &usage));
    assert_int_equal(usage.used_bytes, 0);
    assert_int_equal(cuda.set_device(1), 0);
    assert_int_equal(software_free_bytes(), 924 * MIB);
    assert_true(software.get_usage(1, &usage));
    assert_int_equal(usage.used_bytes, 100 * MIB);
    assert_true(software.get_usage(0, &usage));
    assert_int_equal(usage.used_bytes, 0);
    assert_false(software.get_usage(2, &usage));
}

static void other_processes_come_and_go(void **state)
{
    void *address = NULL;
    (void)state;
    /* The first call is that of reset: cudaGetLastError twice, cudaSetDevice. */
    software_start("capacity=8MiB,others=6MiB@5,others=0@7");
    assert_int_equal(software_free_bytes(), 8 * MIB);
    assert_int_equal(cuda.malloc(&address, 4 * MIB), OUT_OF_MEMORY);
    assert_int_equal(software_free_bytes(), 2 * MIB);
    assert_int_equal(software_free_bytes(), 8 * MIB);
}

/* ---- faults */

static void the_call_named_fails(void **state)
{
    static const char *const names[] = {"malloc", "cudaMalloc", "CUDAMALLOC"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char settings[64];
        void *address = NULL;
        snprintf(settings, sizeof settings, "fail=%s:2:2:2", names[i]);
        software_start(settings);
        assert_int_equal(cuda.malloc(&address, 1), 0);
        assert_int_equal(cuda.malloc(&address, 1), OUT_OF_MEMORY);
        assert_int_equal(cuda.malloc(&address, 1), OUT_OF_MEMORY);
        assert_int_equal(cuda.malloc(&address, 1), 0);
        assert_int_equal(software.call_count(names[i]), 4);
        assert_int_equal(software.failure_count(names[i]), 2);
    }
}

static void driver_calls_fail_too(void **state)
{
    static const int properties[8] = {1, 0, 1, 0, 0, 0, 0, 0};
    uint64_t handle = 0;
    (void)state;
    software_start("fail=create:1:2,fail=cuMemAddressReserve:1:1");
    assert_int_equal(cuda.create(&handle, PAGE, properties, 0), OUT_OF_MEMORY);
    assert_int_equal(cuda.create(&handle, PAGE, properties, 0), 0);
    assert_int_equal(cuda.reserve(&handle, PAGE, 0, 0, 0), 1);
}

static uint64_t failures_of_random(const char *settings)
{
    uint64_t pattern = 0;
    software_start(settings);
    for (int i = 0; i < 64; i++) {
        void *address = NULL;
        pattern = pattern << 1 | (cuda.malloc(&address, 1) != 0);
    }
    return pattern;
}

static void random_failures_follow_their_seed(void **state)
{
    (void)state;
    uint64_t first = failures_of_random("random=malloc:4:2:7");
    assert_int_equal(failures_of_random("random=malloc:4:2:7"), first);
    assert_int_not_equal(failures_of_random("random=malloc:4:2:8"), first);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, UINT64_MAX);
}

static void a_sticky_error_stays(void **state)
{
    void *address = NULL;
    int device = -1;
    (void)state;
    software_start("sticky=700@5");
    assert_int_equal(cuda.malloc(&address, 1), 0);
    assert_int_equal(cuda.free(address), 700);
    assert_int_equal(cuda.device_synchronize(), 700);
    assert_int_equal(cuda.get_last_error(), 700);
    assert_int_equal(cuda.get_last_error(), 700);
    assert_int_equal(cuda.get_device(&device), 0);
}

/* ---- what may be reached */

static void mappings_have_a_limit_when_set(void **state)
{
    static const int properties[8] = {1, 0, 1, 0, 0, 0, 0, 0};
    static const int rights[3] = {1, 0, 3};
    uint64_t address = 0;
    uint64_t handle = 0;
    (void)state;
    software_start("max-mappings=2");
    assert_int_equal(cuda.reserve(&address, 3 * PAGE, 0, 0, 0), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cuda.create(&handle, PAGE, properties, 0), 0);
        assert_int_equal(cuda.map(address + i * PAGE, PAGE, 0, handle, 0), 0);
        assert_int_equal(cuda.set_access(address + i * PAGE, PAGE, rights, 1),
                         i < 2 ? 0 : OUT_OF_MEMORY);
    }
}

static void copies_reach_only_what_is_held(void **state)
{
    char bytes[4] = "abc";
    void *address = NULL;
    (void)state;
    software_start("");
    assert_int_equal(cuda.malloc(&address, PAGE), 0);
    assert_int_equal(cuda.memcpy(address, bytes, 4, 1), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(cuda.memcpy(bytes, address, 4, 2), 0);
    assert_string_equal(bytes, "abc");
    assert_int_equal(cuda.memset(address, 0, PAGE + 1), 1);
    assert_int_equal(cuda.free(address), 0);
    assert_int_equal(cuda.memset(address, 0, 1), 1);
}

static void a_capture_can_be_pretended(void **state)
{
    int status = -1;
    (void)state;
    software_start("");
    software.set_capturing(1);
    assert_int_equal(cuda.is_capturing(NULL, &status), 0);
    assert_int_equal(status, 1);
    software_take(1);
    software.set_capturing(0);
    assert_int_equal(cuda.is_capturing(NULL, &status), 0);
    assert_int_equal(status, 0);
}

/* ---- what it tells */

static void counts_what_is_held(void **state)
{
    static const int properties[8] = {1, 0, 1, 0, 0, 0, 0, 0};
    frag_software_held held;
    uint64_t address = 0;
    uint64_t handle = 0;
    void *event = NULL;
    (void)state;
    software_start("");
    software_take(5);
    software_take_async(7, NULL);
    software_stream();
    cuda.event_create(&event, 0);
    assert_int_equal(cuda.reserve(&address, 2 * PAGE, 0, 0, 0), 0);
    assert_int_equal(cuda.create(&handle, PAGE, properties, 0), 0);
    assert_int_equal(cuda.map(address, PAGE, 0, handle, 0), 0);
    assert_int_equal(cuda.release(handle), 0);
    software.get_held(&held);
    assert_int_equal(held.malloc_count, 1);
    assert_int_equal(held.malloc_bytes, 5);
    assert_int_equal(held.pool_count, 1);
    assert_int_equal(held.pool_bytes, 7);
    assert_int_equal(held.handle_count, 1);
    assert_int_equal(held.handle_bytes, PAGE);
    assert_int_equal(held.mapping_count, 1);
    assert_int_equal(held.reservation_bytes, 2 * PAGE);
    assert_int_equal(held.stream_count, 1);
    assert_int_equal(held.event_count, 1);
    assert_int_equal(cuda.device_reset(), 0);
    software.get_held(&held);
    assert_int_equal(held.malloc_count, 0);
    assert_int_equal(held.pool_count, 0);
    assert_int_equal(held.stream_count, 0);
    assert_int_equal(held.event_count, 0);
}

static void read_file(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, text_bytes - 1, file);
    text[length] = '\0';
    fclose(file);
}

static void make_path(char path[64])
{
    snprintf(path, 64, "/tmp/fraglab-test-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

static void writes_a_line_for_each_call(void **state)
{
    char path[64];
    char settings[128];
    char text[4096];
    (void)state;
    make_path(path);
    snprintf(settings, sizeof settings, "log=%s,log-calls=memory,fail=malloc:2:2", path);
    software_start(settings);
    void *address = NULL;
    software_give(software_take(5));
    cuda.malloc(&address, 6);
    software.flush();
    read_file(path, text, sizeof text);
    unlink(path);
    assert_string_equal(text, "4 0 cudaMalloc bytes=5 address=0x700000000000 = 0\n"
                              "5 0 cudaFree address=0x700000000000 = 0\n"
                              "6 0 cudaMalloc bytes=6 address=0x0 = 2\n");
}

static void remember(const frag_software_call *call, void *context)
{
    *(frag_software_call *)context = *call;
}

static void an_observer_sees_each_call(void **state)
{
    frag_software_call seen = {0};
    (void)state;
    software_start("");
    software.observe(remember, &seen);
    uint64_t address = software_take(12345);
    assert_string_equal(seen.name, "cudaMalloc");
    assert_int_equal(seen.result, 0);
    assert_int_equal(seen.arguments[0].value, 12345);
    assert_int_equal(seen.arguments[1].value, address);
    software.observe(NULL, NULL);
    software_give(address);
    assert_string_equal(seen.name, "cudaMalloc");
}

#define THREADS 4
#define ROUNDS 500

static void *churn(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *address = NULL;
        if (cuda.malloc(&address, 1) != 0 || cuda.free(address) != 0)
            return argument;
    }
    return NULL;
}

static void threads_share_the_device(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    software_start("");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, threads), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(software.call_count("malloc"), THREADS * ROUNDS);
    assert_int_equal(software_free_bytes(), 80 * 1024 * MIB);
}

static void management_library_tells_the_same(void **state)
{
    char folder[4096];
    char path[4200];
    unsigned long long memory[3] = {0};
    void *device = NULL;
    int (*init)(void) = NULL;
    int (*by_index)(unsigned, void **) = NULL;
    int (*info)(void *, unsigned long long *) = NULL;
    (void)state;
    software_start("capacity=1GiB,reserved=100MiB,others=200MiB");
    software_take(300 * MIB);
    cuda_entries_software_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/12/libnvidia-ml.so.1", folder);
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    software_find(library, "nvmlInit_v2", &init);
    software_find(library, "nvmlDeviceGetHandleByIndex_v2", &by_index);
    software_find(library, "nvmlDeviceGetMemoryInfo", &info);
    assert_int_equal(init(), 0);
    assert_int_equal(by_index(0, &device), 0);
    assert_int_equal(info(device, memory), 0);
    assert_int_equal(memory[0], 1124 * MIB);
    assert_int_equal(memory[1], 524 * MIB);
    assert_int_equal(memory[2], 600 * MIB);
    char text[96];
    int (*name)(void *, char *, unsigned) = NULL;
    int (*uuid)(void *, char *, unsigned) = NULL;
    int (*by_uuid)(const char *, void **) = NULL;
    software_find(library, "nvmlDeviceGetName", &name);
    software_find(library, "nvmlDeviceGetUUID", &uuid);
    software_find(library, "nvmlDeviceGetHandleByUUID", &by_uuid);
    software_start("name=NVIDIA L4,devices=2");
    assert_int_equal(by_index(1, &device), 0);
    assert_int_equal(name(device, text, sizeof text), 0);
    assert_string_equal(text, "NVIDIA L4");
    assert_int_equal(name(device, text, 4), 7); /* there is no room */
    assert_int_equal(uuid(device, text, sizeof text), 0);
    assert_string_equal(text, "GPU-736f6674-7761-7265-2d64-657669636501");
    void *same = NULL;
    assert_int_equal(by_uuid(text, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(by_uuid("GPU-0", &same), 6);
    assert_null(same);
    assert_int_equal(by_index(2, &device), 2);
    assert_null(device);
    memset(memory, 0xa5, sizeof memory);
    assert_int_equal(info(device, memory), 2);
    assert_int_equal(memory[0] + memory[1] + memory[2], 0);
}

/* ---- processes: each test forks before this process has loaded anything */

static int exit_code_of(int (*body)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char report_path[64];

static int leave_something(void)
{
    char settings[128];
    void *address = NULL;
    snprintf(settings, sizeof settings, "leaks=%s", report_path);
    setenv("FRAGLAB_SOFTWARE_CUDA", settings, 1);
    software_load(&cuda, 12);
    cuda.malloc(&address, 5);
    cuda.malloc(&address, 6);
    software_stream();
    return 0;
}

static int leave_nothing(void)
{
    leave_something();
    cuda.device_reset();
    return 0;
}

static void reports_what_is_held_at_exit(void **state)
{
    char text[1024];
    (void)state;
    make_path(report_path);
    assert_int_equal(exit_code_of(leave_something), 0);
    read_file(report_path, text, sizeof text);
    assert_string_equal(text, "held: malloc count=2 bytes=11\nheld: stream count=1 bytes=0\n");
    assert_int_equal(exit_code_of(leave_nothing), 0);
    read_file(report_path, text, sizeof text);
    assert_string_equal(text, "held: nothing\n");
    unlink(report_path);
}

static int code_in_child(void)
{
    void *address = NULL;
    return cuda.malloc(&address, 1);
}

static int fork_after_use(void)
{
    void *address = NULL;
    software_load(&cuda, 13);
    cuda.malloc(&address, 1);
    return exit_code_of(code_in_child);
}

static int fork_before_use(void)
{
    int count = 0;
    software_load(&cuda, 13);
    cuda.get_device_count(&count);
    return exit_code_of(code_in_child);
}

static void a_context_does_not_survive_a_fork(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of(fork_after_use), NOT_INITIALIZED);
    assert_int_equal(exit_code_of(fork_before_use), 0);
}

static int call_under_wrong_settings(void)
{
    void *address = NULL;
    setenv("FRAGLAB_SOFTWARE_CUDA", "capacity=lots", 1);
    if (freopen(report_path, "w", stderr) == NULL)
        return -1;
    software_load(&cuda, 13);
    return cuda.malloc(&address, 1);
}

static void says_what_is_wrong_with_the_environment(void **state)
{
    char text[1024];
    (void)state;
    make_path(report_path);
    assert_int_equal(exit_code_of(call_under_wrong_settings), NOT_INITIALIZED);
    read_file(report_path, text, sizeof text);
    assert_non_null(strstr(text, "software CUDA: FRAGLAB_SOFTWARE_CUDA: capacity: 'lots'"));
    unlink(report_path);
}

static int load_all(void **state)
{
    (void)state;
    software_load_all();
    return 0;
}

int main(void)
{
    const struct CMUnitTest processes[] = {
        cmocka_unit_test(reports_what_is_held_at_exit),
        cmocka_unit_test(a_context_does_not_survive_a_fork),
        cmocka_unit_test(says_what_is_wrong_with_the_environment),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_settings_that_are_wrong),
        cmocka_unit_test(changes_only_what_may_change_in_use),
        cmocka_unit_test(has_as_many_devices_as_set),
        cmocka_unit_test(both_runtimes_share_one_state),
        cmocka_unit_test(gives_the_lowest_gap_again),
        cmocka_unit_test(gives_no_address_twice_when_bumping),
        cmocka_unit_test(charges_whole_pages_to_the_last),
        cmocka_unit_test(charges_by_class_when_asked_to),
        cmocka_unit_test(charges_a_context_at_first_use),
        cmocka_unit_test(other_processes_come_and_go),
        cmocka_unit_test(the_call_named_fails),
        cmocka_unit_test(driver_calls_fail_too),
        cmocka_unit_test(random_failures_follow_their_seed),
        cmocka_unit_test(a_sticky_error_stays),
        cmocka_unit_test(mappings_have_a_limit_when_set),
        cmocka_unit_test(copies_reach_only_what_is_held),
        cmocka_unit_test(a_capture_can_be_pretended),
        cmocka_unit_test(counts_what_is_held),
        cmocka_unit_test(writes_a_line_for_each_call),
        cmocka_unit_test(an_observer_sees_each_call),
        cmocka_unit_test(threads_share_the_device),
        cmocka_unit_test(management_library_tells_the_same),
    };
    int failed = cmocka_run_group_tests_name("processes", processes, NULL, NULL);
    return failed + cmocka_run_group_tests_name("software CUDA", tests, load_all, NULL);
}
