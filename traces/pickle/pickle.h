/* A reader of Python pickles that executes nothing.
 *
 * It knows dictionaries, lists, tuples, strings and numbers, which is all that a snapshot of
 * torch.cuda.memory holds (protocols 2 to 5, from Python's pickler or PyTorch's own); every other
 * operation is refused where it stands. Host memory stays within a small multiple of the bytes
 * read; no count in the file is believed. */
#ifndef FRAG_PICKLE_PICKLE_H
#define FRAG_PICKLE_PICKLE_H

#include "base/error.h"
#include "base/file.h"
#include "traces/pickle/pickle_tree.h"

/* Reads one pickle, which must be all of the input, into an empty tree. visitor may be NULL. */
bool frag_pickle_read(frag_pickle *pickle, frag_input *input, frag_pickle_visitor visitor,
                      void *context, frag_pickle_value *root, frag_error *error);

#endif
