// A CUDA runtime on the host, as far as the CUDA device's own parts call it: memory that may only
// be reached by a copy of the right kind, streams that run when somebody looks, events, and a card
// clock of its own.
//
// It is stricter than the real one where the documentation leaves room: a copy must lie inside one
// allocation or one registered range.
//
// Threads  One, but cudaHostRegister, which may come from several; with the driver model any.

#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace mr::test {

struct FakeCard {
    std::size_t memoryBytes = std::size_t{1} << 30;
    int computeMajor = 9;
    std::size_t kernelBytes = 0; // of the card's memory, for the code of each kernel
    bool waitsForValues = true;
    int failRegistration = -1;                    // the number of the cudaHostRegister that fails
    cudaError_t failEverything = cudaSuccess;     // a broken context answers every call so
    std::int64_t clockOffsetNs = 123'456'789'000; // the card's clock ahead of the host's

    // Live objects; a test must leave none behind.
    std::size_t allocations = 0;
    std::size_t registrations = 0;
    std::size_t streams = 0;
    std::size_t events = 0;

    std::size_t copies = 0;

    // The card as a device finds it.
    cudaError_t countAnswer = cudaSuccess;
    int driverVersion = 13000;
    std::size_t kernelsLoaded = 0;
    std::size_t kernelsLoadedLate = 0; // while there was a stream, which could wait at a gate
};

// Fresh; forgets everything.
void resetFakeCard();
FakeCard& fakeCard();

// From here on a thread is the card, and calls follow the rules of driver_model.h. Until the next
// resetFakeCard(). Other threads come `late` to each call.
void startDriverModel(
    std::chrono::microseconds late = std::chrono::microseconds(0), std::size_t queueEntries = 1024);
bool isDeadlocked();

} // namespace mr::test
