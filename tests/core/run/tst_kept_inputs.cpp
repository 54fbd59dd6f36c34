// Runs whose blocks keep their inputs in 8 bits until backward: the bits of `resident` under every
// policy and after a stop, gradients beside those of inputs as they are, evaluations that know
// nothing of it, and settings that do not go with it.

#include "core/choose/policy_trials.h"
#include "core/run/golden_rig.h"
#include "core/run/run_data.h"
#include "core/run/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <algorithm>
#include <map>

namespace mr::test::tst_kept_inputs {

namespace {

RunSpec keptSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.keepInputs = KeepInputs::Int8;
    spec.diskPaths = {rig.folder.path()};
    return spec;
}

const How kHows[] = {
    {"resident", "resident", {{"order", "by-microbatch"}}},
    {"zero-offload", "zero-offload", {}},
    {"streamed", "streamed", {{"tile", "8KiB"}}},
    {"ssd-vertical", "ssd-vertical", {{"boundaries-on-disk", "1"}, {"tile", "8KiB"}}},
};

constexpr std::size_t kSampleRows = 8; // of a batch

RunSpec sampleSpec(KeepInputs kept)
{
    const std::string sample =
        qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/resources/sample/";
    RunSpec spec = goldenSpec(sample + "model", {48, kSampleRows, 1}, RecomputeChoice::Block);
    spec.data = {{sample + "train.jsonl", DataFormat::Auto, {}}};
    spec.keepInputs = kept;
    return spec;
}

std::vector<TokenSequence> sampleRows(const GoldenRig& rig, std::size_t batch)
{
    const RunData data = valueOf(readRunData(rig.setup.spec, rig.setup.config.vocab));
    std::vector<TokenSequence> rows(kSampleRows);
    for (std::size_t row = 0; row < rows.size(); ++row)
        require(data.train.sequences.read(
            static_cast<std::int64_t>(batch * kSampleRows + row), rows[row]));
    return rows;
}

// All gradients side by side, in fp32.
std::vector<float> gradientsOf(GoldenRig& rig, const std::vector<TokenSequence>& rows)
{
    (void)rig.step(rows);
    std::vector<float> all;
    for (const NamedTensor& tensor : rig.setup.table.tensors) {
        const std::span<const float> one = rig.gradient(tensor);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b)
{
    double product = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
        product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return product / (norm(a) * norm(b));
}

} // namespace

class TestKeptInputs : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunGoesOnWithTheBitsOfResident_data();
    void aStoppedRunGoesOnWithTheBitsOfResident();
    void gradientsOfTheSampleAreNear();
    void anEvaluationReadsInputsAsTheyAre();
    void autoRecomputesBlocks();
    void noTrialKeepsMoreThanInputs();
    void aSmallerBudgetOnResumeRecomputesBlocksToo();
    void whatHasNoPlaceIsRefused_data();
    void whatHasNoPlaceIsRefused();
    void aRecordWithoutTheFieldKeepsThemAsTheyAre();

private:
    // Hash of a run that never stopped, under `resident`.
    std::string expected(const RunSpec& spec);

    RunRig m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    std::map<std::pair<std::int64_t, PrecisionChoice>, std::string> m_expected;
};

std::string TestKeptInputs::expected(const RunSpec& spec)
{
    std::string& hash = m_expected[{spec.accumulate, spec.precision}];
    if (!hash.empty())
        return hash;
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.policyOptions.clear();
    plain.outDir = m_rig.folder.path("plain " + std::to_string(m_expected.size()));
    return hash = m_rig.train(plain, *m_device).progress.weightsHash;
}

void TestKeptInputs::aStoppedRunGoesOnWithTheBitsOfResident_data()
{
    QTest::addColumn<int>("how");
    QTest::addColumn<int>("precision");
    QTest::addColumn<int>("accumulate");
    for (int how = 0; how < int(std::size(kHows)); ++how)
        for (const PrecisionChoice precision : {PrecisionChoice::BF16, PrecisionChoice::F32})
            for (const int accumulate : {1, 4})
                QTest::addRow("%s, %s, accumulate %d", kHows[how].name,
                    std::string(name(precision)).c_str(), accumulate)
                    << how << int(precision) << accumulate;
}

void TestKeptInputs::aStoppedRunGoesOnWithTheBitsOfResident()
{
    QFETCH(int, how);
    QFETCH(int, precision);
    QFETCH(int, accumulate);
    RunSpec spec = keptSpec(m_rig, QTest::currentDataTag());
    spec.precision = static_cast<PrecisionChoice>(precision);
    spec.accumulate = accumulate;
    spec.policy = kHows[how].policy;
    spec.policyOptions = kHows[how].options;
    spec.checkpointEvery = 5;
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome stopped = m_rig.train(spec, *threaded, stopAt(5));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.step, 5);

    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.step, 12);
    QVERIFY(!expected(spec).empty());
    QCOMPARE(resumed.progress.weightsHash, expected(spec));
    spec.keepInputs = KeepInputs::Bf16;
    spec.recompute = RecomputeChoice::Block;
    spec.outDir += " as they are";
    QVERIFY(m_rig.train(spec, *m_device).progress.weightsHash != expected(spec));
}

// tests/bench/light.md has the figures.
void TestKeptInputs::gradientsOfTheSampleAreNear()
{
    for (std::size_t batch = 0; batch < 3; ++batch) {
        GoldenRig whole(sampleSpec(KeepInputs::Bf16));
        GoldenRig coded(sampleSpec(KeepInputs::Int8));
        const std::vector<TokenSequence> rows = sampleRows(whole, batch);
        const std::vector<float> want = gradientsOf(whole, rows);
        const std::vector<float> got = gradientsOf(coded, rows);
        const double error = distance(got, want) / norm(want);
        qInfo("batch %d: relative error %.4f, cosine %.6f", int(batch), error, cosine(got, want));
        QVERIFY(error > 1e-4);
        QVERIFY(error < 0.02);
        QVERIFY(cosine(got, want) > 0.9995);
    }
}

// A rate so small that no weight moves: losses of training and evaluation are those of inputs as
// they are, and the norm of the gradient is not.
void TestKeptInputs::anEvaluationReadsInputsAsTheyAre()
{
    for (const char* policy : {"resident", "streamed"}) {
        RunSpec spec = keptSpec(m_rig, std::string("evaluated ") + policy);
        spec.policy = policy;
        spec.learningRate = 1e-30;
        spec.weightDecay = 0.0;
        spec.evalEvery = 2;
        spec.steps = 4;
        const Outcome coded = m_rig.train(spec, *m_device);
        spec.keepInputs = KeepInputs::Bf16;
        spec.recompute = RecomputeChoice::Block;
        spec.outDir += " as they are";
        const Outcome whole = m_rig.train(spec, *m_device);

        QVERIFY2(coded.ended.ok(), coded.ended.message().c_str());
        QCOMPARE(coded.progress.weightsHash, whole.progress.weightsHash);
        QVERIFY(coded.progress.evalLoss > 0.0);
        QCOMPARE(coded.progress.evalLoss, whole.progress.evalLoss);
        const std::vector<StepRow> a = m_rig.steps(coded.id);
        const std::vector<StepRow> b = m_rig.steps(whole.id);
        QCOMPARE(a.size(), std::size_t{4});
        QCOMPARE(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
            QCOMPARE(a[i].loss, b[i].loss);
            QVERIFY(a[i].gradNorm != b[i].gradNorm);
        }
    }
}

void TestKeptInputs::autoRecomputesBlocks()
{
    for (const char* policy : {"auto", "resident", "streamed", "ssd-vertical"}) {
        RunSpec spec = keptSpec(m_rig, "resolved");
        spec.policy = policy;
        auto resolved = resolveSpec(spec, 60);
        QVERIFY2(resolved.ok(), resolved.status().message().c_str());
        QVERIFY(resolved.value().recompute == RecomputeChoice::Block);
        QVERIFY(resolved.value().keepInputs == KeepInputs::Int8);
        spec.keepInputs = KeepInputs::Bf16;
        QVERIFY(resolveSpec(spec, 60).value().keepInputs == KeepInputs::Bf16);
    }
}

// With known rates `auto` tries to keep activations on the host, and less recomputation.
void TestKeptInputs::noTrialKeepsMoreThanInputs()
{
    RunSpec spec = keptSpec(m_rig, "trials");
    spec.policy = "auto";
    const auto keepsMore = [](const PolicyTrial& trial) {
        return trial.recompute != Recompute::Block ||
               trial.numbers.activationsOnHost.value_or(0.0) > 0.0;
    };
    RunSetup setup = valueOf(setUpRun(spec, 60));
    setup.spec.policy = "auto"; // it was chosen
    QVERIFY(std::ranges::none_of(trialsOf(setup, true), keepsMore));
    spec.keepInputs = KeepInputs::Bf16;
    setup = valueOf(setUpRun(spec, 60));
    setup.spec.policy = "auto";
    setup.spec.recompute = RecomputeChoice::Auto;
    setup.numbers = {};
    QVERIFY(std::ranges::any_of(trialsOf(setup, true), keepsMore));
}

void TestKeptInputs::aSmallerBudgetOnResumeRecomputesBlocksToo()
{
    RunSpec spec = keptSpec(m_rig, "smaller");
    spec.checkpointEvery = 5;
    (void)m_rig.train(spec, *m_device, stopAt(5));
    m_rig.changes.deviceMemoryBytes =
        static_cast<std::uint64_t>(planRun(spec).value().tiers[0].totalBytes - 1);
    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);
    m_rig.changes = {};

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QVERIFY(readRunSpec(spec.outDir).value().policy != "resident");
    QVERIFY(readRunSpec(spec.outDir).value().recompute == RecomputeChoice::Block);
    QCOMPARE(resumed.progress.weightsHash, expected(spec));
}

void TestKeptInputs::whatHasNoPlaceIsRefused_data()
{
    QTest::addColumn<int>("recompute");
    QTest::addColumn<QString>("kept");
    QTest::addColumn<QString>("words");
    const auto row = [](RecomputeChoice how, const char* kept, const char* words) {
        QTest::addRow("%s %s", std::string(name(how)).c_str(), kept) << int(how) << kept << words;
    };
    row(RecomputeChoice::None, "", "recompute is none; use recompute block, or keep-inputs bf16");
    row(RecomputeChoice::Cheap, "", "recompute is cheap; use recompute block, or keep-inputs bf16");
    row(RecomputeChoice::Block, "0.5", "activations-on-host is 0.5; leave that out");
    row(RecomputeChoice::Auto, "1", "activations-on-host is 1; leave that out");
}

void TestKeptInputs::whatHasNoPlaceIsRefused()
{
    QFETCH(int, recompute);
    QFETCH(QString, kept);
    QFETCH(QString, words);
    RunSpec spec = keptSpec(m_rig, QTest::currentDataTag());
    spec.policy = "streamed";
    spec.recompute = static_cast<RecomputeChoice>(recompute);
    if (!kept.isEmpty())
        spec.policyOptions["activations-on-host"] = kept.toStdString();

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY(!run.opened.ok());
    QVERIFY(run.opened.kind() == ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), "keep-inputs int8"), run.opened.message().c_str());
    QVERIFY2(contains(run.opened.message(), words.toStdString()), run.opened.message().c_str());
    if (!kept.isEmpty()) {
        spec.policyOptions["activations-on-host"] = "0";
        QVERIFY(checkSpec(spec).ok());
    }
}

void TestKeptInputs::aRecordWithoutTheFieldKeepsThemAsTheyAre()
{
    RunSpec spec = keptSpec(m_rig, "record");
    std::string text = toJson(spec);
    QVERIFY(contains(text, "\"keep_inputs\""));
    QVERIFY(runSpecFromJson(text).value().keepInputs == KeepInputs::Int8);
    const std::size_t at = text.find("\"keep_inputs\"");
    text.erase(at, text.find(',', at) + 1 - at);
    QVERIFY(runSpecFromJson(text).value().keepInputs == KeepInputs::Bf16);
}

MR_TEST(TestKeptInputs)

} // namespace mr::test::tst_kept_inputs

#include "tst_kept_inputs.moc"
