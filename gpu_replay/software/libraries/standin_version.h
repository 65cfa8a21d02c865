/* Which release a stand-in says it is. PyTorch decides by versions, so the answer is the one that
 * the program's own installation was made with. */
#ifndef FRAG_LIBRARIES_STANDIN_VERSION_H
#define FRAG_LIBRARIES_STANDIN_VERSION_H

#include <stddef.h>

typedef struct frag_standin_version {
    int major, minor, patch;
} frag_standin_version;

/* name: "cudnn", "nccl". In this order: the environment variable FRAGLAB_SOFTWARE_CUDNN (or _NCCL
 * ...), "9.10.2"; what the metadata of the torch that caller lies in requires
 * (nvidia-cudnn-cu12==9.10.2.21); otherwise. Looked up once for each name. */
frag_standin_version frag_standin_find_version(const char *name, const void *caller,
                                               frag_standin_version otherwise);

/* 12080 or the like: the runtime that is loaded. */
size_t frag_standin_cuda_version(void);

#endif
