/* Stands before another library, as wrappers of malloc and the like do, and asks for what it hides.
 */
#define _GNU_SOURCE
#include "tests/programs/layers.h"

#include <dlfcn.h>
#include <string.h>

int layer_answer(void)
{
    void *found = dlsym(RTLD_NEXT, "layer_answer");
    int (*hidden)(void);
    memcpy(&hidden, &found, sizeof hidden);
    return hidden == NULL || hidden == layer_answer ? -1 : 10 + hidden();
}
