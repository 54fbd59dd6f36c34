// The CUDA device itself, on a card that is the PTX machine: memory, streams, events, gates,
// launches and products are those of gpu/, over the fake runtime and under the rules of a driver.
//
// Kernels run one at a time. Which stream goes on is drawn from a seed, so that a wait that is
// missing shows in other bits.
//
// Threads  As core/device/device.h. One such device at a time.
// Errors   Those of makeCudaDevice(). What the machine finds makes the device lost.

#pragma once

#include "core/device/device.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace mr::ptx {

struct PtxCard {
    std::string target = "sm_80";
    std::size_t memoryBytes = std::size_t{64} << 20;
    int multiprocessors = 1; // many: attention takes small tiles
    std::uint64_t streamSeed = 1;
    // Other threads than the engine's come so late to each call: the card is slow here, and they
    // would open each gate long before a stream comes to it.
    std::chrono::microseconds late{3000};
};

Result<std::unique_ptr<Device>> makePtxCudaDevice(const PtxCard& card);

} // namespace mr::ptx
