/* Throwing out of C into PyTorch, which takes a NULL for memory.
 *
 * A message that begins with "CUDA out of memory" becomes PyTorch's own exception for that, put
 * together by the C++ binary interface as its compiler would; Python sees torch.OutOfMemoryError.
 * Any other, and where PyTorch lacks a piece of that, becomes a std::runtime_error: a RuntimeError.
 * All functions needed are looked for in the libraries that the program has loaded. */
#ifndef FRAG_TORCH_TORCH_RAISE_H
#define FRAG_TORCH_TORCH_RAISE_H

/* Throws where libc10 is loaded; returns elsewhere. No lock may be held. */
void frag_torch_raise(const char *message);

#endif
