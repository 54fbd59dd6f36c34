// Where no norm of all groups is needed, a gradient that is not finite skips its own group and no
// other, alike with every policy.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run.h"
#include "core/prove/plain_run_inputs.h"
#include "core/prove/state_of.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mr::test::tst_eager_skips {

namespace {

constexpr int kGroups = 5; // in tinyConfig()
constexpr int kBad = 2;    // the group that is spoiled
constexpr int kSteps = 4;
constexpr int kSpoiled = 2; // a step, from 1

// Puts an infinity into the sum of one group before it is rounded, or, where a light optimizer
// reads the sum itself, before its norm is taken. Inline: all work enqueued before is done. One
// call is about each group, the head first.
class SpoilingDevice final : public mr::test::WrappedDevice
{
public:
    SpoilingDevice(Device& device, bool isLightRun)
        : WrappedDevice(device)
        , m_call(isLightRun ? "normBlocks" : "finishGradient")
    {
    }

    // From now on the sum at `place` when the group's turn comes; null: none.
    void spoil(std::byte* place)
    {
        m_place = place;
        m_finished = 0;
    }

    Status onCall(const DeviceCall& call) override
    {
        if (call.what != m_call || ++m_finished != kGroups - kBad || !m_place)
            return {};
        vectorView(m_place, DType::F32, 1).as<float>()[0] = std::numeric_limits<float>::infinity();
        return {};
    }

private:
    const std::string m_call;
    std::byte* m_place = nullptr;
    int m_finished = 0;
};

struct Trained {
    std::vector<int> finite;            // by step
    std::vector<int> skipped;           // by step: groups
    std::vector<MasterBuffers> masters; // after the first, the spoiled and the last step
};

using Options = std::map<std::string, std::string>;

PlainRunSpec specOf(const std::string& policy, Options options, double clip)
{
    TinyRun tiny;
    tiny.config = tinyConfig(false);
    tiny.policy = policy;
    options["order"] = "by-layer";
    tiny.options = std::move(options);
    tiny.recompute = Recompute::Block;
    PlainRunSpec spec = plainRunSpec(tiny);
    spec.micro.microBatches = 2;
    spec.micro.compute = DType::BF16;
    spec.clipNorm = clip;
    return spec;
}

// `spoils`: one group in one of the steps.
Trained train(const PlainRunSpec& spec, bool spoils = true)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto inner = std::move(makeCpuDevice(options)).value();
    SpoilingDevice device(*inner, isLight(spec.light.optimizer));
    auto created = PlainRun::create(device, spec);
    if (!created.ok())
        qFatal("%s", created.status().message().c_str());
    PlainRun& run = *created.value();
    if (!installCheapWeights(run).ok())
        qFatal("weights");
    const auto micros = randomBatch(spec.config.vocab, spec.micro);
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = 1.0F / static_cast<float>(2 * spec.micro.tokens());
    inputs.clipNorm = spec.clipNorm;
    Trained trained;
    for (int s = 1; s <= kSteps; ++s) {
        const bool spoiled = spoils && s == kSpoiled;
        device.spoil(spoiled ? run.memory().group(GroupId{kBad}).accumulator : nullptr);
        inputs.factors = adamwFactors(spec.adamw, spec.learningRate, s);
        auto step = run.step(inputs);
        if (!step.ok())
            qFatal("%s", step.status().message().c_str());
        trained.finite.push_back(step.value().scalars.finite);
        trained.skipped.push_back(step.value().skippedGroups);
        if (s == 3)
            continue; // late parts are left to the last step
        if (!run.finishLateParts().ok())
            qFatal("late parts");
        trained.masters.push_back(mr::test::stateOf(run));
    }
    return trained;
}

bool isSame(const MasterBuffers& a, const MasterBuffers& b, std::size_t group)
{
    return a.high[group] == b.high[group] && a.low[group] == b.low[group];
}

} // namespace

class TestEagerSkips : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void onlyTheGroupThatIsNotFiniteIsSkipped_data();
    void onlyTheGroupThatIsNotFiniteIsSkipped();
    void everyPolicySkipsTheSameGroup_data();
    void everyPolicySkipsTheSameGroup();
    void exactClippingSkipsAllGroups();
    void aLightUpdateLeavesItsGroupAlone_data();
    void aLightUpdateLeavesItsGroupAlone();
    void noGroupIsUpdatedByANormThatIsNotFinite_data() { aLightUpdateLeavesItsGroupAlone_data(); }
    void noGroupIsUpdatedByANormThatIsNotFinite();

private:
    QTemporaryDir m_folder;
};

void TestEagerSkips::onlyTheGroupThatIsNotFiniteIsSkipped_data()
{
    QTest::addColumn<double>("clip");
    QTest::newRow("not clipped") << 0.0;
    QTest::newRow("each group by its own norm") << 0.05;
}

void TestEagerSkips::onlyTheGroupThatIsNotFiniteIsSkipped()
{
    QFETCH(double, clip);
    const PlainRunSpec spec = specOf("resident", {{"clip-mode", "per-group"}}, clip);

    const Trained whole = train(spec, false);
    const Trained trained = train(spec);

    QCOMPARE(trained.finite, (std::vector<int>{1, 0, 1, 1}));
    QCOMPARE(trained.skipped, (std::vector<int>{0, 1, 0, 0}));
    for (std::size_t g = 0; g < kGroups; ++g) {
        QCOMPARE(isSame(trained.masters[1], trained.masters[0], g), g == kBad);
        // The others end as without the fault.
        QCOMPARE(isSame(trained.masters[1], whole.masters[1], g), g != kBad);
        QVERIFY(!isSame(trained.masters[2], trained.masters[1], g)); // it goes on
    }
}

void TestEagerSkips::aLightUpdateLeavesItsGroupAlone_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<int>("optimizer");
    for (const char* policy : {"resident", "zero-offload", "streamed", "ssd-vertical"})
        for (const Optimizer optimizer : {Optimizer::Factored, Optimizer::Grass})
            QTest::addRow("%s, %s", policy, std::string(name(optimizer)).c_str())
                << QString::fromLatin1(policy) << int(optimizer);
}

void TestEagerSkips::aLightUpdateLeavesItsGroupAlone()
{
    QFETCH(QString, policy);
    QFETCH(int, optimizer);
    PlainRunSpec spec = specOf(policy.toStdString(), {}, 0.0);
    spec.light = {static_cast<Optimizer>(optimizer), StateCodec::Halves};
    spec.disk.folders = {m_folder.path().toStdString()};

    const Trained whole = train(spec, false);
    const Trained trained = train(spec);

    QCOMPARE(trained.skipped, (std::vector<int>{0, 1, 0, 0}));
    for (std::size_t g = 0; g < kGroups; ++g) {
        QCOMPARE(isSame(trained.masters[1], trained.masters[0], g), g == kBad);
        QCOMPARE(isSame(trained.masters[1], whole.masters[1], g), g != kBad);
        QVERIFY(!isSame(trained.masters[2], trained.masters[1], g)); // averages are not spoiled
    }
}

// Found before anything is updated, where backward comes twice.
void TestEagerSkips::noGroupIsUpdatedByANormThatIsNotFinite()
{
    QFETCH(QString, policy);
    PlainRunSpec spec = specOf(policy.toStdString(), {{"clip-mode", "two-pass"}}, 0.05);
    spec.light = {Optimizer::Factored, StateCodec::Halves};
    spec.disk.folders = {m_folder.path().toStdString()};

    const Trained trained = train(spec);

    QCOMPARE(trained.finite, (std::vector<int>{1, 0, 1, 1}));
    QCOMPARE(trained.skipped, (std::vector<int>{0, kGroups, 0, 0}));
    for (std::size_t g = 0; g < kGroups; ++g) {
        QVERIFY(isSame(trained.masters[1], trained.masters[0], g));
        QVERIFY(!isSame(trained.masters[2], trained.masters[1], g));
    }
}

void TestEagerSkips::everyPolicySkipsTheSameGroup_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("late");
    QTest::addColumn<double>("clip");
    for (const double clip : {0.0, 0.05})
        for (const char* policy : {"zero-offload", "streamed", "ssd-vertical"})
            for (const char* late : {"0", "0.25"})
                QTest::addRow("%s, %s late, clip %g", policy, late, clip)
                    << QString::fromUtf8(policy) << QString::fromUtf8(late) << clip;
}

void TestEagerSkips::everyPolicySkipsTheSameGroup()
{
    QFETCH(QString, policy);
    QFETCH(QString, late);
    QFETCH(double, clip);
    const Trained resident = train(specOf("resident", {{"clip-mode", "per-group"}}, clip));
    PlainRunSpec spec = specOf(policy.toStdString(),
        {{"clip-mode", "per-group"}, {"late", late.toStdString()}, {"tile", "4KiB"}}, clip);
    spec.disk.folders = {m_folder.path().toStdString()};

    const Trained trained = train(spec);

    QCOMPARE(trained.finite, resident.finite);
    QCOMPARE(trained.skipped, resident.skipped);
    for (std::size_t m = 0; m < trained.masters.size(); ++m)
        for (std::size_t g = 0; g < kGroups; ++g)
            QVERIFY(isSame(trained.masters[m], resident.masters[m], g));
}

void TestEagerSkips::exactClippingSkipsAllGroups()
{
    for (const char* policy : {"resident", "streamed"}) {
        const Trained trained = train(specOf(policy, {}, 0.05));

        QCOMPARE(trained.finite, (std::vector<int>{1, 0, 1, 1}));
        QCOMPARE(trained.skipped, (std::vector<int>{0, kGroups, 0, 0}));
        for (std::size_t g = 0; g < kGroups; ++g)
            QVERIFY(isSame(trained.masters[1], trained.masters[0], g));
    }
}

MR_TEST_WITH_APP(TestEagerSkips)

} // namespace mr::test::tst_eager_skips

#include "tst_eager_skips.moc"
