/* Which shared object code and tables come from. */
#ifndef FRAG_SYSTEM_OBJECT_PATH_H
#define FRAG_SYSTEM_OBJECT_PATH_H

/* The file of the shared object that the address lies in, as it was opened. NULL: it lies in the
 * program, or the library, that this function is of, or in no file. */
const char *frag_object_path(const void *address);

#endif
