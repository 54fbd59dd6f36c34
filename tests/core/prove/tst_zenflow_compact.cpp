// The host's half of a window in compact state: bytes, weights, and columns that change owner.

#include "core/device/compact_arrays.h"
#include "core/prove/state_of.h"
#include "core/prove/zenflow_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

namespace mr::test::tst_zenflow_compact {

class TestZenflowCompact : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void compactStateIsPlannedToTheByteAndTheSameInAnyMode_data();
    void compactStateIsPlannedToTheByteAndTheSameInAnyMode();
    void piecesOfATilePartNoGroupOfCompactState();
    void weightsOfCompactStateAreThoseOnTheDevice();
    void mastersOfCompactStateMoveWithTheirColumns();
    void momentsOfCompactStateAreRoundedOnceInAMove();
};

void TestZenflowCompact::compactStateIsPlannedToTheByteAndTheSameInAnyMode_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("site");
    for (const char* site : {"host", "device"})
        for (const char* policy : {"zenflow", "zero-offload-dpu"})
            QTest::addRow("%s, sums on the %s", policy, site)
                << QString::fromUtf8(policy) << QString::fromUtf8(site);
}

// Columns change owner twice.
void TestZenflowCompact::compactStateIsPlannedToTheByteAndTheSameInAnyMode()
{
    QFETCH(QString, policy);
    QFETCH(QString, site);
    TinyRun run;
    run.policy = policy.toStdString();
    run.options = {{"state", "compact"}, {"warmup", "1"}, {"accumulate-on", site.toStdString()}};
    if (run.policy == "zenflow")
        run.options.insert({{"interval", "3"}, {"select", "3"}, {"urgent", "0.25"}});
    run.compute = DType::BF16;
    run.steps = 8;
    TinyResult first;
    for (const auto mode : {CpuDeviceOptions::Mode::Inline, CpuDeviceOptions::Mode::Threaded}) {
        CpuDeviceOptions options;
        options.memoryBytes = std::size_t{64} << 20;
        options.mode = mode;
        const auto device = std::move(makeCpuDevice(options)).value();

        const TinyResult result = runTiny(*device, run).value();

        QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
        QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
        QCOMPARE(result.allocationsInSteps, std::size_t{0});
        QCOMPARE(result.h2dBytes, result.plannedH2dBytes + result.movedBytes);
        QCOMPARE(result.d2hBytes, result.plannedD2hBytes + result.movedBytes);
        if (first.weightsHash.empty())
            first = result;
        QCOMPARE(result.weightsHash, first.weightsHash);
        QCOMPARE(result.losses, first.losses);
        run.updateThreads = 3;
        run.options["tile"] = "2KiB";
    }
}

void TestZenflowCompact::piecesOfATilePartNoGroupOfCompactState()
{
    for (const std::size_t cols : {1U, 24U, 33U, 100U, 4096U, 14336U, 1'000'001U}) {
        QCOMPARE(pieceRows(cols) * cols % kCompactGroup, std::size_t{0});
        QVERIFY(pieceRows(cols) > 0);
    }
}

// Weights of every column, on either side, are those on the device: after steps that moved weights
// and after some that changed owners. Columns of the device have zero moments in the host's groups.
void TestZenflowCompact::weightsOfCompactStateAreThoseOnTheDevice()
{
    PlainRunSpec spec =
        specOf("zenflow", {{"interval", "2"}, {"warmup", "1"}, {"select", "2"}, {"overlap", "off"},
                              {"urgent", "0.25"}, {"state", "compact"}});
    spec.learningRate = 1e-2;
    Rig rig(spec);
    installCoarseWeights(*rig.run);
    const RunMemory& memory = rig.run->memory();
    const WindowMemory& window = *memory.window;
    std::int64_t moved = 0;
    for (int s = 0; s < 10; ++s) {
        rig.step();
        moved = std::max(
            moved, rig.run->executor().window()->ownership().movedColumns); // by the last selection
        for (std::int32_t g = 0; g < memory.groupCount(); ++g) {
            const GroupId id{g};
            const auto* onDevice = reinterpret_cast<const std::uint16_t*>(memory.group(id).weights);
            for (const WeightCut& weight : window.cut(id).weights) {
                const CompactRange host = hostRows(*rig.run, id, weight).compact;
                const auto* dense = window.dense(id, weight).high.as<std::uint16_t>();
                const auto urgent = const_cast<WindowMemory&>(window).urgentList(id, weight);
                for (std::int64_t r = 0; r < weight.rows; ++r) {
                    for (const std::int32_t c : window.hostList(id, weight))
                        QCOMPARE(onDevice[weight.first + r * weight.cols + c],
                            host.weight[r * weight.cols + c]);
                    for (std::size_t u = 0; u < urgent.size(); ++u) {
                        const std::int64_t at = r * weight.cols + urgent[u];
                        QCOMPARE(onDevice[weight.first + at],
                            dense[r * weight.urgent + std::int64_t(u)]);
                        QCOMPARE(int(host.m[at]), 0);
                        QCOMPARE(int(host.v[at]), 0);
                    }
                }
            }
        }
    }
    QVERIFY2(moved > 10, qPrintable(QString::number(moved)));
}

// A column that comes to the device is only decoded. One that comes to the host is rounded to a
// remainder. Half its step is 1 / 65024 of the weight's unit, which is at most the weight.
void TestZenflowCompact::mastersOfCompactStateMoveWithTheirColumns()
{
    Rig rig(specOf("zenflow", {{"interval", "3"}, {"warmup", "0"}, {"select", "0"},
                                  {"overlap", "off"}, {"urgent", "0.25"}, {"state", "compact"}}));
    installCoarseWeights(*rig.run);
    for (int s = 0; s < 6; ++s)
        rig.step();
    const GroupId id{0};
    const WeightCut weight = rig.run->memory().window->cut(id).weights.front();
    const test::MasterBuffers before = test::stateOf(*rig.run);

    selectLastColumns(rig, id, weight);

    const test::MasterBuffers after = test::stateOf(*rig.run);
    int changed = 0;
    for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i) {
        const auto at = static_cast<std::size_t>(i);
        QCOMPARE(after.high[0][at], before.high[0][at]);
        if (i % weight.cols >= weight.urgent) {
            QCOMPARE(after.low[0][at], before.low[0][at]);
            continue;
        }
        const float old = joinHalves(before.high[0][at], before.low[0][at]);
        const float now = joinHalves(after.high[0][at], after.low[0][at]);
        QVERIFY(std::abs(now - old) <= std::abs(old) * (1.01F / 65024.0F));
        changed += now != old ? 1 : 0;
    }
    QVERIFY(changed > 10);
    QVERIFY(rig.run->executor().window()->ownership().movedColumns >= weight.urgent);
}

// A move rounds the moments of each compact group once: without the columns that leave the host,
// with those that come to it.
void TestZenflowCompact::momentsOfCompactStateAreRoundedOnceInAMove()
{
    Rig rig(specOf(
        "zenflow", {{"interval", "3"}, {"warmup", "0"}, {"select", "0"}, {"overlap", "off"},
                       {"urgent", "0.25"}, {"state", "compact"}, {"host-clock", "updates"}}));
    installCoarseWeights(*rig.run);
    for (int s = 0; s < 6; ++s)
        rig.step();
    const GroupId id{0};
    const WindowMemory& window = *rig.run->memory().window;
    const WeightCut weight = window.cut(id).weights.front();
    const CompactRange host = hostRows(*rig.run, id, weight).compact;
    Plain plain(host.count);
    decodeCompact(host, plain.master.data(), plain.m.data(), plain.v.data());
    const auto seen = [](double beta, int count) { return 1.0 - std::pow(beta, count); };
    const auto first = static_cast<float>(seen(0.9, 2) / seen(0.9, 6));
    const auto second = static_cast<float>(seen(0.99, 2) / seen(0.99, 6));
    const auto* m = window.dense(id, weight).m.as<float>();
    const auto* v = window.dense(id, weight).v.as<float>();
    for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t column = i % weight.cols;
        const std::int64_t place = i / weight.cols * weight.urgent + column;
        if (column < weight.urgent)
            plain.m[at] = m[place] * first, plain.v[at] = v[place] * second;
        else if (column >= weight.cols - weight.urgent)
            plain.m[at] = 0.0F, plain.v[at] = 0.0F;
    }
    CompactArrays expected(host.count);
    encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), expected.all());

    selectLastColumns(rig, id, weight);

    QVERIFY(std::equal(expected.m.begin(), expected.m.end(), host.m));
    QVERIFY(std::equal(expected.v.begin(), expected.v.end(), host.v));
    QVERIFY(std::equal(expected.mScale.begin(), expected.mScale.end(), host.mScale));
    QVERIFY(std::equal(expected.vScale.begin(), expected.vScale.end(), host.vScale));
}

MR_TEST(TestZenflowCompact)

} // namespace mr::test::tst_zenflow_compact

#include "tst_zenflow_compact.moc"
