#include "gpu/runtime/fake_card.h"

#include <algorithm>
#include <utility>

namespace mr::test {
namespace {

// Runs the first command of a stream, if its time has come.
bool runFront(CUstream_st& stream, std::unique_lock<std::mutex>& lock)
{
    CUstream_st::Command& command = stream.work.front(); // which later ones do not move
    if (command.run) {
        if (!command.run())
            return false;
    } else {
        CardState& all = cardState();
        all.isRunning = true;
        lock.unlock();
        std::string failure = command.work();
        lock.lock();
        all.isRunning = false;
        all.hasRun.notify_all();
        if (all.failure.empty())
            all.failure = std::move(failure);
    }
    stream.work.pop_front();
    return true;
}

cudaError_t runAtOnce(const CUstream_st::Command& command)
{
    if (command.run)
        return command.run() ? cudaSuccess : cudaErrorLaunchTimeout;
    return command.work().empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

// Runs one command that is ready, if there is one.
bool runOne(std::unique_lock<std::mutex>& lock)
{
    CardState& all = cardState();
    if (all.card.streamSeed != 0)
        std::ranges::shuffle(all.streams, all.random);
    for (cudaStream_t stream : all.streams)
        if (!stream->work.empty() && runFront(*stream, lock))
            return true;
    return false;
}

} // namespace

CardState& cardState()
{
    static CardState all;
    return all;
}

void pump()
{
    if (cardState().driver)
        return;
    std::unique_lock lock(cardState().cardMutex);
    while (runOne(lock)) {
    }
}

Call::Call()
    : m_driver(cardState().driver.get())
{
    if (m_driver)
        m_driver->lock();
}

Call::~Call()
{
    if (m_driver)
        m_driver->unlock();
}

bool Call::waitUntil(const std::function<bool()>& isReady) const
{
    return !m_driver || m_driver->waitWithLock(isReady);
}

bool isBroken(cudaError_t& code)
{
    CardState& all = cardState();
    const std::lock_guard lock(all.cardMutex);
    code = !all.failure.empty()                       ? cudaErrorLaunchFailure
           : all.driver && all.driver->isDeadlocked() ? cudaErrorLaunchTimeout
                                                      : all.card.failEverything;
    return code != cudaSuccess;
}

cudaError_t enqueue(const Call& call, cudaStream_t stream, CUstream_st::Command command)
{
    CardState& all = cardState();
    if (!stream)
        return runAtOnce(command);
    if (!call.waitUntil([&] { return stream->work.size() < all.queueEntries; }))
        return cudaErrorLaunchTimeout;
    const std::lock_guard lock(all.cardMutex);
    stream->work.push_back(std::move(command));
    return cudaSuccess;
}

void awaitKernel(std::unique_lock<std::mutex>& lock)
{
    cardState().hasRun.wait(lock, [] { return !cardState().isRunning; });
}

void tellAllocated(const void* data, std::size_t bytes, bool isWritten)
{
    if (cardState().card.machine)
        cardState().card.machine->onAllocated(data, bytes, isWritten);
}

void tellFreed(const void* data, std::size_t bytes)
{
    if (cardState().card.machine)
        cardState().card.machine->onFreed(data, bytes);
}

void tellWritten(const void* data, std::size_t bytes)
{
    if (cardState().card.machine)
        cardState().card.machine->onWritten(data, bytes);
}

void resetFakeCard()
{
    CardState& all = cardState();
    all.driver.reset();
    all.card = {};
    all.registered.clear();
    all.device.clear();
    all.hostBlocks.clear();
    all.deviceBytes = 0;
    all.registrationsTried = 0;
    all.sharedAsked.clear();
    all.streams.clear();
    all.kernels.clear();
    all.failure.clear();
}

FakeCard& fakeCard()
{
    return cardState().card;
}

void startDriverModel(std::chrono::microseconds late, std::size_t queueEntries)
{
    CardState& all = cardState();
    all.queueEntries = queueEntries;
    all.random.seed(all.card.streamSeed);
    all.driver = std::make_unique<DriverModel>(all.cardMutex, runOne, late);
}

bool isDeadlocked()
{
    return cardState().driver && cardState().driver->isDeadlocked();
}

cudaError_t enqueueWork(cudaStream_t stream, KernelMachine::Work work)
{
    MR_ENTER;
    return enqueue(call, stream, {{}, std::move(work)});
}

} // namespace mr::test
