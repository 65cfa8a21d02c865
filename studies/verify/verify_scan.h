/* What each setting of a guess could have been instead. */
#ifndef FRAG_VERIFY_VERIFY_SCAN_H
#define FRAG_VERIFY_VERIFY_SCAN_H

#include "studies/verify/verify_guess.h"

/* Tries every value of every free setting, the others being those of base. */
void frag_guess_scan(frag_guessing *search, const frag_guess *base);

#endif
