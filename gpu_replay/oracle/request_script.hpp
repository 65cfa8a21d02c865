// Request scripts: text, one request per line, as request_generator.py writes them
// (docs/oracle.md).
#ifndef FRAG_ORACLE_REQUEST_SCRIPT_HPP
#define FRAG_ORACLE_REQUEST_SCRIPT_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace oracle
{
enum class Operation {
    allocate,
    free,
    record_stream,
    complete,
    empty_cache,
    fraction,
    pool_create,
    pool_begin,
    pool_end,
    pool_release,
    pool_use_on_oom,
    pool_no_split,
    capture,
    device,
    reset_peak,
    reset_accumulated,
    statistics,
    settings,
};

struct Request {
    Operation operation = Operation::statistics;
    bool is_on = false; // pool_begin: requests of every stream
    uint32_t id = 0;    // of the allocation; the device's number
    uint64_t bytes = 0;
    uint64_t stream = 0;
    std::pair<uint64_t, uint64_t> pool = {0, 0}; // g3 is {3, 0}, m3 is {0, 3}
    double value = 0;
    std::string text;
};

struct Script {
    uint64_t capacity = uint64_t{1} << 30;
    int device_count = 1;
    std::string profile = "?";
    std::string seed = "0";
    uint32_t id_count = 0;
    std::vector<Request> requests;
};

// Throws std::runtime_error with file and line when the script is wrong.
Script load_script(const std::string &path);
} // namespace oracle

#endif
