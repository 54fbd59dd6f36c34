// A library with the interface of NVML: two GPUs, of which the second does not answer, and numbers
// that differ from each other. MR_OLD_NVML leaves out all that an old driver may lack;
// MR_BROKEN_NVML is installed and does not start (a driver and a library of two versions).
//
// Threads  Any.

#include "core/base/nvml_abi.h"

#include <cstring>

extern "C" {

namespace {
constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kUnknown = 999;
int theGpu = 0; // its address is the handle

bool isTheGpu(const void* gpu)
{
    return gpu == &theGpu;
}
} // namespace

int nvmlInit_v2()
{
#ifdef MR_BROKEN_NVML
    return 18; // NVML_ERROR_LIB_RM_VERSION_MISMATCH
#else
    return kSuccess;
#endif
}

int nvmlShutdown()
{
    return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count)
{
    *count = 2;
    return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu)
{
    if (index != 0)
        return kUnknown;
    *gpu = &theGpu;
    return kSuccess;
}

int nvmlDeviceGetName(void* gpu, char* name, unsigned room)
{
    if (!isTheGpu(gpu) || room < 16)
        return kInvalidArgument;
    std::strncpy(name, "Test GPU 24 GB", room);
    return kSuccess;
}

#ifndef MR_OLD_NVML
int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** gpu)
{
    if (std::strcmp(busId, "00000000:65:00.0") != 0)
        return kInvalidArgument;
    *gpu = &theGpu;
    return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* gpu, mr::RawNvmlMemory* memory)
{
    *memory = {24'000, 23'000, 1'000};
    return isTheGpu(gpu) ? kSuccess : kInvalidArgument;
}

int nvmlDeviceGetUtilizationRates(void* gpu, mr::RawNvmlUtilization* rates)
{
    *rates = {87, 41};
    return isTheGpu(gpu) ? kSuccess : kInvalidArgument;
}

int nvmlDeviceGetPcieThroughput(void* gpu, int counter, unsigned* kilobytes)
{
    *kilobytes = counter == 0 ? 7'000 : 12'000; // 0: sent
    return isTheGpu(gpu) ? kSuccess : kInvalidArgument;
}

int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* celsius)
{
    *celsius = 61;
    return isTheGpu(gpu) && sensor == 0 ? kSuccess : kInvalidArgument;
}

int nvmlDeviceGetClockInfo(void* gpu, int type, unsigned* mhz)
{
    *mhz = type == 1 ? 1'800 : type == 2 ? 9'500 : 0;
    return isTheGpu(gpu) ? kSuccess : kInvalidArgument;
}
#endif

int nvmlDeviceGetPowerUsage(void* gpu, unsigned* milliwatts)
{
    *milliwatts = 215'500;
    return isTheGpu(gpu) ? kSuccess : kInvalidArgument;
}

} // extern "C"
