// Plays a random request script on MXNet's own GPU pools, over a software device, and writes the
// golden log (docs/trace-format.md, "Logs of other frameworks' pools") to stdout. No GPU, no CUDA
// and nothing of MXNet but the headers of its pools is needed:
//
//   M=checkout V=1.9.1    # of apache/mxnet; V=2.0-b84609d for that commit, the last of master
//   P=$M/src/storage
//   mkdir -p stubs && : >stubs/cuda_runtime.h
//   sed -n '/XINLINE int ilog2ul/,/^}/p' $M/src/common/utils.h >stubs/ilog2ul.h
//   sed -n '/^const std::string env_var_name/,/^}/p' $P/storage.cc >stubs/env_var_name.h
//   O="-std=c++17 -O1 -DMXNET_USE_CUDA=1 -I. -Istubs -I$M/include -I$P"
//   g++ $O -DVERSION="\"$V\"" tests/programs/real_mxnet.cpp -o real_mxnet
//   ./real_mxnet pool=naive profile=train seed=1 capacity=2000000000 > mxnet-naive-train.jsonl
//   ./fraglab verify --against golden --check 1 mxnet-naive-train.jsonl
//
// The arguments are listed at Settings; 0 stands for the library's default. The order in which
// naive gives memory back is that of std::unordered_map, so that logs are made with libstdc++.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/programs/golden_script.hpp"

// ---- the device: a malloc is charged in multiples of gran, and no address is given twice

struct Settings {
    std::string pool = "naive"; // or round
    std::string profile = "train";
    uint64_t seed = 1;
    uint64_t count = 2000; // requests
    uint64_t capacity = uint64_t{16} << 30;
    uint64_t page_size = 0;
    uint64_t large_alloc_round_size = 0; // naive
    uint64_t round_linear_cutoff = 0;    // round
    uint64_t reserve = 0;
    bool has_reserve = false; // 0 is a value of its own
    uint64_t gran = uint64_t{2} << 20;
    uint64_t gap = uint64_t{2} << 20;
    bool is_down = false;
};

struct Device {
    uint64_t base = 0x700000000000;
    uint64_t next = base;
    uint64_t charged = 0;
    uint64_t reserved = 0;
    uint64_t reserved_peak = 0;
    uint64_t mallocs = 0;
    uint64_t refusals = 0;
    uint64_t frees = 0;
    std::unordered_map<uint64_t, uint64_t> sizes;
    std::string *calls = nullptr; // the pool's
};

static Settings settings;
static Device device;

static uint64_t charge_of(uint64_t bytes)
{
    return (bytes + settings.gran - 1) / settings.gran * settings.gran;
}

static void note_call(const char *name, uint64_t address, uint64_t bytes, int code)
{
    std::ostringstream call;
    call << (device.calls->empty() ? "" : ",") << "[\"" << name << "\"," << address << "," << bytes
         << "," << code << "]";
    *device.calls += call.str();
}

using cudaError_t = int;
using cudaEvent_t = void *;
constexpr cudaError_t cudaSuccess = 0;
constexpr cudaError_t cudaErrorMemoryAllocation = 2;
constexpr cudaError_t cudaErrorCudartUnloading = 4;
constexpr unsigned cudaHostAllocPortable = 1;

static cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    uint64_t charge = charge_of(bytes);
    device.mallocs++;
    if (charge > settings.capacity - device.charged) {
        device.refusals++;
        note_call("malloc", 0, bytes, cudaErrorMemoryAllocation);
        return cudaErrorMemoryAllocation;
    }
    if (settings.is_down)
        device.next -= charge + settings.gap;
    uint64_t address = device.next;
    if (!settings.is_down)
        device.next += charge + settings.gap;
    device.charged += charge;
    device.reserved += bytes;
    device.reserved_peak = std::max(device.reserved_peak, device.reserved);
    device.sizes[address] = bytes;
    note_call("malloc", address, bytes, 0);
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}

static cudaError_t cudaFree(void *pointer)
{
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    uint64_t bytes = device.sizes.at(address);
    device.sizes.erase(address);
    device.charged -= charge_of(bytes);
    device.reserved -= bytes;
    device.frees++;
    note_call("free", address, bytes, 0);
    return cudaSuccess;
}

static cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = settings.capacity - device.charged;
    *total_bytes = settings.capacity;
    return cudaSuccess;
}

static const char *cudaGetErrorString(cudaError_t)
{
    return "out of memory";
}

[[maybe_unused]] static cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaHostAlloc(void **, size_t, unsigned)
{
    return cudaErrorMemoryAllocation;
}

[[maybe_unused]] static cudaError_t cudaFreeHost(void *)
{
    return cudaSuccess;
}

// ---- what the pools' headers name of the rest of MXNet; its own headers stay out by their guards

#define MXNET_BASE_H_
#define MXNET_COMMON_UTILS_H_
#define MXNET_COMMON_CUDA_UTILS_H_
#define MXNET_PROFILER_STORAGE_PROFILER_H_
#define MSHADOW_XINLINE inline
#define MSHADOW_CUDA_CALL(call) (void)(call)
#define CUDA_CALL(call) (void)(call);
#define DISALLOW_COPY_AND_ASSIGN(type)                                                             \
    type(const type &) = delete;                                                                   \
    void operator=(const type &) = delete
#define LOG(severity) Failure()

// LOG(FATAL) throws, as MXNet's does.
struct Failure {
    std::ostringstream words;
    template <class T> Failure &operator<<(const T &value)
    {
        words << value;
        return *this;
    }
    ~Failure() noexcept(false)
    {
        throw std::runtime_error(words.str());
    }
};

namespace dmlc
{
template <class T> T GetEnv(const char *name, T default_value)
{
    const char *text = std::getenv(name);
    if (text == nullptr || *text == '\0')
        return default_value;
    std::istringstream input(text);
    T value{};
    if (!(input >> value))
        throw std::runtime_error(std::string("bad value of ") + name);
    return value;
}
} // namespace dmlc

namespace mxnet
{
struct Context {
    enum DeviceType { kCPU = 1, kGPU = 2, kCPUPinned = 3, kCPUShared = 5 };
    DeviceType dev_type = kCPU;
    int32_t dev_id = 0;
    int real_dev_id() const
    {
        return dev_id;
    }
};

namespace common
{
#include "ilog2ul.h"

inline bool AlignedMemAlloc(void **, size_t, size_t)
{
    return false;
}

inline void AlignedMemFree(void *)
{
}

namespace cuda
{
struct DeviceStore {
    DeviceStore(int, bool)
    {
    }
};
} // namespace cuda
} // namespace common
} // namespace mxnet

#include <mxnet/storage.h>

namespace mxnet
{
namespace profiler
{
struct GpuDeviceStorageProfiler {
    static GpuDeviceStorageProfiler *Get()
    {
        static GpuDeviceStorageProfiler instance;
        return &instance;
    }
    bool IsProfiling() const
    {
        return false;
    }
    void OnFree(void *)
    {
    }
    void OnAlloc(const Storage::Handle &, size_t, bool)
    {
    }
};
} // namespace profiler
} // namespace mxnet

#include "pooled_storage_manager.h"

namespace mxnet
{
namespace storage
{
#include "env_var_name.h"
} // namespace storage

// The pools take its lock. Which functions are virtual differs from release to release.
struct Locks : Storage {
    void Alloc(Handle *)
    {
    }
    void Alloc(Handle *, bool)
    {
    }
    void SharedIncrementRefCount(Handle)
    {
    }
    void Free(Handle)
    {
    }
    void DirectFree(Handle)
    {
    }
    void ReleaseAll(Context)
    {
    }
};

Storage *Storage::Get()
{
    static Locks locks;
    return &locks;
}
} // namespace mxnet

// ---- a pool of either release

using mxnet::Context;
using mxnet::Storage;
using mxnet::storage::StorageManager;

template <class Pool> static StorageManager *make_pool(const Context &context)
{
    if constexpr (std::is_constructible_v<Pool, Context, int>)
        return new Pool(context, 1);
    else
        return new Pool(context);
}

template <class Manager>
static auto call_alloc(Manager &manager, Storage::Handle *handle, int)
    -> decltype(manager.Alloc(handle, false))
{
    manager.Alloc(handle, false);
}

template <class Manager>
static auto call_alloc(Manager &manager, Storage::Handle *handle, long)
    -> decltype(manager.Alloc(handle))
{
    manager.Alloc(handle);
}

struct MxnetPool : golden::Pool {
    std::unique_ptr<StorageManager> manager;

    static Storage::Handle handle_of(uint64_t address, uint64_t bytes)
    {
        Storage::Handle handle;
        handle.dptr = reinterpret_cast<void *>(address);
        handle.size = bytes;
        handle.ctx.dev_type = Context::kGPU;
        return handle;
    }

    // Storage::Alloc of 2.0 keeps requests for nothing from its pools, those of 1.9 do so
    // themselves; all do nothing where such a request is freed.
    bool alloc(uint64_t bytes, uint64_t *address) override
    {
        Storage::Handle handle = handle_of(0, bytes);
        if (bytes == 0)
            return true;
        try {
            call_alloc(*manager, &handle, 0);
        } catch (const std::runtime_error &) {
            return false;
        }
        *address = reinterpret_cast<uint64_t>(handle.dptr);
        return true;
    }

    void free(const golden::Block &block) override
    {
        if (block.address != 0)
            manager->Free(handle_of(block.address, block.bytes));
    }

    void trim() override
    {
        manager->ReleaseAll();
    }
};

// ---- sizes of the profiles

using golden::Script;

// Sizes at every place where rounding changes, and a byte beside it.
static uint64_t bound_size(Script &script)
{
    uint64_t page = settings.page_size != 0 ? settings.page_size : 4096;
    uint64_t large =
        settings.large_alloc_round_size != 0 ? settings.large_alloc_round_size : uint64_t{2} << 20;
    uint64_t cutoff = settings.round_linear_cutoff != 0 ? settings.round_linear_cutoff : 24;
    uint64_t step = settings.pool == "naive" ? large : uint64_t{1} << cutoff;
    uint64_t at = 0;
    switch (script.chance.between(0, 3)) {
    case 0:
        at = page * script.chance.between(1, 4);
        break;
    case 1:
        at = uint64_t{1} << script.chance.between(5, 25);
        break;
    default:
        at = step * script.chance.between(1, 5);
        break;
    }
    return at - 1 + script.chance.between(0, 2);
}

// Requests that take exactly what is free, or a granule more or less: with a reserve of nothing the
// two releases part here.
static uint64_t edge_size(Script &script)
{
    uint64_t left = settings.capacity - device.charged;
    uint64_t reserve = settings.has_reserve ? settings.reserve : 5;
    if (script.chance.happens(50))
        return script.chance.between(1, 8) * settings.gran;
    uint64_t kept = settings.capacity * reserve / 100;
    uint64_t bytes = left > kept ? left - kept : settings.gran;
    uint64_t moved = script.chance.between(0, 2) * settings.gran;
    return bytes + settings.gran > moved ? bytes + settings.gran - moved : settings.gran;
}

static uint64_t profile_size(Script &script)
{
    const std::string &profile = settings.profile;
    if (profile == "tiny")
        return script.chance.between(0, 9000);
    if (profile == "bound")
        return bound_size(script);
    if (profile == "edge")
        return edge_size(script);
    if (profile == "churn") // many sizes, so that the table of free lists grows
        return script.chance.between(1, 3000) * 4096;
    return golden::power_size(script.chance, 27);
}

// Round has lists for requests of up to 16 GiB, and writes behind them for larger ones.
static uint64_t random_size(Script &script)
{
    uint64_t bytes = profile_size(script);
    uint64_t round_max = uint64_t{1} << 34;
    return settings.pool == "round" && bytes > round_max ? round_max : bytes;
}

static void play(Script &script)
{
    const std::string &profile = settings.profile;
    // The pools know no streams, and are told of none.
    if (profile == "streams" || profile == "trim")
        script.streams = 4;
    if (profile == "train" || profile == "fixed")
        golden::play_train(script, profile == "train");
    else
        golden::play_waves(script, settings.capacity, profile == "trim",
                           [&script] { return random_size(script); });
}

// ---- the log

static void set_variable(const char *old_name, const char *new_name, uint64_t value)
{
    setenv(old_name, std::to_string(value).c_str(), 1);
    setenv(new_name, std::to_string(value).c_str(), 1);
}

static void set_variables()
{
    if (settings.page_size != 0)
        set_variable("MXNET_GPU_MEM_POOL_PAGE_SIZE", "MXNET_GPU_POOL_PAGE_SIZE",
                     settings.page_size);
    if (settings.large_alloc_round_size != 0)
        set_variable("MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE",
                     settings.large_alloc_round_size);
    if (settings.round_linear_cutoff != 0)
        set_variable("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF",
                     "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", settings.round_linear_cutoff);
    if (settings.has_reserve)
        set_variable("MXNET_GPU_MEM_POOL_RESERVE", "MXNET_GPU_MEM_POOL_RESERVE", settings.reserve);
}

static void write_parameter(const char *name, uint64_t value, bool is_given)
{
    std::cout << ",\"" << name << "\":";
    if (is_given)
        std::cout << value;
    else
        std::cout << "null";
}

static void write_head()
{
    std::string version = VERSION;
    std::cout << "{\"golden\":\"mxnet-" << settings.pool << "\",\"version\":\"" << version
              << "\",\"params\":{\"version\":\"" << version.substr(0, 3) << "\"";
    write_parameter("page_size", settings.page_size, settings.page_size != 0);
    if (settings.pool == "naive")
        write_parameter("large_alloc_round_size", settings.large_alloc_round_size,
                        settings.large_alloc_round_size != 0);
    else
        write_parameter("round_linear_cutoff", settings.round_linear_cutoff,
                        settings.round_linear_cutoff != 0);
    write_parameter("reserve", settings.reserve, settings.has_reserve);
    std::cout << "},\"capacity\":" << settings.capacity << ",\"va\":\""
              << (settings.is_down ? "down" : "up") << "\",\"va_base\":" << device.base
              << ",\"gran\":" << settings.gran << ",\"gap\":" << settings.gap << ",\"profile\":\""
              << settings.profile << "\",\"seed\":" << settings.seed << "}\n";
}

static void write_summary(const Script &script)
{
    std::cout << "{\"summary\":{";
    script.write_counts();
    std::cout << ",\"driver_mallocs\":" << device.mallocs
              << ",\"driver_refusals\":" << device.refusals << ",\"driver_frees\":" << device.frees
              << ",\"reserved_end\":" << device.reserved
              << ",\"peak_reserved\":" << device.reserved_peak
              << ",\"event_records\":0,\"stream_waits\":0,\"syncs\":0}}\n";
}

static const std::initializer_list<const char *> profiles = {
    "train", "fixed", "power", "bound", "tiny", "churn", "edge", "trim", "streams"};

static bool take_argument(const std::string &argument)
{
    size_t equals = argument.find('=');
    if (equals == std::string::npos)
        return false;
    std::string key = argument.substr(0, equals);
    std::string text = argument.substr(equals + 1);
    uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
    if (key == "pool" && (text == "naive" || text == "round"))
        settings.pool = text;
    else if (key == "profile" && golden::is_one_of(text, profiles))
        settings.profile = text;
    else if (key == "va")
        settings.is_down = text == "down";
    else if (key == "seed")
        settings.seed = number;
    else if (key == "count")
        settings.count = number;
    else if (key == "capacity")
        settings.capacity = number;
    else if (key == "page")
        settings.page_size = number;
    else if (key == "large")
        settings.large_alloc_round_size = number;
    else if (key == "cutoff")
        settings.round_linear_cutoff = number;
    else if (key == "gran")
        settings.gran = number;
    else if (key == "gap")
        settings.gap = number;
    else if (key == "reserve") {
        settings.reserve = number;
        settings.has_reserve = true;
    } else
        return false;
    return true;
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++)
        if (!take_argument(arguments[i])) {
            std::cerr << "real_mxnet: '" << arguments[i] << "' is no argument known here\n";
            return 2;
        }
    set_variables();
    Context context;
    context.dev_type = Context::kGPU;
    MxnetPool pool;
    device.calls = &pool.calls;
    if (settings.pool == "naive")
        pool.manager.reset(make_pool<mxnet::storage::GPUPooledStorageManager>(context));
    else
        pool.manager.reset(make_pool<mxnet::storage::GPUPooledRoundedStorageManager>(context));
    write_head();
    Script script(pool, settings.seed, settings.count);
    play(script);
    write_summary(script);
    return std::cout.flush() ? 0 : 1;
}
