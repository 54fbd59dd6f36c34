#include "core/device/adamw_state.h"
#include "core/device/compact_arrays.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/cpu_stream.h"
#include "core/optim/host_updater.h"
#include "support/failing_gate.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_host_updater {

namespace {

constexpr AdamwSettings kSettings{0.9, 0.999, 1e-8, 0.01};

std::unique_ptr<Device> makeDevice(CpuDeviceOptions::Mode mode)
{
    CpuDeviceOptions options;
    options.mode = mode;
    return makeCpuDevice(options).value();
}

// Two ranges of one state, the second not decayed, both longer than a tile and not multiples of
// anything.
struct TwoRanges {
    static constexpr std::size_t kFirst = HostUpdater::kTileElements + 1024 + 7;
    static constexpr std::size_t kCount = 3 * HostUpdater::kTileElements + 77;

    explicit TwoRanges(unsigned seed)
        : state(kCount, seed)
        , ranges{{{state.range(DType::BF16, 0, kFirst), true},
              {state.range(DType::BF16, kFirst, kCount - kFirst), false}}}
    {
    }
    TwoRanges(const TwoRanges&) = delete;
    TwoRanges& operator=(const TwoRanges&) = delete;

    AdamwState state;
    std::array<HostUpdateRange, 2> ranges;
};

} // namespace

class TestHostUpdater : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aGateThatAFailureOpenedIsNoSuccess()
    {
        FailureLatch latch;
        HostUpdater updater(1, latch);
        const mr::test::FailingGate gate(latch);
        const Status status = updater.waitFor(gate, 1);
        QVERIFY(!status.ok());
        QCOMPARE(status.kind(), ErrorKind::Io);
    }

    void anyNumberOfThreadsGivesTheSameBits()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Inline);
        const StepScalars scalars{1.0, 0.5F, 1};
        TwoRanges expected(1);
        for (int step = 1; step <= 2; ++step) {
            const AdamwFactors factors = adamwFactors(kSettings, 1e-3, step);
            referenceUpdate(expected.state, DType::BF16, factors, 0.5F, true, 0, TwoRanges::kFirst);
            referenceUpdate(expected.state, DType::BF16, factors, 0.5F, false, TwoRanges::kFirst,
                TwoRanges::kCount - TwoRanges::kFirst);
        }
        for (const int threads : {1, 2, 3, 4}) {
            auto gate = cpu->createGate("updates").value();
            TwoRanges ours(1);
            HostUpdateTimes times;
            FailureLatch latch;
            HostUpdater updater(threads, latch);
            for (int step = 1; step <= 2; ++step)
                updater.submit({ours.ranges, adamwFactors(kSettings, 1e-3, step), &scalars, nullptr,
                    gate.get(), static_cast<std::uint64_t>(step), &times});

            QVERIFY(updater.waitFor(*gate, 2).ok());

            QCOMPARE(updater.threads(), threads);
            QVERIFY(ours.state.equals(expected.state));
            QVERIFY(times.beginNs > 0);
            QVERIFY(times.beginNs <= times.endNs);
        }
    }

    void compactStateIsCutIntoTilesWithTheBitsOfTheWhole()
    {
        constexpr std::size_t kCount = 2 * HostUpdater::kTileElements + 1024 + 64;
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Inline);
        auto gate = cpu->createGate("updates").value();
        const StepScalars scalars{1.0, 0.5F, 1};
        const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 3);
        const mr::test::Gradients grad(kCount, 2, true);
        mr::test::CompactArrays state = mr::test::someState(kCount, 1);
        mr::test::CompactArrays expected = state;
        adamwCompactUpdate(expected.all(), grad.from(0), grad.type(), factors, 0.5F, true);
        std::array<HostUpdateRange, 1> ranges;
        ranges[0].compact = state.all();
        ranges[0].range.grad = grad.from(0);
        ranges[0].range.gradType = grad.type();
        ranges[0].range.count = kCount;
        FailureLatch latch;
        HostUpdater updater(3, latch);

        updater.submit({ranges, factors, &scalars, nullptr, gate.get(), 1, nullptr});

        QVERIFY(updater.waitFor(*gate, 1).ok());
        QVERIFY(state.equals(expected));
    }

    // The whole round: a gradient and the scalars are made on a stream, the update waits for their
    // event, another stream waits for the gate. A missing edge is a race for ThreadSanitizer.
    void jobsWaitForTheirEventAndStreamsForTheGate()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Threaded);
        auto out = cpu->createStream("copy-out").value();
        auto in = cpu->createStream("copy-in").value();
        auto gate = cpu->createGate("updates").value();
        auto arrived = cpu->createEvent().value();
        auto seen = cpu->createEvent().value();
        AdamwState state(2000, 4);
        AdamwState expected = state;
        StepScalars scalars;
        const std::array<HostUpdateRange, 1> ranges{{{state.range(DType::F32, 0, 2000), true}}};
        float read = 0.0F;
        FailureLatch latch;
        HostUpdater updater(2, latch);
        auto& closuresOut = static_cast<CpuStream&>(*out);
        auto& closuresIn = static_cast<CpuStream&>(*in);

        for (int step = 1; step <= 10; ++step) {
            const auto generation = static_cast<std::uint64_t>(step);
            const AdamwFactors factors = adamwFactors(kSettings, 1e-2, step);
            const float clip = 1.0F / static_cast<float>(step);
            QVERIFY(out->waitFor(*gate, generation - 1).ok());
            QVERIFY(closuresOut
                        .enqueue([&scalars, &state, clip, step] {
                            scalars.clipFactor = clip;
                            state.grad32[7] = static_cast<float>(step);
                        })
                        .ok());
            QVERIFY(out->record(*arrived).ok());
            updater.submit(
                {ranges, factors, &scalars, arrived.get(), gate.get(), generation, nullptr});
            QVERIFY(in->waitFor(*gate, generation).ok());
            QVERIFY(
                closuresIn
                    .enqueue([&state, &read] { read = joinHalves(state.high[7], state.low[7]); })
                    .ok());
            QVERIFY(in->record(*seen).ok());
            cpu->submit();
            expected.grad32[7] = static_cast<float>(step);
            referenceUpdate(expected, DType::F32, factors, clip, true, 0, 2000);
            QVERIFY(seen->wait().ok());
            QCOMPARE(read, joinHalves(expected.high[7], expected.low[7]));
        }
        QVERIFY(state.equals(expected));
    }

    void aStepThatIsNotFiniteChangesNothingAndOpensTheGate()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Inline);
        auto gate = cpu->createGate("updates").value();
        TwoRanges ours(5);
        const AdamwState before = ours.state;
        const StepScalars scalars{0.0, 1.0F, 0};
        FailureLatch latch;
        HostUpdater updater(2, latch);

        updater.submit({ours.ranges, adamwFactors(kSettings, 1e-3, 1), &scalars, nullptr,
            gate.get(), 1, nullptr});

        QVERIFY(updater.waitFor(*gate, 1).ok());
        QVERIFY(ours.state.equals(before));
    }

    void aFailedEventReachesTheLatchAndNoWeightIsTouched()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Threaded);
        auto stream = cpu->createStream("copy-out").value();
        auto gate = cpu->createGate("updates").value();
        auto event = cpu->createEvent().value();
        TwoRanges ours(6);
        const AdamwState before = ours.state;
        const StepScalars scalars;
        FailureLatch latch;
        {
            HostUpdater updater(2, latch);
            QVERIFY(static_cast<CpuStream&>(*stream)
                        .enqueue([] { return Status::error(ErrorKind::Internal, "lost"); })
                        .ok());
            QVERIFY(stream->record(*event).ok());
            const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 1);
            updater.submit({ours.ranges, factors, &scalars, event.get(), gate.get(), 1, nullptr});
            updater.submit({ours.ranges, factors, &scalars, nullptr, gate.get(), 2, nullptr});
            cpu->submit();

            QCOMPARE(updater.waitFor(*gate, 2).kind(), ErrorKind::DeviceLost);
        }
        QVERIFY(latch.failed());
        QVERIFY(gate->isOpen(2));
        QVERIFY(ours.state.equals(before));
    }

    void theDestructorFinishesWhatWasSubmitted()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Inline);
        auto gate = cpu->createGate("updates").value();
        TwoRanges ours(7);
        const StepScalars scalars;
        FailureLatch latch;
        {
            HostUpdater updater(2, latch);
            for (std::uint64_t g = 1; g <= 5; ++g)
                updater.submit({ours.ranges, adamwFactors(kSettings, 1e-3, 1), &scalars, nullptr,
                    gate.get(), g, nullptr});
        }
        QVERIFY(gate->isOpen(5));
    }

    void submittingAllocatesNothing()
    {
        auto cpu = makeDevice(CpuDeviceOptions::Mode::Inline);
        auto gate = cpu->createGate("updates").value();
        AdamwState state(10, 8);
        const std::array<HostUpdateRange, 1> ranges{{{state.range(DType::F32, 0, 10), true}}};
        const StepScalars scalars;
        FailureLatch latch;
        HostUpdater updater(2, latch);
        const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 1);
        updater.submit({ranges, factors, &scalars, nullptr, gate.get(), 1, nullptr});
        bool ok = updater.waitFor(*gate, 1).ok();
        const std::uint64_t before = test::heapCountsOfAllThreads().ours;

        // More than fit the queue, so submit() blocks as well.
        constexpr std::uint64_t kJobs = 3 * HostUpdater::kMaxJobs;
        for (std::uint64_t g = 2; g <= kJobs; ++g)
            updater.submit({ranges, factors, &scalars, nullptr, gate.get(), g, nullptr});
        ok = ok && updater.waitFor(*gate, kJobs).ok();

        const std::uint64_t after = test::heapCountsOfAllThreads().ours;
        QVERIFY(ok);
        QCOMPARE(after - before, std::uint64_t{0});
    }
};

MR_TEST(TestHostUpdater)

} // namespace mr::test::tst_host_updater

#include "tst_host_updater.moc"
