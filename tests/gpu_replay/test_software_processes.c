/* Tests of processes that share a card of the software CUDA (setting cards=FILE), and of which
 * cards CUDA_VISIBLE_DEVICES leaves. Every body runs in a process of its own. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

static char cards[64];
static char settings[256];

static int make_cards(void **state)
{
    (void)state;
    snprintf(cards, sizeof cards, "/tmp/fraglab-cards-XXXXXX");
    int file = mkstemp(cards);
    snprintf(settings, sizeof settings, "capacity=100MiB,context=10MiB,cards=%s", cards);
    return file < 0 || close(file);
}

static int remove_cards(void **state)
{
    (void)state;
    return unlink(cards);
}

/* A process that took bytes and waits to be told that it may end. */
typedef struct holder {
    pid_t process;
    int told;
} holder;

static void load_with(const char *list)
{
    setenv("FRAGLAB_SOFTWARE_CUDA", list, 1);
    software_load_all();
}

static holder hold(size_t bytes)
{
    int ready[2], told[2];
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(told), 0);
    pid_t process = fork();
    if (process == 0) {
        close(told[1]);
        load_with(settings);
        void *address = NULL;
        byte = (char)cuda.malloc(&address, bytes);
        bool is_told = write(ready[1], &byte, 1) == 1 && read(told[0], &byte, 1) >= 0;
        exit(is_told ? 0 : 1);
    }
    close(told[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    close(ready[0]);
    close(ready[1]);
    return (holder){process, told[1]};
}

static void end(holder *of, bool is_killed)
{
    int status = 0;
    if (is_killed)
        kill(of->process, SIGKILL);
    close(of->told);
    assert_int_equal(waitpid(of->process, &status, 0), of->process);
    assert_int_equal(is_killed ? WIFSIGNALED(status) : WIFEXITED(status), 1);
}

static void in_process(void (*body)(void))
{
    int status = 0;
    pid_t process = fork();
    if (process == 0) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static size_t free_bytes(void)
{
    size_t left = 0, all = 0;
    EXPECT(cuda.get_info(&left, &all) == 0);
    return left;
}

static void see_the_holder(void)
{
    void *address = NULL;
    load_with(settings);
    EXPECT(free_bytes() == 50 * MIB); /* 30 and two contexts */
    EXPECT(cuda.malloc(&address, 52 * MIB) == OUT_OF_MEMORY);
    EXPECT(cuda.malloc(&address, 50 * MIB) == 0);
    EXPECT(free_bytes() == 0);
}

static void see_nobody(void)
{
    load_with(settings);
    EXPECT(free_bytes() == 90 * MIB);
}

static void one_sees_what_another_holds(void **state)
{
    (void)state;
    holder of = hold(30 * MIB);
    in_process(see_the_holder);
    in_process(see_the_holder); /* the one before has given all back */
    end(&of, false);
    in_process(see_nobody);
}

static void what_a_killed_process_held_is_free(void **state)
{
    (void)state;
    holder of = hold(30 * MIB);
    kill(of.process, SIGKILL);
    for (int status = 0;
         waitid(P_PID, (id_t)of.process, NULL, WEXITED | WNOWAIT) != 0 && status < 100;)
        status++;
    in_process(see_nobody); /* although nobody has waited for it */
    end(&of, true);
}

static void without_the_setting_each_is_alone(void **state)
{
    (void)state;
    holder of = hold(30 * MIB);
    char kept[sizeof settings];
    memcpy(kept, settings, sizeof kept);
    snprintf(settings, sizeof settings, "capacity=100MiB,context=10MiB");
    in_process(see_nobody);
    memcpy(settings, kept, sizeof kept);
    end(&of, false);
}

typedef struct memory_row {
    uint32_t process, unused;
    unsigned long long used;
    uint64_t instances;
} memory_row;

static void list_by_nvml(void)
{
    int (*by_index)(unsigned, void **) = NULL;
    int (*processes)(void *, unsigned *, memory_row *) = NULL;
    void *device = NULL;
    memory_row rows[4];
    unsigned count = 1;
    char folder[4096], path[4200];
    load_with(settings);
    EXPECT(cuda.malloc(&device, 10 * MIB) == 0);
    cuda_entries_software_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/13/libnvidia-ml.so.1", folder);
    void *library = dlopen(path, RTLD_NOW);
    EXPECT(library != NULL);
    software_find(library, "nvmlDeviceGetHandleByIndex_v2", &by_index);
    software_find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &processes);
    EXPECT(by_index(0, &device) == 0);
    EXPECT(processes(device, &count, rows) == 7 && count == 2);
    EXPECT(processes(device, &count, rows) == 0 && count == 2);
    EXPECT(rows[0].process == (uint32_t)getpid() && rows[0].used == 20 * MIB);
    EXPECT(rows[1].process == (uint32_t)atoi(getenv("HOLDER")) && rows[1].used == 40 * MIB);
}

static void the_management_library_lists_both(void **state)
{
    char number[24];
    (void)state;
    holder of = hold(30 * MIB);
    snprintf(number, sizeof number, "%ld", (long)of.process);
    setenv("HOLDER", number, 1);
    in_process(list_by_nvml);
    end(&of, false);
}

static void tell_who_held(void)
{
    char list[512], path[96], text[1024], wanted[128];
    void *address = NULL;
    frag_software_usage usage;
    snprintf(path, sizeof path, "%s-report", cards);
    snprintf(list, sizeof list, "%s,report=%s", settings, path);
    setenv("RANK", "1", 1);
    load_with(list);
    EXPECT(cuda.malloc(&address, 60 * MIB) == OUT_OF_MEMORY);
    EXPECT(software.get_usage(0, &usage) && usage.refused_others_bytes == 40 * MIB);
    EXPECT(usage.process_count_max == 2 && usage.card_bytes_max == 50 * MIB);
    software.flush();
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    snprintf(wanted, sizeof wanted,
             "GPU 0 had no 60.00 MiB left for process %ld; it was held by process %s 40.00 MiB, "
             "rank 1 (process %ld) 10.00 MiB",
             (long)getpid(), getenv("HOLDER"), (long)getpid());
    EXPECT(strstr(text, wanted) != NULL);
    EXPECT(cuda.malloc(&address, 2 * MIB) == 0);
    EXPECT(software.get_usage(0, &usage) && usage.refused_others_bytes == 40 * MIB);
}

static void the_report_says_who_held_what(void **state)
{
    char number[24];
    (void)state;
    holder of = hold(30 * MIB);
    snprintf(number, sizeof number, "%ld", (long)of.process);
    setenv("HOLDER", number, 1);
    in_process(tell_who_held);
    end(&of, false);
}

/* Ten processes that take and give at the same time never hold more than there is. */
static void take_and_give(void)
{
    frag_software_usage usage;
    void *address = NULL;
    load_with(settings);
    for (int i = 0; i < 300; i++)
        if (cuda.malloc(&address, (size_t)(2 + i % 5 * 6) * MIB) == 0)
            EXPECT(cuda.free(address) == 0);
    EXPECT(software.get_usage(0, &usage) && usage.card_bytes_max <= 200 * MIB);
}

static void many_at_once_never_take_more_than_there_is(void **state)
{
    enum { COUNT = 10 };
    pid_t processes[COUNT];
    int status = 0;
    (void)state;
    snprintf(settings, sizeof settings, "capacity=200MiB,context=10MiB,cards=%s", cards);
    for (int i = 0; i < COUNT; i++) {
        processes[i] = fork();
        if (processes[i] == 0) {
            take_and_give();
            exit(0);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
    snprintf(settings, sizeof settings, "capacity=100MiB,context=10MiB,cards=%s", cards);
    in_process(see_nobody);
}

static void a_file_of_something_else_is_said(void **state)
{
    (void)state;
    FILE *file = fopen(cards, "w");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        fputc('x', file);
    fclose(file);
    in_process(see_nobody);
    file = fopen(cards, "r");
    assert_int_equal(fgetc(file), 'x'); /* and is left alone */
    fclose(file);
    assert_int_equal(truncate(cards, 0), 0);
}

/* ---- CUDA_VISIBLE_DEVICES */

static int visible_count(const char *visible)
{
    int count = -1;
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    software.reset("devices=4,capacity=1GiB,capacity=2GiB/3", NULL, 0);
    cuda.get_device_count(&count);
    return count;
}

static void choose_cards(void)
{
    size_t left = 0, all = 0;
    frag_software_usage usage;
    load_with("devices=4");
    EXPECT(visible_count("3,1") == 2);
    EXPECT(cuda.get_info(&left, &all) == 0 && all == 2048 * MIB);
    EXPECT(software.get_usage(1, &usage) && usage.card == 1 && usage.capacity_bytes == 1024 * MIB);
    EXPECT(visible_count("") == 0);
    EXPECT(visible_count("-1") == 0);
    EXPECT(visible_count("2,-1,1") == 1);
    EXPECT(visible_count("1,1") == 0);
    EXPECT(visible_count(" 0 , 2") == 2);
    EXPECT(visible_count("GPU-736f6674-7761-7265-2d64-657669636502,0") == 2);
    EXPECT(software.get_usage(0, &usage) && usage.card == 2);
    EXPECT(visible_count("GPU-736f") == 0); /* four begin so */
    EXPECT(visible_count("6") == 1);        /* the machine has it, then */
    EXPECT(visible_count("8") == 0);
}

static void the_cards_that_are_named_are_devices(void **state)
{
    (void)state;
    in_process(choose_cards);
}

static void two_that_see_different_cards(void **state)
{
    (void)state;
    snprintf(settings, sizeof settings, "devices=2,capacity=100MiB,context=10MiB,cards=%s", cards);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    holder of = hold(30 * MIB);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    in_process(see_nobody);
    setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    in_process(see_the_holder);
    unsetenv("CUDA_VISIBLE_DEVICES");
    end(&of, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_sees_what_another_holds, make_cards, remove_cards),
        cmocka_unit_test_setup_teardown(what_a_killed_process_held_is_free, make_cards,
                                        remove_cards),
        cmocka_unit_test_setup_teardown(without_the_setting_each_is_alone, make_cards,
                                        remove_cards),
        cmocka_unit_test_setup_teardown(the_management_library_lists_both, make_cards,
                                        remove_cards),
        cmocka_unit_test_setup_teardown(the_report_says_who_held_what, make_cards, remove_cards),
        cmocka_unit_test_setup_teardown(many_at_once_never_take_more_than_there_is, make_cards,
                                        remove_cards),
        cmocka_unit_test_setup_teardown(a_file_of_something_else_is_said, make_cards, remove_cards),
        cmocka_unit_test_setup_teardown(the_cards_that_are_named_are_devices, make_cards,
                                        remove_cards),
        cmocka_unit_test_setup_teardown(two_that_see_different_cards, make_cards, remove_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
