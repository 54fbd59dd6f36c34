// Memory, streams, events, gates and clock of the CUDA device over a fake runtime: their calls of
// CUDA, not the work of a card.

#include "gpu/cuda_status.h"
#include "gpu/cuda_stream.h"
#include "gpu/launch_order.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <chrono>
#include <cstring>
#include <optional>

namespace mr::test::tst_cuda_streams {

using namespace mr::gpu;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::int64_t now()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// The parts, set up as CudaDevice does it.
struct Rig {
    explicit Rig(std::size_t budgetBytes = 64 * kMiB)
        : shared(budgetBytes)
    {
        (void)cudaStreamCreateWithFlags(&service, cudaStreamNonBlocking);
        shared.driver = loadDriverApi(0);
        opened = shared.clock.open(service);
    }

    ~Rig() { (void)cudaStreamDestroy(service); }

    Buffer take(std::size_t bytes, MemoryKind kind)
    {
        return shared.memory.allocate(bytes, kind, "test", service).value();
    }

    std::unique_ptr<CudaStream> stream(const char* name = "work")
    {
        cudaStream_t handle = nullptr;
        (void)cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
        return std::make_unique<CudaStream>(name, handle, shared);
    }

    std::unique_ptr<CudaEvent> event()
    {
        cudaEvent_t handle = nullptr;
        (void)cudaEventCreateWithFlags(&handle, cudaEventBlockingSync);
        return std::make_unique<CudaEvent>(handle, shared);
    }

    CudaGate gate(const char* name = "gate")
    {
        return CudaGate(name, shared.gateWords.take().value());
    }

    CudaShared shared;
    cudaStream_t service = nullptr;
    Status opened;
};

bool has(const Status& status, const char* words)
{
    if (status.message().find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, status.message().c_str());
    return false;
}

bool all(const Buffer& buffer, int value)
{
    for (std::size_t i = 0; i < buffer.bytes(); ++i)
        if (std::to_integer<int>(buffer.data()[i]) != value)
            return false;
    return true;
}

} // namespace

class TestCudaStreams : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { test::resetFakeCard(); }

    void settingsThatSerialiseLaunchesAreNamed()
    {
        const auto with = [](const char* variable, const char* value) {
            qputenv(variable, value);
            const std::string said = serialisedLaunches();
            qunsetenv(variable);
            return said;
        };
        QVERIFY(serialisedLaunches().empty());
        QVERIFY(with("CUDA_LAUNCH_BLOCKING", "0").empty());
        QVERIFY(with("CUDA_DEVICE_MAX_CONNECTIONS", "8").empty());
        QVERIFY(with("CUDA_LAUNCH_BLOCKING", "1").starts_with("CUDA_LAUNCH_BLOCKING is set"));
        QVERIFY(with("CUDA_DEVICE_MAX_CONNECTIONS", "32").empty());
        QVERIFY(with("CUDA_DEVICE_MAX_CONNECTIONS", "1")
                    .starts_with("CUDA_DEVICE_MAX_CONNECTIONS=1 is set"));
        QVERIFY(with("CUDA_DEVICE_MAX_CONNECTIONS", "2")
                    .starts_with("CUDA_DEVICE_MAX_CONNECTIONS=2 is set"));
    }

    void onlyErrorsThatTheCardDoesNotSurviveLoseIt()
    {
        for (const cudaError_t code : {cudaErrorIllegalAddress, cudaErrorLaunchFailure,
                 cudaErrorECCUncorrectable, cudaErrorAssert, cudaErrorUnknown})
            QVERIFY(toStatus(code, "call").kind() == ErrorKind::DeviceLost);
        for (const cudaError_t code :
            {cudaErrorLaunchOutOfResources, cudaErrorInvalidDeviceFunction,
                cudaErrorNoKernelImageForDevice, cudaErrorNotSupported, cudaErrorInvalidValue})
            QVERIFY(toStatus(code, "call").kind() == ErrorKind::Internal);
        QVERIFY(toStatus(cudaErrorMemoryAllocation, "call").kind() == ErrorKind::OutOfMemory);
        CudaFailure failure;
        failure.remember(toStatus(cudaErrorNotSupported, "launch"));
        QVERIFY(!failure.lost());
        failure.remember(toStatus(cudaErrorIllegalAddress, "launch"));
        QVERIFY(failure.lost());
        QVERIFY(has(failure.status(), "launch"));
    }

    void memoryIsZeroedAndComesOffTheBudget()
    {
        Rig rig(1000);
        QVERIFY(rig.opened.ok());
        {
            const Buffer buffer = rig.take(600, MemoryKind::Device);
            QVERIFY(all(buffer, 0));
            const auto more =
                rig.shared.memory.allocate(500, MemoryKind::Device, "weights", rig.service);
            QVERIFY(more.status().kind() == ErrorKind::OutOfMemory);
            QVERIFY(has(more.status(), "500 B of weights; 400 B of 1000 B are left"));
            const Buffer pinned = rig.take(5000, MemoryKind::PinnedHost);
            QVERIFY(all(pinned, 0));
            QCOMPARE(rig.shared.memory.usage().deviceBytes, std::size_t{600});
            QCOMPARE(rig.shared.memory.usage().pinnedBytes, std::size_t{5000});
        }
        QCOMPARE(rig.shared.memory.usage().deviceBytes, std::size_t{0});
        QCOMPARE(rig.shared.memory.usage().devicePeakBytes, std::size_t{600});
        QCOMPARE(rig.shared.memory.usage().pinnedBytes, std::size_t{0});
        QCOMPARE(rig.shared.memory.usage().allocations, std::size_t{2});
        QCOMPARE(fakeCard().allocations, std::size_t{0});
        QCOMPARE(fakeCard().registrations, std::size_t{0});
    }

    void memoryThatWasUsedBeforeIsZeroed()
    {
        Rig rig(1000);
        QVERIFY(rig.opened.ok());
        for (const MemoryKind kind : {MemoryKind::Device, MemoryKind::PinnedHost})
            for (int use = 0; use < 3; ++use) {
                const Buffer buffer = rig.take(900, kind);
                QVERIFY(all(buffer, 0));
                std::fill_n(buffer.data(), buffer.bytes(), std::byte{0xFF});
            }
    }

    void aFullCardIsNoLostDevice()
    {
        Rig rig(64 * kMiB);
        fakeCard().memoryBytes = kMiB;
        const auto refused =
            rig.shared.memory.allocate(2 * kMiB, MemoryKind::Device, "slots", rig.service);
        QVERIFY(refused.status().kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(refused.status(), "other programs may hold the rest"));
        QVERIFY(rig.take(1000, MemoryKind::Device).data() != nullptr);
    }

    void nothingHasAnAddressToo()
    {
        Rig rig;
        QVERIFY(rig.take(0, MemoryKind::Device).data() != nullptr);
        QVERIFY(rig.take(0, MemoryKind::PinnedHost).data() != nullptr);
    }

    void aRegistrationThatFailsLeavesNothingBehind()
    {
        Rig rig;
        fakeCard().failRegistration = 0;
        const auto refused =
            rig.shared.memory.allocate(600 * kMiB, MemoryKind::PinnedHost, "state", rig.service);
        fakeCard().failRegistration = -1;
        QVERIFY(refused.status().kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(refused.status(), "600.0 MiB of page-locked memory for state"));
        QCOMPARE(fakeCard().registrations, std::size_t{0});
        QCOMPARE(rig.shared.memory.usage().allocations, std::size_t{0});
    }

    void aCopyFromTheMiddleOfALargeMappingIsOneCommand()
    {
        Rig rig;
        const std::size_t bytes = 600 * kMiB + 12345;
        const Buffer host = rig.take(bytes, MemoryKind::PinnedHost);
        const Buffer device = rig.take(8 * kMiB, MemoryKind::Device);
        const auto stream = rig.stream();
        const std::size_t middle = bytes / 2 - 4 * kMiB;
        host.data()[middle] = std::byte{1};
        host.data()[middle + 8 * kMiB - 1] = std::byte{2};

        QVERIFY(stream->copy(device.data(), {host.data() + middle, 8 * kMiB}).ok());
        QVERIFY(stream->copy(host.data(), {device.data(), 8 * kMiB}).ok());
        QVERIFY(cudaStreamSynchronize(stream->handle()) == cudaSuccess);

        QCOMPARE(std::to_integer<int>(host.data()[0]), 1);
        QCOMPARE(std::to_integer<int>(host.data()[8 * kMiB - 1]), 2);
        QCOMPARE(fakeCard().copies, std::size_t{2});
        QCOMPARE(fakeCard().registrations, std::size_t{1});
    }

    void copiesWorkBetweenAllKindsOfMemory()
    {
        Rig rig;
        const Buffer a = rig.take(100, MemoryKind::PinnedHost);
        const Buffer b = rig.take(100, MemoryKind::PinnedHost);
        const Buffer c = rig.take(100, MemoryKind::Device);
        const Buffer d = rig.take(100, MemoryKind::Device);
        const auto stream = rig.stream();
        std::memset(a.data(), 7, 100);

        QVERIFY(stream->copy(b.data(), {a.data(), 100}).ok());
        QVERIFY(all(b, 0)); // not before the stream comes to it
        QVERIFY(stream->copy(c.data(), {b.data(), 100}).ok());
        QVERIFY(stream->copy(d.data(), {c.data(), 100}).ok());
        QVERIFY(stream->copy(a.data() + 50, {d.data(), 50}).ok());
        QVERIFY(cudaStreamSynchronize(stream->handle()) == cudaSuccess);

        QVERIFY(all(b, 7) && all(c, 7) && all(d, 7));
    }

    void copiesOfOtherMemoryAreRefused()
    {
        Rig rig;
        const Buffer device = rig.take(100, MemoryKind::Device);
        const auto stream = rig.stream("uploads");
        std::array<std::byte, 100> own{};

        const Status source = stream->copy(device.data(), own);
        const Status target = stream->copy(own.data(), {device.data(), 100});
        const Status past = stream->copy(device.data() + 1, {device.data(), 100});

        QVERIFY(source.kind() == ErrorKind::InvalidArgument);
        QVERIFY(has(source, "cuda stream uploads: copy of 100 bytes: the source is not inside"));
        QVERIFY(has(target, "the target is not inside"));
        QVERIFY(has(past, "the target is not inside"));
        QVERIFY(stream->copy(own.data(), {}).ok());
    }

    void aStreamWaitsForAnEventOfAnother()
    {
        Rig rig;
        const Buffer from = rig.take(8, MemoryKind::PinnedHost);
        const Buffer to = rig.take(8, MemoryKind::Device);
        const auto first = rig.stream();
        const auto second = rig.stream();
        const auto copied = rig.event();
        const auto done = rig.event();
        CudaGate gate = rig.gate();

        QVERIFY(done->done()); // never recorded
        QCOMPARE(done->timeNs(), std::int64_t{0});
        QVERIFY(first->waitFor(gate, 1).ok());
        QVERIFY(first->copy(to.data(), {from.data(), 8}).ok());
        QVERIFY(first->record(*copied).ok());
        QVERIFY(second->waitFor(*copied).ok());
        QVERIFY(second->record(*done).ok());
        QVERIFY(!done->done());
        from.data()[0] = std::byte{5}; // host work that the gate stands for
        gate.open(1);

        QVERIFY(done->wait().ok());
        QCOMPARE(std::to_integer<int>(to.data()[0]), 5);
    }

    void gatesOpenUpwardsAndForGood()
    {
        Rig rig;
        CudaGate gate = rig.gate();
        QVERIFY(gate.isOpen(0) && !gate.isOpen(1));
        gate.open(5);
        gate.open(3);
        QVERIFY(gate.isOpen(5) && !gate.isOpen(6));
        gate.open(Gate::kForGood);
        gate.open(7);
        QVERIFY(gate.isOpen(Gate::kForGood));
        const auto stream = rig.stream();
        QVERIFY(stream->waitFor(gate, 1'000'000).ok());
        QVERIFY(stream->handle() != nullptr);
    }

    void everyGateHasAWordOfItsOwn()
    {
        Rig rig;
        std::vector<std::unique_ptr<CudaGate>> gates;
        for (int i = 0; i < 200; ++i) // more than a page of them
            gates.push_back(std::make_unique<CudaGate>("g", rig.shared.gateWords.take().value()));
        for (std::size_t i = 0; i < gates.size(); ++i) {
            QVERIFY(!gates[i]->isOpen(1));
            gates[i]->open(i + 1);
        }
        for (std::size_t i = 0; i < gates.size(); ++i)
            QVERIFY(gates[i]->isOpen(i + 1) && !gates[i]->isOpen(i + 2));
    }

    void withoutStreamMemoryOperationsAClosedGateIsRefused()
    {
        fakeCard().waitsForValues = false;
        Rig rig;
        CudaGate gate = rig.gate("update 3");
        const auto stream = rig.stream("compute");
        const Status closed = stream->waitFor(gate, 2);
        gate.open(2);

        QVERIFY(!rig.shared.driver.waitsForValues());
        QVERIFY(closed.kind() == ErrorKind::Internal);
        QVERIFY(has(closed, "cuda stream compute: gate update 3 is not open for generation 2"));
        QVERIFY(stream->waitFor(gate, 2).ok());
    }

    void aStreamThatEndsOpensWhatItWaitsFor()
    {
        Rig rig;
        CudaGate gate = rig.gate();
        const auto done = rig.event();
        {
            const auto stream = rig.stream();
            QVERIFY(stream->waitFor(gate, 4).ok());
            QVERIFY(stream->record(*done).ok());
            QVERIFY(!done->done());
        }
        QVERIFY(done->done());
        QVERIFY(!rig.shared.failure.lost());
    }

    void theFirstFailureStays()
    {
        Rig rig;
        const auto stream = rig.stream();
        const auto event = rig.event();
        QVERIFY(stream->record(*event).ok());
        fakeCard().failEverything = cudaErrorIllegalAddress;
        const Status first = event->wait();
        fakeCard().failEverything = cudaErrorLaunchFailure;

        QVERIFY(first.kind() == ErrorKind::DeviceLost);
        QVERIFY(has(first, "work on the card"));
        QCOMPARE(event->wait().message(), first.message());
        QCOMPARE(stream->record(*event).message(), first.message());
        QCOMPARE(stream->waitFor(*event).message(), first.message());
        QCOMPARE(
            rig.shared.memory.allocate(1, MemoryKind::Device, "x", rig.service).status().message(),
            first.message());
        QVERIFY(event->done()); // nobody waits for ever
        fakeCard().failEverything = cudaSuccess;
    }

    // Even if Event::done() is the first to see it.
    void aFailureSeenByAQueryIsToldByTheNextWait()
    {
        Rig rig;
        const auto event = rig.event();
        fakeCard().failEverything = cudaErrorIllegalAddress;
        QVERIFY(event->done());
        fakeCard().failEverything = cudaSuccess;
        QVERIFY(event->wait().kind() == ErrorKind::DeviceLost);
    }

    // The card's clock is two minutes ahead here. Float milliseconds are good for a microsecond at
    // these distances; the first base is uncertain by the reading around it, well below 50 us.
    void eventTimesAreOnTheHostsClock()
    {
        Rig rig;
        const auto stream = rig.stream();
        const auto event = rig.event();
        const std::int64_t before = now();
        QVERIFY(stream->record(*event).ok());
        QVERIFY(event->wait().ok());
        const std::int64_t after = now();

        QVERIFY(event->timeNs() >= before - 100'000);
        QVERIFY(event->timeNs() <= after + 100'000);
    }

    void cleanup()
    {
        QCOMPARE(fakeCard().allocations, std::size_t{0});
        QCOMPARE(fakeCard().registrations, std::size_t{0});
        QCOMPARE(fakeCard().streams, std::size_t{0});
        QCOMPARE(fakeCard().events, std::size_t{0});
    }
};

MR_TEST_WITH_APP(TestCudaStreams)

} // namespace mr::test::tst_cuda_streams

#include "tst_cuda_streams.moc"
