// Windows on a bare run: the numbers that overlap may change, bytes on the link, the owners of the
// columns, and a gradient that is not finite.

#include "core/prove/zenflow_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace mr::test::tst_zenflow {

namespace {

// The host's columns of one plane of a group, row by row.
template <typename T>
std::vector<T> hostColumns(PlainRun& run, GroupId id, StatePart part)
{
    std::vector<T> values;
    const WindowMemory& window = *run.memory().window;
    const auto* plane =
        reinterpret_cast<const T*>(run.memory().group(id).state[static_cast<std::size_t>(part)]);
    for (const WeightCut& weight : window.cut(id).weights)
        for (std::int64_t r = 0; r < weight.rows; ++r)
            for (const std::int32_t c : window.hostList(id, weight))
                values.push_back(plane[weight.first + r * weight.cols + c]);
    return values;
}

// The host's columns of a group, decoded: by weight.
std::vector<ColumnValues> hostState(PlainRun& run, GroupId id)
{
    std::vector<ColumnValues> values;
    const WindowMemory& window = *run.memory().window;
    for (const WeightCut& weight : window.cut(id).weights)
        takeColumns(
            hostRows(run, id, weight), window.hostList(id, weight), {}, values.emplace_back());
    return values;
}

bool isSame(const ColumnValues& a, const ColumnValues& b)
{
    return a.high == b.high && a.low == b.low && a.m == b.m && a.v == b.v;
}

} // namespace

class TestZenflow : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void overlapShiftsTheHostsUpdatesByOneWindow_data();
    void overlapShiftsTheHostsUpdatesByOneWindow();
    void delayedUpdateIsAWindowOfOneStep();
    void theHostsLearningRateIsThatOfWholeWindows_data();
    void theHostsLearningRateIsThatOfWholeWindows();
    void theHostsUpdateOfAWindowGoesAsFarAsItsSteps_data();
    void theHostsUpdateOfAWindowGoesAsFarAsItsSteps();
    void theLinkCarriesWhatTheFormulaSays_data();
    void theLinkCarriesWhatTheFormulaSays();
    void stalenessGrowsToTwoWindowsLessOne();
    void theColumnsWithTheMostEnergyBecomeUrgent();
    void energyIsWhatTheOptionSays_data();
    void energyIsWhatTheOptionSays();
    void aStepThatIsNotFiniteIsLeftOutOfItsWindow_data();
    void aStepThatIsNotFiniteIsLeftOutOfItsWindow();
    void theDevicesSumIsRoundedOnce_data();
    void theDevicesSumIsRoundedOnce();
    void sumsOnTheDeviceArePlannedToTheByte();
    void inFp32TheDevicesSumsAreTheHosts_data();
    void inFp32TheDevicesSumsAreTheHosts();
    void movedMomentsKeepWhatBiasCorrectionMakesOfThem();
};

void TestZenflow::overlapShiftsTheHostsUpdatesByOneWindow_data()
{
    QTest::addColumn<QString>("urgent");
    QTest::addColumn<QString>("tile");
    QTest::addColumn<QString>("site");
    QTest::addColumn<QString>("codec");
#ifdef __SANITIZE_THREAD__ // neither a codec nor a share changes a wait
    const std::vector<const char*> codecs = {"compact"};
    const std::vector<const char*> shares = {"0.1"};
#else
    const std::vector<const char*> codecs = {"fp32", "compact"};
    const std::vector<const char*> shares = {"0", "0.1", "0.5"};
#endif
    for (const char* codec : codecs)
        for (const char* site : {"host", "device"})
            for (const char* urgent : shares)
                for (const char* tile : {"2KiB", "64MiB"})
                    QTest::addRow("urgent %s, tile %s, %s, %s", urgent, tile, site, codec)
                        << QString::fromUtf8(urgent) << QString::fromUtf8(tile)
                        << QString::fromUtf8(site) << QString::fromUtf8(codec);
}

// With overlap the host applies the same gradients one window later; clipping included.
void TestZenflow::overlapShiftsTheHostsUpdatesByOneWindow()
{
    QFETCH(QString, urgent);
    QFETCH(QString, tile);
    QFETCH(QString, site);
    QFETCH(QString, codec);
    Options options = {{"interval", "3"}, {"warmup", "0"}, {"select", "0"},
        {"urgent", urgent.toStdString()}, {"tile", tile.toStdString()},
        {"accumulate-on", site.toStdString()}, {"state", codec.toStdString()}};
    Rig beside(specOf("zenflow", options));
    options["overlap"] = "off";
    Rig inStep(specOf("zenflow", options));
    installCoarseWeights(*beside.run);
    installCoarseWeights(*inStep.run);

    std::vector<double> norms;
    for (int s = 0; s < 6; ++s)
        norms.push_back(inStep.step().scalars.gradNorm);
    for (int s = 0; s < 9; ++s)
        QCOMPARE(beside.step().scalars.gradNorm, norms[static_cast<std::size_t>(s % 6)]);

    QVERIFY(norms.front() > inStep.run->spec().clipNorm);
    QCOMPARE(inStep.run->executor().window()->updates().state.hostUpdates, 6);
    QCOMPARE(beside.run->executor().window()->updates().state.hostUpdates, 6);
    std::size_t moved = 0;
    for (std::int32_t g = 0; g < beside.run->memory().groupCount(); ++g) {
        const auto late = hostState(*beside.run, GroupId{g});
        const auto early = hostState(*inStep.run, GroupId{g});
        QVERIFY(std::equal(late.begin(), late.end(), early.begin(), early.end(), isSame));
        for (const ColumnValues& weight : late)
            for (const std::int16_t low : weight.low)
                moved += low != 0 ? 1 : 0;
    }
    QVERIFY(moved > 100); // masters did move
}

void TestZenflow::delayedUpdateIsAWindowOfOneStep()
{
    Rig delayed(specOf("zero-offload-dpu", {{"warmup", "2"}}));
    installCoarseWeights(*delayed.run);

    for (int s = 0; s < 5; ++s)
        delayed.step();

    const std::vector<int> expected{0, 0, 0, 1, 1};
    QCOMPARE(delayed.staleness, expected);
    // Two at once, and three of which the last is still to be made.
    QCOMPARE(delayed.run->executor().window()->updates().state.hostUpdates, 4);
    QCOMPARE(delayed.run->memory().window->cut(GroupId{1}).dense, 0);
}

void TestZenflow::theHostsLearningRateIsThatOfWholeWindows_data()
{
    QTest::addColumn<QString>("overlap");
    QTest::addColumn<QString>("site");
    for (const char* overlap : {"off", "on"})
        for (const char* site : {"host", "device"})
            QTest::newRow((std::string("overlap ") + overlap + ", " + site).c_str())
                << QString::fromUtf8(overlap) << QString::fromUtf8(site);
}

// Three times the rate moves a master three times as far, but not in a warm-up step.
void TestZenflow::theHostsLearningRateIsThatOfWholeWindows()
{
    QFETCH(QString, overlap);
    QFETCH(QString, site);
    const auto moved = [&](const char* factor, int steps) {
        Options options = {{"interval", "3"}, {"warmup", "1"}, {"select", "0"},
            {"overlap", overlap.toStdString()}, {"accumulate-on", site.toStdString()},
            {"host-lr", factor}};
        PlainRunSpec spec = specOf("zenflow", options);
        spec.adamw.weightDecay = 0.0;
        Rig rig(spec);
        installCoarseWeights(*rig.run);
        for (int s = 0; s < steps; ++s)
            rig.step();
        double sum = 0.0;
        for (const std::int16_t low :
            hostColumns<std::int16_t>(*rig.run, GroupId{1}, StatePart::Low))
            sum += std::abs(double(low)); // the high half does not move
        return sum;
    };

    QCOMPARE(moved("3", 1), moved("1", 1));
    const int last = overlap == QStringLiteral("off") ? 4 : 7;
    const double once = moved("1", last) - moved("1", 1);
    const double thrice = moved("3", last) - moved("3", 1);
    QVERIFY(once > 0.0);
    QVERIFY2(std::abs(thrice / once - 3.0) < 0.05, qPrintable(QString::number(thrice / once)));
}

void TestZenflow::theHostsUpdateOfAWindowGoesAsFarAsItsSteps_data()
{
    QTest::addColumn<QString>("clock");
    QTest::addColumn<QString>("overlap");
    QTest::addColumn<double>("ratio");
    for (const char* overlap : {"off", "on"}) {
        QTest::addRow("steps, overlap %s", overlap)
            << QStringLiteral("steps") << QString::fromUtf8(overlap) << 1.0;
        QTest::addRow("updates, overlap %s", overlap)
            << QStringLiteral("updates") << QString::fromUtf8(overlap) << 1.0 / 3.0;
    }
}

// A window of three steps against three updates, by gradients that hardly change.
void TestZenflow::theHostsUpdateOfAWindowGoesAsFarAsItsSteps()
{
    QFETCH(QString, clock);
    QFETCH(QString, overlap);
    QFETCH(double, ratio);
    const auto moved = [&](const char* interval, const QString& window, int last) {
        PlainRunSpec spec = specOf(
            "zenflow", {{"interval", interval}, {"warmup", "1"}, {"select", "0"}, {"urgent", "0"},
                           {"overlap", window.toStdString()}, {"host-clock", clock.toStdString()}});
        spec.adamw.weightDecay = 0.0;
        Rig rig(spec);
        installCoarseWeights(*rig.run);
        double before = 0.0;
        for (int s = 1; s <= last; ++s) {
            rig.step();
            double sum = 0.0;
            for (const std::int16_t low :
                hostColumns<std::int16_t>(*rig.run, GroupId{1}, StatePart::Low))
                sum += std::abs(double(low)); // the high half does not move
            if (s == 1)
                before = sum;
            else if (s == last)
                return sum - before;
        }
        return 0.0;
    };

    const double host = moved("3", overlap, overlap == QStringLiteral("off") ? 4 : 7);
    const double exact = moved("1", QStringLiteral("off"), 4);

    QVERIFY(exact > 0.0);
    QVERIFY2(std::abs(host / exact - ratio) < 0.05, qPrintable(QString::number(host / exact)));
}

void TestZenflow::theLinkCarriesWhatTheFormulaSays_data()
{
    QTest::addColumn<QString>("urgent");
    QTest::addColumn<int>("interval");
    QTest::addColumn<bool>("wide");
    QTest::addColumn<QString>("site");
#ifdef __SANITIZE_THREAD__ // bytes, not waits
    const std::vector<const char*> shares = {"0.1"};
    const std::vector<int> intervals = {2};
#else
    const std::vector<const char*> shares = {"0", "0.1", "0.5"};
    const std::vector<int> intervals = {1, 2, 4};
#endif
    for (const char* site : {"host", "device"})
        for (const char* urgent : shares)
            for (const int interval : intervals)
                for (const bool wide : {false, true})
                    QTest::addRow("urgent %s, interval %d, %s, %s", urgent, interval,
                        wide ? "fp32" : "bf16", site)
                        << QString::fromUtf8(urgent) << interval << wide << QString::fromUtf8(site);
}

// Sum over 2-D weights of 2 rows (cols - urgent) (S + 1) / S per step, or, where the device adds,
// of 2 rows (cols - urgent) 2 / S.
void TestZenflow::theLinkCarriesWhatTheFormulaSays()
{
    QFETCH(QString, urgent);
    QFETCH(int, interval);
    QFETCH(bool, wide);
    QFETCH(QString, site);
    Rig rig(specOf("zenflow",
        {{"interval", std::to_string(interval)}, {"warmup", "0"}, {"select", "0"},
            {"urgent", urgent.toStdString()}, {"accumulate-on", site.toStdString()}},
        wide ? DType::F32 : DType::BF16));
    installCoarseWeights(*rig.run);
    for (int s = 0; s < interval; ++s)
        rig.step(); // the first window has no update to bring back
    rig.gradientBytes = 0;

    for (int s = 0; s < 2 * interval; ++s)
        rig.step();

    std::int64_t complement = 0;
    for (const ParamGroup& group : rig.run->table().groups)
        for (const ParamSlot& slot : group.paramSlots)
            if (slot.rank == 2)
                complement += slot.rows * (slot.cols - static_cast<std::int64_t>(std::floor(
                                                           urgent.toDouble() * double(slot.cols))));
    const int crossings = site == QStringLiteral("host") ? interval + 1 : 2; // in a window
    QCOMPARE(rig.gradientBytes, 2 * (wide ? 4 : 2) * complement * crossings);
    QCOMPARE(rig.unplannedBytes, 0);
}

void TestZenflow::stalenessGrowsToTwoWindowsLessOne()
{
    Rig rig(specOf("zenflow", {{"interval", "3"}, {"warmup", "1"}, {"select", "6"}}));
    installCoarseWeights(*rig.run);

    for (int s = 0; s < 16; ++s)
        rig.step();

    // Warm-up; a window beside the next; one that is closed in its own last step, because columns
    // change owner after it; the same again.
    const std::vector<int> expected{0, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2};
    QCOMPARE(rig.staleness, expected);
}

void TestZenflow::theColumnsWithTheMostEnergyBecomeUrgent()
{
    Rig rig(specOf("zenflow", {{"interval", "2"}, {"warmup", "3"}, {"urgent", "0.25"}}));
    installCoarseWeights(*rig.run);
    for (int s = 0; s < 3; ++s)
        rig.step();

    RunMemory& memory = const_cast<RunMemory&>(rig.run->memory());
    const float* energies = memory.window->hostEnergies.data();
    std::int64_t changed = 0;
    for (std::int32_t g = 0; g < memory.groupCount(); ++g) {
        const GroupId id{g};
        for (const WeightCut& weight : memory.window->cut(id).weights) {
            if (!weight.isMovable())
                continue;
            const float* energy = energies + weight.listFirst;
            float least = std::numeric_limits<float>::max();
            for (const std::int32_t c : memory.window->urgentList(id, weight)) {
                least = std::min(least, energy[c]);
                changed += c >= weight.urgent ? 1 : 0; // the first ones were the device's
            }
            for (const std::int32_t c : memory.window->hostList(id, weight))
                QVERIFY(energy[c] <= least);
            QVERIFY(least > 0.0F);
        }
        energies += memory.window->cut(id).columns;
    }
    QCOMPARE(rig.run->executor().window()->ownership().movedColumns, changed);
    QVERIFY(changed > 10);
}

void TestZenflow::energyIsWhatTheOptionSays_data()
{
    QTest::addColumn<QString>("energy");
    QTest::newRow("squares") << QStringLiteral("l2");
    QTest::newRow("absolutes") << QStringLiteral("l1");
}

// After one step, of the gradient that has landed on the host.
void TestZenflow::energyIsWhatTheOptionSays()
{
    QFETCH(QString, energy);
    Rig rig(specOf("zenflow",
        {{"interval", "3"}, {"warmup", "0"}, {"urgent", "0.25"}, {"energy", energy.toStdString()}},
        DType::F32));
    installCoarseWeights(*rig.run);

    rig.step();

    const WindowMemory& window = *rig.run->memory().window;
    int compared = 0;
    for (std::int32_t g = 0; g < window.groupCount(); ++g) {
        const GroupId id{g};
        const auto* energies = window.runningEnergies(id).as<float>();
        for (const WeightCut& weight : window.cut(id).weights) {
            if (!weight.isMovable())
                continue;
            const auto columns = window.hostList(id, weight);
            const auto* landed =
                reinterpret_cast<const float*>(window.group(id).landed) + weight.packedFirst;
            for (std::size_t c = 0; c < columns.size(); ++c) {
                double expected = 0.0;
                for (std::int64_t r = 0; r < weight.rows; ++r) {
                    const double x = landed[r * weight.complement() + std::int64_t(c)];
                    expected += energy == QStringLiteral("l1") ? std::abs(x) : x * x;
                }
                const double found = energies[weight.listFirst + columns[c]];
                QVERIFY(std::abs(found - expected) <= 1e-5 * expected);
                compared += expected > 0.0 ? 1 : 0;
            }
        }
    }
    QVERIFY(compared > 100);
}

void TestZenflow::aStepThatIsNotFiniteIsLeftOutOfItsWindow_data()
{
    QTest::addColumn<QString>("site");
    QTest::addColumn<int>("bad");
    for (const char* site : {"host", "device"})
        for (const int bad : {0, 1, 2})
            QTest::newRow((std::string(site) + ", step " + std::to_string(bad)).c_str())
                << QString::fromUtf8(site) << bad;
}

void TestZenflow::aStepThatIsNotFiniteIsLeftOutOfItsWindow()
{
    QFETCH(QString, site);
    QFETCH(int, bad);
    Options options = {{"interval", "3"}, {"warmup", "0"}, {"select", "0"}};
    Rig whole(specOf("zenflow", options));
    options["accumulate-on"] = site.toStdString(); // two equal gradients: rounding changes nothing
    Rig broken(specOf("zenflow", options));
    installCoarseWeights(*whole.run);
    installCoarseWeights(*broken.run);
    const float infinite = std::numeric_limits<float>::infinity();

    for (int s = 0; s < 6; ++s)
        whole.step();
    for (int s = 0; s < 6; ++s)
        QCOMPARE(broken.step(s == bad ? infinite : 1.0F / 32.0F).scalars.finite, s == bad ? 0 : 1);

    // The mean of two equal gradients is that of three, up to rounding.
    QCOMPARE(broken.run->executor().window()->updates().state.hostUpdates, 3);
    QCOMPARE(broken.run->executor().window()->updates().state.deviceUpdates, 5);
    const auto expected = hostColumns<float>(*whole.run, GroupId{1}, StatePart::FirstMoment);
    const auto moments = hostColumns<float>(*broken.run, GroupId{1}, StatePart::FirstMoment);
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        QVERIFY(std::isfinite(moments[i]));
        difference += std::pow(double(moments[i]) - double(expected[i]), 2);
        size += std::pow(double(expected[i]), 2);
    }
    QVERIFY(size > 0.0);
    QVERIFY2(difference < 1e-10 * size, qPrintable(QString::number(difference / size)));
}

void TestZenflow::theDevicesSumIsRoundedOnce_data()
{
    QTest::addColumn<QString>("interval");
    QTest::addColumn<QString>("overlap");
    QTest::addColumn<bool>("isExact");
    for (const char* overlap : {"on", "off"})
        for (const char* interval : {"2", "3", "4"})
            QTest::newRow((std::string(interval) + " steps, overlap " + overlap).c_str())
                << QString::fromUtf8(interval) << QString::fromUtf8(overlap) << (*interval != '3');
}

// Equal gradients: the sum of two or four is a BF16 number, that of three mostly is none.
void TestZenflow::theDevicesSumIsRoundedOnce()
{
    QFETCH(QString, interval);
    QFETCH(QString, overlap);
    QFETCH(bool, isExact);
    Options options = {{"interval", interval.toStdString()}, {"warmup", "1"}, {"select", "0"},
        {"overlap", overlap.toStdString()}, {"tile", "2KiB"}};
    Rig host(specOf("zenflow", options));
    options["accumulate-on"] = "device";
    Rig device(specOf("zenflow", options));
    installCoarseWeights(*host.run);
    installCoarseWeights(*device.run);

    for (int s = 0; s < 1 + 2 * interval.toInt(); ++s)
        QCOMPARE(device.step().scalars.gradNorm, host.step().scalars.gradNorm);

    QCOMPARE(device.staleness, host.staleness);
    QCOMPARE(device.run->executor().window()->updates().state.hostUpdates,
        host.run->executor().window()->updates().state.hostUpdates);
    std::size_t differ = 0;
    double most = 0.0;
    for (std::int32_t g = 0; g < host.run->memory().groupCount(); ++g) {
        const auto expected = hostColumns<float>(*host.run, GroupId{g}, StatePart::FirstMoment);
        const auto moments = hostColumns<float>(*device.run, GroupId{g}, StatePart::FirstMoment);
        for (std::size_t i = 0; i < moments.size(); ++i) {
            differ += moments[i] != expected[i] ? 1 : 0;
            if (expected[i] != 0.0F)
                most = std::max(most, std::abs(double(moments[i]) / double(expected[i]) - 1.0));
        }
        if (isExact)
            QCOMPARE(hostColumns<std::int16_t>(*device.run, GroupId{g}, StatePart::Low),
                hostColumns<std::int16_t>(*host.run, GroupId{g}, StatePart::Low));
    }
    QCOMPARE(differ == 0, isExact);
    QVERIFY2(most < 1.0 / 256.0, qPrintable(QString::number(most))); // half an ulp of BF16, twice
}

void TestZenflow::sumsOnTheDeviceArePlannedToTheByte()
{
    for (const char* order : {"by-microbatch", "by-layer"}) {
        TinyRun run;
        run.policy = "zenflow";
        run.options = {{"interval", "3"}, {"warmup", "1"}, {"select", "3"}, {"order", order},
            {"accumulate-on", "device"}};
        run.compute = DType::BF16;
        run.steps = 8;
        CpuDeviceOptions options;
        options.memoryBytes = std::size_t{64} << 20;
        options.mode = CpuDeviceOptions::Mode::Threaded;
        const auto device = std::move(makeCpuDevice(options)).value();

        const TinyResult result = runTiny(*device, run).value();

        QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
        QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
        QCOMPARE(result.allocationsInSteps, std::size_t{0});
        QCOMPARE(result.h2dBytes, result.plannedH2dBytes + result.movedBytes);
        QCOMPARE(result.d2hBytes, result.plannedD2hBytes + result.movedBytes);
    }
}

void TestZenflow::inFp32TheDevicesSumsAreTheHosts_data()
{
    QTest::addColumn<QString>("overlap");
    QTest::addColumn<QString>("order");
    for (const char* overlap : {"on", "off"})
        for (const char* order : {"by-microbatch", "by-layer"})
            QTest::newRow((std::string("overlap ") + overlap + ", " + order).c_str())
                << QString::fromUtf8(overlap) << QString::fromUtf8(order);
}

// Nothing is rounded there. Columns change owner within the run, and gradients differ.
void TestZenflow::inFp32TheDevicesSumsAreTheHosts()
{
    QFETCH(QString, overlap);
    QFETCH(QString, order);
    TinyRun run;
    run.policy = "zenflow";
    run.options = {{"interval", "3"}, {"warmup", "1"}, {"select", "6"}, {"urgent", "0.25"},
        {"tile", "2KiB"}, {"overlap", overlap.toStdString()}, {"order", order.toStdString()}};
    run.steps = 14;
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.mode = CpuDeviceOptions::Mode::Threaded;
    const auto first = std::move(makeCpuDevice(options)).value();
    const auto second = std::move(makeCpuDevice(options)).value();
    const TinyResult host = runTiny(*first, run).value();
    run.options["accumulate-on"] = "device";

    const TinyResult device = runTiny(*second, run).value();

    QCOMPARE(device.weightsHash, host.weightsHash);
    QCOMPARE(device.losses, host.losses);
    QCOMPARE(device.norms, host.norms);
    QCOMPARE(device.peakDeviceBytes, device.plannedDeviceBytes);
    QCOMPARE(device.peakHostBytes, device.plannedHostBytes);
    QCOMPARE(device.allocationsInSteps, std::size_t{0});
    QVERIFY(device.plannedHostBytes < host.plannedHostBytes);
}

// State of a group in the run, with the columns of the host and of the device.
struct Whole {
    std::vector<float> m;
    std::vector<float> v;
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low;
};

template <typename T>
std::vector<T> planeOf(const GroupMemory& group, StatePart part)
{
    const auto* from = reinterpret_cast<const T*>(group.state[static_cast<std::size_t>(part)]);
    return {from, from + group.elements};
}

Whole wholeState(PlainRun& run, GroupId id)
{
    if (!run.executor().window()->master().publish().ok())
        qFatal("columns could not be published");
    const GroupMemory& group = run.memory().group(id);
    return {planeOf<float>(group, StatePart::FirstMoment),
        planeOf<float>(group, StatePart::SecondMoment),
        planeOf<std::uint16_t>(group, StatePart::High),
        planeOf<std::int16_t>(group, StatePart::Low)};
}

// The device has counted 6 updates and the host 2 when columns change sides.
void TestZenflow::movedMomentsKeepWhatBiasCorrectionMakesOfThem()
{
    Rig rig(
        specOf("zenflow", {{"interval", "3"}, {"warmup", "0"}, {"select", "0"}, {"overlap", "off"},
                              {"urgent", "0.25"}, {"host-clock", "updates"}}));
    installCoarseWeights(*rig.run);
    for (int s = 0; s < 6; ++s)
        rig.step();
    const GroupId id{0}; // one matrix: the tied embedding
    const WeightCut weight = rig.run->memory().window->cut(id).weights.front();
    const Whole before = wholeState(*rig.run, id);

    selectLastColumns(rig, id, weight);

    const Whole after = wholeState(*rig.run, id);
    QCOMPARE(after.high, before.high);
    QCOMPARE(after.low, before.low);
    const auto seen = [](double beta, int count) { return 1.0 - std::pow(beta, count); };
    const auto isNear = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
    for (std::int64_t c = 0; c < weight.cols; ++c) {
        const bool wasUrgent = c < weight.urgent;
        const bool isUrgent = c >= weight.cols - weight.urgent;
        const int from = wasUrgent ? 6 : 2;
        const int to = isUrgent ? 6 : 2;
        for (std::int64_t r = 0; r < weight.rows; ++r) {
            const auto at = static_cast<std::size_t>(r * weight.cols + c);
            if (from == to) {
                QCOMPARE(after.m[at], before.m[at]);
                QCOMPARE(after.v[at], before.v[at]);
                continue;
            }
            QVERIFY(isNear(after.m[at] / seen(0.9, to), before.m[at] / seen(0.9, from)));
            QVERIFY(isNear(after.v[at] / seen(0.99, to), before.v[at] / seen(0.99, from)));
        }
    }
    QVERIFY(rig.run->executor().window()->ownership().movedColumns >= weight.urgent);
}

MR_TEST(TestZenflow)

} // namespace mr::test::tst_zenflow

#include "tst_zenflow.moc"
