// The once-a-second series: samples are read back as written, on every level, and a window is read
// with as many entries as it needs.

#include "core/store/store_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

namespace mr::test::tst_machine_chunks {

namespace {

constexpr std::string_view kPower = infoOf(MachineMetric::DevicePower).name;

// The power of second `second`: all different, and exact in float32.
double powerAt(std::int64_t second)
{
    return 100.0 + static_cast<double>((second * 37) % 512) / 4.0;
}

StoreBatch seconds(std::int64_t first, std::int64_t last)
{
    StoreBatch batch;
    for (std::int64_t s = first; s <= last; ++s) {
        MachineSample sample;
        sample.timeMs = s * 1000 + 3; // the thread wakes a little late
        sample[MachineMetric::DevicePower] = powerAt(s);
        batch.samples.push_back(sample);
    }
    return batch;
}

CounterSeries read(const StoreRig& rig, std::int64_t id, const CounterWindow& window)
{
    return rig.openReader()->counter(id, kPower, window).value();
}

std::size_t levelsOf(const StoreRig& rig, const char* where)
{
    return static_cast<std::size_t>(
        rig.number(std::string("SELECT count(*) FROM chunk WHERE ") + where));
}

} // namespace

class TestMachineChunks : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void samplesComeBackAsTheyWereWritten()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, seconds(1, 300)).ok());
        QVERIFY(rig.store->append(id, seconds(301, 700)).ok());

        const CounterSeries series = read(rig, id, {0, 800'000, 800});

        QCOMPARE(series.periodMs, 1000);
        QCOMPARE(series.entries.size(), std::size_t{701}); // from second 0, which has none
        QVERIFY(std::isnan(series.entries[0].mean));
        for (std::int64_t s = 1; s <= 700; ++s) {
            const CounterEntry& entry = series.entries[static_cast<std::size_t>(s)];
            QCOMPARE(entry.timeMs, s * 1000);
            QCOMPARE(static_cast<double>(entry.mean), powerAt(s));
            QVERIFY(entry.min == entry.mean && entry.max == entry.mean);
        }
    }

    void coarserLevelsHoldMinimumMaximumAndMean_data()
    {
        QTest::addColumn<qint64>("columns");
        QTest::addColumn<qint64>("width");
        QTest::newRow("16 s") << qint64{600} << qint64{16};
        QTest::newRow("256 s") << qint64{30} << qint64{256};
    }

    void coarserLevelsHoldMinimumMaximumAndMean()
    {
        QFETCH(const qint64, columns);
        QFETCH(const qint64, width);
        constexpr std::int64_t kSeconds = 10'000; // more than one row of each level but the last
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        // In pieces that end anywhere.
        for (std::int64_t s = 0; s < kSeconds; s += 77)
            QVERIFY(rig.store->append(id, seconds(s, std::min(s + 76, kSeconds - 1))).ok());

        const CounterSeries series = read(rig, id, {0, kSeconds * 1000, columns});

        QCOMPARE(series.periodMs, width * 1000);
        QCOMPARE(std::ssize(series.entries), (kSeconds + width - 1) / width);
        for (const CounterEntry& entry : series.entries) {
            const std::int64_t first = entry.timeMs / 1000;
            const std::int64_t last = std::min<std::int64_t>(first + width, kSeconds);
            double low = powerAt(first);
            double high = low;
            double sum = 0.0;
            for (std::int64_t s = first; s < last; ++s) {
                low = std::min(low, powerAt(s));
                high = std::max(high, powerAt(s));
                sum += powerAt(s);
            }
            QCOMPARE(static_cast<double>(entry.min), low);
            QCOMPARE(static_cast<double>(entry.max), high);
            // A float32 mean: half a unit in its last place.
            const double mean = sum / static_cast<double>(last - first);
            QVERIFY(std::abs(static_cast<double>(entry.mean) - mean) <= mean * 0x1p-24);
        }
    }

    void aWindowHasWhatLiesInItAndNoMore()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, seconds(0, 2000)).ok());

        const CounterSeries fine = read(rig, id, {500'000, 520'000, 20});
        const CounterSeries coarse = read(rig, id, {500'000, 1'600'000, 60});

        QCOMPARE(fine.entries.size(), std::size_t{20});
        QCOMPARE(fine.entries.front().timeMs, 500'000);
        QCOMPARE(fine.entries.back().timeMs, 519'000);
        QCOMPARE(coarse.periodMs, 16'000);
        QVERIFY(std::ssize(coarse.entries) >= 60);
        QCOMPARE(coarse.entries.front().timeMs, 496'000); // the one that reaches into the window
        QCOMPARE(coarse.entries.back().timeMs, 1'584'000);
    }

    void aSecondThatWasMissedIsEmpty()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch = seconds(1, 40);
        batch.samples.erase(batch.samples.begin() + 9); // second 10
        QVERIFY(rig.store->append(id, batch).ok());

        const CounterSeries series = read(rig, id, {0, 60'000, 60});

        QVERIFY(std::isnan(series.entries[10].mean));
        QCOMPARE(static_cast<double>(series.entries[11].mean), powerAt(11));
    }

    void writingTheSameAgainChangesNothing()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, seconds(1, 300)).ok());
        const double energy = rig.openReader()->run(id).value().energyJ;

        QVERIFY(rig.store->append(id, seconds(200, 300)).ok());

        QCOMPARE(read(rig, id, {0, 400'000, 400}).entries.size(), std::size_t{301});
        QCOMPARE(rig.openReader()->run(id).value().energyJ, energy);
    }

    void energyIsThePowerOverTheTime()
    {
        StoreRig rig;
        const std::int64_t measured = rig.begin("u1");
        const std::int64_t unmeasured = rig.begin("u2");
        StoreBatch batch = seconds(1, 10);
        for (MachineSample& sample : batch.samples)
            sample[MachineMetric::DevicePower] = 250.0;
        batch.samples[4][MachineMetric::DevicePower].reset(); // nothing is known of this second
        QVERIFY(rig.store->append(measured, batch).ok());
        for (MachineSample& sample : batch.samples) {
            sample[MachineMetric::DevicePower].reset();
            sample[MachineMetric::HostCpu] = 50.0;
        }
        QVERIFY(rig.store->append(unmeasured, batch).ok());

        QCOMPARE(rig.openReader()->run(measured).value().energyJ, 2250.0);
        QVERIFY(std::isnan(rig.openReader()->run(unmeasured).value().energyJ));
        QCOMPARE(rig.number("SELECT energy_j IS NULL FROM run WHERE uuid='u2'"), 1);
    }

    void aRunTellsWhichSeriesItHas()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        const std::int64_t other = rig.begin("u2");
        QVERIFY(rig.store->append(id, seconds(1, 300)).ok());

        const auto counters = rig.openReader()->counters(id).value();

        QCOMPARE(counters.size(), std::size_t{1});
        QCOMPARE(counters[0].metric, std::string(kPower));
        QCOMPARE(counters[0].unit, std::string("W"));
        QCOMPARE(counters[0].endMs, 301'000);
        QVERIFY(rig.openReader()->counters(other).value().empty());
        QVERIFY(read(rig, other, {0, 9000, 9}).entries.empty());
        QVERIFY(rig.openReader()->counter(id, "no.such", {0, 9000, 9}).value().entries.empty());
        QVERIFY(!rig.openReader()->counters(99).ok());
    }

    void aResumedRunForgetsWhatCameAfterItsCheckpoint_data()
    {
        QTest::addColumn<qint64>("last"); // second of the last step that stays
        for (const qint64 last : {qint64{20}, qint64{255}, qint64{256}, qint64{700}, qint64{4095},
                 qint64{4096}, qint64{5000}})
            QTest::addRow("%lld s", static_cast<long long>(last)) << last;
    }

    void aResumedRunForgetsWhatCameAfterItsCheckpoint()
    {
        QFETCH(const qint64, last);
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        StoreBatch batch = seconds(1, 5000);
        for (std::int64_t s = 1; s <= 5000; s += 1) {
            StepRow row = StoreRig::step(s, 1.0);
            row.timeMs = s * 1000 + 500;
            batch.steps.push_back(row);
        }
        QVERIFY(rig.store->append(id, batch).ok());
        StoreRig fresh; // never had more
        const std::int64_t reference = fresh.begin("u1");
        QVERIFY(fresh.store->append(reference, seconds(1, last)).ok());

        QVERIFY(rig.store->beginSegment(id, last).ok());

        for (const qint64 columns : {qint64{6000}, qint64{300}, qint64{10}}) {
            const CounterSeries cut = read(rig, id, {0, 6'000'000, columns});
            const CounterSeries expected = read(fresh, reference, {0, 6'000'000, columns});
            QCOMPARE(cut.entries.size(), expected.entries.size());
            for (std::size_t i = 0; i < cut.entries.size(); ++i) {
                QVERIFY(cut.entries[i].max == expected.entries[i].max || i == 0);
                QVERIFY(cut.entries[i].mean == expected.entries[i].mean || i == 0);
            }
        }
        QCOMPARE(rig.openReader()->run(id).value().energyJ,
            fresh.openReader()->run(reference).value().energyJ);
    }

    void aRunThatStartsOverHasNone()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, seconds(1, 300)).ok());

        QVERIFY(rig.store->beginSegment(id, 0).ok());

        QCOMPARE(levelsOf(rig, "1"), std::size_t{0});
        QVERIFY(std::isnan(rig.openReader()->run(id).value().energyJ));
    }

    void aDayOfSamplesIsSmall()
    {
        constexpr std::int64_t kDay = 86'400;
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->append(id, seconds(1, kDay)).ok());

        // Each sample and its share of the coarser levels: 4 + 12/16 + 12/256 bytes.
        const std::int64_t bytes = rig.number("SELECT sum(length(data)) FROM chunk");
        QVERIFY(bytes * 10 < kDay * 49);
        const CounterSeries overview = read(rig, id, {0, kDay * 1000, 300});
        QCOMPARE(overview.periodMs, 256'000);
        QCOMPARE(overview.entries.size(), std::size_t{338});
    }
};

MR_TEST(TestMachineChunks)

} // namespace mr::test::tst_machine_chunks

#include "tst_machine_chunks.moc"
