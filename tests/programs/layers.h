/* Two libraries, one before the other. */
#ifndef FRAG_PROGRAMS_LAYERS_H
#define FRAG_PROGRAMS_LAYERS_H

#include "gpu_replay/recorder/record_cuda.h"

/* 11: the outer one found the inner one behind itself. */
int layer_answer(void);

#endif
