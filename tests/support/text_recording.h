/* Recordings for tests, written where they are used. */
#ifndef FRAG_SUPPORT_TEXT_RECORDING_H
#define FRAG_SUPPORT_TEXT_RECORDING_H

#include "traces/load.h"

/* Loads bytes as a file of that format, call sites and columns included. The findings and the error
 * begin empty. */
bool frag_test_load(const void *bytes, size_t count, frag_trace_format format,
                    frag_recording *recording, frag_findings *findings, frag_error *error);

/* Loads a text of any format that is told by its content; fails the test with the reader's line and
 * sentence otherwise. */
void frag_test_load_well(const char *text, frag_recording *recording, frag_findings *findings);

/* Loads the text form (its first line is added), as frag_test_load_well does. */
void frag_test_recording(const char *text, frag_recording *recording);

/* How often a reader counted this kind of finding. */
uint64_t frag_test_found(const frag_findings *findings, const char *kind);

#endif
