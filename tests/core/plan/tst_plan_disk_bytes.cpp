// Optimizer state on disk: its bytes on disk and host, exact, and the bytes a step moves.

#include "core/plan/cost_model.h"
#include "support/test_room.h"
#include "tests/core/plan/disk_bench.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace mr::test::tst_plan_disk_bytes {

namespace {

using Options = std::map<std::string, std::string>;

} // namespace

class TestPlanDiskBytes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aDiskThatIsTooSmallBreaksThePlan()
    {
        Bench bench = diskBench();
        bench.build();
        const std::size_t needed = memoryOf(bench).bytes(Tier::Disk);
        QCOMPARE(bench.plan().peakBytes[static_cast<std::size_t>(Tier::Disk)], needed);
        bench.budget.diskBytes = needed;
        HOLDS(bench);
        bench.budget.diskBytes = needed - 1;
        BREAKS(bench, "disk: " + std::to_string(needed) + " bytes planned");
    }

    void diskAndSlotsToTheByte_data()
    {
        QTest::addColumn<int>("type"); // 0 bf16, 1 fp32, 2 bf16 with compact state
        QTest::newRow("bf16") << 0;
        QTest::newRow("fp32") << 1;
        QTest::newRow("compact") << 2;
    }

    void diskAndSlotsToTheByte()
    {
        QFETCH(const int, type);
        Options options = {{"late", "0"}, {"tile", "16KiB"}};
        if (type == 2)
            options["state"] = "compact";
        Bench bench = diskBench(options);
        bench.precision = type == 1 ? Precision::F32 : Precision::BF16;

        const MemoryPlan plan = memoryOf(bench);

        // Tiles of 2048, 2048 and 904 elements: 10, 8 or 3.25 bytes each, in whole pages.
        const std::size_t pages[3][3] = {{5, 5, 3}, {4, 4, 2}, {2, 2, 1}};
        const std::size_t* of = pages[type];
        for (std::int32_t g = 0; g < 4; ++g) {
            const auto item = std::ranges::find_if(plan.items, [&](const MemoryItem& each) {
                return each.use == MemoryUse::DiskState && each.group == GroupId{g};
            });
            QVERIFY(item != plan.items.end());
            QCOMPARE(item->tier, Tier::Disk);
            QCOMPARE(item->bytes, 4096 * (of[0] + of[1] + of[2]));
        }
        QCOMPARE(plan.bytes(Tier::Disk), 4096 * (1 + 4 * (of[0] + of[1] + of[2])));
        QCOMPARE(plan.bytes(Tier::Disk, MemoryUse::DiskState), plan.bytes(Tier::Disk));
        QCOMPARE(plan.diskSlotBytes, 4096 * of[0]);
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::DiskSlots), 4096 * (4 * of[0] + 1));
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::LowPlane),
            std::size_t{type == 1 ? 2U : 0U} * 4 * 5000);
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::HighPlane), std::size_t{2} * 4 * 5000);
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::FirstMoments), std::size_t{0});
        QCOMPARE(plan.bytes(Tier::PinnedHost, MemoryUse::SecondMoments), std::size_t{0});
    }

    // State on disk takes no host memory except for the slots.
    void theHostIsSparedTenBytesAnElement()
    {
        const auto hostBytes = [](const Options& options) {
            return memoryOf(diskBench(options)).bytes(Tier::PinnedHost);
        };
        const std::size_t slotBytes = (4 * 3 + 1) * 4096; // for 1024 elements
        QCOMPARE(hostBytes({{"disk-share", "0"}}), hostBytes({}) - slotBytes + 10 * 4 * 5000);
        // 0.6 of 5000 are 3000; they begin at the cut behind 2000.
        QCOMPARE(hostBytes({{"disk-share", "0"}}),
            hostBytes({{"disk-share", "0.6"}}) - slotBytes + 10 * 4 * (5000 - 2 * 1024));
    }

    void slotsDoNotGrowWithDepth()
    {
        Bench shallow = diskBench();
        Bench deep = diskBench();
        shallow.shape = smallShape(2);
        deep.shape = smallShape(40);
        const MemoryPlan few = memoryOf(shallow);
        const MemoryPlan many = memoryOf(deep);

        QVERIFY(few.bytes(Tier::PinnedHost, MemoryUse::DiskSlots) > 0);
        QCOMPARE(many.bytes(Tier::PinnedHost, MemoryUse::DiskSlots),
            few.bytes(Tier::PinnedHost, MemoryUse::DiskSlots));
        QCOMPARE(many.disk.tiles.size(), few.disk.tiles.size() / 4 * 42);
        // Each block more takes host memory for its high half and its gradient.
        QCOMPARE(
            many.bytes(Tier::PinnedHost), few.bytes(Tier::PinnedHost) + 38 * 4 * kGroupElements);
    }

    void aStepReadsAndWritesWhatIsOnDisk_data()
    {
        QTest::addColumn<QString>("late");
        QTest::addColumn<QString>("share");
        for (const char* late : {"0", "0.25", "1"})
            for (const char* share : {"0.3", "1"})
                QTest::addRow("%s late, %s on disk", late, share)
                    << QString::fromUtf8(late) << QString::fromUtf8(share);
    }

    void aStepReadsAndWritesWhatIsOnDisk()
    {
        QFETCH(const QString, late);
        QFETCH(const QString, share);
        for (const Precision precision : {Precision::BF16, Precision::F32}) {
            Bench bench =
                diskBench({{"late", late.toStdString()}, {"disk-share", share.toStdString()}});
            bench.precision = precision;
            bench.build(); // the first leaves late parts, the second makes them
            const DiskTraffic first = diskTraffic(bench.plan(), bench.shape, precision);
            bench.in = bench.built.out;
            bench.build();
            const DiskTraffic second = diskTraffic(bench.plan(), bench.shape, precision);
            bench.in = bench.built.out;
            flush(bench);
            const DiskTraffic last = diskTraffic(bench.plan(), bench.shape, precision);

            const auto onDisk =
                static_cast<std::int64_t>(memoryOf(bench).bytes(Tier::Disk) - kDiskAlign);
            QCOMPARE(second.readBytes, onDisk);
            QCOMPARE(second.writtenBytes, onDisk);
            QCOMPARE(first.readBytes + last.readBytes, onDisk);
            QCOMPARE(first.writtenBytes + last.writtenBytes, onDisk);
        }
    }

    // With nothing late a step reads 16 and writes 14 bytes an element, of state 10 and 10. Weights
    // and gradients stay in host memory here.
    void largeTilesMoveTenBytesAnElement()
    {
        Bench bench = diskBench({{"late", "0"}, {"tile", "128MiB"}});
        for (GroupShape& group : bench.shape.groups)
            group.elements = 100'000'000;
        bench.build();

        const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);

        const double state = 10.0 * 4 * 100e6;
        QVERIFY(static_cast<double>(traffic.readBytes) >= state);
        QVERIFY(static_cast<double>(traffic.readBytes) <= 1.001 * state);
        QCOMPARE(traffic.writtenBytes, traffic.readBytes);
    }

    // decisions.md 14: with exact clipping (16 - 2 alpha) P are read and 12 P written where weights
    // are on disk, and 2 P more each where finished gradients are.
    void largeTilesOfAllMoveWhatTheLiteratureSays_data()
    {
        QTest::addColumn<double>("late");
        QTest::addColumn<bool>("gradients");
        for (const double late : {0.0, 0.25, 0.5})
            for (const bool gradients : {false, true})
                QTest::addRow("%g late, %s", late, gradients ? "gradients, too" : "weights")
                    << late << gradients;
    }

    void largeTilesOfAllMoveWhatTheLiteratureSays()
    {
        QFETCH(const double, late);
        QFETCH(const bool, gradients);
        Bench bench =
            diskBench({{"late", std::to_string(late)}, {"tile", "16MiB"}, {"weights-on-disk", "1"},
                {"gradients-on-disk", gradients ? "1" : "0"}, {"buffers", "1"}});
        for (GroupShape& group : bench.shape.groups)
            group.elements = 100'000'000;
        bench.build();
        bench.in = bench.built.out;
        bench.build(); // the second makes late parts, too

        const DiskTraffic traffic = diskTraffic(bench.plan(), bench.shape, Precision::BF16);

        // Two groups stream. Two stay: their weights are read with their update only.
        const double streamed = 200e6;
        const double all = 400e6;
        const double more = gradients ? 2.0 * all : 0.0;
        // The last block of forward is the first of backward and still there where nothing is late.
        const double kept = 2.0 * 100e6;
        const double reads = 12.0 * all + (4.0 - 2.0 * late) * streamed + more - kept;
        const double writes = 12.0 * all + more;
        QVERIFY(std::abs(static_cast<double>(traffic.readBytes) / reads - 1.0) < 0.002);
        QVERIFY(std::abs(static_cast<double>(traffic.writtenBytes) / writes - 1.0) < 0.002);
    }

    // Neither the stages of the host nor its other memory for state grow with the model.
    void withAllOnDiskTheHostHoldsPlacesOnly()
    {
        const Options all = {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}};
        Bench shallow = diskBench(all);
        Bench deep = diskBench(all);
        shallow.shape = smallShape(2);
        deep.shape = smallShape(40);
        const MemoryPlan few = memoryOf(shallow);
        const MemoryPlan many = memoryOf(deep);

        for (const MemoryUse use : {MemoryUse::HighPlane, MemoryUse::LowPlane,
                 MemoryUse::FirstMoments, MemoryUse::SecondMoments, MemoryUse::Gradients})
            QCOMPARE(many.bytes(Tier::PinnedHost, use), std::size_t{0});
        QCOMPARE(many.bytes(Tier::PinnedHost), few.bytes(Tier::PinnedHost));
        QVERIFY(many.bytes(Tier::Disk, MemoryUse::DiskWeights) > 0);
        QVERIFY(many.bytes(Tier::Disk, MemoryUse::DiskGradients) > 0);
        // A stage has the bytes of the largest tile: 10, 2 and 2 an element for state, weights and
        // gradients, in pages.
        QCOMPARE(many.diskStage(0), std::size_t{0});
        QCOMPARE(many.diskStage(1), many.diskSlotBytes);
        QCOMPARE(many.diskStage(many.disk.stages()),
            4 * (many.diskSlotBytes + many.weightStageBytes + many.gradientStageBytes));
        QCOMPARE(many.weightStageBytes, std::size_t{4096});
        QCOMPARE(many.diskSlotBytes, std::size_t{3 + 1 + 1} * 4096);
    }

    // A disk task of any kind moves whole pages of its tile.
    void bytesOfOneTask()
    {
        Bench bench = diskBench({{"late", "0"}, {"tile", "16KiB"}});
        bench.build();
        const Task& read = bench.find(TaskKind::ReadFromDisk, 2);
        QCOMPARE(read.elementCount, std::int64_t{904});
        QCOMPARE(
            diskBytes(bench.plan(), read, bench.shape, Precision::BF16), std::int64_t{3 * 4096});
        QCOMPARE(
            diskBytes(bench.plan(), read, bench.shape, Precision::F32), std::int64_t{2 * 4096});
    }

    // An evaluation only reads. A step's updates read and write at once, after the first reads.
    void aDiskThatMovesOneWayIsFaster()
    {
        Bench bench = diskBench({{"late", "0"}, {"weights-on-disk", "1"}, {"buffers", "1"}});
        Feedback known = rates(1e9, 1e9, 1e9, 1e9, 1e9);
        known.diskReadBytesPerSecond = known.diskWriteBytesPerSecond = 1e6;
        StepForecaster forecaster;
        const auto seconds = [&](const StepPlan& plan) {
            return forecaster
                .forecast(plan, {bench.shape, known, Precision::BF16, Recompute::Block})
                .stepSeconds;
        };
        auto evaluation =
            buildEvaluation(specOf(6, 1), bench.in, bench.shape, bench.budget, {}, bench.policy);
        QVERIFY(evaluation.ok());
        bench.policy = policyWith("ssd-vertical", {{"tile", "2KiB"}, {"late", "0"}});
        bench.build();
        const double reading = seconds(evaluation.value());
        const double updating = seconds(bench.plan());

        known.diskReadAloneBytesPerSecond = 4e6;
        known.diskWriteAloneBytesPerSecond = 2e6;

        QVERIFY(std::abs(seconds(evaluation.value()) / reading - 0.25) < 0.01);
        QVERIFY(seconds(bench.plan()) < 0.95 * updating);
        QVERIFY(seconds(bench.plan()) > 0.75 * updating); // 16 of 20 tiles
        known.diskReadAloneBytesPerSecond = 1e5;          // nonsense: alone is no slower
        QVERIFY(std::abs(seconds(evaluation.value()) / reading - 1.0) < 0.01);
    }

    void aForecastKnowsTheRatesOfTheDisk()
    {
        Bench bench = diskBench({{"late", "0"}});
        bench.build();
        Feedback known = rates(1e9, 1e9, 1e9, 1e9, 1e9);
        StepForecaster forecaster;
        const auto forecast = [&] {
            return forecaster.forecast(
                bench.plan(), {bench.shape, known, Precision::BF16, Recompute::Block});
        };
        QVERIFY(!forecast().known);
        known.diskReadBytesPerSecond = 1e6;
        QVERIFY(!forecast().known);
        known.diskWriteBytesPerSecond = 1e12;
        const StepForecast byReads = forecast();
        QVERIFY(byReads.known);
        const auto seconds =
            static_cast<double>(diskTraffic(bench.plan(), bench.shape, Precision::BF16).readBytes) /
            1e6;
        QVERIFY(byReads.stepSeconds >= seconds);
        QVERIFY(byReads.stepSeconds < 1.01 * seconds);
        QVERIFY(byReads.stallSeconds[static_cast<std::size_t>(StallCause::Disk)] > 0.9 * seconds);

        // Weights are read beside state, and no faster for that.
        bench.policy =
            policyWith("ssd-vertical", {{"tile", "2KiB"}, {"late", "0"}, {"weights-on-disk", "1"}});
        bench.build();
        const StepForecast withWeights = forecast();
        const double more =
            static_cast<double>(diskTraffic(bench.plan(), bench.shape, Precision::BF16).readBytes) /
            1e6;
        QVERIFY(more > 1.2 * seconds);
        QVERIFY(withWeights.stepSeconds >= more);
        QVERIFY(withWeights.stepSeconds < 1.01 * more);
        double explained = withWeights.computeSeconds;
        for (const double stall : withWeights.stallSeconds)
            explained += stall;
        QVERIFY(std::abs(explained - withWeights.stepSeconds) < 1e-9 * more);
        bench.policy = policyWith("ssd-vertical", {{"tile", "2KiB"}, {"late", "0"}});
        bench.build();

        std::swap(known.diskReadBytesPerSecond, known.diskWriteBytesPerSecond);
        const StepForecast byWrites = forecast();
        QVERIFY(byWrites.stepSeconds >= seconds);
        QVERIFY(byWrites.stepSeconds < 1.01 * seconds);
    }
};

MR_TEST(TestPlanDiskBytes)

} // namespace mr::test::tst_plan_disk_bytes

#include "tst_plan_disk_bytes.moc"
