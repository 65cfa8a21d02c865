// Plays a request script on PyTorch's own allocator and writes the golden log, JSON Lines, to
// stdout (docs/oracle.md). The settings come from PYTORCH_CUDA_ALLOC_CONF, as in PyTorch.
//   golden_writer [--statistics-every N] [--registration] SCRIPT
// --registration: segments tell how many were registered before their first block (2.11 and later).
// Exits with 0; 1 when the library failed, which the log says; 2 for wrong usage; 4 when a request
// is none that this release knows.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "gpu_replay/oracle/device_calls.hpp"
#include "gpu_replay/oracle/json_lines.hpp"
#include "gpu_replay/oracle/request_script.hpp"
#include "gpu_replay/oracle/torch_allocator.hpp"

namespace oracle
{
namespace
{
constexpr size_t output_bytes = size_t{1} << 20;
// Some releases can loop for ever where they give back blocks: a log that burns a minute of
// processor time ends with an error, as one that crashes.
constexpr rlim_t seconds_soft = 60;
constexpr rlim_t seconds_hard = 90;
constexpr bool has_events = TORCH_NUMBER >= 202;

struct Event {
    int action;
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
};

// The log so far, kept where a signal finds it.
std::string output;
size_t position; // of the request that is played
std::vector<Event> events;

void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= static_cast<int>(sizeof text))
        std::abort();
    output.append(text, static_cast<size_t>(length));
}

using Wide = unsigned long long;

void write_out()
{
    std::fwrite(output.data(), 1, output.size(), stdout);
    output.clear();
}

std::string first_line(const std::string &text)
{
    return text.substr(0, text.find('\n'));
}

#if TORCH_NUMBER >= 202
void see_event(const caching::TraceEntry &entry)
{
    events.push_back({static_cast<int>(entry.action_), static_cast<uint64_t>(entry.addr_),
                      static_cast<uint64_t>(entry.size_),
                      reinterpret_cast<uint64_t>(entry.stream_)});
}
#endif

// A crash inside the library: what was logged is kept, but for a half-written line.
void end_by_signal(int signal)
{
    size_t line_end = output.rfind('\n');
    output.resize(line_end == std::string::npos ? 0 : line_end + 1);
    print("{\"op\":\"error\",\"at\":%zu,\"message\":\"signal %d\"}\n", position, signal);
    write_out();
    std::fflush(stdout);
    _exit(1);
}

template <class Statistic> void print_statistic(const char *name, const Statistic &of)
{
    print("\"%s\":[", name);
    for (size_t i = 0; i < 3; i++)
        print("%s[%lld,%lld,%lld,%lld]", i == 0 ? "" : ",", static_cast<long long>(of[i].current),
              static_cast<long long>(of[i].peak), static_cast<long long>(of[i].allocated),
              static_cast<long long>(of[i].freed));
    output += "],";
}

template <class Statistic> void print_one(const char *name, const Statistic &of)
{
    print("\"%s\":[%lld,%lld,%lld,%lld],", name, static_cast<long long>(of.current),
          static_cast<long long>(of.peak), static_cast<long long>(of.allocated),
          static_cast<long long>(of.freed));
}

void print_count(const char *name, int64_t count, char after)
{
    print("\"%s\":%lld%c", name, static_cast<long long>(count), after);
}

class Writer
{
  public:
    Writer(Script script, uint64_t statistics_every, bool has_registration)
        : script(std::move(script)), statistics_every(statistics_every),
          has_registration(has_registration), memory(this->script.id_count),
          bytes(this->script.id_count), home(this->script.id_count)
    {
    }

    int run();

  private:
    void head();
    void play_all();
    bool play(const Request &request);
    void play_allocate(const Request &request);
    void play_free(const Request &request);
    void play_record(const Request &request);
    void write_statistics(int device, size_t at);
    void write_all_statistics(size_t at);
    void write_snapshot();
    void write_end();
    void write_failure(const std::string &message);
    void open_line(const char *operation);
    void open_pool_line(const char *operation, const Request &request);
    void close_line(bool is_plain = false);

    Script script;
    uint64_t statistics_every;
    bool has_registration;
    Allocator *allocator = nullptr;
    DeviceCalls device_calls;
    int device = 0;
    size_t oom_count = 0;
    std::vector<void *> memory; // of each id; null: none, or it could not be had
    std::vector<uint64_t> bytes;
    std::vector<int> home; // the device it is on
};

void Writer::head()
{
    const char *settings = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
    print("{\"golden\":\"c10\",\"schema\":1,\"torch\":\"%s\",\"cudart\":%d,\"conf\":",
          TORCH_VERSION_TEXT, FRAG_CUDART);
    output += string_text(settings == nullptr ? "" : settings);
    print(",\"capacity\":%llu,\"granularity\":2097152,\"devices\":%d,\"va\":\"firstfit\","
          "\"malloc_base\":\"0x700000000000\",\"vmm_base\":\"0x600000000000\",\"seed\":",
          static_cast<Wide>(script.capacity), script.device_count);
    output += string_text(script.seed) + ",\"profile\":" + string_text(script.profile);
    print(",\"requests\":%zu,\"events\":%s}\n", script.requests.size(),
          has_events ? "true" : "false");
}

void Writer::open_line(const char *operation)
{
    print("{\"op\":\"%s\"", operation);
    if (script.device_count > 1)
        print(",\"dev\":%d", device);
}

void Writer::open_pool_line(const char *operation, const Request &request)
{
    open_line(operation);
    print(",\"pool\":[%llu,%llu]", static_cast<Wide>(request.pool.first),
          static_cast<Wide>(request.pool.second));
}

// Device calls and allocator events end every line. is_plain: the events are what anybody would
// expect, and go without saying.
void Writer::close_line(bool is_plain)
{
    static const char *const names[] = {"A",  "FR", "FC",   "SA",  "SF",
                                        "SM", "SU", "SNAP", "OOM", "ANN"};
    constexpr int out_of_memory = 8;
    std::string calls = device_calls.take();
    if (!calls.empty())
        output += ",\"drv\":[" + calls + "]";
    if (!events.empty() && !is_plain) {
        output += ",\"ev\":[";
        for (size_t i = 0; i < events.size(); i++) {
            const Event &event = events[i];
            output += i == 0 ? "[\"" : ",[\"";
            output += names[event.action];
            output += "\",";
            output += event.action == out_of_memory ? std::to_string(event.address)
                                                    : address_text(event.address);
            print(",%llu,%llu]", static_cast<Wide>(event.bytes), static_cast<Wide>(event.stream));
        }
        output += ']';
    }
    events.clear();
    output += "}\n";
    if (output.size() > output_bytes)
        write_out();
}

void Writer::play_allocate(const Request &request)
{
    constexpr int action_alloc = 0;
    size_t mark = output.size();
    open_line("alloc");
    print(",\"id\":%u,\"size\":%llu,\"stream\":%llu", request.id, static_cast<Wide>(request.bytes),
          static_cast<Wide>(request.stream));
    try {
        void *given = allocate(allocator, request.bytes, request.stream);
        auto address = reinterpret_cast<uint64_t>(given);
        output += ",\"addr\":" + address_text(address);
        memory[request.id] = given;
        bytes[request.id] = request.bytes;
        home[request.id] = device;
        close_line(events.size() == 1 && events[0].action == action_alloc &&
                   events[0].address == address && events[0].bytes == request.bytes);
    } catch (const c10::OutOfMemoryError &failure) {
        oom_count++;
        output +=
            ",\"oom\":{\"message\":" + string_text(first_line(failure.what_without_backtrace())) +
            "}";
        close_line();
    } catch (...) {
        output.resize(mark);
        throw;
    }
}

void Writer::play_free(const Request &request)
{
    constexpr int action_requested = 1;
    constexpr int action_completed = 2;
    void *freed = memory[request.id];
    if (freed == nullptr)
        return; // it could not be had: no request, no line
    memory[request.id] = nullptr;
    allocator->raw_delete(freed);
    auto address = reinterpret_cast<uint64_t>(freed);
    print("{\"op\":\"free\",\"id\":%u", request.id);
    close_line(events.size() == 2 && events[0].action == action_requested &&
               events[1].action == action_completed && events[0].address == address &&
               events[1].address == address);
}

void Writer::play_record(const Request &request)
{
    if (memory[request.id] == nullptr)
        return;
    record_stream(allocator, memory[request.id], home[request.id], request.stream);
    print("{\"op\":\"record_stream\",\"id\":%u,\"stream\":%llu", request.id,
          static_cast<Wide>(request.stream));
    close_line();
}

// false: this release has no such request; the line says so and is the last.
bool Writer::play(const Request &request)
{
    bool is_known = true;
    auto number = static_cast<DeviceNumber>(device);
    switch (request.operation) {
    case Operation::allocate:
        play_allocate(request);
        return true;
    case Operation::free:
        play_free(request);
        return true;
    case Operation::record_stream:
        play_record(request);
        return true;
    case Operation::complete:
        frag_software_complete(request.stream);
        print("{\"op\":\"complete\",\"stream\":%llu", static_cast<Wide>(request.stream));
        break;
    case Operation::empty_cache:
        is_known = empty_cache(allocator, request.pool);
        output += "{\"op\":\"empty_cache\"";
        if (request.pool.first != 0 || request.pool.second != 0)
            print(",\"pool\":[%llu,%llu]", static_cast<Wide>(request.pool.first),
                  static_cast<Wide>(request.pool.second));
        break;
    case Operation::fraction:
        allocator->setMemoryFraction(request.value, number);
        open_line("fraction");
        print(",\"value\":%.17g", request.value);
        break;
    case Operation::pool_create:
        is_known = create_pool(allocator, device, request.pool);
        open_pool_line("pool_create", request);
        break;
    case Operation::pool_begin:
        is_known = begin_pool(allocator, device, request.pool, request.is_on, request.stream);
        open_pool_line("pool_begin", request);
        if (request.is_on)
            output += ",\"stream\":null";
        else
            print(",\"stream\":%llu", static_cast<Wide>(request.stream));
        break;
    case Operation::pool_end:
        end_pool(allocator, device, request.pool, request.stream);
        open_pool_line("pool_end", request);
        break;
    case Operation::pool_release:
        release_pool(allocator, device, request.pool);
        open_pool_line("pool_release", request);
        break;
    case Operation::pool_use_on_oom:
        is_known = use_pool_on_oom(allocator, device, request.pool, request.is_on);
        open_pool_line("pool_use_on_oom", request);
        print(",\"on\":%s", request.is_on ? "true" : "false");
        break;
    case Operation::pool_no_split:
        is_known = forbid_splits(allocator, device, request.pool);
        open_pool_line("pool_no_split", request);
        break;
    case Operation::capture:
        frag_software_set_capturing(request.is_on);
        mark_capture(allocator, device, request.is_on);
        open_line(request.is_on ? "capture_begin" : "capture_end");
        break;
    case Operation::device:
        device = static_cast<int>(request.id);
        c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
        device_calls.take();
        return true;
    case Operation::reset_peak:
        allocator->resetPeakStats(number);
        open_line("reset_peak");
        break;
    case Operation::reset_accumulated:
        allocator->resetAccumulatedStats(number);
        open_line("reset_accumulated");
        break;
    case Operation::statistics:
        write_all_statistics(position);
        return true;
    case Operation::settings:
        change_settings(request.text);
        output += "{\"op\":\"settings\",\"conf\":" + string_text(request.text);
        break;
    }
    if (!is_known)
        output += ",\"unsupported\":true";
    close_line();
    return is_known;
}

void Writer::write_statistics(int of, size_t at)
{
    auto found = allocator->getDeviceStats(static_cast<DeviceNumber>(of));
    print("{\"op\":\"stats\",\"at\":%zu,\"dev\":%d,", at, of);
    print_statistic("allocation", found.allocation);
    print_statistic("segment", found.segment);
    print_statistic("active", found.active);
    print_statistic("inactive_split", found.inactive_split);
    print_statistic("allocated_bytes", found.allocated_bytes);
    print_statistic("reserved_bytes", found.reserved_bytes);
    print_statistic("active_bytes", found.active_bytes);
    print_statistic("inactive_split_bytes", found.inactive_split_bytes);
    print_statistic("requested_bytes", found.requested_bytes);
    print_one("oversize_allocations", found.oversize_allocations);
    print_one("oversize_segments", found.oversize_segments);
#if TORCH_NUMBER >= 203
    print_count("num_sync_all_streams", found.num_sync_all_streams, ',');
    print_count("num_device_alloc", found.num_device_alloc, ',');
    print_count("num_device_free", found.num_device_free, ',');
#endif
#if TORCH_NUMBER >= 212
    print_count("num_oom_rejections", found.num_oom_rejections, ',');
#endif
    print_count("num_alloc_retries", found.num_alloc_retries, ',');
    print_count("num_ooms", found.num_ooms, ',');
    print_count("max_split_size", found.max_split_size, '}');
    output += '\n';
}

void Writer::write_all_statistics(size_t at)
{
    for (int i = 0; i < script.device_count; i++)
        write_statistics(i, at);
}

void Writer::write_snapshot()
{
    auto taken = allocator->snapshot();
    print("{\"op\":\"snapshot\",\"at\":%zu,\"segments\":%zu}\n", script.requests.size(),
          taken.segments.size());
    for (const auto &segment : taken.segments) {
        auto address = static_cast<uint64_t>(segment.address);
        print("{\"op\":\"segment\",\"dev\":%d,\"addr\":", static_cast<int>(segment.device));
        output += address_text(address);
        print(",\"size\":%llu,\"stream\":%llu,\"pool\":\"%s\",\"expandable\":%s,"
              "\"private\":[%llu,%llu]",
              static_cast<Wide>(segment.total_size),
              static_cast<Wide>(reinterpret_cast<uint64_t>(segment.stream)),
              segment.is_large ? "large" : "small", segment.is_expandable ? "true" : "false",
              static_cast<Wide>(segment.owner_private_pool_id.first),
              static_cast<Wide>(segment.owner_private_pool_id.second));
        print(",\"allocated\":%llu,\"active\":%llu,\"requested\":%llu",
              static_cast<Wide>(segment.allocated_size), static_cast<Wide>(segment.active_size),
              static_cast<Wide>(segment.requested_size));
#if TORCH_NUMBER >= 211
        if (has_registration)
            print(",\"reg\":%d", segment.registration_counter);
#endif
        // Blocks are [address, size, requested size, state]: allocated, pending or inactive.
        output += ",\"blocks\":[";
        for (size_t i = 0; i < segment.blocks.size(); i++) {
            const auto &block = segment.blocks[i];
            bool is_used = block.allocated || block.active;
            output += (i == 0 ? "[" : ",[") + address_text(address);
            print(",%llu,%llu,\"%s\"]", static_cast<Wide>(block.size),
                  static_cast<Wide>(is_used ? block.requested_size : 0),
                  block.allocated ? "A" : (block.active ? "P" : "I"));
            address += static_cast<uint64_t>(block.size);
        }
        output += "]}\n";
        if (output.size() > output_bytes)
            write_out();
    }
}

void Writer::write_end()
{
    const DeviceCounts &counts = device_calls.counts();
    print("{\"op\":\"end\",\"done\":%zu,\"mallocs\":%llu,\"malloc_fails\":%llu,\"frees\":%llu,"
          "\"creates\":%llu,\"create_fails\":%llu,\"unmaps\":%llu,\"ooms\":%zu}\n",
          position, static_cast<Wide>(counts.mallocs), static_cast<Wide>(counts.malloc_failures),
          static_cast<Wide>(counts.frees), static_cast<Wide>(counts.creates),
          static_cast<Wide>(counts.create_failures), static_cast<Wide>(counts.unmaps), oom_count);
}

// Not out of memory: an assertion, or a call that was refused. What comes after has no meaning.
void Writer::write_failure(const std::string &message)
{
    print("{\"op\":\"error\",\"at\":%zu,\"message\":", position);
    output += string_text(first_line(message));
    close_line();
}

void limit_run()
{
    std::signal(SIGSEGV, end_by_signal);
    std::signal(SIGABRT, end_by_signal);
    std::signal(SIGBUS, end_by_signal);
    std::signal(SIGXCPU, end_by_signal);
    rlimit limit{seconds_soft, seconds_hard};
    setrlimit(RLIMIT_CPU, &limit);
}

int Writer::run()
{
    char sentence[256];
    std::string settings = "devices=" + std::to_string(script.device_count) +
                           ",capacity=" + std::to_string(script.capacity) +
                           ",streams=any,lag=told,handles=any,processes=none";
    if (!frag_software_reset(settings.c_str(), sentence, sizeof sentence)) {
        std::cerr << "golden_writer: " << sentence << '\n';
        return 2;
    }
    head();
    device_calls.attach();
    int code = 0;
    try {
        allocator = start_allocator(script.device_count);
#if TORCH_NUMBER >= 202
        allocator->attachAllocatorTraceTracker(see_event);
#endif
        device_calls.start_writing();
        limit_run();
        for (; position < script.requests.size() && code == 0; position++) {
            if (!play(script.requests[position])) {
                code = 4;
                break;
            }
            if (statistics_every != 0 && position % statistics_every == statistics_every - 1)
                write_all_statistics(position);
        }
    } catch (const c10::Error &failure) {
        write_failure(failure.what_without_backtrace());
        code = 1;
    } catch (const std::exception &failure) {
        write_failure(failure.what());
        code = 1;
    }
    if (code == 0) {
        write_all_statistics(script.requests.size());
        events.clear();
        write_snapshot();
    }
    write_end();
    write_out();
    std::fflush(stdout);
    return code;
}

int usage()
{
    std::cerr << "usage: golden_writer [--statistics-every N] [--registration] SCRIPT\n";
    return 2;
}

int start(int count, char **arguments)
{
    uint64_t statistics_every = 200;
    bool has_registration = false;
    int next = 1;
    for (; next + 1 < count && std::strncmp(arguments[next], "--", 2) == 0; next++) {
        if (std::strcmp(arguments[next], "--registration") == 0)
            has_registration = true;
        else if (std::strcmp(arguments[next], "--statistics-every") == 0)
            statistics_every = std::strtoull(arguments[++next], nullptr, 10);
        else
            return usage();
    }
    if (next + 1 != count)
        return usage();
    try {
        return Writer(load_script(arguments[next]), statistics_every, has_registration).run();
    } catch (const std::runtime_error &failure) {
        std::cerr << "golden_writer: " << failure.what() << '\n';
        return 2;
    }
}
} // namespace
} // namespace oracle

// Without the destructors of the library: the allocator's state may be anything.
int main(int count, char **arguments)
{
    int code = oracle::start(count, arguments);
    std::fflush(stdout);
    _exit(code);
}
