// Training without backward: each policy has the bits of `resident`, and every step is the one that
// two forward passes of a model with moved weights give by themselves.

#include "core/device/adamw.h"
#include "core/prove/light_variants.h"
#include "core/prove/plain_run.h"
#include "core/prove/plain_run_inputs.h"
#include "core/prove/state_of.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mr::test::tst_forward_probes {

namespace {

using Mode = CpuDeviceOptions::Mode;

TinyRun probeRun(const LightFormat& format, int accumulate, bool tied)
{
    TinyRun run = lightRun(Optimizer::Mezo, format);
    run.config = tinyConfig(tied);
    run.accumulate = accumulate;
    run.recompute = Recompute::Block;
    return run;
}

// A run of one step, from weights that are given or made up.
struct Stepped {
    double norm = 0.0;
    double loss = 0.0;
    std::vector<ParamGroup> groups;
    MasterBuffers before;
    MasterBuffers after;
};

Stepped step(const PlainRunSpec& spec, MasterReader* from = nullptr)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    auto created = PlainRun::create(*device, spec);
    if (!created.ok())
        qFatal("%s", created.status().message().c_str());
    PlainRun& run = *created.value();
    const Status installed =
        from ? installMaster(run.executor(), run.memory(), *from) : installCheapWeights(run);
    if (!installed.ok())
        qFatal("%s", installed.message().c_str());
    const auto micros = randomBatch(spec.config.vocab, spec.micro);
    const auto tokens = static_cast<double>(spec.micro.microBatches * spec.micro.tokens());
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = static_cast<float>(1.0 / tokens);
    inputs.factors = adamwFactors(spec.adamw, spec.learningRate, 1);
    inputs.update = 1;
    inputs.seed = 11;
    MasterBuffers before = stateOf(run);
    auto result = run.step(inputs);
    if (!result.ok())
        qFatal("%s", result.status().message().c_str());
    return {result.value().scalars.gradNorm, result.value().lossSum / tokens, run.table().groups,
        std::move(before), stateOf(run)};
}

// Calls fn(group, element, decayed) for every element of a weight; gaps are none.
template <typename F>
void forWeights(const std::vector<ParamGroup>& groups, F&& fn)
{
    for (std::size_t g = 0; g < groups.size(); ++g)
        for (const ParamSlot& slot : groups[g].paramSlots)
            for (std::int64_t i = slot.first; i < slot.first + slot.rows * slot.cols; ++i)
                fn(g, static_cast<std::size_t>(i), slot.decayed);
}

double valueOf(const MasterBuffers& master, std::size_t group, std::size_t element)
{
    return static_cast<double>(joinHalves(master.high[group][element], master.low[group][element]));
}

void setValue(MasterBuffers& master, std::size_t group, std::size_t element, double value)
{
    master.high[group][element] = highHalf(static_cast<float>(value));
    master.low[group][element] = lowHalf(static_cast<float>(value));
}

} // namespace

class TestForwardProbes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyPolicyGivesTheBitsOfResident_data();
    void everyPolicyGivesTheBitsOfResident();
    void aStepGoesDownTheSlopeOfTwoPasses_data();
    void aStepGoesDownTheSlopeOfTwoPasses();
    void whatHasNoPlaceIsRefused();

private:
    QTemporaryDir m_folder;
};

void TestForwardProbes::everyPolicyGivesTheBitsOfResident_data()
{
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("accumulate");
    QTest::addColumn<bool>("tied");
    for (int format = 0; format < int(std::size(kLightFormats)); ++format)
        for (const int accumulate : {1, 3})
            for (const bool tied : {false, true})
                QTest::addRow("%s, accumulate %d, %s", kLightFormats[format].name, accumulate,
                    tied ? "tied" : "two ends")
                    << format << accumulate << tied;
}

void TestForwardProbes::everyPolicyGivesTheBitsOfResident()
{
    QFETCH(int, format);
    QFETCH(int, accumulate);
    QFETCH(bool, tied);
    const TinyRun base = probeRun(kLightFormats[format], accumulate, tied);
    const TinyResult plain = resultOn(Mode::Inline, base, 1);
    for (const double norm : plain.norms)
        QVERIFY(std::isfinite(norm) && norm > 0.0);
    for (const LightVariant& variant : kLightVariants) {
        if (variant.options.count("order") > 0)
            continue; // it has one order
        TinyRun run = variant.of(base);
        run.disk.folders = {m_folder.path().toStdString()};
        compareRuns(resultOn(variant.mode, run, variant.threads), plain, variant.name);
        if (QTest::currentTestFailed())
            return;
    }
}

void TestForwardProbes::aStepGoesDownTheSlopeOfTwoPasses_data()
{
    QTest::addColumn<bool>("tied");
    QTest::addColumn<int>("part");
    QTest::newRow("two ends") << false << 0;
    QTest::newRow("tied") << true << 0;
    QTest::newRow("the head's sums in parts") << false << 50;
}

// The signs of the step are those of the way the weights went. Losses at weights moved along them
// are computed by a run of AdamW.
void TestForwardProbes::aStepGoesDownTheSlopeOfTwoPasses()
{
    QFETCH(bool, tied);
    QFETCH(int, part);
    TinyRun tiny = probeRun(kLightFormats[0], 3, tied);
    tiny.config.vocab = part > 0 ? 295 : tiny.config.vocab;
    tiny.headPart = part;
    tiny.seqLen = part > 0 ? 13 : tiny.seqLen; // rows of losses that begin anywhere
    PlainRunSpec spec = plainRunSpec(tiny);
    spec.adamw.weightDecay = 0.0;
    const Stepped probed = step(spec);
    const double size = spec.learningRate * probed.norm;
    MasterBuffers up = probed.before;
    MasterBuffers down = probed.before;
    std::int64_t all = 0;
    std::int64_t positive = 0;
    double worst = 0.0;
    forWeights(probed.groups, [&](std::size_t g, std::size_t i, bool /*decayed*/) {
        const double before = valueOf(probed.before, g, i);
        const double moved = before - valueOf(probed.after, g, i);
        const double sign = moved > 0.0 ? 1.0 : -1.0;
        worst = std::max(worst, std::abs(std::abs(moved) - size) / (std::abs(before) + size));
        ++all;
        positive += moved > 0.0 ? 1 : 0;
        setValue(up, g, i, before + 1e-3 * sign);
        setValue(down, g, i, before - 1e-3 * sign);
    });
    QVERIFY(size > 0.0 && worst < 2e-7); // rounding of the weight
    QVERIFY(std::abs(static_cast<double>(positive) / static_cast<double>(all) - 0.5) < 0.05);

    PlainRunSpec adamw = spec;
    adamw.light = {};
    const double slope = (step(adamw, &up).loss - step(adamw, &down).loss) / 2e-3;
    QVERIFY2(std::abs(slope - probed.norm) < 1e-3 + 5e-3 * slope,
        qPrintable(QStringLiteral("%1, not %2").arg(probed.norm).arg(slope)));

    spec.adamw.weightDecay = 0.5;
    const Stepped decayed = step(spec);
    QCOMPARE(decayed.norm, probed.norm);
    forWeights(probed.groups, [&](std::size_t g, std::size_t i, bool decays) {
        const double expected =
            valueOf(probed.after, g, i) -
            (decays ? spec.learningRate * 0.5 : 0.0) * valueOf(probed.before, g, i);
        QVERIFY(std::abs(valueOf(decayed.after, g, i) - expected) <
                3e-7 * (std::abs(valueOf(probed.before, g, i)) + size));
    });
}

void TestForwardProbes::whatHasNoPlaceIsRefused()
{
    const auto refusal = [](TinyRun run) {
        auto result = runOn(Mode::Inline, run, 1);
        return result.ok() ? std::string() : result.status().message();
    };
    TinyRun run = probeRun(kLightFormats[2], 2, false);
    run.options = {{"order", "by-layer"}};
    QVERIFY(refusal(run).find("makes no backward pass") != std::string::npos);
    run.options = {{"clip-mode", "two-pass"}};
    QVERIFY(refusal(run).find("makes no backward pass") != std::string::npos);
    run.options.clear();
    run.codedInputs = true;
    QVERIFY(refusal(run).find("keeps no inputs of blocks") != std::string::npos);
    run.codedInputs = false;
    run.policy = "streamed";
    run.options = {{"vocabulary", "host"}};
    QVERIFY(!refusal(run).empty());
}

MR_TEST(TestForwardProbes)

} // namespace mr::test::tst_forward_probes

#include "tst_forward_probes.moc"
