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
//   ./real_mxnet naive train 1 2000 capacity=2000000000 >mxnet-naive-train.jsonl
//   ./fraglab verify --against golden --check 1 mxnet-naive-train.jsonl
//
// The words are pool (naive or round), profile, seed and requests, then parameters of the log's
// head, capacity, gran, gap and va (up or down). The order in which naive gives memory back is that
// of std::unordered_map, so that logs are made with libstdc++.
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

#include "tests/programs/real_library.hpp"

// ---- CUDA, over the device of the log

using cudaError_t = int;
using cudaEvent_t = void *;
constexpr cudaError_t cudaSuccess = 0;
constexpr cudaError_t cudaErrorMemoryAllocation = 2;
constexpr cudaError_t cudaErrorCudartUnloading = 4;
constexpr unsigned cudaHostAllocPortable = 1;

static cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    uint64_t address = device.malloc(bytes);
    if (address == 0)
        return cudaErrorMemoryAllocation;
    *pointer = reinterpret_cast<void *>(address);
    return cudaSuccess;
}

static cudaError_t cudaFree(void *pointer)
{
    device.free(reinterpret_cast<uint64_t>(pointer));
    return cudaSuccess;
}

static cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = device.bytes_left();
    *total_bytes = device.rules.capacity;
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

struct Pool : Library {
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
    bool alloc(Block &block) override
    {
        Storage::Handle handle = handle_of(0, block.bytes);
        if (block.bytes == 0)
            return true;
        try {
            call_alloc(*manager, &handle, 0);
        } catch (const std::runtime_error &) {
            return false;
        }
        block.address = reinterpret_cast<uint64_t>(handle.dptr);
        return true;
    }

    void free(const Block &block) override
    {
        if (block.address != 0)
            manager->Free(handle_of(block.address, block.bytes));
    }

    void trim() override
    {
        manager->ReleaseAll();
    }
};

// ---- the profiles

struct Profile {
    std::string name;
    std::string pool;
    Script script;
    unsigned streams; // the pools know none, and are told of none
    uint64_t page_size;
    uint64_t linear_step; // from here on sizes are multiples of it
    uint64_t reserve_percent;

    Chance &chance()
    {
        return script.chance;
    }

    uint64_t draw_stream()
    {
        return chance().between(0, streams - 1);
    }

    bool alloc(uint64_t bytes)
    {
        return script.alloc(bytes, draw_stream());
    }

    void free_newest()
    {
        script.free_on(draw_stream(), script.live.size() - 1);
    }

    void free_any()
    {
        size_t place = chance().between(0, script.live.size() - 1);
        script.free_on(draw_stream(), place);
    }

    // Sizes at every place where rounding changes, and a byte beside it.
    uint64_t bound_size()
    {
        uint64_t at = 0;
        switch (chance().between(0, 3)) {
        case 0:
            at = page_size * chance().between(1, 4);
            break;
        case 1:
            at = uint64_t{1} << chance().between(5, 25);
            break;
        default:
            at = linear_step * chance().between(1, 5);
            break;
        }
        return at - 1 + chance().between(0, 2);
    }

    // Requests that take exactly what is free, or a granule more or less: with a reserve of nothing
    // the two releases part here.
    uint64_t edge_size()
    {
        uint64_t left = device.bytes_left();
        uint64_t gran = device.rules.gran;
        if (chance().happens(50))
            return chance().between(1, 8) * gran;
        uint64_t kept = device.rules.capacity * reserve_percent / 100;
        uint64_t bytes = left > kept ? left - kept : gran;
        uint64_t moved = chance().between(0, 2) * gran;
        return bytes + gran > moved ? bytes + gran - moved : gran;
    }

    // Every order of size alike, up to 2^27.
    uint64_t power_size()
    {
        uint64_t top = chance().between(6, 27);
        return chance().between(uint64_t{1} << (top - 1), uint64_t{1} << top);
    }

    // Round has lists for requests of up to 16 GiB, and writes behind them for larger ones.
    uint64_t draw_size()
    {
        uint64_t bytes = 0;
        if (name == "tiny")
            bytes = chance().between(0, 9000);
        else if (name == "bound")
            bytes = bound_size();
        else if (name == "edge")
            bytes = edge_size();
        else if (name == "churn") // many sizes, so that the table of free lists grows
            bytes = chance().between(1, 3000) * 4096;
        else
            bytes = power_size();
        return pool == "round" ? std::min(bytes, uint64_t{1} << 34) : bytes;
    }

    // A network with weights that stay, and batches, which may vary in length: activations on the
    // way up, gradients on the way down.
    void play_train()
    {
        std::vector<uint64_t> layers;
        for (int i = 0; i < 24; i++)
            layers.push_back(chance().between(1000, 400000) * 16);
        for (uint64_t layer : layers)
            if (!script.is_over())
                alloc(layer / 2 + 256);
        size_t kept = script.live.size();
        while (!script.is_over()) {
            uint64_t length = name == "fixed" ? 128 : chance().between(20, 256);
            for (uint64_t layer : layers) {
                alloc(layer * length / 128);
                if (chance().happens(40) && alloc(layer * length / 16))
                    free_newest();
            }
            while (script.live.size() > kept && !script.is_over()) {
                if (alloc(chance().between(1, 64) * 1024))
                    free_newest();
                free_newest();
            }
        }
    }

    // Requests of any size in waves: the live set is let grow, then shrinks.
    void play_waves()
    {
        uint64_t capacity = device.rules.capacity;
        uint64_t target = capacity / 2;
        uint64_t count_max = chance().between(20, 400);
        while (!script.is_over()) {
            bool grows = script.live_bytes < target && script.live.size() < count_max;
            if (name == "trim" && chance().happens(2))
                script.trim();
            else if (script.live.empty() || chance().happens(grows ? 60 : 35))
                alloc(draw_size());
            else
                free_any();
            if (chance().happens(1))
                target = chance().between(1, 100) * (capacity / 80);
        }
    }
};

// ---- the log

static void set_variable(Arguments &arguments, const char *key, const char *name)
{
    if (arguments.has(key))
        setenv(name, arguments.text(key, "").c_str(), 1);
}

// The first two are one variable, of 1.9 and of 2.0.
static void set_variables(Arguments &arguments, const char *step_key)
{
    set_variable(arguments, "page_size", "MXNET_GPU_MEM_POOL_PAGE_SIZE");
    set_variable(arguments, "page_size", "MXNET_GPU_POOL_PAGE_SIZE");
    set_variable(arguments, "reserve", "MXNET_GPU_MEM_POOL_RESERVE");
    set_variable(arguments, step_key,
                 arguments.kind == "naive" ? "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE"
                                           : "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF");
}

int main(int argc, char **argv)
{
    Arguments arguments = read_arguments(
        argc, argv, {"naive", "round"},
        {"train", "fixed", "power", "bound", "tiny", "churn", "edge", "trim", "streams"});
    bool is_naive = arguments.kind == "naive";
    const char *step_key = is_naive ? "large_alloc_round_size" : "round_linear_cutoff";
    set_variables(arguments, step_key);
    device.set_rules(arguments, uint64_t{16} << 30);
    Context context;
    context.dev_type = Context::kGPU;
    Pool pool;
    if (is_naive)
        pool.manager.reset(make_pool<mxnet::storage::GPUPooledStorageManager>(context));
    else
        pool.manager.reset(make_pool<mxnet::storage::GPUPooledRoundedStorageManager>(context));
    bool has_streams = arguments.profile == "streams" || arguments.profile == "trim";
    Profile profile = {arguments.profile,
                       arguments.kind,
                       {pool, {arguments.seed}, arguments.requests, {}, 0},
                       has_streams ? 4u : 1u,
                       arguments.number("page_size", 4096),
                       is_naive ? arguments.number(step_key, 2 * MIB)
                                : uint64_t{1} << arguments.number(step_key, 24),
                       arguments.number("reserve", 5)};
    arguments.refuse_unknown();
    std::string version = VERSION;
    std::string parameters = "\"version\":\"" + version.substr(0, 3) + "\"";
    for (const char *key : {"page_size", step_key, "reserve"})
        parameters += std::string(",\"") + key + "\":" + arguments.json(key);
    write_head(arguments, device.rules, "mxnet-" + arguments.kind, version, parameters);
    if (profile.name == "train" || profile.name == "fixed")
        profile.play_train();
    else
        profile.play_waves();
    write_summary(counts, NO_WAITS);
    return ferror(log_file) == 0 ? 0 : 1;
}
