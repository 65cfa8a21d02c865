/* What the programs share that run an allocator library itself, without a GPU, and write a golden log
 * of what it answers (docs/trace-format.md, "Logs of other frameworks' pools"): the command line,
 * chance, the device that accounts for memory and does nothing else, the requests and their lines.
 * A program brings the library, and profiles: which requests are made of it. */
#ifndef FRAG_PROGRAMS_REAL_LIBRARY_HPP
#define FRAG_PROGRAMS_REAL_LIBRARY_HPP

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace
{

constexpr uint64_t MIB = (uint64_t)1 << 20;
constexpr uint64_t MALLOC_BASE = 0x700000000000;

[[noreturn]] inline void stop(const std::string &what)
{
    fprintf(stderr, "error: %s\n", what.c_str());
    exit(2);
}

/* ---- the command line: [KIND] PROFILE SEED REQUESTS [KEY=VALUE ...] */

struct Arguments {
    std::string kind; /* where the program has several libraries */
    std::string profile;
    uint64_t seed = 0;
    uint64_t requests = 0;
    std::map<std::string, std::string> values;
    std::set<std::string> known;

    /* A key that was asked for is known from then on. */
    bool has(const std::string &key)
    {
        known.insert(key);
        return values.count(key) != 0;
    }
    std::string text(const std::string &key, const std::string &standard)
    {
        return has(key) ? values[key] : standard;
    }
    uint64_t number(const std::string &key, uint64_t standard)
    {
        return has(key) ? strtoull(values[key].c_str(), nullptr, 10) : standard;
    }
    /* What has no value of its own. */
    uint64_t number_given(const std::string &key)
    {
        if (!has(key))
            stop(key + "=NUMBER is missing");
        return number(key, 0);
    }
    /* As a value of the log's head. */
    std::string json(const std::string &key)
    {
        std::string value = text(key, "null");
        bool is_bare = isdigit((unsigned char)value[0]) || value == "true" || value == "false" ||
                       value == "null";
        return is_bare ? value : "\"" + value + "\"";
    }
    /* Those of the keys that are given, as members of an object. */
    std::string json_of_given(const std::vector<std::string> &keys)
    {
        std::string members;
        for (const std::string &key : keys)
            if (has(key))
                members += (members.empty() ? "\"" : ",\"") + key + "\":" + json(key);
        return members;
    }
    /* After the last key was asked for. */
    void refuse_unknown() const
    {
        for (const auto &value : values)
            if (known.count(value.first) == 0)
                stop("there is no setting " + value.first);
    }
};

/* Kinds: none where the program has but one library. */
inline Arguments read_arguments(int argc, char **argv, const std::vector<std::string> &kinds,
                                const std::vector<std::string> &profiles)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    size_t first = kinds.empty() ? 0 : 1;
    if (words.size() < first + 3)
        stop(std::string("expected: ") + (kinds.empty() ? "" : "KIND ") +
             "PROFILE SEED REQUESTS [KEY=VALUE ...]");
    auto pick = [](const std::string &word, const std::vector<std::string> &all) {
        if (std::find(all.begin(), all.end(), word) != all.end())
            return word;
        std::string names;
        for (const std::string &name : all)
            names += " " + name;
        stop("'" + word + "' is none of:" + names);
    };
    Arguments arguments;
    if (!kinds.empty())
        arguments.kind = pick(words[0], kinds);
    arguments.profile = pick(words[first], profiles);
    arguments.seed = strtoull(words[first + 1].c_str(), nullptr, 10);
    arguments.requests = strtoull(words[first + 2].c_str(), nullptr, 10);
    for (size_t i = first + 3; i < words.size(); i++) {
        size_t equals = words[i].find('=');
        if (equals == std::string::npos)
            stop("'" + words[i] + "' is not KEY=VALUE");
        arguments.values[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    return arguments;
}

/* ---- chance, the same for a seed on every machine */

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
    /* Both included. */
    uint64_t between(uint64_t low, uint64_t high)
    {
        return low + below(high - low + 1);
    }
    bool happens(unsigned percent)
    {
        return below(100) < percent;
    }
};

/* ---- what the last line of a log sums up */

struct Counts {
    uint64_t requests, allocs, frees, ooms;
    uint64_t mallocs, refusals, driver_frees; /* refused mallocs are counted as mallocs too */
    uint64_t reserved, reserved_peak;
};

Counts counts;

/* ---- the device: addresses in one direction, none is given twice */

/* As they are in the head of a log. */
struct Rules {
    uint64_t capacity = UINT64_MAX; /* UINT64_MAX: without end */
    uint64_t gran = 2 * MIB;        /* a malloc is charged in multiples of it */
    uint64_t gap = 2 * MIB;         /* between two mallocs */
    std::string direction = "up";
};

struct Device {
    Rules rules;
    uint64_t next = MALLOC_BASE;
    uint64_t charged = 0;
    std::map<uint64_t, uint64_t> sizes; /* of what is held, by address */
    std::string calls;                  /* for the request being served: JSON, no brackets */

    void set_rules(Arguments &arguments, uint64_t capacity)
    {
        rules.capacity = arguments.number("capacity", capacity);
        rules.gran = arguments.number("gran", rules.gran);
        rules.gap = arguments.number("gap", rules.gap);
        rules.direction = arguments.text("va", rules.direction);
        if (rules.direction != "up" && rules.direction != "down")
            stop("va is up or down");
    }
    uint64_t charge_of(uint64_t bytes) const
    {
        return (bytes + rules.gran - 1) / rules.gran * rules.gran;
    }
    uint64_t bytes_left() const
    {
        return rules.capacity - charged;
    }
    void note(const char *name, uint64_t address, uint64_t bytes, int result)
    {
        calls += std::string(calls.empty() ? "" : ",") + "[\"" + name + "\"," +
                 std::to_string(address) + "," + std::to_string(bytes) + "," +
                 std::to_string(result) + "]";
    }
    /* 0: refused. */
    uint64_t malloc(uint64_t bytes)
    {
        uint64_t charge = charge_of(bytes);
        counts.mallocs++;
        if (charge > bytes_left()) {
            counts.refusals++;
            note("malloc", 0, bytes, 2);
            return 0;
        }
        if (rules.direction == "down")
            next -= charge + rules.gap;
        uint64_t address = next;
        if (rules.direction == "up")
            next += charge + rules.gap;
        charged += charge;
        counts.reserved += bytes;
        counts.reserved_peak = std::max(counts.reserved_peak, counts.reserved);
        sizes[address] = bytes;
        note("malloc", address, bytes, 0);
        return address;
    }
    void free(uint64_t address)
    {
        auto at = sizes.find(address);
        if (at == sizes.end())
            stop("the library frees what it does not hold");
        note("free", address, at->second, 0);
        charged -= charge_of(at->second);
        counts.reserved -= at->second;
        counts.driver_frees++;
        sizes.erase(at);
    }
};

Device device;

/* ---- the library */

struct Block {
    uint64_t id;
    uint64_t bytes; /* requested */
    uint64_t stream;
    uint64_t address; /* 0 until it is served, and after a request for nothing */
};

struct Library {
    virtual ~Library() = default;
    /* Fills in the address; false: out of memory. */
    virtual bool alloc(Block &block) = 0;
    virtual void free(const Block &block) = 0;
    virtual void trim()
    {
        stop("the library gives nothing back on demand");
    }
    /* The device calls since the last request, as in Device. */
    virtual std::string take_calls()
    {
        std::string calls;
        calls.swap(device.calls);
        return calls;
    }
    /* The line of a request is written, and is among the counts. */
    virtual void end_request()
    {
    }
};

/* ---- requests, each a line of the log */

FILE *log_file = stdout;

struct Script {
    Library &library;
    Chance chance;
    uint64_t request_max;
    std::vector<Block> live; /* the last is the newest */
    uint64_t live_bytes = 0;

    bool is_over() const
    {
        return counts.requests >= request_max;
    }
    /* Line: an object, up to the device calls. */
    void write(const std::string &line)
    {
        std::string calls = library.take_calls();
        if (!calls.empty())
            calls = ",\"drv\":[" + calls + "]";
        fprintf(log_file, "%s%s}\n", line.c_str(), calls.c_str());
        counts.requests++;
        library.end_request();
    }
    /* Returns whether it was served; then it is the last of live. */
    bool alloc(uint64_t bytes, uint64_t stream = 0)
    {
        Block block = {counts.allocs, bytes, stream, 0};
        bool is_served = library.alloc(block);
        counts.allocs++;
        counts.ooms += !is_served;
        write("{\"op\":\"alloc\",\"id\":" + std::to_string(block.id) +
              ",\"size\":" + std::to_string(bytes) + ",\"stream\":" + std::to_string(stream) +
              (is_served ? ",\"addr\":" + std::to_string(block.address) : ",\"oom\":true"));
        if (is_served) {
            live.push_back(block);
            live_bytes += bytes;
        }
        return is_served;
    }
    /* On a stream that need not be the block's. */
    void free_on(uint64_t stream, size_t place)
    {
        Block block = live[place];
        live.erase(live.begin() + (std::ptrdiff_t)place);
        live_bytes -= block.bytes;
        library.free(block);
        counts.frees++;
        write("{\"op\":\"free\",\"id\":" + std::to_string(block.id) +
              ",\"stream\":" + std::to_string(stream));
    }
    void free(size_t place)
    {
        free_on(live[place].stream, place);
    }
    void free_newest()
    {
        free(live.size() - 1);
    }
    void trim()
    {
        library.trim();
        write("{\"op\":\"trim\"");
    }
};

/* ---- the first and the last line */

/* Parameters: members of an object. More: further members of the head, with a comma before. */
inline void write_head(const Arguments &arguments, const Rules &rules, const std::string &name,
                       const std::string &version, const std::string &parameters,
                       const std::string &more = "")
{
    std::string capacity = rules.capacity == UINT64_MAX ? "null" : std::to_string(rules.capacity);
    std::string head = "{\"golden\":\"" + name + "\",\"version\":\"" + version + "\",\"params\":{" +
                       parameters + "},\"capacity\":" + capacity + ",\"va\":\"" + rules.direction +
                       "\",\"va_base\":" + std::to_string(MALLOC_BASE) +
                       ",\"gran\":" + std::to_string(rules.gran) +
                       ",\"gap\":" + std::to_string(rules.gap) + ",\"profile\":\"" +
                       arguments.profile + "\",\"seed\":" + std::to_string(arguments.seed) + more;
    fprintf(log_file, "%s}\n", head.c_str());
}

/* More: as in the head. */
inline void write_summary(const Counts &all, const std::string &more)
{
    std::string line = "{\"summary\":{\"requests\":" + std::to_string(all.requests) +
                       ",\"allocs\":" + std::to_string(all.allocs) +
                       ",\"frees\":" + std::to_string(all.frees) +
                       ",\"ooms\":" + std::to_string(all.ooms) +
                       ",\"driver_mallocs\":" + std::to_string(all.mallocs) +
                       ",\"driver_refusals\":" + std::to_string(all.refusals) +
                       ",\"driver_frees\":" + std::to_string(all.driver_frees) +
                       ",\"reserved_end\":" + std::to_string(all.reserved) +
                       ",\"peak_reserved\":" + std::to_string(all.reserved_peak) + more;
    fprintf(log_file, "%s}}\n", line.c_str());
    fflush(log_file);
}

/* For libraries that record no events and wait for no streams. */
const char *const NO_WAITS = ",\"event_records\":0,\"stream_waits\":0,\"syncs\":0";

} // namespace

#endif
