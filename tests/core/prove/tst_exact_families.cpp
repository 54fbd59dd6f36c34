// Features of one model family (biases, normed heads and branches, windows, scaled positions,
// soft-caps) give the same bits under every exact policy, in the planned bytes.

#include "core/prove/tiny_device.h"
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

constexpr const char* kFamilies[] = {
    "llama3", "mistral", "qwen2", "qwen3", "phi3", "phi4", "gemma", "gemma2", "gemma3"};

bool isTied(const QString& family)
{
    return family.startsWith("qwen") || family.startsWith("gemma");
}

void addGemma(const QString& family, ModelConfig& config)
{
    config.headDim = 10;
    config.geluGate = true;
    config.onePlusNorms = true;
    config.embeddingScale = std::sqrt(static_cast<double>(config.hidden));
    if (family == "gemma")
        return;
    config.branchNorms = true;
    config.queryScalar = 7.0;
    config.window = 6;
    if (family == "gemma2") {
        config.windowedBlocks = {1, 0, 1};
        config.attentionCap = 0.05;
        config.logitCap = 2.0;
    } else {
        config.windowedBlocks = {1, 1, 0};
        config.queryKeyNorm = true;
        config.localTheta = 100.0;
        config.ropeScaling.type = RopeType::Linear;
        config.ropeScaling.factor = 8.0;
    }
}

// Three blocks, sequences of 20 tokens: the windows cut.
ModelConfig familyConfig(const QString& family)
{
    ModelConfig config = tinyConfig(isTied(family));
    if (family.startsWith("gemma")) {
        addGemma(family, config);
    } else if (family == "llama3") {
        config.ropeScaling.type = RopeType::Llama3;
        config.ropeScaling.factor = 8.0;
        config.ropeScaling.originalPositions = 64.0;
    } else if (family == "mistral") {
        config.window = 7;
    } else if (family == "qwen2") {
        config.qkvBias = true;
        config.window = 5;
        config.windowedBlocks = {0, 1, 1};
    } else if (family == "qwen3") {
        config.queryKeyNorm = true;
        config.headDim = 8;
    } else if (family == "phi4") {
        config.fusedProjections = true;
        config.rotaryDim = 4;
    } else if (family == "phi3") {
        config.fusedProjections = true;
        config.window = 9;
        config.ropeScaling.type = RopeType::LongRope;
        config.ropeScaling.originalPositions = 16.0;
        config.ropeScaling.factor = 2.0;
        config.ropeScaling.shortFactors = {1.0F, 1.5F, 2.0F};
        config.ropeScaling.longFactors = {2.0F, 3.0F, 5.0F};
    }
    return config;
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
        const std::int64_t headDim = run.config.headDim;
        run.config = tinyConfig(isTied(family));
        run.config.headDim = headDim;

        const TinyResult plain = resultIn(Mode::Inline, run);

        QVERIFY2(own.losses != plain.losses, qPrintable(family));
    }
}

MR_TEST(TestExactFamilies)

} // namespace mr::test::tst_exact_families

#include "tst_exact_families.moc"
