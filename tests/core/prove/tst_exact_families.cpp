// Features of one model family (biases, normed heads and branches, windows, scaled positions,
// soft-caps) give the same bits under every exact policy, in the planned bytes.

#include "core/prove/tiny_device.h"
#include "core/prove/tiny_families.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <string>
#include <vector>

namespace mr::test::tst_exact_families {

namespace {

using Mode = CpuDeviceOptions::Mode;

TinyResult resultIn(Mode mode, const TinyRun& run)
{
    return resultOn(mode, run, mode == Mode::Inline ? 1 : 2);
}

struct Variant {
    const char* policy;
    const char* order;
    Mode mode = Mode::Threaded;
    Recompute recompute = Recompute::None;
    std::map<std::string, std::string> options = {};
    bool disk = false;

    std::string name() const
    {
        std::string words = std::string(policy) + (mode == Mode::Inline ? " inline" : "");
        words.append(" recompute ").append(mr::name(recompute));
        for (const auto& [key, value] : options)
            words += " " + key + "=" + value;
        return words;
    }
};

const Variant kVariants[] = {
    {"resident", "by-layer", Mode::Threaded, Recompute::Block},
    {"resident", "by-layer", Mode::Threaded, Recompute::Cheap},
    {"zero-offload", "by-microbatch", Mode::Inline, Recompute::Cheap, {{"late", "0.3"}}},
    {"zero-offload", "by-microbatch", Mode::Threaded, Recompute::None, {{"late", "0.3"}}},
    {"deep-optimizer-states", "by-layer", Mode::Threaded, Recompute::Block,
        {{"device-share", "0.5"}, {"tile", "4KiB"}}},
    {"zenflow", "by-layer", Mode::Threaded, Recompute::None,
        {{"interval", "1"}, {"overlap", "off"}}},
    {"streamed", "by-layer", Mode::Inline, Recompute::Block, {{"late", "0.3"}, {"tile", "4KiB"}}},
    {"streamed", "by-layer", Mode::Threaded, Recompute::None, {{"late", "0.3"}, {"tile", "4KiB"}}},
    {"ssd-vertical", "by-layer", Mode::Threaded, Recompute::Block,
        {{"disk-share", "0.5"}, {"late", "0.3"}, {"tile", "4KiB"}}, true},
    {"ssd-vertical", "by-layer", Mode::Inline, Recompute::Block,
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"tile", "4KiB"}}, true},
};

} // namespace

class TestExactFamilies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyExactPolicyGivesTheBitsOfResident_data();
    void everyExactPolicyGivesTheBitsOfResident();
    void everyFamilyIsAModelOfItsOwn();

private:
    QTemporaryDir m_folder;
};

void TestExactFamilies::everyExactPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<bool>("bf16");
    for (const char* family : kFamilies)
        for (const bool bf16 : {false, true})
            QTest::addRow("%s, %s", family, bf16 ? "bf16" : "fp32") << QString(family) << bf16;
}

void TestExactFamilies::everyExactPolicyGivesTheBitsOfResident()
{
    QFETCH(QString, family);
    QFETCH(bool, bf16);
    TinyRun base;
    base.config = familyConfig(family);
    base.compute = bf16 ? DType::BF16 : DType::F32;
    base.clipNorm = 0.25;
    const TinyResult plain = resultIn(Mode::Inline, base);
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
        const TinyResult result = resultIn(variant.mode, run);

        QVERIFY2(result.weightsHash == plain.weightsHash, variant.name().c_str());
        QCOMPARE(result.losses, plain.losses);
        QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
        QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
        QCOMPARE(result.allocationsInSteps, std::size_t{0});
    }
}

// Without this, a family would pass above although its own part is never reached.
void TestExactFamilies::everyFamilyIsAModelOfItsOwn()
{
    for (const QString family : kFamilies) {
        TinyRun run;
        run.config = familyConfig(family);
        const TinyResult own = resultIn(Mode::Inline, run);
        const std::int64_t headDim = run.config.block.headDim;
        run.config = tinyConfig(isTied(family));
        run.config.block.headDim = headDim;

        const TinyResult plain = resultIn(Mode::Inline, run);

        QVERIFY2(own.losses != plain.losses, qPrintable(family));
    }
}

MR_TEST(TestExactFamilies)

} // namespace mr::test::tst_exact_families

#include "tst_exact_families.moc"
