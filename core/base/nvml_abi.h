#pragma once

// Structures that NVML fills in, declared from its public reference: the order of the fields and
// their types are the interface. The library is loaded at run time, so its own header is not needed
// to build.
//
// Source: NVIDIA Management Library API Reference, nvmlMemory_t and nvmlUtilization_t.

namespace mr {

struct RawNvmlMemory { // nvmlMemory_t, bytes
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct RawNvmlUtilization { // nvmlUtilization_t, percent of the last sample period
    unsigned gpu;
    unsigned memory;
};

} // namespace mr
