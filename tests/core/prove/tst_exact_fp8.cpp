// Training with FP8 products: the same bits under every exact policy, other bits than BF16 only
// where the shapes allow FP8, and a loss near that of BF16.

#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <map>
#include <string>

namespace mr::test::tst_exact_fp8 {

namespace {

using Mode = CpuDeviceOptions::Mode;

TinyRun fp8Run(bool biased)
{
    TinyRun run = inFp8({});
    run.config.block.qkvBias = biased;
    run.clipNorm = 0.25;
    return run;
}

struct Variant {
    const char* policy;
    const char* order;
    Mode mode = Mode::Threaded;
    Recompute recompute = Recompute::None;
    std::map<std::string, std::string> options = {};
    bool disk = false;
};

const Variant kVariants[] = {
    {"resident", "by-microbatch", Mode::Threaded},
    {"resident", "by-microbatch", Mode::Inline, Recompute::Block},
    {"resident", "by-layer", Mode::Threaded, Recompute::Cheap},
    {"zero-offload", "by-microbatch", Mode::Threaded, Recompute::None, {{"late", "0.3"}}},
    {"zero-offload", "by-layer", Mode::Threaded, Recompute::Block, {{"tile", "2KiB"}}},
    {"deep-optimizer-states", "by-layer", Mode::Threaded, Recompute::Block,
        {{"device-share", "0.5"}, {"tile", "4KiB"}}},
    {"zenflow", "by-layer", Mode::Threaded, Recompute::None,
        {{"interval", "1"}, {"overlap", "off"}}},
    {"streamed", "by-layer", Mode::Inline, Recompute::Cheap, {{"late", "0.3"}, {"tile", "4KiB"}}},
    {"streamed", "by-microbatch", Mode::Threaded, Recompute::None, {{"tile", "4KiB"}}},
    {"streamed", "by-layer", Mode::Threaded, Recompute::Block,
        {{"device-share", "0.5"}, {"weights-on-device", "0.7"}, {"state-on-device", "0.35"},
            {"tile", "4KiB"}}},
    {"ssd-vertical", "by-layer", Mode::Threaded, Recompute::Block,
        {{"disk-share", "0.5"}, {"late", "0.3"}, {"tile", "4KiB"}}, true},
    {"ssd-vertical", "by-layer", Mode::Inline, Recompute::Cheap,
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"tile", "4KiB"}}, true},
};

} // namespace

class TestExactFp8 : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyExactPolicyGivesTheBitsOfResident_data();
    void everyExactPolicyGivesTheBitsOfResident();
    void theLossIsNearThatOfBf16();
    void shapesThatDoNotAllowItTrainInBf16_data();
    void shapesThatDoNotAllowItTrainInBf16();

private:
    QTemporaryDir m_folder;
};

void TestExactFp8::everyExactPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<bool>("biased");
    QTest::newRow("plain") << false;
    QTest::newRow("biased projections") << true;
}

void TestExactFp8::everyExactPolicyGivesTheBitsOfResident()
{
    QFETCH(bool, biased);
    const TinyRun base = fp8Run(biased);
    QCOMPARE(base.accumulate, 3);
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms)
        QVERIFY(std::isfinite(norm) && norm > 0.0);

    for (const Variant& variant : kVariants) {
        TinyRun run = base;
        run.policy = variant.policy;
        run.options = variant.options;
        run.options["order"] = variant.order;
        run.recompute = variant.recompute;
        if (variant.disk)
            run.disk.folders = {m_folder.path().toStdString()};
        const TinyResult result = resultOn(variant.mode, run, 3);

        QVERIFY2(result.weightsHash == plain.weightsHash, variant.policy);
        QCOMPARE(result.losses, plain.losses);
        QCOMPARE(result.norms, plain.norms);
        QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
        QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
        QCOMPARE(result.allocationsInSteps, std::size_t{0});
    }
}

// 12 steps take a fifth of the loss; an FP8 product is off by some percent of that.
void TestExactFp8::theLossIsNearThatOfBf16()
{
    TinyRun run = fp8Run(false);
    run.steps = 12;
    const TinyResult fp8 = resultOn(Mode::Inline, run, 1);
    run.fp8 = false;

    const TinyResult bf16 = resultOn(Mode::Inline, run, 1);

    QVERIFY(fp8.losses.front() != bf16.losses.front());
    const double fall = bf16.losses.front() - bf16.losses.back();
    QVERIFY(fall > 0.0);
    QVERIFY2(std::abs(fp8.losses.back() - bf16.losses.back()) < 0.2 * fall,
        qPrintable(QString::number(fp8.losses.back() - bf16.losses.back())));
}

void TestExactFp8::shapesThatDoNotAllowItTrainInBf16_data()
{
    QTest::addColumn<std::int64_t>("seqLen");
    QTest::addColumn<std::int64_t>("hidden");
    QTest::newRow("tokens") << std::int64_t{20} << std::int64_t{32};
    QTest::newRow("hidden size") << std::int64_t{16} << std::int64_t{24};
}

void TestExactFp8::shapesThatDoNotAllowItTrainInBf16()
{
    QFETCH(std::int64_t, seqLen);
    QFETCH(std::int64_t, hidden);
    TinyRun run = fp8Run(false);
    run.seqLen = seqLen;
    run.config.hidden = hidden;
    const TinyResult fp8 = resultOn(Mode::Inline, run, 1);
    run.fp8 = false;

    const TinyResult bf16 = resultOn(Mode::Inline, run, 1);

    QCOMPARE(fp8.weightsHash, bf16.weightsHash);
    QCOMPARE(fp8.plannedDeviceBytes, bf16.plannedDeviceBytes);
}

MR_TEST_WITH_APP(TestExactFp8)

} // namespace mr::test::tst_exact_fp8

#include "tst_exact_fp8.moc"
