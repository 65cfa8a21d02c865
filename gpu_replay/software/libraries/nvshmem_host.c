/* NVSHMEM cannot be initialised, and the report says that somebody tried. */
#include <nvshmem_host_calls.h>

enum { FAILED = 1 };

static int32_t refuse(void)
{
    frag_software_note("NVSHMEM", "NVSHMEM was asked for; software CUDA has none");
    return FAILED;
}

int32_t nvshmem_init(void)
{
    return refuse();
}

int32_t nvshmemid_hostlib_init_attr(int32_t wanted, int32_t *provided, uint32_t bootstrap,
                                    const void *attributes, frag_standin_struct12 version,
                                    void *callback)
{
    (void)wanted, (void)bootstrap, (void)attributes, (void)version, (void)callback;
    if (provided != NULL)
        *provided = 0;
    return refuse();
}
