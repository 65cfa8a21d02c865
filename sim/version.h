/* What this build is: for --version, `fraglab doctor` and every result row. */
#ifndef FRAG_SIM_VERSION_H
#define FRAG_SIM_VERSION_H

const char *frag_version(void);     /* "0.1.0" */
const char *frag_commit(void);      /* short hash, "-dirty" behind it when edited; or "unknown" */
const char *frag_commit_date(void); /* "2026-01-31"; or "" */
const char *frag_build_mode(void);  /* "release", "debug", "asan", "tsan" */
const char *frag_compiler(void);    /* name and version of the compiler */
const char *
frag_data_folder(void); /* where `make install` puts plots/: "/usr/local/share/fraglab" */

#endif
