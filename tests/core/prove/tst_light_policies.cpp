// Updates behind backward: every light optimizer and format of weights gives the bits of `resident`
// under every policy, order, tile, thread count and device mode, and moves the bytes that were
// planned.

#include "core/prove/light_variants.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <map>
#include <string>

namespace mr::test::tst_light_policies {

namespace {

using Mode = CpuDeviceOptions::Mode;

} // namespace

class TestLightPolicies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void rowsAreChosenAnew_data();
    void rowsAreChosenAnew();
    void embeddingAndHeadMayComeByTiles_data();
    void embeddingAndHeadMayComeByTiles();
    void theNormOfTheStepBeforeClips();
    void streamedBytesAreThoseOfTheFormula_data();
    void streamedBytesAreThoseOfTheFormula();

private:
    void compareVariants(
        const TinyRun& base, const TinyResult& plain, std::span<const LightVariant> variants);

    QTemporaryDir m_folder;
};

void TestLightPolicies::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("format");
    QTest::addColumn<bool>("tied");
    QTest::addColumn<int>("accumulate");
    for (const OptimizerInfo& optimizer : kOptimizers)
        for (int format = 0;
             updatesBehindBackward(optimizer) && format < int(std::size(kLightFormats)); ++format)
            for (const int accumulate : {1, 4})
                QTest::addRow("%s, %s, accumulate %d", std::string(name(optimizer.id)).c_str(),
                    kLightFormats[format].name, accumulate)
                    << int(optimizer.id) << format << (accumulate > 1) << accumulate;
}

void TestLightPolicies::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(int, optimizer);
    QFETCH(int, format);
    QFETCH(bool, tied);
    QFETCH(int, accumulate);
    TinyRun base = lightRun(static_cast<Optimizer>(optimizer), kLightFormats[format]);
    base.config = tinyConfig(tied);
    base.accumulate = accumulate;

    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms) // it trains at all
        QVERIFY(std::isfinite(norm) && norm > 0.0);
    if (accumulate > 1) // else each step sees other sequences
        QVERIFY(plain.losses.back() < plain.losses.front());
    compareVariants(base, plain, kLightVariants);
}

void TestLightPolicies::compareVariants(
    const TinyRun& base, const TinyResult& plain, std::span<const LightVariant> variants)
{
    for (const LightVariant& variant : variants) {
        TinyRun run = variant.of(base);
        run.disk.folders = {m_folder.path().toStdString()};
        compareRuns(resultOn(variant.mode, run, variant.threads), plain, variant.name);
        if (QTest::currentTestFailed())
            return;
    }
}

void TestLightPolicies::rowsAreChosenAnew_data()
{
    QTest::addColumn<int>("format");
    for (int format = 1; format < int(std::size(kLightFormats)); ++format)
        QTest::newRow(kLightFormats[format].name) << format;
}

// Two updates beyond the second choice.
void TestLightPolicies::rowsAreChosenAnew()
{
    QFETCH(int, format);
    TinyRun base = lightRun(Optimizer::Grass, kLightFormats[format]);
    base.accumulate = 1;
    base.seqLen = 8;
    base.steps = 202;
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const LightVariant& variant : kLightVariants) {
        const std::string_view name = variant.name;
        if (name != "streamed, tiles of 1,024" &&
            name != "zero-offload, small tiles, by micro-batch" &&
            name != "ssd-vertical, weights too")
            continue;
        compareVariants(base, plain, {&variant, 1});
    }
}

void TestLightPolicies::embeddingAndHeadMayComeByTiles_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("accumulate");
    for (const OptimizerInfo& optimizer : kOptimizers)
        for (int format = 1; updatesByTiles(optimizer.id) && format < int(std::size(kLightFormats));
             ++format)
            for (const int accumulate : {1, 4})
                QTest::addRow("%s, %s, accumulate %d", std::string(name(optimizer.id)).c_str(),
                    kLightFormats[format].name, accumulate)
                    << int(optimizer.id) << format << accumulate;
}

// The vocabulary has six parts, of which the last is shorter.
void TestLightPolicies::embeddingAndHeadMayComeByTiles()
{
    QFETCH(int, optimizer);
    QFETCH(int, format);
    QFETCH(int, accumulate);
    TinyRun base = lightRun(static_cast<Optimizer>(optimizer), kLightFormats[format]);
    base.config = tinyConfig(false);
    base.config.vocab = 295;
    base.config.logitCap = format == 1 ? 20.0 : 0.0;
    base.config.embeddingScale = format == 2 ? 4.9 : 1.0;
    base.headPart = 50;
    base.codedInputs = format == 3; // rows of the embedding come as they are
    base.recompute = Recompute::Block;
    base.accumulate = accumulate;
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms)
        QVERIFY(std::isfinite(norm) && norm > 0.0);
    TinyRun inOne = base;
    inOne.headPart = 0;
    const TinyResult whole = resultOn(Mode::Inline, inOne, 1);
    // Sums of another order; BF16 may hide them from all weights of a short run.
    QVERIFY(format != 1 || plain.weightsHash != whole.weightsHash || plain.losses != whole.losses);
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY(std::abs(plain.losses[i] - whole.losses[i]) < 2e-2 * whole.losses[i]);
    compareVariants(base, plain, kTiledVariants);
}

// The first step is not clipped, the second by the norm of the first: norms part with the third. A
// limit that no norm reaches changes nothing.
void TestLightPolicies::theNormOfTheStepBeforeClips()
{
    TinyRun run = lightRun(Optimizer::Factored, kLightFormats[2]);
    run.accumulate = 3;
    const TinyResult own = resultOn(Mode::Inline, run, 1);
    QVERIFY(own.norms.size() > 3);
    run.options = {{"clip-mode", "previous-norm"}};
    run.clipNorm = 1e6;
    compareRuns(resultOn(Mode::Inline, run, 1), own, "a limit that no norm reaches");
    run.clipNorm = own.norms[0] / 3.0;
    const TinyResult clipped = resultOn(Mode::Inline, run, 1);
    QCOMPARE(clipped.norms[0], own.norms[0]);
    QCOMPARE(clipped.norms[1], own.norms[1]);
    QVERIFY(clipped.norms[2] != own.norms[2]);
    for (const char* policy : {"zero-offload", "streamed"}) {
        run.policy = policy;
        run.options["tile"] = "8KiB";
        compareRuns(resultOn(Mode::Threaded, run, 2), clipped, policy);
    }
}

void TestLightPolicies::streamedBytesAreThoseOfTheFormula_data()
{
    QTest::addColumn<int>("format");
    for (int format = 0; format < int(std::size(kLightFormats)); ++format)
        QTest::newRow(kLightFormats[format].name) << format;
}

// Weights come for forward and for backward, the rest of them for the update, and both go home. No
// gradient leaves the device, and no disk is asked.
void TestLightPolicies::streamedBytesAreThoseOfTheFormula()
{
    QFETCH(int, format);
    const LightFormat& how = kLightFormats[format];
    TinyRun run = lightRun(Optimizer::Factored, how);
    run.policy = "streamed";
    run.options = {{"buffers", "1"}}; // with two, backward finds the last blocks of forward there
    run.recompute = Recompute::Block;
    const PlainRunSpec spec = plainRunSpec(run);
    const ModelShape shape = modelShape(spec.config, PlainRun::tableOf(spec).value(), spec.micro);
    const MemoryPlan memory = PlainRun::plan(spec).value();
    const OffloadPolicy policy = makePolicy(run.policy, run.options, run.light).value();
    const Precision precision = how.compute == DType::F32 ? Precision::F32 : Precision::BF16;
    const Budget all{std::size_t{1} << 40, std::size_t{1} << 40, 0};
    const BuiltStep step =
        buildPlan({1, 3, 0.0, Recompute::Block, precision}, Carry{}, shape, all, Feedback{}, policy)
            .value();

    std::map<TaskKind, std::int64_t> moved; // of blocks
    std::int64_t elements = 0;
    for (std::size_t g = 1; g + 1 < shape.groups.size(); ++g)
        elements += shape.groups[g].elements;
    for (const Task& task : step.plan.tasks)
        if (task.group.value > 0 && task.group.value + 1 < shape.layers())
            moved[task.kind] += copyBytes(step.plan, task, shape, precision);
    QCOMPARE(moved[TaskKind::SendGradient], 0);
    // The top block is still there when backward begins.
    const std::int64_t again = shape.groups[std::size_t(shape.layers()) - 2].elements *
                               (precision == Precision::F32 ? 4 : 2);
    QCOMPARE(
        moved[TaskKind::FetchWeights] + moved[TaskKind::FetchState], how.up * elements - again);
    QCOMPARE(moved[TaskKind::StoreState], how.down * elements);
    QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::Gradients), std::size_t{0});
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Gradients), std::size_t{0});
    QCOMPARE(memory.bytes(Tier::Disk), std::size_t{0});
}

MR_TEST(TestLightPolicies)

} // namespace mr::test::tst_light_policies

#include "tst_light_policies.moc"
