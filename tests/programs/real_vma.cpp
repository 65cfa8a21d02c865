/* Writes a golden log of the real Vulkan Memory Allocator: a random script of requests, each with
 * the address or the failure that the library answered with and the device calls it made. No GPU
 * and no Vulkan driver are needed: the functions that the library is given account for memory and
 * do nothing else. Format of the log: docs/trace-format.md, "Logs of other frameworks' pools".
 *
 * Build it beside a checkout of the library, with the Vulkan headers (libvulkan-dev):
 *     g++ -std=c++17 -O2 -I VulkanMemoryAllocator/include tests/programs/real_vma.cpp -o real_vma
 * Run it:
 *     ./real_vma buffers PROFILE SEED REQUESTS [KEY=VALUE ...] >log.jsonl
 *     ./real_vma virtual PROFILE SEED REQUESTS [KEY=VALUE ...] >log.jsonl
 * Keys are the parameters of the log's head, and capacity, gran, largest (the largest request) and
 * live (about as many blocks are in use at once). Profiles: train, power, bound, tiny, churn. */
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_VULKAN_VERSION 1001000
#define VMA_IMPLEMENTATION
#include "vk_mem_alloc.h"

namespace
{

const uint64_t BASE = 0x700000000000;
const uint64_t GAP = (uint64_t)2 << 20;

[[noreturn]] void stop(const char *what)
{
    fprintf(stderr, "real_vma: %s\n", what);
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

/* ---- Vulkan, as far as the library needs it. Handles of memory are addresses, those of buffers
 * their sizes. */

struct Vulkan {
    uint64_t heap_bytes = 0;
    uint64_t used_by_others = 0;
    uint32_t memory_count_max = 0;
    uint64_t alignment = 1;
    bool prefers_dedicated = false;
    uint64_t bound = 0; /* where the last buffer was bound */
};

Vulkan vulkan;

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice, VkPhysicalDeviceProperties *properties)
{
    memset(properties, 0, sizeof *properties);
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    properties->limits.maxMemoryAllocationCount = vulkan.memory_count_max;
    properties->limits.bufferImageGranularity = 1024;
    properties->limits.nonCoherentAtomSize = 64;
}

VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical,
                                           VkPhysicalDeviceProperties2 *properties)
{
    get_properties(physical, &properties->properties);
}

VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->memoryTypeCount = 1;
    memory->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    memory->memoryHeapCount = 1;
    memory->memoryHeaps[0].size = vulkan.heap_bytes;
    memory->memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
}

VKAPI_ATTR void VKAPI_CALL get_memory2(VkPhysicalDevice physical,
                                       VkPhysicalDeviceMemoryProperties2 *memory)
{
    get_memory(physical, &memory->memoryProperties);
    for (auto *next = (VkBaseOutStructure *)memory->pNext; next != nullptr; next = next->pNext) {
        if (next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
            continue;
        auto *budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)next;
        budget->heapBudget[0] = device.capacity;
        budget->heapUsage[0] = device.used;
    }
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice, const VkMemoryAllocateInfo *info,
                                        const VkAllocationCallbacks *, VkDeviceMemory *memory)
{
    uint64_t address = device.malloc(info->allocationSize);
    *memory = (VkDeviceMemory)address;
    return address == 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL release(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks *)
{
    device.free((uint64_t)memory);
}

VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice, const VkBufferCreateInfo *info,
                                             const VkAllocationCallbacks *, VkBuffer *buffer)
{
    *buffer = (VkBuffer)info->size;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice, VkBuffer, const VkAllocationCallbacks *)
{
}

VKAPI_ATTR void VKAPI_CALL get_requirements(VkDevice, VkBuffer buffer, VkMemoryRequirements *needs)
{
    uint64_t bytes = (uint64_t)buffer;
    needs->size = (bytes + vulkan.alignment - 1) / vulkan.alignment * vulkan.alignment;
    needs->alignment = vulkan.alignment;
    needs->memoryTypeBits = 1;
}

VKAPI_ATTR void VKAPI_CALL get_requirements2(VkDevice physical,
                                             const VkBufferMemoryRequirementsInfo2 *info,
                                             VkMemoryRequirements2 *needs)
{
    get_requirements(physical, info->buffer, &needs->memoryRequirements);
    for (auto *next = (VkBaseOutStructure *)needs->pNext; next != nullptr; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS) {
            auto *dedicated = (VkMemoryDedicatedRequirements *)next;
            dedicated->prefersDedicatedAllocation = vulkan.prefers_dedicated;
            dedicated->requiresDedicatedAllocation = VK_FALSE;
        }
}

VKAPI_ATTR VkResult VKAPI_CALL bind(VkDevice, VkBuffer, VkDeviceMemory memory, VkDeviceSize offset)
{
    vulkan.bound = (uint64_t)memory + offset;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL bind2(VkDevice, uint32_t count, const VkBindBufferMemoryInfo *infos)
{
    for (uint32_t i = 0; i < count; i++)
        vulkan.bound = (uint64_t)infos[i].memory + infos[i].memoryOffset;
    return VK_SUCCESS;
}

/* What the library wants to have, and never calls here: nothing is mapped, and there is no image. */
template <typename Function> void never(Function *function)
{
    *function = (Function)(void (*)())[] { stop("a function was called that should not be"); };
}

VmaVulkanFunctions functions()
{
    VmaVulkanFunctions table = {};
    table.vkGetPhysicalDeviceProperties = get_properties;
    table.vkGetPhysicalDeviceProperties2KHR = get_properties2;
    table.vkGetPhysicalDeviceMemoryProperties = get_memory;
    table.vkGetPhysicalDeviceMemoryProperties2KHR = get_memory2;
    table.vkAllocateMemory = allocate;
    table.vkFreeMemory = release;
    table.vkCreateBuffer = create_buffer;
    table.vkDestroyBuffer = destroy_buffer;
    table.vkGetBufferMemoryRequirements = get_requirements;
    table.vkGetBufferMemoryRequirements2KHR = get_requirements2;
    table.vkBindBufferMemory = bind;
    table.vkBindBufferMemory2KHR = bind2;
    never(&table.vkMapMemory);
    never(&table.vkUnmapMemory);
    never(&table.vkFlushMappedMemoryRanges);
    never(&table.vkInvalidateMappedMemoryRanges);
    never(&table.vkBindImageMemory);
    never(&table.vkBindImageMemory2KHR);
    never(&table.vkGetImageMemoryRequirements);
    never(&table.vkGetImageMemoryRequirements2KHR);
    never(&table.vkCreateImage);
    never(&table.vkDestroyImage);
    never(&table.vkCmdCopyBuffer);
    return table;
}

/* ---- the two levels of the library */

struct Library {
    virtual ~Library() = default;
    /* false: the library has failed. Id names what is freed later. */
    virtual bool alloc(uint32_t id, uint64_t bytes, uint64_t *address) = 0;
    virtual void free(uint32_t id) = 0;
};

uint32_t strategy_bits(const std::string &word)
{
    if (word == "default")
        return 0;
    if (word == "min_memory")
        return VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT;
    if (word == "min_time")
        return VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT;
    if (word == "min_offset")
        return VMA_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT;
    stop("strategy is default, min_memory, min_time or min_offset");
}

/* One virtual block over one device malloc. */
struct Virtual : Library {
    VmaVirtualBlock block = nullptr;
    uint64_t base = 0;
    uint64_t align;
    bool rounds; /* the program rounds sizes up, before it asks */
    uint32_t strategy;
    std::map<uint32_t, VmaVirtualAllocation> held;

    explicit Virtual(Settings &settings)
    {
        VmaVirtualBlockCreateInfo info = {};
        info.size = settings.number("size", (uint64_t)1 << 30);
        align = settings.number("align", 64);
        rounds = settings.text("round", "true") == "true";
        strategy = strategy_bits(settings.text("strategy", "default"));
        base = device.malloc(info.size);
        if (base == 0 || vmaCreateVirtualBlock(&info, &block) != VK_SUCCESS)
            stop("there is no virtual block");
    }
    bool alloc(uint32_t id, uint64_t bytes, uint64_t *address) override
    {
        VmaVirtualAllocationCreateInfo info = {};
        info.size = rounds ? (bytes + align - 1) / align * align : bytes;
        info.alignment = align;
        info.flags = strategy;
        VkDeviceSize offset = 0;
        VmaVirtualAllocation allocation = VK_NULL_HANDLE;
        if (vmaVirtualAllocate(block, &info, &allocation, &offset) != VK_SUCCESS)
            return false;
        held[id] = allocation;
        *address = base + offset;
        return true;
    }
    void free(uint32_t id) override
    {
        vmaVirtualFree(block, held.at(id));
        held.erase(id);
    }
};

/* Buffers of a device, each with memory of its own choice. */
struct Buffers : Library {
    struct Buffer {
        VkBuffer buffer;
        VmaAllocation allocation;
    };
    VmaAllocator allocator = nullptr;
    VmaPool pool = nullptr;
    uint32_t flags;
    std::map<uint32_t, Buffer> held;

    explicit Buffers(Settings &settings)
    {
        std::string dedicated = settings.text("dedicated", "large");
        vulkan.heap_bytes = settings.number("heap_size", (uint64_t)24 << 30);
        vulkan.memory_count_max = (uint32_t)settings.number("max_memory_allocation_count", 4096);
        vulkan.alignment = settings.number("align", 256);
        vulkan.prefers_dedicated = dedicated == "preferred";
        flags = strategy_bits(settings.text("strategy", "default"));
        if (dedicated == "always")
            flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
        VmaVulkanFunctions table = functions();
        uint64_t limit = settings.number("heap_size_limit", 0);
        VmaAllocatorCreateInfo info = {};
        info.vulkanApiVersion = VK_API_VERSION_1_1;
        info.physicalDevice = (VkPhysicalDevice)1;
        info.device = (VkDevice)1;
        info.instance = (VkInstance)1;
        info.pVulkanFunctions = &table;
        info.preferredLargeHeapBlockSize = settings.number("preferred_block_size", 0);
        info.pHeapSizeLimit = limit == 0 ? nullptr : &limit;
        if (settings.text("memory_budget", "false") == "true")
            info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
        if (vmaCreateAllocator(&info, &allocator) != VK_SUCCESS)
            stop("there is no allocator");
        VmaPoolCreateInfo own = {};
        own.blockSize = settings.number("pool_block_size", 0);
        own.minBlockCount = settings.number("min_block_count", 0);
        own.maxBlockCount = settings.number("max_block_count", 0);
        if (own.blockSize == 0 && own.minBlockCount == 0 && own.maxBlockCount == 0)
            return;
        if (vmaCreatePool(allocator, &own, &pool) != VK_SUCCESS)
            stop("there is no pool");
    }
    bool alloc(uint32_t id, uint64_t bytes, uint64_t *address) override
    {
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = bytes;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        VmaAllocationCreateInfo how = {};
        how.usage = pool == nullptr ? VMA_MEMORY_USAGE_AUTO : VMA_MEMORY_USAGE_UNKNOWN;
        how.flags = flags;
        how.pool = pool;
        Buffer buffer = {};
        VmaAllocationInfo got = {};
        if (vmaCreateBuffer(allocator, &info, &how, &buffer.buffer, &buffer.allocation, &got) !=
            VK_SUCCESS)
            return false;
        *address = (uint64_t)got.deviceMemory + got.offset;
        if (vulkan.bound != *address)
            stop("the buffer is not bound where the library says");
        held[id] = buffer;
        return true;
    }
    void free(uint32_t id) override
    {
        Buffer buffer = held.at(id);
        held.erase(id);
        vmaDestroyBuffer(allocator, buffer.buffer, buffer.allocation);
    }
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
        live.erase(live.begin() + (ptrdiff_t)place);
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

    /* Random sizes around a number of live blocks that drifts; now and then nearly all are freed. */
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

void print_head(const char *name, const std::string &profile, uint64_t seed, Settings &settings,
                const std::vector<std::string> &parameters)
{
    printf("{\"golden\":\"%s\",\"version\":\"%u.%u.%u\",\"params\":{", name,
           VK_VERSION_MAJOR(VMA_VERSION), VK_VERSION_MINOR(VMA_VERSION),
           VK_VERSION_PATCH(VMA_VERSION));
    const char *comma = "";
    for (const std::string &key : parameters)
        if (settings.has(key.c_str())) {
            const std::string &value = settings.values[key];
            bool is_bare = (value[0] >= '0' && value[0] <= '9') || value == "true" || value == "false";
            printf("%s\"%s\":%s%s%s", comma, key.c_str(), is_bare ? "" : "\"", value.c_str(),
                   is_bare ? "" : "\"");
            comma = ",";
        }
    printf("},\"capacity\":");
    if (device.capacity == UINT64_MAX)
        printf("null");
    else
        printf("%" PRIu64, device.capacity);
    printf(",\"va\":\"up\",\"va_base\":%" PRIu64 ",\"gran\":%" PRIu64 ",\"gap\":%" PRIu64
           ",\"profile\":\"%s\",\"seed\":%" PRIu64 ",\"drv\":[%s]}\n",
           BASE, device.gran, GAP, profile.c_str(), seed, device.calls.c_str());
    device.calls.clear();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 5)
        stop("expected: buffers|virtual PROFILE SEED REQUESTS [KEY=VALUE ...]");
    std::string kind = argv[1];
    std::string profile = argv[2];
    uint64_t seed = strtoull(argv[3], nullptr, 10);
    Settings settings;
    for (int i = 5; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals == nullptr)
            stop("a setting is KEY=VALUE");
        settings.values[std::string(argv[i], (size_t)(equals - argv[i]))] = equals + 1;
    }
    device.capacity = settings.number("capacity", UINT64_MAX);
    device.gran = settings.number("gran", device.gran);
    Script script = {};
    script.chance.state = seed;
    script.largest = settings.number("largest", (uint64_t)64 << 20);
    script.live_wanted = settings.number("live", 200);
    script.request_max = strtoull(argv[4], nullptr, 10);
    if (kind == "virtual") {
        script.library = new Virtual(settings);
        print_head("vma-virtual", profile, seed, settings, {"size", "align", "round", "strategy"});
    } else if (kind == "buffers") {
        script.library = new Buffers(settings);
        print_head("vma", profile, seed, settings,
                   {"heap_size", "heap_size_limit", "preferred_block_size", "pool_block_size",
                    "min_block_count", "max_block_count", "strategy", "dedicated", "align",
                    "max_memory_allocation_count", "memory_budget"});
    } else {
        stop("the kinds are buffers and virtual");
    }
    for (const auto &value : settings.values)
        if (!settings.used[value.first])
            stop(("there is no setting " + value.first).c_str());
    script.run(profile);
    printf("{\"summary\":{\"requests\":%" PRIu64 ",\"allocs\":%u,\"frees\":%" PRIu64
           ",\"ooms\":%" PRIu64 ",\"driver_mallocs\":%" PRIu64 ",\"driver_refusals\":%" PRIu64
           ",\"driver_frees\":%" PRIu64 ",\"reserved_end\":%" PRIu64 ",\"peak_reserved\":%" PRIu64
           ",\"event_records\":0,\"stream_waits\":0,\"syncs\":0}}\n",
           script.requests, script.next_id, script.frees, script.ooms,
           device.mallocs + device.refusals,
           device.refusals, device.frees, device.held, device.held_peak);
    fflush(stdout);
    /* What is still held is not told: the library would complain about leaks. */
    _Exit(0);
}
