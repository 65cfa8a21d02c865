/* Reads and writes go through the host: what a file holds is then known of the device's memory. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cufile_calls.h>

enum { INVALID_VALUE = 5022, FIELD_DESCRIPTOR = 0, FIELD_IS_OPEN = 1, PIECE_BYTES = 65536 };

/* The begin of the description of a file: its type (1: a file descriptor), then the descriptor. */
typedef struct file_description {
    int32_t type;
    int32_t padding;
    union {
        int32_t descriptor;
        void *handle;
    } file;
} file_description;

uint64_t cuFileHandleRegister(void **handle, const void *description)
{
    const file_description *file = description;
    if (handle == NULL)
        return INVALID_VALUE;
    *handle = NULL;
    if (file == NULL || file->type != 1)
        return INVALID_VALUE;
    *handle = frag_standin_new();
    frag_standin_set(*handle, FIELD_DESCRIPTOR, (uint64_t)(uint32_t)file->file.descriptor);
    frag_standin_set(*handle, FIELD_IS_OPEN, 1);
    return 0;
}

void cuFileHandleDeregister(void *handle)
{
    frag_standin_end(handle);
}

static int descriptor_of(const void *handle)
{
    bool is_open = frag_standin_get(handle, FIELD_IS_OPEN) != 0;
    return is_open ? (int)frag_standin_get(handle, FIELD_DESCRIPTOR) : -1;
}

int64_t cuFileRead(void *handle, void *device, uint64_t bytes, int64_t file_offset,
                   int64_t device_offset)
{
    unsigned char piece[PIECE_BYTES];
    uint64_t done = 0;
    while (done < bytes) {
        size_t wanted = (size_t)frag_standin_min(bytes - done, sizeof piece);
        ssize_t got = pread(descriptor_of(handle), piece, wanted, file_offset + (int64_t)done);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        frag_software_write((unsigned char *)device + device_offset + done, piece, (size_t)got);
        done += (uint64_t)got;
    }
    return (int64_t)done;
}

int64_t cuFileWrite(void *handle, void *device, uint64_t bytes, int64_t file_offset,
                    int64_t device_offset)
{
    unsigned char piece[PIECE_BYTES];
    uint64_t done = 0;
    while (done < bytes) {
        size_t wanted = (size_t)frag_standin_min(bytes - done, sizeof piece);
        frag_software_read((unsigned char *)device + device_offset + done, piece, wanted);
        ssize_t put = pwrite(descriptor_of(handle), piece, wanted, file_offset + (int64_t)done);
        if (put < 0)
            return -1;
        done += (uint64_t)put;
    }
    return (int64_t)done;
}
