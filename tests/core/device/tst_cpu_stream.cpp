// Order that threaded streams promise, and order that they do not.

#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/cpu_stream.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QTest>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace mr::test::tst_cpu_stream {

namespace {

std::unique_ptr<Device> threadedDevice(std::size_t bytes = 1024)
{
    CpuDeviceOptions options;
    options.memoryBytes = bytes;
    options.mode = CpuDeviceOptions::Mode::Threaded;
    return makeCpuDevice(options).value();
}

CpuStream& closuresOf(const std::unique_ptr<Stream>& stream)
{
    return static_cast<CpuStream&>(*stream);
}

Status finish(Device& device, Stream& stream)
{
    auto event = device.createEvent().value();
    MR_TRY(stream.record(*event));
    device.submit();
    return event->wait();
}

// One stream writes, another reads without waiting. ThreadSanitizer must say so.
int forgetToWait()
{
    auto cpu = threadedDevice();
    auto in = cpu->createStream("in").value();
    auto out = cpu->createStream("out").value();
    Buffer device = cpu->allocate(64, MemoryKind::Device, "x").value();
    Buffer from = cpu->allocate(64, MemoryKind::PinnedHost, "x").value();
    Buffer to = cpu->allocate(64, MemoryKind::PinnedHost, "x").value();
    auto inDone = cpu->createEvent().value();
    auto outDone = cpu->createEvent().value();
    // One submit for both, as for a plan: a second one, after the wait for the first stream, would
    // order the streams through this thread.
    for (int step = 0; step < 20; ++step) {
        (void)in->copy(device.data(), {from.data(), 64}).ok();
        (void)out->copy(to.data(), {device.data(), 64}).ok();
        (void)in->record(*inDone).ok();
        (void)out->record(*outDone).ok();
        cpu->submit();
        (void)inDone->wait().ok();
        (void)outDone->wait().ok();
    }
    return 0;
}

} // namespace

class TestCpuStream : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void nothingRunsBeforeSubmit()
    {
        auto cpu = threadedDevice();
        auto stream = cpu->createStream("compute").value();
        std::atomic<bool> ran = false;
        auto event = cpu->createEvent().value();
        QVERIFY(closuresOf(stream).enqueue([&ran] { ran = true; }).ok());
        QVERIFY(stream->record(*event).ok());

        std::this_thread::yield();
        QVERIFY(!ran);
        QVERIFY(!event->done());
        cpu->submit();

        QVERIFY(event->wait().ok());
        QVERIFY(event->done());
        QVERIFY(ran);
    }

    void workOfOneStreamRunsInOrderHoweverMuchThereIs()
    {
        auto cpu = threadedDevice();
        auto stream = cpu->createStream("compute").value();
        constexpr int kTasks = 3 * static_cast<int>(CpuStream::kMaxTasks) + 5;
        int next = 0;
        bool inOrder = true;
        for (int i = 0; i < kTasks; ++i)
            QVERIFY(closuresOf(stream)
                        .enqueue([i, &next, &inOrder] { inOrder = inOrder && next++ == i; })
                        .ok());
        QVERIFY(finish(*cpu, *stream).ok());
        QVERIFY(inOrder);
        QCOMPARE(next, kTasks);
    }

    // Plain ints: without the wait this is a race for ThreadSanitizer.
    void aStreamSeesWhatTheEventItWaitedForFollows()
    {
        auto cpu = threadedDevice();
        auto writer = cpu->createStream("writer").value();
        auto reader = cpu->createStream("reader").value();
        auto written = cpu->createEvent().value();
        auto read = cpu->createEvent().value();
        int value = 0;
        int sum = 0;
        for (int step = 1; step <= 100; ++step) {
            QVERIFY(writer->waitFor(*read).ok());
            QVERIFY(closuresOf(writer).enqueue([step, &value] { value = step; }).ok());
            QVERIFY(writer->record(*written).ok());
            QVERIFY(reader->waitFor(*written).ok());
            QVERIFY(closuresOf(reader).enqueue([&value, &sum] { sum += value; }).ok());
            QVERIFY(reader->record(*read).ok());
            cpu->submit();
        }
        QVERIFY(read->wait().ok());
        QCOMPARE(sum, 5050);
    }

    void recordingAgainMovesThePointForLaterWaitersOnly()
    {
        auto cpu = threadedDevice();
        auto first = cpu->createStream("first").value();
        auto second = cpu->createStream("second").value();
        auto gate = cpu->createGate("late").value();
        auto event = cpu->createEvent().value();
        QVERIFY(first->record(*event).ok());
        QVERIFY(second->waitFor(*event).ok()); // the point before the gate
        QVERIFY(first->waitFor(*gate, 1).ok());
        QVERIFY(first->record(*event).ok());

        QVERIFY(finish(*cpu, *second).ok()); // so this returns
        QVERIFY(!event->done());
        gate->open(1);
        QVERIFY(event->wait().ok());
    }

    void timesAscendAlongAStream()
    {
        auto cpu = threadedDevice();
        auto stream = cpu->createStream("compute").value();
        auto a = cpu->createEvent().value();
        auto b = cpu->createEvent().value();
        QVERIFY(stream->record(*a).ok());
        QVERIFY(stream->record(*b).ok());
        cpu->submit();
        QVERIFY(b->wait().ok());
        QVERIFY(a->timeNs() > 0);
        QVERIFY(a->timeNs() <= b->timeNs());
    }

    void aStreamWaitsForAGateAndSeesWhatTheOpenerWrote()
    {
        auto cpu = threadedDevice();
        auto stream = cpu->createStream("copy").value();
        auto gate = cpu->createGate("updates").value();
        int value = 0;
        int seen = 0;
        for (int generation = 1; generation <= 50; ++generation) {
            const auto g = static_cast<std::uint64_t>(generation);
            QVERIFY(stream->waitFor(*gate, g).ok());
            QVERIFY(closuresOf(stream).enqueue([&value, &seen] { seen = value; }).ok());
            cpu->submit();
            std::jthread opener([&value, &gate, generation, g] {
                value = generation;
                gate->open(g);
            });
            QVERIFY(finish(*cpu, *stream).ok());
            QCOMPARE(seen, generation);
        }
    }

    void destroyingAStreamGivesUpWaitsThatNeverCome()
    {
        auto cpu = threadedDevice();
        auto gate = cpu->createGate("never").value();
        auto event = cpu->createEvent().value();
        bool ran = false;
        {
            auto stream = cpu->createStream("copy").value();
            QVERIFY(stream->waitFor(*gate, 1).ok());
            QVERIFY(closuresOf(stream).enqueue([&ran] { ran = true; }).ok());
            QVERIFY(stream->record(*event).ok());
        }
        QVERIFY(!ran);
        QVERIFY(event->wait().ok()); // nobody waits for ever
    }

    void enqueueingAllocatesNothingAfterWarmUp()
    {
        auto cpu = threadedDevice();
        auto in = cpu->createStream("in").value();
        auto compute = cpu->createStream("compute").value();
        auto gate = cpu->createGate("updates").value();
        auto event = cpu->createEvent().value();
        auto end = cpu->createEvent().value();
        Buffer device = cpu->allocate(64, MemoryKind::Device, "x").value();
        Buffer pinned = cpu->allocate(64, MemoryKind::PinnedHost, "x").value();
        std::uint64_t generation = 0;
        bool ok = true;
        int sum = 0;
        const auto step = [&] {
            for (int i = 0; i < 20; ++i) {
                ok = ok && in->waitFor(*gate, ++generation).ok();
                ok = ok && in->copy(device.data(), {pinned.data(), 64}).ok();
                ok = ok && in->record(*event).ok();
                ok = ok && compute->waitFor(*event).ok();
                ok = ok && closuresOf(compute).enqueue([&sum, i] { sum += i; }).ok();
            }
            ok = ok && compute->record(*end).ok();
            cpu->submit();
            gate->open(generation);
            ok = ok && end->wait().ok();
        };
        step();
        const std::uint64_t before = test::heapCountsOfAllThreads().ours;

        for (int i = 0; i < 100; ++i)
            step();

        const std::uint64_t after = test::heapCountsOfAllThreads().ours;
        QVERIFY(ok);
        QCOMPARE(after - before, std::uint64_t{0});
#ifndef __SANITIZE_THREAD__
        QVERIFY(before > 0); // the counter counts
#endif
    }

    void aForgottenWaitIsARaceForThreadSanitizer()
    {
#ifdef __SANITIZE_THREAD__
        std::array<char, 4096> self{};
        QVERIFY(readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
        const std::string command = "TSAN_OPTIONS=exitcode=66 '" + std::string(self.data()) +
                                    "' cpu_stream --forget-to-wait 2>&1";
        for (int i = 0; i < 10; ++i) {
            const int status = std::system((command + " >/dev/null").c_str());
            QCOMPARE(WEXITSTATUS(status), 66);
        }
#else
        qInfo("only in the tsan build: not checked here");
#endif
    }
};

namespace {

int otherMain(int argc, char** argv)
{
    return argc == 2 && std::strcmp(argv[1], "--forget-to-wait") == 0 ? forgetToWait() : -1;
}

} // namespace

MR_TEST_OR_MAIN(TestCpuStream, None, otherMain)

} // namespace mr::test::tst_cpu_stream

#include "tst_cpu_stream.moc"
