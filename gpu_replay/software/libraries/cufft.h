/* cuFFT: codes that its table answers with. */
#ifndef FRAG_LIBRARIES_CUFFT_H
#define FRAG_LIBRARIES_CUFFT_H

/* What several GPUs in one plan, and introspection of it, end with. */
enum { FRAG_CUFFT_NOT_SUPPORTED = 16 };

#endif
