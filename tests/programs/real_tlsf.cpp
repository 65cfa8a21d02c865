/* Writes a golden log of the real tlsf.c of M. Conte: a random script of requests, each with the
 * address or the failure that the library answered with. Its pool is one device malloc, at whose
 * place in the log the library sees memory of the host, since it keeps its records in there.
 *
 * Build it beside a checkout of the library:
 *     gcc -O2 -c tlsf/tlsf.c -o tlsf.o
 *     g++ -std=c++17 -O2 -I. -I tlsf tests/programs/real_tlsf.cpp tlsf.o -o real_tlsf
 * Run it:
 *     ./real_tlsf PROFILE SEED REQUESTS [KEY=VALUE ...] >log.jsonl
 * Keys are the parameters of the log's head (size, align), and gran, largest and live, as for
 * real_vma.cpp, which names the profiles too. */
#include "tests/programs/one_memory.hpp"

#include <sys/mman.h>

#include "tlsf.h"

namespace
{

/* Alignments of the library are those of its memory, which lies as the device's does. */
unsigned char *memory_like_the_device(uint64_t bytes)
{
    uint64_t unit = (uint64_t)1 << 30;
    void *memory = mmap(nullptr, bytes + unit, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        stop("there is no memory for the pool");
    return (unsigned char *)(((uintptr_t)memory + unit - 1) / unit * unit);
}

struct Pool : Library {
    std::vector<unsigned char> control;
    tlsf_t tlsf = nullptr;
    unsigned char *memory = nullptr;
    uint64_t base = 0;
    uint64_t align;
    std::map<uint64_t, void *> held;

    explicit Pool(Arguments &arguments) : control(tlsf_size() + 16)
    {
        uint64_t size = arguments.number_given("size");
        align = arguments.number("align", 8);
        base = device.malloc(size);
        memory = memory_like_the_device(size);
        tlsf = tlsf_create(control.data());
        if (base == 0 || tlsf == nullptr || tlsf_add_pool(tlsf, memory, size) == nullptr)
            stop("there is no pool");
    }
    bool alloc(Block &block) override
    {
        void *at =
            align > 8 ? tlsf_memalign(tlsf, align, block.bytes) : tlsf_malloc(tlsf, block.bytes);
        if (at == nullptr)
            return false;
        held[block.id] = at;
        block.address = base + (uint64_t)((unsigned char *)at - memory);
        return true;
    }
    void free(const Block &block) override
    {
        tlsf_free(tlsf, held.at(block.id));
        held.erase(block.id);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments = read_arguments(argc, argv, {}, ONE_MEMORY_PROFILES);
    device.set_rules(arguments, UINT64_MAX);
    Pool pool(arguments);
    write_log(arguments, pool, "tlsf-conte", "3.1", {"size", "align"});
}
