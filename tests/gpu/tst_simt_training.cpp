// Whole steps with the CUDA kernels on the host: near the CPU device, and exact where exact is ==.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/conformance_case.h"
#include "core/prove/exact_check.h"
#include "gpu/simt/grid.h"
#include "gpu/simt/simt_device.h"
#include "support/block_kinds.h"
#include "support/test_room.h"
#include "tests/core/prove/one_micro_batch.h"

#include <QObject>
#include <QTest>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mr::test::tst_simt_training {

namespace {

constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;

using Options = std::map<std::string, std::string>;

Result<TinyResult> trained(Device& device, DType compute, const char* policy,
    const Options& options = {}, const ModelConfig& config = tinyConfig(true),
    Recompute recompute = Recompute::None)
{
    TinyRun run;
    run.config = config;
    run.compute = compute;
    run.policy = policy;
    run.options = options;
    run.recompute = recompute;
    return runTiny(device, run);
}

ModelConfig familyConfig(const QString& family)
{
    ModelConfig config = tinyConfig(true);
    const bool normsHeads =
        family == QStringLiteral("normed") || family == QStringLiteral("gemma3");
    config.block.queryKeyNorm = normsHeads ? QueryKeyNorm::Heads : QueryKeyNorm::None;
    config.block.window = family.isEmpty() ? 0 : 7;
    if (!family.startsWith(QStringLiteral("gemma")))
        return config;
    config.block.geluGate = config.onePlusNorms = config.block.branchNorms = true;
    config.embeddingScale = 4.9;
    config.block.scoreScale = 1.0 / std::sqrt(7.0);
    config.block.window = 0;
    if (normsHeads) {
        config.ropes.front().rotaryDim = 4;
        config.ropes.push_back({100.0, 4, {}});
    } else {
        config.block.attentionCap = 0.05;
        config.logitCap = 2.0;
    }
    test::setWindows(config, 7, {1, 0, 1}, normsHeads ? 1 : 0);
    return config;
}

} // namespace

class TestSimtTraining : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void lossesFollowTheCpuDevice_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("plain") << QString();
        QTest::newRow("normed heads and a window") << QStringLiteral("normed");
        QTest::newRow("gemma 2") << QStringLiteral("gemma2");
        QTest::newRow("gemma 3, a part of each head turns") << QStringLiteral("gemma3");
    }

    void lossesFollowTheCpuDevice()
    {
        QFETCH(const QString, family);
        const ModelConfig config = familyConfig(family);
        const auto cpu = makeCpuDevice(kMemoryBytes);
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);

        auto reference = trained(*cpu, DType::F32, "resident", {}, config);
        auto run = trained(*gpu, DType::F32, "resident", {}, config);

        QVERIFY2(reference.ok(), reference.status().message().c_str());
        QVERIFY2(run.ok(), run.status().message().c_str());
        const std::vector<double>& want = reference.value().losses;
        const std::vector<double>& got = run.value().losses;
        QCOMPARE(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i)
            QVERIFY2(std::abs(got[i] - want[i]) <= 1e-4 * std::abs(want[i]),
                qPrintable(QStringLiteral("step %1: %2, want %3")
                               .arg(i)
                               .arg(got[i], 0, 'g', 12)
                               .arg(want[i], 0, 'g', 12)));
    }

    void whatBackwardMakesAgainHasTheSameBits_data() { lossesFollowTheCpuDevice_data(); }

    void whatBackwardMakesAgainHasTheSameBits()
    {
        QFETCH(const QString, family);
        const ModelConfig config = familyConfig(family);
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        auto kept = trained(*gpu, DType::BF16, "resident", {}, config);
        QVERIFY2(kept.ok(), kept.status().message().c_str());
        for (const Recompute how : {Recompute::Cheap, Recompute::Block}) {
            auto again = trained(*gpu, DType::BF16, "resident", {}, config, how);

            QVERIFY2(again.ok(), again.status().message().c_str());
            QCOMPARE(again.value().weightsHash, kept.value().weightsHash);
            QCOMPARE(again.value().losses, kept.value().losses);
        }
    }

    void whatTheHostUpdatesHasTheBitsOfResident_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("half");
        QTest::addRow("zero-offload fp32") << QStringLiteral("zero-offload") << false;
        QTest::addRow("zero-offload bf16") << QStringLiteral("zero-offload") << true;
        QTest::addRow("zenflow fp32") << QStringLiteral("zenflow") << false;
        QTest::addRow("zenflow bf16") << QStringLiteral("zenflow") << true;
        QTest::addRow("streamed fp32") << QStringLiteral("streamed") << false;
        QTest::addRow("streamed bf16") << QStringLiteral("streamed") << true;
        QTest::addRow("compact bf16") << QStringLiteral("compact") << true;
        QTest::addRow("streamed, half visits, fp32") << QStringLiteral("streamed shared") << false;
        QTest::addRow("streamed, half visits, bf16") << QStringLiteral("streamed shared") << true;
        QTest::addRow("streamed, half visits, compact")
            << QStringLiteral("streamed shared compact") << true;
    }

    // One on the device, the other on the host: AdamW, norm, rounding and the columns that are
    // packed and scattered must agree to the bit.
    void whatTheHostUpdatesHasTheBitsOfResident()
    {
        QFETCH(const QString, policy);
        QFETCH(const bool, half);
        const DType compute = half ? DType::BF16 : DType::F32;
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        const bool compact = policy.endsWith(QStringLiteral("compact"));
        const std::string name = policy.section(QLatin1Char(' '), 0, 0).toStdString();
        Options state;
        if (compact)
            state = {{"state", "compact"}};
        Options options = state;
        if (policy == QStringLiteral("zenflow"))
            options = {{"interval", "1"}, {"overlap", "off"}, {"urgent", "0.25"}, {"warmup", "1"},
                {"select", "2"}};

        if (policy.contains(QStringLiteral("shared")))
            options.insert({{"device-share", "0.5"}, {"tile", "8KiB"}});

        auto want = trained(*gpu, compute, "resident", state);
        auto got =
            trained(*gpu, compute, name == "compact" ? "zero-offload" : name.c_str(), options);

        QVERIFY2(want.ok(), want.status().message().c_str());
        QVERIFY2(got.ok(), got.status().message().c_str());
        QCOMPARE(got.value().weightsHash, want.value().weightsHash);
        QCOMPARE(got.value().losses, want.value().losses);
        QCOMPARE(got.value().norms, want.value().norms);
    }

    // Kernels that store a gradient rounded have the bits of one that is rounded later.
    void gradientsOfOneMicroBatchAreThoseOfASumThatIsRounded()
    {
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        TinyRun run;
        run.config = familyConfig(QStringLiteral("gemma3"));
        run.config.tiedEmbedding = false;
        run.config.block.qkvBias = true;
        run.compute = DType::BF16;
        run.steps = 2;

        const TrainedMaster once = trainOneMicroBatch(*gpu, run, false);
        const TrainedMaster summed = trainOneMicroBatch(*gpu, run, true);

        QVERIFY(once.master.high == summed.master.high);
        QVERIFY(once.master.low == summed.master.low);
        QCOMPARE(once.norms, summed.norms);
    }

    // Codes have the bits of the CPU device; the order of a product's sums is another.
    void fp8StepsFollowTheCpuDevice()
    {
        TinyRun run = inFp8({});
        run.config.block.qkvBias = true;
        const auto cpu = makeCpuDevice(kMemoryBytes);
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        auto reference = runTiny(*cpu, run);
        auto plain = runTiny(*gpu, run);
        run.policy = "zero-offload";
        run.recompute = Recompute::Block;

        auto offloaded = runTiny(*gpu, run);

        QVERIFY2(reference.ok(), reference.status().message().c_str());
        QVERIFY2(plain.ok(), plain.status().message().c_str());
        QVERIFY2(offloaded.ok(), offloaded.status().message().c_str());
        QCOMPARE(offloaded.value().weightsHash, plain.value().weightsHash);
        QCOMPARE(offloaded.value().norms, plain.value().norms);
        const std::vector<double>& want = reference.value().losses;
        const std::vector<double>& got = plain.value().losses;
        for (std::size_t i = 0; i < want.size(); ++i) // a code may fall to the other side: 2^-4
            QVERIFY2(std::abs(got[i] - want[i]) <= 1e-2 * std::abs(want[i]),
                qPrintable(QString::number(got[i] - want[i])));
    }

    // In fp32, where the device's sums are those of the host.
    void windowsHaveTheSameBitsWhoeverAdds()
    {
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        Options options = {{"interval", "2"}, {"urgent", "0.25"}, {"warmup", "1"}, {"select", "2"}};
        auto want = trained(*gpu, DType::F32, "zenflow", options);
        options["accumulate-on"] = "device";

        auto got = trained(*gpu, DType::F32, "zenflow", options);

        QVERIFY2(want.ok(), want.status().message().c_str());
        QVERIFY2(got.ok(), got.status().message().c_str());
        QCOMPARE(got.value().weightsHash, want.value().weightsHash);
        QCOMPARE(got.value().norms, want.value().norms);
    }

    // Ops that every device must compute to the same bits.
    void updatesAndNormsHaveTheBitsOfTheCpuDevice_data()
    {
        QTest::addColumn<QString>("op");
        for (const char* op : {"adamw", "adamwCompact", "accumulate", "dropout", "normBlocks",
                 "normJoin", "rowSquares", "columnSquares", "averageSquares", "lightStepSize",
                 "lightUpdate", "join", "split", "finishGradient", "quantize"})
            QTest::addRow("%s", op) << QString::fromLatin1(op);
    }

    void updatesAndNormsHaveTheBitsOfTheCpuDevice()
    {
        QFETCH(const QString, op);
        const auto cpu = makeCpuDevice(kMemoryBytes);
        const auto gpu = simt::makeSimtDevice(kMemoryBytes);
        const conformance::Table table = conformance::wholeTable();

        int cases = 0;
        for (const conformance::Case& line : table) {
            if (line.op != op.toStdString())
                continue;
            conformance::CaseRun want(*cpu, 11);
            line.run(want);
            conformance::CaseRun got(*gpu, 11);
            line.run(got);
            QVERIFY2(got.status().ok(), got.status().message().c_str());
            QVERIFY2(got.bytes() == want.bytes(), line.name.c_str());
            ++cases;
        }

        QVERIFY(cases > 0);
    }
};

MR_TEST(TestSimtTraining)

} // namespace mr::test::tst_simt_training

#include "tst_simt_training.moc"
