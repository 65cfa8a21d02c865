/* Whose code a frame of a call stack is, by its file: the rule of docs/reading-snapshots.md. */
#ifndef FRAG_TRACE_FRAME_OWNER_H
#define FRAG_TRACE_FRAME_OWNER_H

#include <stdbool.h>

/* In the order in which a frame says more about a request: the last says the most. */
typedef enum frag_frame_owner {
    FRAG_OWNER_NATIVE,    /* C or C++, or a file that is not recorded */
    FRAG_OWNER_STANDARD,  /* Python's standard library, frozen modules */
    FRAG_OWNER_FRAMEWORK, /* PyTorch in Python */
    FRAG_OWNER_GENERATED, /* by torch.compile, by exec: no file that a person wrote */
    FRAG_OWNER_INSTALLED, /* another installed package */
    FRAG_OWNER_PROGRAM    /* the user's own */
} frag_frame_owner;

/* file as it was recorded, of Linux, macOS or Windows; function decides for "<string>" alone. */
frag_frame_owner frag_frame_owner_of(const char *file, const char *function);

/* A file whose frames stand between a function of PyTorch and who calls it, and name nothing: a dry
 * run's, and the one through which PyTorch (2.15) sends operators that it also has in Python. They
 * are all of the stack where the backward pass calls such an operator. */
bool frag_frame_is_wrapper(const char *file);

#endif
