// A CUDA runtime on the host, as far as the CUDA device's own parts call it: memory that may only
// be reached by a copy of the right kind, streams that run when somebody looks, events, and a card
// clock of its own. Kernels do nothing unless a KernelMachine runs them.
//
// It is stricter than the real one where the documentation leaves room: a copy must lie inside one
// allocation or one registered range.
//
// Order    A launch without a stream runs before its call returns.
// Threads  One, but cudaHostRegister, which may come from several; with the driver model any.

#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace mr::test {

// Runs the kernels of the card.
//
// Threads  Calls may come from several; `Work` from the thread that is the card.
class KernelMachine
{
public:
    // Says why the kernel failed; empty if it did not.
    using Work = std::function<std::string()>;

    virtual ~KernelMachine() = default;

    // Memory that kernels may reach until onFreed(). `isWritten`: they may read it as it is.
    virtual void onAllocated(const void* data, std::size_t bytes, bool isWritten) = 0;
    virtual void onFreed(const void* data, std::size_t bytes) = 0;
    // A copy, a memset or a product wrote these bytes.
    virtual void onWritten(const void* data, std::size_t bytes) = 0;
    // Copies the arguments. The work runs once, when the stream comes to it.
    virtual Work launch(const cudaLaunchConfig_t& config, const void* kernel, void** arguments) = 0;
};

struct FakeCard {
    std::size_t memoryBytes = std::size_t{1} << 30;
    int computeMajor = 9; // of an H100, as the next two
    int computeMinor = 0;
    int multiprocessors = 132;
    std::size_t sharedBytes = 228 * 1024;     // of a multiprocessor
    std::size_t blockSharedBytes = 99 * 1024; // that a kernel may ask for
    std::size_t kernelBytes = 0;              // of the card's memory, for the code of each kernel
    bool waitsForValues = true;
    int failRegistration = -1;                    // the number of the cudaHostRegister that fails
    cudaError_t failEverything = cudaSuccess;     // a broken context answers every call so
    std::int64_t clockOffsetNs = 123'456'789'000; // the card's clock ahead of the host's
    std::uint64_t streamSeed = 0; // which stream goes on is drawn from it; 0: one as far as it can
    KernelMachine* machine = nullptr;

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

// Work of a library, which runs in its stream's turn.
cudaError_t enqueueWork(cudaStream_t stream, KernelMachine::Work work);

} // namespace mr::test
