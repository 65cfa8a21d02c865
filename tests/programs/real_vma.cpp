/* Writes a golden log of the real Vulkan Memory Allocator: a random script of requests, each with
 * the address or the failure that the library answered with and the device calls it made. No GPU
 * and no Vulkan driver are needed: the functions that the library is given account for memory and
 * do nothing else. Format of the log: docs/trace-format.md, "Logs of other frameworks' pools".
 *
 * Build it beside a checkout of the library, with the Vulkan headers (libvulkan-dev):
 *     g++ -std=c++17 -O2 -I. -I VulkanMemoryAllocator/include \
 *         tests/programs/real_vma.cpp -o real_vma
 * Run it:
 *     ./real_vma buffers PROFILE SEED REQUESTS [KEY=VALUE ...] >log.jsonl
 *     ./real_vma virtual PROFILE SEED REQUESTS [KEY=VALUE ...] >log.jsonl
 * Keys are the parameters of the log's head, and capacity, gran, largest (the largest request) and
 * live (about as many blocks are in use at once). Profiles: train, power, bound, tiny, churn. */
#include "tests/programs/one_memory.hpp"

#include <cstring>

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_VULKAN_VERSION 1001000
#define VMA_IMPLEMENTATION
#include "vk_mem_alloc.h"

namespace
{

/* ---- Vulkan, as far as the library needs it. Handles of memory are addresses, those of buffers
 * their sizes. */

struct Vulkan {
    uint64_t heap_bytes = 0;
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
        budget->heapBudget[0] = device.rules.capacity;
        budget->heapUsage[0] = device.charged;
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

/* What the library wants to have, and never calls here: nothing is mapped, and there is no image.
 */
template <typename Function> void never(Function *function)
{
    *function = (Function)(void (*)())[]
    {
        stop("a function was called that should not be");
    };
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
    VmaVirtualBlock memory = nullptr;
    uint64_t base = 0;
    uint64_t align;
    bool rounds; /* the program rounds sizes up, before it asks */
    uint32_t strategy;
    std::map<uint64_t, VmaVirtualAllocation> held;

    explicit Virtual(Arguments &arguments)
    {
        VmaVirtualBlockCreateInfo info = {};
        info.size = arguments.number_given("size");
        align = arguments.number("align", 64);
        rounds = arguments.text("round", "true") == "true";
        strategy = strategy_bits(arguments.text("strategy", "default"));
        base = device.malloc(info.size);
        if (base == 0 || vmaCreateVirtualBlock(&info, &memory) != VK_SUCCESS)
            stop("there is no virtual block");
    }
    bool alloc(Block &block) override
    {
        VmaVirtualAllocationCreateInfo info = {};
        info.size = rounds ? (block.bytes + align - 1) / align * align : block.bytes;
        info.alignment = align;
        info.flags = strategy;
        VkDeviceSize offset = 0;
        VmaVirtualAllocation allocation = VK_NULL_HANDLE;
        if (vmaVirtualAllocate(memory, &info, &allocation, &offset) != VK_SUCCESS)
            return false;
        held[block.id] = allocation;
        block.address = base + offset;
        return true;
    }
    void free(const Block &block) override
    {
        vmaVirtualFree(memory, held.at(block.id));
        held.erase(block.id);
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
    std::map<uint64_t, Buffer> held;

    explicit Buffers(Arguments &arguments)
    {
        std::string dedicated = arguments.text("dedicated", "large");
        vulkan.heap_bytes = arguments.number_given("heap_size");
        vulkan.memory_count_max = (uint32_t)arguments.number("max_memory_allocation_count", 4096);
        vulkan.alignment = arguments.number("align", 256);
        vulkan.prefers_dedicated = dedicated == "preferred";
        flags = strategy_bits(arguments.text("strategy", "default"));
        if (dedicated == "always")
            flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
        if (arguments.text("within_budget", "false") == "true")
            flags |= VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
        VmaVulkanFunctions table = functions();
        uint64_t limit = arguments.number("heap_size_limit", 0);
        VmaAllocatorCreateInfo info = {};
        info.vulkanApiVersion = VK_API_VERSION_1_1;
        info.physicalDevice = (VkPhysicalDevice)1;
        info.device = (VkDevice)1;
        info.instance = (VkInstance)1;
        info.pVulkanFunctions = &table;
        info.preferredLargeHeapBlockSize = arguments.number("preferred_block_size", 0);
        info.pHeapSizeLimit = limit == 0 ? nullptr : &limit;
        if (arguments.text("memory_budget", "false") == "true")
            info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
        if (vmaCreateAllocator(&info, &allocator) != VK_SUCCESS)
            stop("there is no allocator");
        VmaPoolCreateInfo own = {};
        own.blockSize = arguments.number("pool_block_size", 0);
        own.minBlockCount = arguments.number("min_block_count", 0);
        own.maxBlockCount = arguments.number("max_block_count", 0);
        if (own.blockSize == 0 && own.minBlockCount == 0 && own.maxBlockCount == 0)
            return;
        if (vmaCreatePool(allocator, &own, &pool) != VK_SUCCESS)
            stop("there is no pool");
    }
    bool alloc(Block &block) override
    {
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.size = block.bytes;
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
        block.address = (uint64_t)got.deviceMemory + got.offset;
        if (vulkan.bound != block.address)
            stop("the buffer is not bound where the library says");
        held[block.id] = buffer;
        return true;
    }
    void free(const Block &block) override
    {
        Buffer buffer = held.at(block.id);
        held.erase(block.id);
        vmaDestroyBuffer(allocator, buffer.buffer, buffer.allocation);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments = read_arguments(argc, argv, {"buffers", "virtual"}, ONE_MEMORY_PROFILES);
    device.set_rules(arguments, UINT64_MAX);
    std::string version = std::to_string(VK_VERSION_MAJOR(VMA_VERSION)) + "." +
                          std::to_string(VK_VERSION_MINOR(VMA_VERSION)) + "." +
                          std::to_string(VK_VERSION_PATCH(VMA_VERSION));
    if (arguments.kind == "virtual") {
        Virtual library(arguments);
        write_log(arguments, library, "vma-virtual", version,
                  {"size", "align", "round", "strategy"});
    }
    Buffers library(arguments);
    write_log(arguments, library, "vma", version,
              {"heap_size", "heap_size_limit", "preferred_block_size", "pool_block_size",
               "min_block_count", "max_block_count", "strategy", "dedicated", "align",
               "max_memory_allocation_count", "memory_budget", "within_budget"});
}
