/* Golden logs of the real GMLake, with no GPU: its allocator stands on a driver made of counters.
 *
 * Not part of the build. Wanted are a checkout of antgroup/glake (fb24ee8), libc10.so and the
 * headers of PyTorch 2.0.1 (folder torch of its wheel), and the headers of CUDA 12:
 *
 *   mkdir -p inc/c10/cuda && cp glake/GMLake/include/cuda_vmm_allocator.h inc/c10/cuda/
 *   g++ -std=c++17 -O1 -g -w -fsanitize=address -D_GLIBCXX_USE_CXX11_ABI=0 -include cuda.h \
 *       -Iinc -Itorch/include -Icuda/include -o real_gmlake real_gmlake.cpp \
 *       glake/GMLake/src/CUDACachingAllocator.cpp torch/lib/libc10.so \
 *       -Wl,-rpath,torch/lib -lpthread
 *   ./real_gmlake PROFILE SEED REQUESTS CAPACITY [fragLimit=BYTES] [reuseLimit=N] ...
 *
 * The other words become environment variables of GMLake and "params" of the log. The address
 * sanitizer decides what the library may be held to: the log ends before a request in which it
 * reads memory that it has freed, exits, throws another error than out of memory, or gives a
 * segment back whose memory it still has mapped elsewhere. Events are done at once. */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace
{

constexpr uint64_t KIB = 1024;
constexpr uint64_t MIB = 1024 * KIB;
constexpr uint64_t PAGE = 2 * MIB;
constexpr uint64_t MALLOC_BASE = 0x700000000000;
constexpr uint64_t RESERVE_BASE = 0x600000000000;

/* Of all requests that were answered; the parent reads it when the library is gone. */
struct counts {
    uint64_t requests, allocs, frees, ooms;
    uint64_t mallocs, refusals, driver_frees;
    uint64_t held, peak;
    uint64_t is_whole; /* nothing stopped the log */
};
counts now;
counts *told;

FILE *out; /* the library itself writes to stdout */
uint64_t capacity;

/* ---- address space */

/* The lowest free range is taken. */
struct address_space {
    uint64_t base;
    std::map<uint64_t, uint64_t> used;

    uint64_t take(uint64_t bytes)
    {
        bytes = (bytes + PAGE - 1) / PAGE * PAGE;
        uint64_t at = base;
        for (auto &range : used) {
            if (range.first - at >= bytes)
                break;
            at = range.first + range.second;
        }
        used[at] = bytes;
        return at;
    }
};
address_space mallocs{MALLOC_BASE};
address_space ranges{RESERVE_BASE};
std::map<uint64_t, uint64_t> malloc_bytes;

/* ---- memory */

struct chunk {
    uint64_t map_count = 0;
    uint64_t home = 0; /* where it was mapped first */
    bool is_released = false;
};
std::map<uint64_t, chunk> chunks;
std::map<uint64_t, uint64_t> mapped; /* address to chunk */
uint64_t chunk_count;
bool has_leaked;

bool charge(uint64_t bytes)
{
    if (now.held + bytes > capacity)
        return false;
    now.held += bytes;
    return true;
}

void drop_if_unused(uint64_t handle)
{
    const chunk &at = chunks.at(handle);
    if (!at.is_released || at.map_count > 0)
        return;
    now.held -= PAGE;
    chunks.erase(handle);
}

/* ---- the log of one request: adjoining pages are one entry */

struct call {
    std::string kind;
    uint64_t address, bytes, count;
};
std::vector<call> calls;

void note(const char *kind, uint64_t address, uint64_t bytes, uint64_t count)
{
    std::string name = kind;
    if (!calls.empty() && count > 0) {
        call &last = calls.back();
        if (last.kind == name && last.count > 0 && last.bytes == bytes &&
            (address == 0 || last.address + last.bytes * last.count == address)) {
            last.count += count;
            return;
        }
    }
    calls.push_back({name, address, bytes, count});
}

/* A new segment creates its chunks, reserves a range and maps them. Logs reserve first; where
 * chunks were refused nothing was reserved. */
void put_reservations_first()
{
    for (size_t i = 1; i < calls.size(); i++)
        if (calls[i].kind == "reserve" && calls[i - 1].kind == "create")
            std::swap(calls[i], calls[i - 1]);
}

void write_calls()
{
    put_reservations_first();
    const char *before = ",\"drv\":[";
    for (const call &at : calls) {
        unsigned long long address = at.address, bytes = at.bytes, count = at.count;
        fprintf(out, "%s", before);
        before = ",";
        if (at.kind == "malloc")
            fprintf(out, "[\"malloc\",%llu,%llu,%d]", address, bytes, address == 0 ? 2 : 0);
        else if (at.kind == "free")
            fprintf(out, "[\"free\",%llu,%llu,0]", address, bytes);
        else if (at.kind == "create" || at.kind == "release")
            fprintf(out, "[\"%s\",%llu,%llu,0]", at.kind.c_str(), bytes, count);
        else if (at.kind == "refuse")
            fprintf(out, "[\"create\",%llu,%llu,2]", bytes, count);
        else if (at.kind == "map" || at.kind == "unmap" || at.kind == "alias" ||
                 at.kind == "unalias")
            fprintf(out, "[\"%s\",%llu,%llu,%llu]", at.kind.c_str(), address, bytes, count);
        else
            fprintf(out, "[\"%s\",%llu,%llu]", at.kind.c_str(), address, bytes);
    }
    if (!calls.empty())
        fprintf(out, "]");
    calls.clear();
}

} // namespace

/* ---- the driver */

extern "C" {

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char **text)
{
    *text = "refused";
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *,
                                       CUmemAllocationGranularity_flags)
{
    *bytes = PAGE;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long)
{
    *address = ranges.take(bytes);
    note("reserve", *address, bytes, 0);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    ranges.used.erase(address);
    note("vfree", address, bytes, 0);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *, unsigned long long)
{
    if (bytes != PAGE)
        abort();
    if (!charge(bytes)) {
        note("refuse", 0, PAGE, 1);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = ++chunk_count;
    chunks[*handle] = chunk();
    note("create", 0, PAGE, 1);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long)
{
    chunk &at = chunks.at(handle);
    if (mapped.count(address) != 0)
        abort();
    if (at.home == 0)
        at.home = address;
    at.map_count++;
    mapped[address] = handle;
    note(at.home == address ? "map" : "alias", address, bytes, 1);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)
{
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    for (uint64_t at = address; at < address + bytes; at += PAGE) {
        uint64_t handle = mapped.at(at);
        mapped.erase(at);
        chunk &gone = chunks.at(handle);
        gone.map_count--;
        has_leaked = has_leaked || (gone.home == at && gone.map_count > 0);
        note(gone.home == at ? "unmap" : "unalias", at, PAGE, 1);
        drop_if_unused(handle);
    }
    return CUDA_SUCCESS;
}

/* What is still mapped goes with its range. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (chunks.count(handle) == 0)
        abort();
    chunk &at = chunks.at(handle);
    at.is_released = true;
    if (at.map_count == 0 && at.home == 0)
        note("release", 0, PAGE, 1);
    drop_if_unused(handle);
    return CUDA_SUCCESS;
}

/* ---- the runtime */

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    uint64_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    now.mallocs++;
    if (!charge(pages)) {
        now.refusals++;
        note("malloc", 0, bytes, 0);
        return cudaErrorMemoryAllocation;
    }
    uint64_t at = mallocs.take(bytes);
    malloc_bytes[at] = bytes;
    *address = reinterpret_cast<void *>(at);
    note("malloc", at, bytes, 0);
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    uint64_t at = reinterpret_cast<uint64_t>(address);
    if (at == 0)
        return cudaSuccess;
    uint64_t bytes = malloc_bytes.at(at);
    malloc_bytes.erase(at);
    mallocs.used.erase(at);
    now.held -= (bytes + PAGE - 1) / PAGE * PAGE;
    now.driver_frees++;
    note("free", at, bytes, 0);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = capacity - now.held;
    *total_bytes = capacity;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = reinterpret_cast<cudaEvent_t>(uintptr_t(16));
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "refused";
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12000;
    return cudaSuccess;
}

/* Linked, never called. */
#define UNUSED(name, ...)                                                                          \
    cudaError_t name(__VA_ARGS__)                                                                  \
    {                                                                                              \
        abort();                                                                                   \
    }
UNUSED(cudaIpcCloseMemHandle, void *)
UNUSED(cudaIpcOpenMemHandle, void **, cudaIpcMemHandle_t, unsigned)
UNUSED(cudaStreamGetCaptureInfo_v2, cudaStream_t, cudaStreamCaptureStatus *, unsigned long long *,
       cudaGraph_t *, const cudaGraphNode_t **, size_t *)
UNUSED(cudaStreamQuery, cudaStream_t)
UNUSED(cudaStreamSynchronize, cudaStream_t)
UNUSED(cudaStreamWaitEvent, cudaStream_t, cudaEvent_t, unsigned)
UNUSED(cudaThreadExchangeStreamCaptureMode, cudaStreamCaptureMode *)

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status)
{
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

} // extern "C"

/* ---- what libc10_cuda.so would have */

namespace c10
{
namespace cuda
{

DeviceIndex device_count() noexcept
{
    return 1;
}

CUDAStream getStreamFromPool(const bool, DeviceIndex)
{
    abort();
}

CUDAStream getCurrentCUDAStream(DeviceIndex)
{
    return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::DEFAULT, Device(DeviceType::CUDA, 0)));
}

CUDAStream getDefaultCUDAStream(DeviceIndex device)
{
    return getCurrentCUDAStream(device);
}

void setCurrentCUDAStream(CUDAStream)
{
}

void warn_or_error_on_sync()
{
}

cudaStream_t CUDAStream::stream() const
{
    return nullptr;
}

void c10_cuda_check_implementation(const int32_t code, const char *, const char *, const int,
                                   const bool)
{
    TORCH_CHECK(code == 0, "CUDA error ", code);
}

namespace CUDACachingAllocator
{
namespace CudaMallocAsync
{
CUDAAllocator *allocator()
{
    return nullptr;
}
} // namespace CudaMallocAsync
} // namespace CUDACachingAllocator

} // namespace cuda
} // namespace c10

/* ---- scripts */

namespace
{

uint64_t random_state;

uint64_t draw(uint64_t below)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % below;
}

struct live_block {
    uint64_t id;
    void *address;
    uint64_t bytes;
    uint64_t stream;
};
std::vector<live_block> live;
uint64_t live_bytes;
uint64_t next_id;

/* The library may not return from a request: what was written is written, and counts. */
void tell()
{
    if (has_leaked)
        _exit(3);
    fprintf(out, "}\n");
    fflush(out);
    now.requests++;
    now.peak = std::max(now.peak, now.held);
    *told = now;
}

void allocate(uint64_t bytes, uint64_t stream)
{
    auto *allocator = c10::cuda::CUDACachingAllocator::get();
    void *address = nullptr;
    try {
        address = allocator->raw_alloc_with_stream(
            bytes, reinterpret_cast<cudaStream_t>(uintptr_t(stream * 4096)));
    } catch (const c10::OutOfMemoryError &) {
        now.ooms++;
    }
    if (has_leaked)
        _exit(3);
    now.allocs++;
    fprintf(out, "{\"op\":\"alloc\",\"id\":%llu,\"size\":%llu,\"stream\":%llu,",
            (unsigned long long)next_id, (unsigned long long)bytes, (unsigned long long)stream);
    if (address == nullptr)
        fprintf(out, "\"oom\":true");
    else
        fprintf(out, "\"addr\":%llu", (unsigned long long)(uintptr_t)address);
    write_calls();
    tell();
    if (address != nullptr) {
        live.push_back({next_id, address, bytes, stream});
        live_bytes += bytes;
    }
    next_id++;
}

void release(size_t index)
{
    live_block block = live[index];
    live.erase(live.begin() + long(index));
    live_bytes -= block.bytes;
    c10::cuda::CUDACachingAllocator::get()->raw_delete(block.address);
    now.frees++;
    fprintf(out, "{\"op\":\"free\",\"id\":%llu,\"stream\":%llu", (unsigned long long)block.id,
            (unsigned long long)block.stream);
    write_calls();
    tell();
}

void trim()
{
    c10::cuda::CUDACachingAllocator::get()->emptyCache();
    if (has_leaked)
        _exit(3);
    fprintf(out, "{\"op\":\"trim\"");
    write_calls();
    tell();
}

void set_fraction(uint64_t percent)
{
    c10::cuda::CUDACachingAllocator::get()->setMemoryFraction(double(percent) / 100, 0);
    fprintf(out, "{\"op\":\"fraction\",\"value\":%g", double(percent) / 100);
    write_calls();
    tell();
}

uint64_t limit_bytes = 512 * MIB;

uint64_t size_of(const std::string &profile)
{
    if (profile == "tiny")
        return 1 + draw(draw(4) == 0 ? 65536 : 4096);
    if (profile == "power")
        return (uint64_t(1) << (9 + draw(20))) + draw(2) * draw(100000);
    if (profile == "bound") {
        const uint64_t at[] = {512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, limit_bytes, 2 * limit_bytes};
        return at[draw(7)] + draw(3) - 1;
    }
    if (profile == "churn") {
        const uint64_t at[] = {3 * MIB, 14 * MIB, 22 * MIB, 36 * MIB, 50 * MIB, 90 * MIB};
        return at[draw(6)];
    }
    if (profile == "phases") /* small blocks, then large ones that only they together can hold */
        return MIB + (now.requests / 100 % 2 == 0 ? draw(limit_bytes) : draw(6 * limit_bytes));
    if (draw(8) == 0)
        return 1 + draw(MIB);
    return 1 + draw(draw(3) == 0 ? 160 * MIB : 48 * MIB);
}

/* Layers that keep activations until their turn comes back, with temporary buffers in between; the
 * length of the input differs from step to step. */
void train(uint64_t requests)
{
    std::vector<uint64_t> layers;
    for (uint64_t i = 0; i < 12; i++)
        layers.push_back(1 + draw(2 * limit_bytes));
    for (uint64_t layer : layers)
        allocate(layer, 0);
    size_t kept = live.size();
    while (next_id < requests) {
        uint64_t length = 50 + draw(100);
        for (uint64_t layer : layers) {
            allocate(1 + layer * length / 100, 0);
            allocate(1 + layer * length / 70, 0);
            if (live.size() > kept && draw(10) < 9)
                release(live.size() - 1);
        }
        while (live.size() > kept) {
            allocate(1 + layers[draw(12)] * length / 100, 0);
            if (draw(2) == 0)
                release(kept + draw(live.size() - kept));
            while (live.size() > kept && draw(3) != 0)
                release(live.size() - 1);
        }
    }
}

void mixed(const std::string &profile, uint64_t requests, uint64_t streams)
{
    uint64_t most = capacity - capacity / 16;
    if (profile == "tiny")
        most = 64 * MIB;
    else if (profile == "oom")
        most = capacity + capacity / 8;
    uint64_t phase = most;
    bool falls = false;
    while (now.requests < requests) {
        if (draw(200) == 0)
            phase = most / 8 + draw(most - most / 8);
        falls = live_bytes > phase || (falls && live_bytes > phase * 3 / 4);
        bool frees = !live.empty() && (falls ? draw(8) != 0 : draw(3) == 0);
        if (draw(500) == 0)
            trim();
        else if (profile == "fraction" && draw(60) == 0)
            set_fraction(30 + draw(71));
        else if (frees)
            release(draw(3) == 0 ? live.size() - 1 : draw(live.size()));
        else
            allocate(size_of(profile), streams > 1 ? draw(streams) : 0);
    }
}

void write_head(const char *profile, uint64_t seed, const std::vector<std::string> &words)
{
    fprintf(out, "{\"golden\":\"gmlake\",\"version\":\"fb24ee8\",\"params\":{");
    const char *before = "";
    for (const std::string &word : words) {
        size_t at = word.find('=');
        fprintf(out, "%s\"%s\":%s", before, word.substr(0, at).c_str(),
                word.substr(at + 1).c_str());
        before = ",";
    }
    fprintf(out,
            "},\"capacity\":%llu,\"va\":\"lowest\",\"va_base\":%llu,\"gran\":%llu,\"gap\":0,"
            "\"profile\":\"%s\",\"seed\":%llu}\n",
            (unsigned long long)capacity, (unsigned long long)MALLOC_BASE, (unsigned long long)PAGE,
            profile, (unsigned long long)seed);
}

void write_summary()
{
    fprintf(out,
            "{\"summary\":{\"requests\":%llu,\"allocs\":%llu,\"frees\":%llu,\"ooms\":%llu,"
            "\"driver_mallocs\":%llu,\"driver_refusals\":%llu,\"driver_frees\":%llu,"
            "\"reserved_end\":%llu,\"peak_reserved\":%llu,\"whole\":%llu}}\n",
            (unsigned long long)told->requests, (unsigned long long)told->allocs,
            (unsigned long long)told->frees, (unsigned long long)told->ooms,
            (unsigned long long)told->mallocs, (unsigned long long)told->refusals,
            (unsigned long long)told->driver_frees, (unsigned long long)told->held,
            (unsigned long long)told->peak, (unsigned long long)told->is_whole);
}

void run(const std::string &profile, uint64_t requests)
{
    c10::cuda::CUDACachingAllocator::get()->init(1);
    if (profile == "train")
        train(requests);
    else
        mixed(profile, requests, profile == "streams" ? 3 : 1);
    told->is_whole = 1;
    _exit(0);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: real_gmlake PROFILE SEED REQUESTS CAPACITY [KEY=VALUE...]\n");
        return 2;
    }
    std::vector<std::string> words;
    for (int i = 5; i < argc; i++) {
        std::string word = argv[i];
        size_t at = word.find('=');
        if (word.substr(0, at) == "fragLimit")
            limit_bytes = strtoull(word.c_str() + at + 1, nullptr, 10);
        setenv(word.substr(0, at).c_str(), word.c_str() + at + 1, 1);
        words.push_back(word);
    }
    uint64_t seed = strtoull(argv[2], nullptr, 10);
    capacity = strtoull(argv[4], nullptr, 10);
    random_state = seed * 1000003 + std::string(argv[1]).size();
    void *shared =
        mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    told = static_cast<counts *>(shared);
    out = fdopen(dup(1), "w");
    (void)freopen("/dev/null", "w", stdout);
    write_head(argv[1], seed, words);
    fflush(out);
    pid_t child = fork();
    if (child == 0)
        run(argv[1], strtoull(argv[3], nullptr, 10));
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0)
        fprintf(stderr, "the library stopped: status %d\n", status);
    write_summary();
    return 0;
}
