/* Prints a device log the way the software CUDA logs calls, so that the two can be compared:
 *
 *     device_log_lines FILE
 *
 * One line for each call, "cudaMalloc bytes=3145728 address=0x700000000000 = 0"; calls that failed
 * have address 0, and threads are left out. */
#include <inttypes.h>
#include <stdio.h>

#include "traces/exchange/device_log.h"

typedef struct call_form {
    const char *runtime;
    const char *driver;
    const char *arguments; /* b bytes, a address, s stream, h handle, p pool, d device, n
                              attribute, 0 alignment=0 */
} call_form;

static const call_form forms[] = {
    [FRAG_LOG_MALLOC] = {"cudaMalloc", "cuMemAlloc_v2", "ba"},
    [FRAG_LOG_FREE] = {"cudaFree", "cuMemFree_v2", "a"},
    [FRAG_LOG_MALLOC_ASYNC] = {"cudaMallocAsync", "cuMemAllocAsync", "bsa"},
    [FRAG_LOG_FREE_ASYNC] = {"cudaFreeAsync", "cuMemFreeAsync", "as"},
    [FRAG_LOG_RESERVE] = {NULL, "cuMemAddressReserve", "b0a"},
    [FRAG_LOG_UNRESERVE] = {NULL, "cuMemAddressFree", "ab"},
    [FRAG_LOG_CREATE] = {NULL, "cuMemCreate", "bdh"},
    [FRAG_LOG_RELEASE] = {NULL, "cuMemRelease", "h"},
    [FRAG_LOG_MAP] = {NULL, "cuMemMap", "abh"},
    [FRAG_LOG_UNMAP] = {NULL, "cuMemUnmap", "ab"},
    [FRAG_LOG_SET_ACCESS] = {NULL, "cuMemSetAccess", "ab"},
    [FRAG_LOG_POOL_CREATE] = {"cudaMemPoolCreate", "cuMemPoolCreate", "p"},
    [FRAG_LOG_POOL_DESTROY] = {"cudaMemPoolDestroy", "cuMemPoolDestroy", "p"},
    [FRAG_LOG_POOL_TRIM] = {"cudaMemPoolTrimTo", "cuMemPoolTrimTo", "pb"},
    [FRAG_LOG_POOL_SET] = {"cudaMemPoolSetAttribute", "cuMemPoolSetAttribute", "pn"},
    [FRAG_LOG_DEVICE_RESET] = {"cudaDeviceReset", "cuDevicePrimaryCtxReset_v2", ""},
};

static void print_argument(const frag_device_record *record, char argument)
{
    bool is_refused = record->result != 0 && record->call != FRAG_LOG_FREE;
    switch (argument) {
    case 'b':
        printf(" bytes=%" PRIu64, record->bytes);
        return;
    case 'a':
        printf(" address=0x%" PRIx64, is_refused ? 0 : record->address);
        return;
    case 's':
        printf(" stream=0x%" PRIx64, record->stream);
        return;
    case 'h':
        printf(" handle=0x%" PRIx64, record->other);
        return;
    case 'p':
        printf(" pool=0x%" PRIx64, record->other);
        return;
    case 'd':
        printf(" device=%u", record->device);
        return;
    case 'n':
        printf(" attribute=%" PRIu64, record->address);
        return;
    default:
        printf(" alignment=0");
        return;
    }
}

static void print_record(const frag_device_record *record)
{
    if (record->call >= sizeof forms / sizeof *forms || forms[record->call].arguments == NULL) {
        printf("%s\n", frag_log_call_name(record->call));
        return;
    }
    const call_form *form = &forms[record->call];
    bool is_from_pool = record->call == FRAG_LOG_MALLOC_ASYNC && record->other != 0;
    bool is_driver = (record->flags & FRAG_LOG_BY_DRIVER) != 0;
    const char *name = is_driver ? form->driver : form->runtime;
    if (is_from_pool)
        name = is_driver ? "cuMemAllocFromPoolAsync" : "cudaMallocFromPoolAsync";
    fputs(name, stdout);
    for (const char *argument = is_from_pool ? "bpsa" : form->arguments; *argument != '\0';
         argument++)
        print_argument(record, *argument);
    printf(" = %d\n", record->result);
}

int main(int argc, char **argv)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_device_log log;
    frag_input *input = argc == 2 ? frag_input_open(argv[1], &error) : NULL;
    if (input == NULL || !frag_device_log_read(input, &log, &error)) {
        fprintf(stderr, "device_log_lines: %s\n", error.sentence);
        return 1;
    }
    for (size_t i = 0; i < log.record_count; i++)
        print_record(&log.records[i]);
    frag_device_log_destroy(&log);
    frag_input_close(input);
    return 0;
}
