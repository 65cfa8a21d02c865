/* Traces for tests, written where they are used. */
#ifndef FRAG_TESTS_TEXT_RECORDING_H
#define FRAG_TESTS_TEXT_RECORDING_H

#include "sim/trace.h"

/* Loads the text form (its first line is added); fails the test with the reader's sentence
 * otherwise. */
void frag_test_recording(const char *text, frag_recording *recording);

#endif
