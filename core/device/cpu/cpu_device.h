// CpuDevice: the device of a machine without a GPU, and the reference for every op.
//
// Its "device" memory is its own: a byte budget apart from host memory, so every copy a plan
// makes is really made. Two modes:
//
//   Inline    every enqueue has finished when it returns; a stream cannot wait for a closed
//             gate (Internal), so the engine polls.
//   Threaded  a stream is a worker thread, events and gates are real, and a missing wait is
//             a data race that ThreadSanitizer reports. Nothing runs before Device::submit().
//             Streams wait for gates (DeviceInfo::waitsForGates).
//
// An optional link rate slows copies between host and device down, each way by itself, so that
// stalls and overlap can be studied without a GPU. It is labelled: DeviceInfo::simulatedLink.
//
// Threads  As in device.h. Compute ops share one ThreadPool of `threads` threads.
// Ownership The device owns pool and ops; streams, events, gates, buffers belong to the caller
//          and go first.
// Errors   allocate(): OutOfMemory with the tag, the size asked for and the size left. copy():
//          InvalidArgument for memory that this device did not allocate, or past its end.
// Units    Bytes; pinned memory is counted apart and has no budget here.

#pragma once

#include "core/device/device.h"

#include <cstddef>
#include <memory>

namespace mr {

struct CpuDeviceOptions {
    static constexpr int kMostThreads = 4096;

    enum class Mode : std::uint8_t { Inline, Threaded };

    std::size_t memoryBytes = 0; // budget of device memory
    int threads = 1;             // threads of compute ops, the calling one included
    Mode mode = Mode::Inline;
    double linkBytesPerSecond = 0.0; // each way; 0: as fast as the machine
    int firstCore = -1;              // pin compute threads to physical cores from this one on
};

// InvalidArgument for threads below 1 or above kMostThreads and for a negative link rate; Internal
// where the system starts no more threads.
Result<std::unique_ptr<Device>> makeCpuDevice(const CpuDeviceOptions& options);

// Inline, one thread, no throttle: the shortest way to the reference.
std::unique_ptr<Device> makeCpuDevice(std::size_t memoryBytes);

} // namespace mr
