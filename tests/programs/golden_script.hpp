// Random request scripts, played on a real library's pool, and the golden log of what it answered
// (docs/trace-format.md, "Logs of other frameworks' pools").
#ifndef FRAG_PROGRAMS_GOLDEN_SCRIPT_HPP
#define FRAG_PROGRAMS_GOLDEN_SCRIPT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <string>
#include <vector>

namespace golden
{
struct Chance {
    uint64_t state;
    uint64_t next()
    {
        state += 0x9e3779b97f4a7c15;
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // From low to high, both included.
    uint64_t between(uint64_t low, uint64_t high)
    {
        return low + next() % (high - low + 1);
    }
    bool happens(unsigned percent)
    {
        return next() % 100 < percent;
    }
};

struct Block {
    uint64_t id;
    uint64_t address;
    uint64_t bytes; // requested
};

// The library under a script.
struct Pool {
    std::string calls; // to the device, for the request being served: JSON, without its brackets
    virtual ~Pool() = default;
    // False: out of memory. A request for nothing has the address 0.
    virtual bool alloc(uint64_t bytes, uint64_t *address) = 0;
    virtual void free(const Block &block) = 0;
    virtual void trim()
    {
    }
};

struct Script {
    Pool &pool;
    Chance chance;
    uint64_t count; // of requests to be made
    unsigned streams = 1;
    std::vector<Block> live;
    uint64_t live_bytes = 0;
    uint64_t id = 0;
    uint64_t requests = 0;
    uint64_t allocs = 0;
    uint64_t frees = 0;
    uint64_t ooms = 0;

    Script(Pool &played, uint64_t seed, uint64_t request_count)
        : pool(played), chance{seed}, count(request_count)
    {
    }

    bool is_over() const
    {
        return requests >= count;
    }

    void end_line()
    {
        if (!pool.calls.empty())
            std::cout << ",\"drv\":[" << pool.calls << "]";
        std::cout << "}\n";
        pool.calls.clear();
        requests++;
    }

    // Returns whether it was served; then it is the last of live.
    bool alloc(uint64_t bytes)
    {
        uint64_t address = 0;
        bool is_served = pool.alloc(bytes, &address);
        allocs++;
        std::cout << "{\"op\":\"alloc\",\"id\":" << id << ",\"size\":" << bytes
                  << ",\"stream\":" << chance.between(0, streams - 1);
        if (is_served) {
            std::cout << ",\"addr\":" << address;
            live.push_back({id, address, bytes});
            live_bytes += bytes;
        } else {
            std::cout << ",\"oom\":true";
            ooms++;
        }
        id++;
        end_line();
        return is_served;
    }

    void free(size_t index)
    {
        Block block = live[index];
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
        live_bytes -= block.bytes;
        pool.free(block);
        frees++;
        std::cout << "{\"op\":\"free\",\"id\":" << block.id
                  << ",\"stream\":" << chance.between(0, streams - 1);
        end_line();
    }

    void free_any()
    {
        if (!live.empty())
            free(chance.between(0, live.size() - 1));
    }

    void trim()
    {
        pool.trim();
        std::cout << "{\"op\":\"trim\"";
        end_line();
    }

    // The members of the summary that every library has.
    void write_counts() const
    {
        std::cout << "\"requests\":" << requests << ",\"allocs\":" << allocs
                  << ",\"frees\":" << frees << ",\"ooms\":" << ooms;
    }
};

// A network with weights that stay, and batches, which may vary in length: activations on the way
// up, gradients on the way down.
inline void play_train(Script &script, bool is_varying)
{
    std::vector<uint64_t> layers;
    for (int i = 0; i < 24; i++)
        layers.push_back(script.chance.between(1000, 400000) * 16);
    for (uint64_t layer : layers)
        if (!script.is_over())
            script.alloc(layer / 2 + 256);
    size_t kept = script.live.size();
    while (!script.is_over()) {
        uint64_t length = is_varying ? script.chance.between(20, 256) : 128;
        for (uint64_t layer : layers) {
            script.alloc(layer * length / 128);
            if (script.chance.happens(40) && script.alloc(layer * length / 16))
                script.free(script.live.size() - 1);
        }
        while (script.live.size() > kept && !script.is_over()) {
            if (script.alloc(script.chance.between(1, 64) * 1024))
                script.free(script.live.size() - 1);
            script.free(script.live.size() - 1);
        }
    }
}

// Requests of any size in waves: the live set is let grow, then shrinks. capacity: of the device.
inline void play_waves(Script &script, uint64_t capacity, bool has_trims,
                       const std::function<uint64_t()> &draw_size)
{
    uint64_t target = capacity / 2;
    uint64_t count_max = script.chance.between(20, 400);
    while (!script.is_over()) {
        bool grows = script.live_bytes < target && script.live.size() < count_max;
        if (has_trims && script.chance.happens(2))
            script.trim();
        else if (script.live.empty() || script.chance.happens(grows ? 60 : 35))
            script.alloc(draw_size());
        else
            script.free_any();
        if (script.chance.happens(1))
            target = script.chance.between(1, 100) * (capacity / 80);
    }
}

inline bool is_one_of(const std::string &name, std::initializer_list<const char *> names)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Every order of size alike, from below 64 bytes to 2^highest.
inline uint64_t power_size(Chance &chance, unsigned highest)
{
    uint64_t top = chance.between(6, highest);
    return chance.between(uint64_t{1} << (top - 1), uint64_t{1} << top);
}
} // namespace golden

#endif
