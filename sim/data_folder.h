/* Files that are installed with the program: scripts for plots, descriptions of cards. */
#ifndef FRAG_SIM_DATA_FOLDER_H
#define FRAG_SIM_DATA_FOLDER_H

/* Where the file or folder of that relative path ("devices", "plots/bars.gp") is: beside the
 * program as built or as installed, where it was to be installed, or at hand. NULL: nowhere. The
 * caller frees. */
char *frag_data_find(const char *relative);

#endif
