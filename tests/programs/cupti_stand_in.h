/* What a program tells the stand-in for libcupti. */
#ifndef FRAG_PROGRAMS_CUPTI_STAND_IN_H
#define FRAG_PROGRAMS_CUPTI_STAND_IN_H

#include <stdint.h>

/* The driver makes the call of that number on a device, with the parameters as CUPTI hands them to
 * callbacks, and it ends with result. Calls that nobody asked for are not told. */
void stand_in_call(uint32_t id, const void *parameters, int device, int result);

#endif
