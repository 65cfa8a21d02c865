#include "gpu_replay/oracle/device_calls.hpp"

#include "gpu_replay/oracle/json_lines.hpp"

namespace oracle
{
namespace
{
uint64_t argument(const frag_software_call &call, const std::string &name)
{
    for (uint32_t i = 0; i < call.argument_count; i++)
        if (name == call.arguments[i].name)
            return call.arguments[i].value;
    return 0;
}

std::string number(uint64_t value)
{
    return std::to_string(value);
}
} // namespace

void DeviceCalls::attach()
{
    frag_software_observe(see, this);
}

void DeviceCalls::start_writing()
{
    is_writing = true;
}

std::string DeviceCalls::take()
{
    end_run();
    std::string taken;
    taken.swap(text);
    return taken;
}

void DeviceCalls::see(const frag_software_call *call, void *context)
{
    static_cast<DeviceCalls *>(context)->add(*call);
}

void DeviceCalls::write(const std::string &array)
{
    if (!is_writing)
        return;
    end_run();
    if (!text.empty())
        text += ',';
    text += array;
}

void DeviceCalls::end_run()
{
    if (run.count == 0)
        return;
    Run ended = run;
    run = Run();
    if (ended.address != 0)
        write("[\"" + ended.kind + "\"," + address_text(ended.address) + "," + number(ended.bytes) +
              "," + number(ended.count) + "]");
    else
        write("[\"" + ended.kind + "\"," + number(ended.bytes) + "," + number(ended.count) + "," +
              std::to_string(ended.result) + "]");
}

void DeviceCalls::join(const std::string &kind, uint64_t address, uint64_t bytes, int32_t result)
{
    if (!is_writing)
        return;
    bool continues = run.count > 0 && run.kind == kind && run.bytes == bytes &&
                     run.result == result &&
                     (address == 0 || address == run.address + run.count * bytes);
    if (!continues) {
        end_run();
        run = Run{kind, address, bytes, 0, result};
    }
    run.count++;
}

void DeviceCalls::add(const frag_software_call &call)
{
    const std::string name = call.name;
    const uint64_t address = argument(call, "address");
    const uint64_t bytes = argument(call, "bytes");
    const bool worked = call.result == 0;
    const std::string result = std::to_string(call.result);
    if (name == "cudaMalloc") {
        (worked ? totals.mallocs : totals.malloc_failures)++;
        write("[\"malloc\"," + (worked ? address_text(address) : "0") + "," + number(bytes) + "," +
              result + "]");
    } else if (name == "cudaFree" && address != 0) {
        totals.frees += worked;
        write("[\"free\"," + address_text(address) + "," + result + "]");
    } else if (name == "cudaMemGetInfo") {
        write("[\"meminfo\"," + number(argument(call, "free")) + "," +
              number(argument(call, "total")) + "]");
    } else if (name == "cudaEventRecord") {
        write("[\"erecord\"," + number(argument(call, "stream")) + "]");
    } else if (name == "cudaEventQuery" && worked) {
        write("[\"equery\"," + number(argument(call, "stream")) + ",0]");
    } else if (name == "cudaEventSynchronize") {
        write("[\"esync\"," + number(argument(call, "stream")) + "]");
    } else if (name == "cudaStreamSynchronize") {
        write("[\"ssync\"," + number(argument(call, "stream")) + "]");
    } else if (name == "cudaDeviceSynchronize") {
        write("[\"dsync\"," + number(argument(call, "device")) + "]");
    } else if (name == "cudaThreadExchangeStreamCaptureMode") {
        write("[\"capmode\"," + number(argument(call, "mode")) + "]");
    } else if (name == "cuMemAddressReserve") {
        write("[\"reserve\"," + address_text(address) + "," + number(bytes) + "]");
    } else if (name == "cuMemAddressFree") {
        write("[\"vfree\"," + address_text(address) + "," + number(bytes) + "]");
    } else if (name == "cuMemCreate") {
        (worked ? totals.creates : totals.create_failures)++;
        join("create", 0, bytes, call.result);
    } else if (name == "cuMemMap" && worked) {
        join("map", address, bytes, call.result);
    } else if (name == "cuMemUnmap" && worked) {
        totals.unmaps++;
        was_unmapped = true;
        join("unmap", address, bytes, call.result);
    } else if (name == "cuMemRelease" && worked) {
        if (!was_unmapped)
            join("release", 0, bytes, call.result);
        was_unmapped = false;
    }
}
} // namespace oracle
