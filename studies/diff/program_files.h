/* One program in two files: train.py before, train_fixed.py after. */
#ifndef FRAG_DIFF_PROGRAM_FILES_H
#define FRAG_DIFF_PROGRAM_FILES_H

#include "studies/diff/site_uses.h"

/* By call site: where each side has one file of the program that the other lacks, and a function is
 * in both, the names of before get the file of after. files: both names, which the caller frees;
 * NULL where there are no such files. */
void frag_program_files_join(frag_site_uses *before, const frag_site_uses *after, char *files[2]);

#endif
