#include "gpu_replay/torch/torch_raise.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for a c10::Error, which had 128 bytes in PyTorch 2.9. */
#define EXCEPTION_BYTES 1024

/* c10::SourceLocation */
typedef struct source_location {
    const char *function;
    const char *file;
    uint32_t line;
} source_location;

/* std::string of libstdc++; handed over "by value" it goes by address, and its owner destroys what
 * is left of it. */
typedef struct cxx_string {
    char *bytes;
    size_t length;
    union {
        char local[16];
        size_t capacity;
    } room;
} cxx_string;

/* c10::Error(SourceLocation, std::string) */
typedef void construct_error(void *error, source_location location, cxx_string *message);

/* A virtual table begins with an offset and the type; functions follow, the destructor first. */
typedef struct virtual_table {
    ptrdiff_t offset;
    void *type;
    void *functions[];
} virtual_table;

/* A symbol of a library that the program has loaded; NULL: not there. */
static void *find_loaded(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (handle != NULL)
        dlclose(handle);
    return found;
}

/* A function pointer may not be cast from void * in ISO C; its bytes may be copied. */
static bool take(void *function, void *found)
{
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void raise_out_of_memory(const char *message)
{
    construct_error *construct = NULL;
    void *(*allocate)(size_t bytes) = NULL;
    void (*throw_it)(void *exception, void *type, void (*destroy)(void *)) = NULL;
    void (*destroy)(void *) = NULL;
    void *type = find_loaded("libc10_cuda.so", "_ZTIN3c1016OutOfMemoryErrorE");
    virtual_table *table = find_loaded("libc10_cuda.so", "_ZTVN3c1016OutOfMemoryErrorE");
    if (type == NULL || table == NULL ||
        !take(&construct, find_loaded("libc10.so", "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx11"
                                                   "12basic_stringIcSt11char_traitsIcESaIcEEE")) ||
        !take(&allocate, find_loaded("libstdc++.so.6", "__cxa_allocate_exception")) ||
        !take(&throw_it, find_loaded("libstdc++.so.6", "__cxa_throw")) ||
        !take(&destroy, table->functions[0]))
        return;
    size_t length = strlen(message);
    cxx_string text = {.bytes = malloc(length + 1), .length = length, .room.capacity = length};
    if (text.bytes == NULL)
        return;
    memcpy(text.bytes, message, length + 1);
    void *exception = allocate(EXCEPTION_BYTES);
    construct(exception, (source_location){"fraglab_alloc", "libfraglab_torch", 0}, &text);
    if (text.bytes != text.room.local)
        free(text.bytes);
    /* A class that adds nothing to its base but its type. */
    void **functions = table->functions;
    memcpy(exception, &functions, sizeof functions);
    throw_it(exception, type, destroy);
}

void frag_torch_raise(const char *message)
{
    static const char out_of_memory[] = "CUDA out of memory";
    void *handle = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return;
    dlclose(handle);
    if (strncmp(message, out_of_memory, sizeof out_of_memory - 1) == 0)
        raise_out_of_memory(message);
    /* std::__throw_runtime_error(char const *), which libstdc++ exports for its own headers. */
    void (*throw_error)(const char *) = NULL;
    if (take(&throw_error, find_loaded("libstdc++.so.6", "_ZSt21__throw_runtime_errorPKc")))
        throw_error(message);
}
