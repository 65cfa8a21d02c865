/* The version and commit of this build. The Makefile defines the FRAG_BUILD_ words for this one
 * file, so that a new commit rebuilds nothing else. */
#include "sim/version.h"

const char *frag_version(void)
{
    return FRAG_BUILD_VERSION;
}

const char *frag_commit(void)
{
    return FRAG_BUILD_COMMIT;
}

const char *frag_commit_date(void)
{
    return FRAG_BUILD_DATE;
}

const char *frag_build_mode(void)
{
    return FRAG_BUILD_MODE;
}

const char *frag_compiler(void)
{
    return FRAG_BUILD_COMPILER " " __VERSION__;
}

const char *frag_data_folder(void)
{
    return FRAG_BUILD_DATA_FOLDER;
}
