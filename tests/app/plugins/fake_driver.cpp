// A driver library without a card behind it: it knows CUDA MR_FAKE_DRIVER_VERSION, and everything
// else it is asked fails with MR_FAKE_DRIVER_CODE.

#include <cstring>

extern "C" {

int cuDriverGetVersion(int* version)
{
    *version = MR_FAKE_DRIVER_VERSION;
    return 0;
}

int cuInit(unsigned)
{
    return MR_FAKE_DRIVER_CODE;
}

int cuGetExportTable(const void** table, const void*)
{
    *table = nullptr;
    return MR_FAKE_DRIVER_CODE;
}

int cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int* found)
{
    void* entry = reinterpret_cast<void*>(&cuInit);
    if (std::strcmp(symbol, "cuDriverGetVersion") == 0)
        entry = reinterpret_cast<void*>(&cuDriverGetVersion);
    else if (std::strcmp(symbol, "cuGetProcAddress") == 0)
        entry = reinterpret_cast<void*>(&cuGetProcAddress_v2);
    *function = entry;
    if (found)
        *found = 0;
    return 0;
}

int cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
}
