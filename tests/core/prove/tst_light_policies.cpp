// Updates behind backward: every light optimizer and format of weights gives the bits of `resident`
// under every policy, order, tile, thread count and device mode, and moves the bytes that were
// planned.

#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <map>
#include <string>

namespace mr::test::tst_light_policies {

namespace {

using Mode = CpuDeviceOptions::Mode;

struct Variant {
    const char* name;
    const char* policy;
    Mode mode = Mode::Inline;
    int threads = 1;
    Recompute recompute = Recompute::Block;
    std::map<std::string, std::string> options = {};
};

// Embedding and head on the host, in tiles of one to three parts of the vocabulary.
const Variant kTiledVariants[] = {
    {"resident by micro-batch", "resident", Mode::Inline, 2, Recompute::None,
        {{"order", "by-microbatch"}}},
    {"one part", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"tile", "2KiB"}}},
    {"two parts", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"tile", "6KiB"}}},
    {"three parts, all blocks stay", "streamed", Mode::Threaded, 1, Recompute::None,
        {{"vocabulary", "host"}, {"weights-on-device", "1"}}},
    {"one buffer", "streamed", Mode::Inline, 1, Recompute::Block,
        {{"vocabulary", "host"}, {"buffers", "1"}}},
    {"by micro-batch", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"order", "by-microbatch"}, {"tile", "6KiB"}}},
    {"beside a disk", "ssd-vertical", Mode::Threaded, 2, Recompute::Block,
        {{"vocabulary", "host"}, {"weights-on-disk", "1"}, {"boundaries-on-disk", "1"},
            {"tile", "6KiB"}}},
};

// None of these may change a bit.
const Variant kLightVariants[] = {
    {"resident, 2 threads", "resident", Mode::Inline, 2},
    {"resident, 7 threads, threaded", "resident", Mode::Threaded, 7, Recompute::None},
    {"resident, by micro-batch", "resident", Mode::Threaded, 2, Recompute::None,
        {{"order", "by-microbatch"}}},
    {"zero-offload", "zero-offload", Mode::Threaded, 2},
    {"zero-offload, small tiles, by micro-batch", "zero-offload", Mode::Threaded, 2,
        Recompute::Cheap, {{"tile", "8KiB"}, {"order", "by-microbatch"}}},
    {"streamed", "streamed", Mode::Inline, 1},
    {"streamed, threaded", "streamed", Mode::Threaded, 2},
    {"streamed, tiles of 1,024", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"tile", "2KiB"}}},
    {"streamed, tiles of 3,072, one buffer", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"tile", "24KiB"}, {"buffers", "1"}}},
    {"streamed, tiles of 8,192, boundaries on the device", "streamed", Mode::Threaded, 1,
        Recompute::None, {{"tile", "64KiB"}, {"boundary", "device"}}},
    {"streamed, by micro-batch", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"order", "by-microbatch"}, {"tile", "4KiB"}}},
    {"streamed, two of three blocks stay, one whole", "streamed", Mode::Threaded, 2,
        Recompute::Block,
        {{"weights-on-device", "0.7"}, {"state-on-device", "0.35"}, {"tile", "8KiB"}}},
    {"ssd-vertical", "ssd-vertical", Mode::Threaded, 2, Recompute::Block, {{"tile", "8KiB"}}},
    {"ssd-vertical, weights too", "ssd-vertical", Mode::Threaded, 2, Recompute::Block,
        {{"weights-on-disk", "1"}, {"tile", "4KiB"}}},
    {"ssd-vertical, all but gradients", "ssd-vertical", Mode::Inline, 1, Recompute::Block,
        {{"weights-on-disk", "0.5"}, {"boundaries-on-disk", "1"}, {"disk-share", "0.7"},
            {"tile", "24KiB"}}},
    {"ssd-vertical, one buffer, some blocks stay", "ssd-vertical", Mode::Threaded, 2,
        Recompute::Block,
        {{"weights-on-disk", "1"}, {"weights-on-device", "0.4"}, {"buffers", "1"},
            {"tile", "8KiB"}}},
    {"ssd-vertical, vocabulary alone", "ssd-vertical", Mode::Threaded, 2, Recompute::Block,
        {{"disk-groups", "vocabulary"}, {"tile", "8KiB"}}},
    {"streamed, nothing streams", "streamed", Mode::Threaded, 2, Recompute::Block,
        {{"weights-on-device", "1"}, {"state-on-device", "1"}}},
};

struct Format {
    const char* name;
    DType compute;
    StateCodec state;
    std::int64_t up; // bytes a streamed element moves in a step
    std::int64_t down;
};

constexpr Format kFormats[] = {
    {"fp32", DType::F32, StateCodec::Halves, 12, 4},
    {"bf16, halves", DType::BF16, StateCodec::Halves, 6, 4},
    {"bf16, 24 bit", DType::BF16, StateCodec::Bits24, 5, 3},
    {"bf16, at random", DType::BF16, StateCodec::Random16, 4, 2},
};

TinyRun lightRun(Optimizer optimizer, const Format& format)
{
    TinyRun run;
    run.compute = format.compute;
    run.light = {optimizer, format.state};
    return run;
}

} // namespace

class TestLightPolicies : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void embeddingAndHeadMayComeByTiles_data();
    void embeddingAndHeadMayComeByTiles();
    void theNormOfTheStepBeforeClips();
    void streamedBytesAreThoseOfTheFormula_data();
    void streamedBytesAreThoseOfTheFormula();

private:
    void compareVariants(
        const TinyRun& base, const TinyResult& plain, std::span<const Variant> variants);

    QTemporaryDir m_folder;
};

void TestLightPolicies::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("format");
    QTest::addColumn<bool>("tied");
    QTest::addColumn<int>("accumulate");
    for (const OptimizerInfo& optimizer : kOptimizers)
        for (int format = 0; optimizer.isLight && format < int(std::size(kFormats)); ++format)
            for (const int accumulate : {1, 4})
                QTest::addRow("%s, %s, accumulate %d", std::string(name(optimizer.id)).c_str(),
                    kFormats[format].name, accumulate)
                    << int(optimizer.id) << format << (accumulate > 1) << accumulate;
}

void TestLightPolicies::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(int, optimizer);
    QFETCH(int, format);
    QFETCH(bool, tied);
    QFETCH(int, accumulate);
    TinyRun base = lightRun(static_cast<Optimizer>(optimizer), kFormats[format]);
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
    const TinyRun& base, const TinyResult& plain, std::span<const Variant> variants)
{
    for (const Variant& variant : variants) {
        TinyRun run = base;
        run.policy = variant.policy;
        run.options = variant.options;
        run.recompute = base.codedInputs ? Recompute::Block : variant.recompute;
        run.disk.folders = {m_folder.path().toStdString()};
        run.disk.store.verify = DiskVerify::All;
        compareRuns(resultOn(variant.mode, run, variant.threads), plain, variant.name);
        if (QTest::currentTestFailed())
            return;
    }
}

void TestLightPolicies::embeddingAndHeadMayComeByTiles_data()
{
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("accumulate");
    for (const OptimizerInfo& optimizer : kOptimizers)
        for (int format = 1;
             optimizer.isLight && !optimizer.isRelative && format < int(std::size(kFormats));
             ++format)
            for (const int accumulate : {1, 4})
                QTest::addRow("%s, %s, accumulate %d", std::string(name(optimizer.id)).c_str(),
                    kFormats[format].name, accumulate)
                    << int(optimizer.id) << format << accumulate;
}

// The vocabulary has six parts, of which the last is shorter.
void TestLightPolicies::embeddingAndHeadMayComeByTiles()
{
    QFETCH(int, optimizer);
    QFETCH(int, format);
    QFETCH(int, accumulate);
    TinyRun base = lightRun(static_cast<Optimizer>(optimizer), kFormats[format]);
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
    QVERIFY(format != 1 || plain.weightsHash != whole.weightsHash); // sums of another order
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        QVERIFY(std::abs(plain.losses[i] - whole.losses[i]) < 2e-2 * whole.losses[i]);
    compareVariants(base, plain, kTiledVariants);
}

// The first step is not clipped, the second by the norm of the first: norms part with the third. A
// limit that no norm reaches changes nothing.
void TestLightPolicies::theNormOfTheStepBeforeClips()
{
    TinyRun run = lightRun(Optimizer::Factored, kFormats[2]);
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
    for (int format = 0; format < int(std::size(kFormats)); ++format)
        QTest::newRow(kFormats[format].name) << format;
}

// Weights come for forward and for backward, the rest of them for the update, and both go home. No
// gradient leaves the device, and no disk is asked.
void TestLightPolicies::streamedBytesAreThoseOfTheFormula()
{
    QFETCH(int, format);
    const Format& how = kFormats[format];
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
