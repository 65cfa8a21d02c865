#include "tests/gpu_replay/software_device.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

cuda_entries cuda;
cuda_entries cuda12;
software_control software;

void software_find(void *library, const char *name, void *field)
{
    void *found =
        dlsym(library != NULL ? library : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
    assert_non_null(found);
    memcpy(field, &found, sizeof found);
}

void software_load(cuda_entries *entries, int major)
{
    char folder[4096];
    char path[4200];
    const char *missing = NULL;
    cuda_entries_software_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%d/libcudart.so.%d", folder, major, major);
    if (!cuda_entries_load(entries, path, &missing))
        fail_msg("%s: %s", path, missing != NULL ? missing : dlerror());
    if (!cuda_entries_load_driver(entries, &missing))
        fail_msg("%s has no %s", path, missing);
}

void software_load_all(void)
{
    software_load(&cuda, 13);
    software_load(&cuda12, 12);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(driver);
    software_find(driver, "frag_software_reset", &software.reset);
    software_find(driver, "frag_software_set", &software.set);
    software_find(driver, "frag_software_complete", &software.complete);
    software_find(driver, "frag_software_set_capturing", &software.set_capturing);
    software_find(driver, "frag_software_call_count", &software.call_count);
    software_find(driver, "frag_software_failure_count", &software.failure_count);
    software_find(driver, "frag_software_get_held", &software.get_held);
    software_find(driver, "frag_software_get_usage", &software.get_usage);
    software_find(driver, "frag_software_flush", &software.flush);
    software_find(driver, "frag_software_observe", &software.observe);
}

void software_start(const char *settings)
{
    char sentence[256] = "";
    if (!software.reset(settings, sentence, sizeof sentence))
        fail_msg("%s: %s", settings, sentence);
    cuda.get_last_error();
    cuda12.get_last_error();
    cuda.set_device(0);
}

uint64_t software_take(size_t bytes)
{
    void *address = NULL;
    assert_int_equal(cuda.malloc(&address, bytes), 0);
    return (uint64_t)(uintptr_t)address;
}

void software_give(uint64_t address)
{
    void *memory = NULL;
    memcpy(&memory, &address, sizeof memory);
    assert_int_equal(cuda.free(memory), 0);
}

size_t software_free_bytes(void)
{
    size_t left = 0;
    size_t total = 0;
    assert_int_equal(cuda.get_info(&left, &total), 0);
    return left;
}

void *software_stream(void)
{
    void *stream = NULL;
    assert_int_equal(cuda.stream_create(&stream, 1), 0);
    return stream;
}

uint64_t software_take_async(size_t bytes, void *stream)
{
    void *address = NULL;
    assert_int_equal(cuda.malloc_async(&address, bytes, stream), 0);
    return (uint64_t)(uintptr_t)address;
}

void software_give_async(uint64_t address, void *stream)
{
    void *memory = NULL;
    memcpy(&memory, &address, sizeof memory);
    assert_int_equal(cuda.free_async(memory, stream), 0);
}
