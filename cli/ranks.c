#include "cli/ranks.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/threads.h"
#include "cli/module_load.h"

#define MODULE_FILE "fraglab_mpi.so"

static const frag_rank_module *load(frag_error *error)
{
    /* Open MPI opens parts of itself that look for the others among all that is loaded. */
    void *object = frag_module_open(
        MODULE_FILE, true, "this fraglab was built without MPI (package libopenmpi-dev)", error);
    if (object == NULL)
        return NULL;
    return frag_module_table(object, MODULE_FILE, FRAG_RANK_MODULE_SYMBOL, FRAG_RANK_MODULE_ABI,
                             error);
}

/* How many processes the launcher says that it started; 1: none says anything. */
static uint64_t launched_count(void)
{
    /* Open MPI; MPICH, Intel MPI and others over PMI; srun, for one job step. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        uint64_t count = 0;
        if (text != NULL && frag_count_parse(text, 1, UINT32_MAX, &count, NULL))
            return count;
    }
    return 1;
}

bool frag_ranks_join(frag_ranks *ranks, frag_error *error)
{
    char library[64];
    uint64_t launched = launched_count();
    *ranks = (frag_ranks){.facts = {.count = 1, .shared = 1}};
    if (launched == 1)
        return true;
    const frag_rank_module *module = load(error);
    if (module == NULL)
        return frag_error_in(error, "started as one of several processes, which MPI must join");
    module->join(&ranks->facts);
    if (ranks->facts.count == launched) {
        ranks->module = module;
        return true;
    }
    module->library(library, sizeof library);
    module->leave();
    return frag_fail(error, FRAG_E_SYSTEM,
                     "started as one of %llu processes, of which %s, which this fraglab was built "
                     "for, sees %u; start it with that library's own mpirun",
                     (unsigned long long)launched, library, ranks->facts.count);
}

uint32_t frag_ranks_cores(const frag_ranks *ranks)
{
    uint32_t cores = frag_core_count() / ranks->facts.shared;
    return cores > 0 ? cores : 1;
}

bool frag_ranks_library(char *text, size_t text_bytes, frag_error *error)
{
    const frag_rank_module *module = load(error);
    if (module != NULL)
        module->library(text, text_bytes);
    return module != NULL;
}
