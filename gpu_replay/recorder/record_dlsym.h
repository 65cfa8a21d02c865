/* The C library's dlsym, beneath the recorder's own. */
#ifndef FRAG_RECORDER_RECORD_DLSYM_H
#define FRAG_RECORDER_RECORD_DLSYM_H

typedef void *frag_dlsym(void *library, const char *name);

/* With RTLD_NEXT it looks behind the recorder. NULL: there is none of a known version. */
frag_dlsym *frag_dlsym_real(void);

#endif
