// The device calls of one request, as the golden log writes them: JSON arrays separated by commas,
// calls on neighbouring pages joined into one.
#ifndef FRAG_ORACLE_DEVICE_CALLS_HPP
#define FRAG_ORACLE_DEVICE_CALLS_HPP

#include <cstdint>
#include <string>

#include "gpu_replay/software/software_cuda.h"

namespace oracle
{
// How often it came to that, over the whole log.
struct DeviceCounts {
    uint64_t mallocs = 0;
    uint64_t malloc_failures = 0;
    uint64_t frees = 0;
    uint64_t creates = 0;
    uint64_t create_failures = 0;
    uint64_t unmaps = 0;
};

class DeviceCalls
{
  public:
    void attach(); // from now on sees every call of the software CUDA
    void start_writing();
    std::string take(); // what was written since the last take
    const DeviceCounts &counts() const
    {
        return totals;
    }

  private:
    static void see(const frag_software_call *call, void *context);
    void add(const frag_software_call &call);
    void write(const std::string &array);
    void join(const std::string &kind, uint64_t address, uint64_t bytes, int32_t result);
    void end_run();

    struct Run {
        std::string kind;
        uint64_t address = 0; // 0: pages without one
        uint64_t bytes = 0;
        uint64_t count = 0;
        int32_t result = 0;
    };

    bool is_writing = false;
    bool was_unmapped = false; // the release that follows an unmap goes without saying
    std::string text;
    Run run;
    DeviceCounts totals;
};
} // namespace oracle

#endif
