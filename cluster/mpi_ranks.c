/* The module that fraglab loads to run a sweep on several MPI ranks; the only file that calls MPI.
 */
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cluster/rank_module.h"

#define TAG 0

extern const frag_rank_module frag_rank_module_table;

/* "Open MPI v4.1.4, package: ...": what stands before the comma. */
static void library(char *text, size_t text_bytes)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(whole, &length);
    whole[strcspn(whole, ",\n")] = '\0';
    snprintf(text, text_bytes, "%s", whole);
}

/* Launchers bind each process to cores of its own, or let all of a machine have all. */
static uint32_t count_sharers(void)
{
    MPI_Comm machine;
    int count = 1;
    uint32_t sharers = 0;
    cpu_set_t own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        memset(&own, 0xff, sizeof own);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &count);
    cpu_set_t *all = frag_alloc((size_t)count, sizeof *all);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, machine);
    for (int i = 0; i < count; i++) {
        cpu_set_t both;
        CPU_AND(&both, &own, &all[i]);
        sharers += CPU_COUNT(&both) > 0 ? 1 : 0;
    }
    free(all);
    MPI_Comm_free(&machine);
    return sharers > 0 ? sharers : 1;
}

static void join(frag_rank_facts *facts)
{
    int provided = 0;
    int rank = 0;
    int count = 1;
    int length = 0;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Get_processor_name(host, &length);
    *facts = (frag_rank_facts){
        .rank = (uint32_t)rank, .count = (uint32_t)count, .shared = count_sharers()};
    snprintf(facts->host, sizeof facts->host, "%s", host);
}

static void send(uint32_t to, const void *bytes, size_t count)
{
    FRAG_ASSERT(count <= INT_MAX);
    MPI_Send(bytes, (int)count, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD);
}

static bool poll(uint32_t *from, size_t *count)
{
    int is_there = 0;
    int length = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &length);
    *from = (uint32_t)status.MPI_SOURCE;
    *count = (size_t)length;
    return true;
}

static void receive(uint32_t from, void *bytes, size_t count)
{
    FRAG_ASSERT(count <= INT_MAX);
    MPI_Recv(bytes, (int)count, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void leave(void)
{
    MPI_Finalize();
}

const frag_rank_module frag_rank_module_table = {
    .abi = FRAG_RANK_MODULE_ABI,
    .library = library,
    .join = join,
    .send = send,
    .poll = poll,
    .receive = receive,
    .leave = leave,
};
