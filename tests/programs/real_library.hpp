/* What the programs share that run a real allocator library under a random script and write a
 * golden log of it: the device that accounts for memory and does nothing else, the script, the form
 * of the log (docs/trace-format.md, "Logs of other frameworks' pools"). */
#ifndef FRAG_PROGRAMS_REAL_LIBRARY_HPP
#define FRAG_PROGRAMS_REAL_LIBRARY_HPP

#include <cctype>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace
{

const uint64_t BASE = 0x700000000000;
const uint64_t GAP = (uint64_t)2 << 20;

[[noreturn]] inline void stop(const char *what)
{
    fprintf(stderr, "error: %s\n", what);
    exit(2);
}

/* ---- what is asked for on the command line */

struct Settings {
    std::map<std::string, std::string> values;
    std::map<std::string, bool> used;

    std::string text(const char *key, const char *standard)
    {
        used[key] = true;
        auto at = values.find(key);
        return at == values.end() ? standard : at->second;
    }
    uint64_t number(const char *key, uint64_t standard)
    {
        used[key] = true;
        auto at = values.find(key);
        return at == values.end() ? standard : strtoull(at->second.c_str(), nullptr, 10);
    }
    /* What the library has no value for of its own. */
    uint64_t number_given(const char *key)
    {
        if (!has(key))
            stop((std::string(key) + "=BYTES is missing").c_str());
        return number(key, 0);
    }
    bool has(const char *key)
    {
        used[key] = true;
        return values.count(key) != 0;
    }
};

struct Chance {
    uint64_t state;

    uint64_t next()
    {
        state += 0x9e3779b97f4a7c15u;
        uint64_t bits = state;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        return bits ^ (bits >> 31);
    }
    uint64_t below(uint64_t limit)
    {
        return next() % limit;
    }
    /* Every order of size alike. */
    uint64_t any_size(uint64_t largest)
    {
        unsigned doublings = 0;
        while (largest >> (doublings + 1) != 0)
            doublings++;
        uint64_t top = (uint64_t)2 << below(doublings + 1);
        uint64_t size = top / 2 + below(top / 2);
        return size < largest ? size : largest;
    }
};

/* ---- the device: a capacity, addresses that ascend and are never used again, a list of calls */

struct Device {
    uint64_t capacity = UINT64_MAX;
    uint64_t gran = (uint64_t)2 << 20;
    uint64_t next = BASE;
    uint64_t used = 0;
    uint64_t held = 0;
    uint64_t held_peak = 0;
    uint64_t mallocs = 0;
    uint64_t refusals = 0;
    uint64_t frees = 0;
    std::map<uint64_t, uint64_t> segments;
    std::string calls;

    uint64_t charge(uint64_t bytes) const
    {
        return (bytes + gran - 1) / gran * gran;
    }
    void note(const char *name, uint64_t address, uint64_t bytes, int result)
    {
        char line[128];
        snprintf(line, sizeof line, "%s[\"%s\",%" PRIu64 ",%" PRIu64 ",%d]",
                 calls.empty() ? "" : ",", name, address, bytes, result);
        calls += line;
    }
    uint64_t malloc(uint64_t bytes)
    {
        if (charge(bytes) > capacity - used) {
            refusals++;
            note("malloc", 0, bytes, 2);
            return 0;
        }
        uint64_t address = next;
        next += charge(bytes) + GAP;
        used += charge(bytes);
        held += bytes;
        held_peak = held > held_peak ? held : held_peak;
        mallocs++;
        segments[address] = bytes;
        note("malloc", address, bytes, 0);
        return address;
    }
    void free(uint64_t address)
    {
        auto at = segments.find(address);
        if (at == segments.end())
            stop("the library frees what it does not hold");
        note("free", address, at->second, 0);
        used -= charge(at->second);
        held -= at->second;
        frees++;
        segments.erase(at);
    }
};

Device device;

/* ---- the library */

struct Library {
    virtual ~Library() = default;
    /* false: the library has failed. Id names what is freed later. */
    virtual bool alloc(uint32_t id, uint64_t bytes, uint64_t *address) = 0;
    virtual void free(uint32_t id) = 0;
};

/* ---- the script */

struct Script {
    Library *library;
    Chance chance;
    uint64_t largest;
    uint64_t live_wanted;
    uint32_t next_id = 0;
    uint64_t requests = 0;
    uint64_t request_max = 0;
    uint64_t ooms = 0;
    uint64_t frees = 0;
    std::vector<uint32_t> live;

    bool is_over() const
    {
        return requests >= request_max;
    }
    void end_line()
    {
        if (!device.calls.empty())
            printf(",\"drv\":[%s]", device.calls.c_str());
        printf("}\n");
        device.calls.clear();
        requests++;
    }
    bool alloc(uint64_t bytes)
    {
        uint32_t id = next_id++;
        uint64_t address = 0;
        bool ok = library->alloc(id, bytes, &address);
        printf("{\"op\":\"alloc\",\"id\":%u,\"size\":%" PRIu64 ",\"stream\":0,", id, bytes);
        if (ok)
            printf("\"addr\":%" PRIu64, address);
        else
            printf("\"oom\":true");
        end_line();
        ooms += !ok;
        if (ok)
            live.push_back(id);
        return ok;
    }
    void free_at(size_t place)
    {
        uint32_t id = live[place];
        live.erase(live.begin() + (std::ptrdiff_t)place);
        library->free(id);
        frees++;
        printf("{\"op\":\"free\",\"id\":%u,\"stream\":0", id);
        end_line();
    }
    void free_some()
    {
        uint64_t back = chance.below(2) == 0 ? chance.below(4) : chance.below(live.size());
        free_at(back < live.size() ? live.size() - 1 - (size_t)back : 0);
    }

    /* Random sizes around a number of live blocks that drifts; now and then nearly all are freed.
     */
    template <typename Draw> void churn(Draw draw)
    {
        uint64_t wanted = live_wanted;
        while (!is_over()) {
            if (chance.below(300) == 0)
                wanted = chance.below(4) == 0 ? 1 : 1 + chance.below(2 * live_wanted);
            if (live.empty() || (live.size() < wanted && chance.below(100) < 70) ||
                (live.size() >= wanted && chance.below(100) < 30)) {
                if (!alloc(draw()) && chance.below(3) == 0)
                    for (uint64_t n = chance.below(8); n > 0 && !live.empty() && !is_over(); n--)
                        free_some();
            } else {
                free_some();
            }
        }
    }
    /* Steps of a training: weights that stay, activations that come and go in the opposite order,
     * workspaces in between, lengths that vary. */
    void train()
    {
        std::vector<uint64_t> layers;
        for (uint64_t i = 0; i < live_wanted / 4 + 1; i++) {
            layers.push_back(chance.any_size(largest));
            alloc(layers.back());
        }
        while (!is_over()) {
            uint64_t length = 50 + chance.below(51);
            std::vector<uint32_t> activations;
            for (size_t i = 0; i < layers.size() && !is_over(); i++) {
                uint64_t bytes = layers[i] * length / 100 + 1;
                if (alloc(bytes))
                    activations.push_back(live.back());
                if (chance.below(2) == 0 && alloc(bytes / 3 + 1))
                    free_at(live.size() - 1);
            }
            while (!activations.empty() && !is_over()) {
                if (chance.below(3) == 0 && alloc(chance.any_size(largest)))
                    free_at(live.size() - 1);
                uint32_t id = activations.back();
                activations.pop_back();
                for (size_t at = live.size(); at-- > 0;)
                    if (live[at] == id)
                        free_at(at);
            }
        }
    }
    void run(const std::string &profile)
    {
        if (profile == "train")
            train();
        else if (profile == "power")
            churn([&] { return chance.any_size(largest); });
        else if (profile == "tiny")
            churn([&] { return 1 + chance.below(700); });
        else if (profile == "churn")
            churn([&] { return largest / 2 + chance.below(largest / 2) + 1; });
        else if (profile == "bound")
            /* Around powers of two, their thirtysecond parts, and the largest. */
            churn([&] {
                uint64_t size = chance.any_size(largest);
                unsigned low = 0;
                while (size >> (low + 1) != 0)
                    low++;
                unsigned kept = (unsigned)chance.below(7);
                if (low > kept)
                    size &= ~(((uint64_t)1 << (low - kept)) - 1);
                if (chance.below(12) == 0)
                    size = largest >> chance.below(5);
                size += chance.below(3);
                return size > 1 ? size - 1 : 1;
            });
        else
            stop("profiles are train, power, bound, tiny and churn");
        while (!live.empty() && chance.below(64) != 0)
            free_some();
    }
};

/* ---- one run */

struct Run {
    std::string kind;
    std::string profile;
    uint64_t seed = 0;
    uint64_t requests = 0;
    Settings settings;
};

/* KIND PROFILE SEED REQUESTS [KEY=VALUE ...]; the device is set up. */
inline Run read_arguments(int argc, char **argv, const char *usage)
{
    Run run;
    if (argc < 5)
        stop(usage);
    run.kind = argv[1];
    run.profile = argv[2];
    run.seed = strtoull(argv[3], nullptr, 10);
    run.requests = strtoull(argv[4], nullptr, 10);
    for (int i = 5; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals == nullptr)
            stop("a setting is KEY=VALUE");
        run.settings.values[std::string(argv[i], (size_t)(equals - argv[i]))] = equals + 1;
    }
    device.capacity = run.settings.number("capacity", UINT64_MAX);
    device.gran = run.settings.number("gran", device.gran);
    return run;
}

inline void print_head(Run &run, const char *name, const std::string &version,
                       const std::vector<std::string> &parameters)
{
    printf("{\"golden\":\"%s\",\"version\":\"%s\",\"params\":{", name, version.c_str());
    const char *comma = "";
    for (const std::string &key : parameters) {
        if (!run.settings.has(key.c_str()))
            continue;
        const std::string &value = run.settings.values[key];
        bool is_bare = isdigit((unsigned char)value[0]) || value == "true" || value == "false";
        const char *quote = is_bare ? "" : "\"";
        printf("%s\"%s\":%s%s%s", comma, key.c_str(), quote, value.c_str(), quote);
        comma = ",";
    }
    std::string capacity = device.capacity == UINT64_MAX ? "null" : std::to_string(device.capacity);
    printf("},\"capacity\":%s,\"va\":\"up\",\"va_base\":%" PRIu64 ",\"gran\":%" PRIu64
           ",\"gap\":%" PRIu64 ",\"profile\":\"%s\",\"seed\":%" PRIu64 ",\"drv\":[%s]}\n",
           capacity.c_str(), BASE, device.gran, GAP, run.profile.c_str(), run.seed,
           device.calls.c_str());
    device.calls.clear();
}

/* Writes the log. What is still held at the end stays so: libraries would complain about leaks. */
[[noreturn]] inline void play(Run &run, Library *library, const char *name,
                              const std::string &version,
                              const std::vector<std::string> &parameters)
{
    Script script = {};
    script.library = library;
    script.chance.state = run.seed;
    script.largest = run.settings.number("largest", (uint64_t)64 << 20);
    script.live_wanted = run.settings.number("live", 200);
    script.request_max = run.requests;
    print_head(run, name, version, parameters);
    for (const auto &value : run.settings.values)
        if (!run.settings.used[value.first])
            stop(("there is no setting " + value.first).c_str());
    script.run(run.profile);
    printf("{\"summary\":{\"requests\":%" PRIu64 ",\"allocs\":%u,\"frees\":%" PRIu64
           ",\"ooms\":%" PRIu64 ",\"driver_mallocs\":%" PRIu64 ",\"driver_refusals\":%" PRIu64
           ",\"driver_frees\":%" PRIu64 ",\"reserved_end\":%" PRIu64 ",\"peak_reserved\":%" PRIu64
           ",\"event_records\":0,\"stream_waits\":0,\"syncs\":0}}\n",
           script.requests, script.next_id, script.frees, script.ooms,
           device.mallocs + device.refusals, device.refusals, device.frees, device.held,
           device.held_peak);
    fflush(stdout);
    _Exit(0);
}

} // namespace

#endif
