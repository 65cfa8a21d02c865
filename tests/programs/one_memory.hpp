/* A log of a library that hands out the blocks of one memory and knows no streams, under one of the
 * profiles made for such libraries. The head has the device calls with which the library began. */
#ifndef FRAG_PROGRAMS_ONE_MEMORY_HPP
#define FRAG_PROGRAMS_ONE_MEMORY_HPP

#include "tests/programs/real_library.hpp"

namespace
{

const std::vector<std::string> ONE_MEMORY_PROFILES = {"train", "power", "bound", "tiny", "churn"};

struct OneMemory {
    Script script;
    uint64_t largest;     /* request */
    uint64_t live_wanted; /* about as many blocks are in use at once */

    Chance &chance()
    {
        return script.chance;
    }
    /* Every order of size alike. */
    uint64_t any_size()
    {
        unsigned doublings = 0;
        while (largest >> (doublings + 1) != 0)
            doublings++;
        uint64_t top = (uint64_t)2 << chance().below(doublings + 1);
        uint64_t size = top / 2 + chance().below(top / 2);
        return std::min(size, largest);
    }
    /* Around powers of two, their thirtysecond parts, and the largest. */
    uint64_t bound_size()
    {
        uint64_t size = any_size();
        unsigned low = 0;
        while (size >> (low + 1) != 0)
            low++;
        unsigned kept = (unsigned)chance().below(7);
        if (low > kept)
            size &= ~(((uint64_t)1 << (low - kept)) - 1);
        if (chance().below(12) == 0)
            size = largest >> chance().below(5);
        size += chance().below(3);
        return size > 1 ? size - 1 : 1;
    }
    uint64_t draw_size(const std::string &profile)
    {
        if (profile == "tiny")
            return 1 + chance().below(700);
        if (profile == "churn")
            return largest / 2 + chance().below(largest / 2) + 1;
        return profile == "bound" ? bound_size() : any_size();
    }
    void free_some()
    {
        size_t count = script.live.size();
        uint64_t back = chance().below(2) == 0 ? chance().below(4) : chance().below(count);
        script.free(back < count ? count - 1 - (size_t)back : 0);
    }
    /* Random sizes around a number of live blocks that drifts; now and then nearly all are freed.
     */
    void play_drift(const std::string &profile)
    {
        const std::vector<Block> &live = script.live;
        uint64_t wanted = live_wanted;
        while (!script.is_over()) {
            if (chance().below(300) == 0)
                wanted = chance().below(4) == 0 ? 1 : 1 + chance().below(2 * live_wanted);
            if (live.empty() || (live.size() < wanted && chance().happens(70)) ||
                (live.size() >= wanted && chance().happens(30))) {
                if (!script.alloc(draw_size(profile)) && chance().below(3) == 0)
                    for (uint64_t n = chance().below(8);
                         n > 0 && !live.empty() && !script.is_over(); n--)
                        free_some();
            } else {
                free_some();
            }
        }
    }
    /* Steps of a training: weights that stay, activations that come and go in the opposite order,
     * workspaces in between, lengths that vary. */
    void play_train()
    {
        std::vector<uint64_t> layers;
        for (uint64_t i = 0; i < live_wanted / 4 + 1; i++) {
            layers.push_back(any_size());
            script.alloc(layers.back());
        }
        while (!script.is_over()) {
            uint64_t length = 50 + chance().below(51);
            std::vector<uint64_t> activations;
            for (size_t i = 0; i < layers.size() && !script.is_over(); i++) {
                uint64_t bytes = layers[i] * length / 100 + 1;
                if (script.alloc(bytes))
                    activations.push_back(script.live.back().id);
                if (chance().below(2) == 0 && script.alloc(bytes / 3 + 1))
                    script.free_newest();
            }
            while (!activations.empty() && !script.is_over()) {
                if (chance().below(3) == 0 && script.alloc(any_size()))
                    script.free_newest();
                uint64_t id = activations.back();
                activations.pop_back();
                for (size_t at = script.live.size(); at-- > 0;)
                    if (script.live[at].id == id)
                        script.free(at);
            }
        }
    }
    void play(const std::string &profile)
    {
        if (profile == "train")
            play_train();
        else
            play_drift(profile);
        while (!script.live.empty() && chance().below(64) != 0)
            free_some();
    }
};

/* Parameters: keys of the log's head. What is still held at the end stays so: libraries would
 * complain about leaks. */
[[noreturn]] inline void write_log(Arguments &arguments, Library &library, const std::string &name,
                                   const std::string &version,
                                   const std::vector<std::string> &parameters)
{
    OneMemory played = {{library, {arguments.seed}, arguments.requests, {}, 0},
                        arguments.number("largest", 64 * MIB),
                        arguments.number("live", 200)};
    std::string members = arguments.json_of_given(parameters);
    arguments.refuse_unknown();
    write_head(arguments, device.rules, name, version, members,
               ",\"drv\":[" + library.take_calls() + "]");
    played.play(arguments.profile);
    write_summary(counts, NO_WAITS);
    _Exit(0);
}

} // namespace

#endif
