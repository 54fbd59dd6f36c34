// Clipping by the norm of the whole step under light optimizers: backward comes once for the norm
// and once more for the updates.

#include "core/plan/policies.h"
#include "core/prove/light_variants.h"
#include "core/prove/plain_run.h"
#include "core/prove/plain_run_inputs.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mr::test::tst_two_passes {

namespace {

using Mode = CpuDeviceOptions::Mode;

constexpr double kLimit = 0.05; // below every norm of these runs

// Backward writes over what it reads, and all micro-batches pass it before one passes it again.
bool canPassTwice(const LightVariant& variant)
{
    return variant.recompute == Recompute::Block && variant.options.count("order") == 0;
}

TinyRun twoPassRun(Optimizer optimizer, const LightFormat& format, int accumulate)
{
    TinyRun run = lightRun(optimizer, format);
    run.accumulate = accumulate;
    run.recompute = Recompute::Block;
    run.clipNorm = kLimit;
    run.options = {{"clip-mode", "two-pass"}};
    return run;
}

struct Kept {
    double norm = 0.0;
    std::vector<float> averages; // of all groups
};

// The norm of a first step, and what a light optimizer keeps behind it.
Kept afterAStep(const TinyRun& tiny)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    auto created = PlainRun::create(*device, plainRunSpec(tiny));
    if (!created.ok() || !installCheapWeights(*created.value()).ok())
        qFatal("the run cannot begin");
    PlainRun& run = *created.value();
    const auto micros = randomBatch(run.spec().config.vocab, run.spec().micro);
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = 1.0F / static_cast<float>(tiny.accumulate * run.spec().micro.tokens());
    inputs.clipNorm = tiny.clipNorm;
    inputs.factors = adamwFactors(run.spec().adamw, run.spec().learningRate, 1);
    auto step = run.step(inputs);
    if (!step.ok())
        qFatal("the step fails");
    Kept kept;
    kept.norm = static_cast<double>(step.value().scalars.gradNorm);
    for (GroupId group{0}; group.value < run.shape().layers(); ++group.value) {
        const std::span<std::byte> bytes = run.memory().group(group).averages;
        const auto* values = reinterpret_cast<const float*>(bytes.data());
        kept.averages.insert(kept.averages.end(), values, values + bytes.size() / sizeof(float));
    }
    return kept;
}

} // namespace

class TestTwoPasses : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void embeddingAndHeadMayComeByTiles();
    void aLimitThatNoNormReachesChangesNothing();
    void theGradientIsScaledByTheNormOfItsOwnStep();
    void whatBackwardWouldSpoilIsRefused();

private:
    void compareVariants(const TinyRun& base, std::span<const LightVariant> variants);

    QTemporaryDir m_folder;
};

void TestTwoPasses::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("accumulate");
    for (const OptimizerInfo& optimizer : kOptimizers)
        for (int format = 0;
             updatesBehindBackward(optimizer) && format < int(std::size(kLightFormats)); ++format)
            for (const int accumulate : {1, 3})
                QTest::addRow("%s, %s, accumulate %d", std::string(name(optimizer.id)).c_str(),
                    kLightFormats[format].name, accumulate)
                    << int(optimizer.id) << format << accumulate;
}

void TestTwoPasses::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(int, optimizer);
    QFETCH(int, format);
    QFETCH(int, accumulate);
    TinyRun base = twoPassRun(static_cast<Optimizer>(optimizer), kLightFormats[format], accumulate);
    base.config = tinyConfig(format % 2 == 1);
    compareVariants(base, kLightVariants);
}

void TestTwoPasses::embeddingAndHeadMayComeByTiles()
{
    TinyRun base = twoPassRun(Optimizer::Factored, kLightFormats[2], 3);
    base.config = tinyConfig(false);
    base.config.vocab = 295;
    base.headPart = 50;
    compareVariants(base, kTiledVariants);
}

void TestTwoPasses::compareVariants(const TinyRun& base, std::span<const LightVariant> variants)
{
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms)
        QVERIFY(norm > kLimit); // every step is clipped
    TinyRun own = base;
    own.options.clear();
    QVERIFY(base.light.optimizer == Optimizer::SgdNormalised ||
            resultOn(Mode::Inline, own, 1).weightsHash != plain.weightsHash);
    for (const LightVariant& variant : variants) {
        if (!canPassTwice(variant))
            continue;
        TinyRun run = variant.of(base);
        run.disk.folders = {m_folder.path().toStdString()};
        compareRuns(resultOn(variant.mode, run, variant.threads), plain, variant.name);
        if (QTest::currentTestFailed())
            return;
    }
}

void TestTwoPasses::aLimitThatNoNormReachesChangesNothing()
{
    for (const int accumulate : {1, 3}) {
        TinyRun run = twoPassRun(Optimizer::Factored, kLightFormats[2], accumulate);
        run.clipNorm = 1e6;
        const TinyResult twice = resultOn(Mode::Inline, run, 1);
        run.options.clear();
        const TinyResult once = resultOn(Mode::Inline, run, 1);
        QCOMPARE(twice.weightsHash, once.weightsHash);
        QCOMPARE(twice.losses, once.losses);
        QCOMPARE(twice.norms, once.norms);
    }
}

// The first averages are those of the squares of the gradient, and nothing else.
void TestTwoPasses::theGradientIsScaledByTheNormOfItsOwnStep()
{
    TinyRun run = twoPassRun(Optimizer::Factored, kLightFormats[1], 3);
    const auto [norm, clipped] = afterAStep(run);
    run.options.clear();
    const std::vector<float> whole = afterAStep(run).averages;
    const double factor = kLimit / norm;
    QVERIFY(factor < 0.5 && clipped.size() == whole.size() && !whole.empty());
    int compared = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const double expected = factor * factor * static_cast<double>(whole[i]);
        if (!(expected > 1e-20)) // a token that no row has; the floor below the squares
            continue;
        ++compared;
        QVERIFY2(std::abs(static_cast<double>(clipped[i]) - expected) < 1e-4 * expected,
            qPrintable(
                QStringLiteral("%1: %2, not %3").arg(i).arg(double(clipped[i])).arg(expected)));
    }
    QVERIFY(compared > 100);
}

void TestTwoPasses::whatBackwardWouldSpoilIsRefused()
{
    const auto refusal = [](TinyRun run) {
        auto result = runOn(Mode::Inline, run, 1);
        return result.ok() ? std::string() : result.status().message();
    };
    TinyRun run = twoPassRun(Optimizer::Factored, kLightFormats[2], 2);
    run.recompute = Recompute::Cheap;
    QVERIFY(refusal(run).find("needs recompute block") != std::string::npos);
    run.recompute = Recompute::Block;
    run.codedInputs = true;
    QVERIFY(refusal(run).find("keep-inputs bf16") != std::string::npos);
    run.codedInputs = false;
    run.options["order"] = "by-microbatch";
    QVERIFY(refusal(run).find("order") != std::string::npos);
    run.options.erase("order");
    run.light = {};
    QVERIFY(refusal(run).find("are of light optimizers") != std::string::npos);
}

MR_TEST(TestTwoPasses)

} // namespace mr::test::tst_two_passes

#include "tst_two_passes.moc"
