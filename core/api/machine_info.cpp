#include <millrace/library.h>

#include <nlohmann/json.hpp>

namespace mr {

std::string toJson(const MachineInfo& machine)
{
    nlohmann::json object;
    object["cpu"] = machine.cpuName;
    object["instruction_set"] = machine.instructionSet;
    object["physical_cores"] = machine.physicalCores;
    object["threads"] = machine.threads;
    object["memory_bytes"] = machine.memoryBytes;
    object["available_bytes"] = machine.availableBytes;
    object["disk_free_bytes"] = machine.diskFreeBytes;
    object["gpus"] = nlohmann::json::array();
    for (const GpuInfo& gpu : machine.gpus)
        object["gpus"].push_back(
            {{"name", gpu.name}, {"memory_bytes", gpu.memoryBytes}, {"note", gpu.note}});
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mr
