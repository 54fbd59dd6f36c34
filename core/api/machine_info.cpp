#include <millrace/library.h>

#include <nlohmann/json.hpp>

namespace mr {

std::string toJson(const MachineInfo& machine)
{
    nlohmann::json json;
    json["cpu"] = machine.cpuName;
    json["instruction_set"] = machine.instructionSet;
    json["physical_cores"] = machine.physicalCores;
    json["threads"] = machine.threads;
    json["memory_bytes"] = machine.memoryBytes;
    json["available_bytes"] = machine.availableBytes;
    json["disk_free_bytes"] = machine.diskFreeBytes;
    json["gpus"] = nlohmann::json::array();
    for (const GpuInfo& gpu : machine.gpus)
        json["gpus"].push_back(
            {{"name", gpu.name}, {"memory_bytes", gpu.memoryBytes}, {"note", gpu.note}});
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mr
