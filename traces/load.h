/* Loading a recording of any format, detected from its content. */
#ifndef FRAG_TRACES_LOAD_H
#define FRAG_TRACES_LOAD_H

#include "base/json.h"
#include "traces/formats.h"
#include "traces/window.h"

/* Reads, validates and measures. On failure *recording is empty and error has file and position. */
bool frag_recording_load(const char *path, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error);
bool frag_recording_load_input(frag_input *input, const frag_load_options *options,
                               frag_recording *recording, frag_findings *findings,
                               frag_error *error);

/* For replay, with columns and call stacks only if with_sites; findings are left out. */
bool frag_recording_load_plain(const char *path, frag_trace_format format, bool with_sites,
                               frag_recording *recording, frag_error *error);

/* The same of the part that a window names; of FRAG_WINDOW_ALL everything. */
bool frag_recording_load_part(const char *path, frag_trace_format format, bool with_sites,
                              const frag_window *window, frag_recording *recording,
                              frag_error *error);

/* "torch 2.9", what was guessed of the recording, or NULL. text holds it. */
const char *frag_recorded_by(const frag_recording *recording, char text[64]);

/* Adds the array "metadata": what the recording says of its program, objects of key and value. */
void frag_recording_add_metadata(frag_json *json, const frag_recording *recording);

#endif
