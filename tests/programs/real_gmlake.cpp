/* Golden logs of the real GMLake, with no GPU: its allocator stands on a driver made of counters.
 *
 * Not part of the build. Wanted are a checkout of antgroup/glake (fb24ee8), libc10.so and the
 * headers of PyTorch 2.0.1 (folder torch of its wheel), and the headers of CUDA 12:
 *
 *   mkdir -p inc/c10/cuda && cp glake/GMLake/include/cuda_vmm_allocator.h inc/c10/cuda/
 *   g++ -std=c++17 -O1 -g -w -fsanitize=address -D_GLIBCXX_USE_CXX11_ABI=0 -include cuda.h \
 *       -I. -Iinc -Itorch/include -Icuda/include -o real_gmlake tests/programs/real_gmlake.cpp \
 *       glake/GMLake/src/CUDACachingAllocator.cpp torch/lib/libc10.so \
 *       -Wl,-rpath,torch/lib -lpthread
 *   ./real_gmlake train 1 2000 capacity=1200000000 fragLimit=20971520 >gmlake-train.jsonl
 *
 * The words are profile, seed and requests, then capacity, fragLimit, reuseLimit, defragLevel and
 * autoGC; all but the first become environment variables of GMLake and "params" of the log. The
 * address sanitizer decides what the library may be held to: the log ends before a request in which
 * it reads memory that it has freed, exits, throws another error than out of memory, or gives a
 * segment back whose memory it still has mapped elsewhere. Events are done at once. */
#include "tests/programs/real_library.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace
{

constexpr uint64_t PAGE = 2 * MIB;
constexpr uint64_t RESERVE_BASE = 0x600000000000;

/* Of all requests that were answered; the parent reads it when the library is gone. */
struct told_counts {
    Counts counts;
    bool is_whole; /* nothing stopped the log */
};
told_counts *told;

Rules rules; /* of this driver, which is not the shared device */

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
    if (counts.reserved + bytes > rules.capacity)
        return false;
    counts.reserved += bytes;
    return true;
}

void drop_if_unused(uint64_t handle)
{
    const chunk &at = chunks.at(handle);
    if (!at.is_released || at.map_count > 0)
        return;
    counts.reserved -= PAGE;
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

std::string json_of(const call &at)
{
    std::string address = std::to_string(at.address);
    std::string bytes = std::to_string(at.bytes);
    std::string count = std::to_string(at.count);
    if (at.kind == "malloc")
        return "[\"malloc\"," + address + "," + bytes + (at.address == 0 ? ",2]" : ",0]");
    if (at.kind == "free")
        return "[\"free\"," + address + "," + bytes + ",0]";
    if (at.kind == "create" || at.kind == "release")
        return "[\"" + at.kind + "\"," + bytes + "," + count + ",0]";
    if (at.kind == "refuse")
        return "[\"create\"," + bytes + "," + count + ",2]";
    if (at.kind == "map" || at.kind == "unmap" || at.kind == "alias" || at.kind == "unalias")
        return "[\"" + at.kind + "\"," + address + "," + bytes + "," + count + "]";
    return "[\"" + at.kind + "\"," + address + "," + bytes + "]";
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
    counts.mallocs++;
    if (!charge(pages)) {
        counts.refusals++;
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
    counts.reserved -= (bytes + PAGE - 1) / PAGE * PAGE;
    counts.driver_frees++;
    note("free", at, bytes, 0);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = rules.capacity - counts.reserved;
    *total_bytes = rules.capacity;
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

/* ---- the library */

namespace
{

struct GMLake : Library {
    static c10::cuda::CUDACachingAllocator::CUDAAllocator *allocator()
    {
        return c10::cuda::CUDACachingAllocator::get();
    }
    bool alloc(Block &block) override
    {
        auto stream = reinterpret_cast<cudaStream_t>(uintptr_t(block.stream * 4096));
        try {
            void *address = allocator()->raw_alloc_with_stream(block.bytes, stream);
            block.address = reinterpret_cast<uint64_t>(address);
        } catch (const c10::OutOfMemoryError &) {
            return false;
        }
        return true;
    }
    void free(const Block &block) override
    {
        allocator()->raw_delete(reinterpret_cast<void *>(block.address));
    }
    void trim() override
    {
        allocator()->emptyCache();
    }
    std::string take_calls() override
    {
        if (has_leaked)
            _exit(3);
        put_reservations_first();
        std::string all;
        for (const call &at : calls)
            all += (all.empty() ? "" : ",") + json_of(at);
        calls.clear();
        return all;
    }
    /* The library may not return from a request: what was written is written, and counts. */
    void end_request() override
    {
        fflush(log_file);
        counts.reserved_peak = std::max(counts.reserved_peak, counts.reserved);
        told->counts = counts;
    }
};

/* ---- profiles */

struct Profile {
    std::string name;
    Script script;
    uint64_t limit; /* from which on GMLake stitches */

    uint64_t draw(uint64_t below)
    {
        return script.chance.below(below);
    }
    void set_fraction(uint64_t percent)
    {
        double fraction = double(percent) / 100;
        GMLake::allocator()->setMemoryFraction(fraction, 0);
        char text[32];
        snprintf(text, sizeof text, "%g", fraction);
        script.write(std::string("{\"op\":\"fraction\",\"value\":") + text);
    }
    uint64_t draw_size()
    {
        if (name == "tiny")
            return 1 + draw(draw(4) == 0 ? 65536 : 4096);
        if (name == "power") {
            uint64_t power = uint64_t(1) << (9 + draw(20));
            bool is_odd = draw(2) != 0;
            uint64_t odd = draw(100000);
            return is_odd ? power + odd : power;
        }
        if (name == "bound") {
            const uint64_t at[] = {512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, limit, 2 * limit};
            uint64_t threshold = at[draw(7)];
            return threshold + draw(3) - 1;
        }
        if (name == "churn") {
            const uint64_t at[] = {3 * MIB, 14 * MIB, 22 * MIB, 36 * MIB, 50 * MIB, 90 * MIB};
            return at[draw(6)];
        }
        if (name == "phases") /* small blocks, then large ones that only they together can hold */
            return MIB + (counts.requests / 100 % 2 == 0 ? draw(limit) : draw(6 * limit));
        if (draw(8) == 0)
            return 1 + draw(MIB);
        return 1 + draw(draw(3) == 0 ? 160 * MIB : 48 * MIB);
    }
    /* Layers that keep activations until their turn comes back, with temporary buffers in between;
     * the length of the input differs from step to step. It ends with a step, when there were as
     * many allocations as requests are wanted. */
    void play_train()
    {
        std::vector<uint64_t> layers;
        for (uint64_t i = 0; i < 12; i++)
            layers.push_back(1 + draw(2 * limit));
        for (uint64_t layer : layers)
            script.alloc(layer);
        size_t kept = script.live.size();
        while (counts.allocs < script.request_max) {
            uint64_t length = 50 + draw(100);
            for (uint64_t layer : layers) {
                script.alloc(1 + layer * length / 100);
                script.alloc(1 + layer * length / 70);
                if (script.live.size() > kept && draw(10) < 9)
                    script.free_newest();
            }
            while (script.live.size() > kept) {
                script.alloc(1 + layers[draw(12)] * length / 100);
                if (draw(2) == 0)
                    script.free(kept + draw(script.live.size() - kept));
                while (script.live.size() > kept && draw(3) != 0)
                    script.free_newest();
            }
        }
    }
    void play_mixed()
    {
        uint64_t most = rules.capacity - rules.capacity / 16;
        if (name == "tiny")
            most = 64 * MIB;
        else if (name == "oom")
            most = rules.capacity + rules.capacity / 8;
        uint64_t phase = most;
        bool falls = false;
        while (!script.is_over()) {
            if (draw(200) == 0)
                phase = most / 8 + draw(most - most / 8);
            uint64_t held = script.live_bytes;
            falls = held > phase || (falls && held > phase * 3 / 4);
            bool frees = !script.live.empty() && (falls ? draw(8) != 0 : draw(3) == 0);
            if (draw(500) == 0) {
                script.trim();
            } else if (name == "fraction" && draw(60) == 0) {
                set_fraction(30 + draw(71));
            } else if (frees) {
                size_t count = script.live.size();
                script.free(draw(3) == 0 ? count - 1 : draw(count));
            } else {
                uint64_t stream = name == "streams" ? draw(3) : 0;
                script.alloc(draw_size(), stream);
            }
        }
    }
};

[[noreturn]] void run(const Arguments &arguments, uint64_t limit)
{
    GMLake library;
    GMLake::allocator()->init(1);
    uint64_t state = arguments.seed * 1000003 + arguments.profile.size();
    Profile profile = {arguments.profile, {library, {state}, arguments.requests, {}, 0}, limit};
    if (profile.name == "train")
        profile.play_train();
    else
        profile.play_mixed();
    told->is_whole = true;
    _exit(0);
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments = read_arguments(argc, argv, {},
                                         {"train", "mixed", "power", "phases", "tiny", "bound",
                                          "churn", "oom", "streams", "fraction"});
    rules.capacity = arguments.number_given("capacity");
    rules.gran = PAGE;
    rules.gap = 0;
    rules.direction = "lowest";
    const std::vector<std::string> keys = {"fragLimit", "defragLevel", "autoGC", "reuseLimit"};
    for (const std::string &key : keys)
        if (arguments.has(key))
            setenv(key.c_str(), arguments.text(key, "").c_str(), 1);
    uint64_t limit = arguments.number("fragLimit", 512 * MIB);
    std::string parameters = arguments.json_of_given(keys);
    arguments.refuse_unknown();
    void *shared =
        mmap(nullptr, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        stop("there is no shared memory");
    told = static_cast<told_counts *>(shared);
    log_file = fdopen(dup(1), "w"); /* the library itself writes to stdout */
    (void)freopen("/dev/null", "w", stdout);
    write_head(arguments, rules, "gmlake", "fb24ee8", parameters);
    fflush(log_file);
    pid_t child = fork();
    if (child == 0)
        run(arguments, limit);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0)
        fprintf(stderr, "the library stopped: status %d\n", status);
    write_summary(told->counts, std::string(",\"whole\":") + (told->is_whole ? "1" : "0"));
    return 0;
}
