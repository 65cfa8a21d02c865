/* How names are looked up beneath the recorder, which takes the place of dlsym too. */
#ifndef FRAG_RECORDER_RECORD_LOOKUP_H
#define FRAG_RECORDER_RECORD_LOOKUP_H

/* The C library's dlsym. With RTLD_NEXT it looks behind the recorder. */
void *frag_lookup_real(void *library, const char *name);

#endif
