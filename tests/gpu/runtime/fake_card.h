// The state behind the fake runtime, and what its calls have in common.
//
// Threads  As fake_cudart.h.

#pragma once

#include "gpu/runtime/driver_model.h"
#include "gpu/runtime/fake_cudart.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

struct CUstream_st {
    struct Command {
        std::function<bool()> run;          // under the lock of the card; false: not yet
        mr::test::KernelMachine::Work work; // without it; either this or the other
    };
    std::deque<Command> work;
};

struct CUevent_st {
    std::uint64_t recorded = 0;
    std::uint64_t passed = 0;
    std::int64_t cardNs = 0;
};

namespace mr::test {

using Ranges = std::map<const std::byte*, std::size_t>; // bytes, by where they begin

struct CardState {
    FakeCard card;
    std::mutex mutex; // guards registered
    Ranges registered;
    Ranges device;
    Ranges hostBlocks; // of cudaHostAlloc
    std::size_t deviceBytes = 0;
    int registrationsTried = 0;
    std::map<const void*, std::size_t> sharedAsked; // by kernel, beyond the default

    std::mutex cardMutex; // guards all that follows
    std::vector<cudaStream_t> streams;
    std::mt19937_64 random;        // of the order of streams
    std::set<const void*> kernels; // that are on the card
    bool isRunning = false;        // a kernel, without the lock
    std::condition_variable hasRun;
    std::string failure; // why the context is broken; empty: it is not
    std::size_t queueEntries = 0;
    std::unique_ptr<DriverModel> driver; // null: commands run when somebody looks
};

CardState& cardState();

// Without a thread that is the card, runs commands until nothing moves.
void pump();

// One call of the runtime: holds the lock of the context.
class Call
{
public:
    Call();
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool waitUntil(const std::function<bool()>& isReady) const;

private:
    DriverModel* const m_driver;
};

bool isBroken(cudaError_t& code);
// Without a stream the command runs at once.
cudaError_t enqueue(const Call& call, cudaStream_t stream, CUstream_st::Command command);

// Blocks while a kernel runs, which may use what the caller is about to take away.
void awaitKernel(std::unique_lock<std::mutex>& lock);

// Tells the machine, if there is one.
void tellAllocated(const void* data, std::size_t bytes, bool isWritten);
void tellFreed(const void* data, std::size_t bytes);
void tellWritten(const void* data, std::size_t bytes);

} // namespace mr::test

// Begins a call that a broken context refuses.
#define MR_ENTER                                                                                   \
    const mr::test::Call call;                                                                     \
    if (cudaError_t code = cudaSuccess; mr::test::isBroken(code))                                  \
    return code
