// Runs with light optimizers: the same bits under every policy, packed or not and after a stop; an
// adapter and some layers; what is refused.

#include "core/run/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <algorithm>
#include <map>

namespace mr::test::tst_light_runs {

namespace {

RunSpec lightSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.optimizer = Optimizer::Factored;
    spec.precision = PrecisionChoice::BF16;
    spec.accumulate = 4;
    spec.diskPaths = {rig.folder.path()};
    return spec;
}

const How kHows[] = {
    {"resident", "resident", {}},
    {"resident by micro-batch", "resident", {{"order", "by-microbatch"}}},
    {"zero-offload", "zero-offload", {}},
    {"streamed", "streamed", {{"tile", "8KiB"}}},
    {"ssd-vertical", "ssd-vertical", {{"tile", "8KiB"}}},
    {"ssd-vertical, weights too", "ssd-vertical", {{"weights-on-disk", "1"}, {"tile", "4KiB"}}},
};

void howRows()
{
    QTest::addColumn<int>("how");
    QTest::addColumn<int>("weights");
    QTest::addColumn<bool>("pack");
    for (int how = 0; how < int(std::size(kHows)); ++how)
        for (const WeightFormat weights :
            {WeightFormat::F32, WeightFormat::Bits24, WeightFormat::Random16})
            QTest::addRow("%s, %s", kHows[how].name, std::string(name(weights)).c_str())
                << how << int(weights) << (how % 2 == 1);
}

} // namespace

class TestLightRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunGoesOnWithTheBitsOfResident_data() { howRows(); }
    void aStoppedRunGoesOnWithTheBitsOfResident();
    void aRunGoesOnBesideAChoiceOfRows_data();
    void aRunGoesOnBesideAChoiceOfRows();
    void theNormOfTheStepBeforeClips_data();
    void theNormOfTheStepBeforeClips();
    void aRunOfTwoPassesResumes();
    void aRunWithoutBackwardResumes();
    void partsOfAModelAreTrainedToo_data();
    void partsOfAModelAreTrainedToo();
    void whatHasNoPlaceIsRefused_data();
    void whatHasNoPlaceIsRefused();
    void defaultsFollowTheOptimizer();
    void aRecordGoesOnWithItsOwnOptimizerAlone();

private:
    // Hash of a run that never stopped, under `resident`.
    std::string expected(const RunSpec& spec);
    // A run that stops after so many steps and goes on ends with this hash.
    void stopAndResume(RunSpec spec, int stop, Device& device, const std::string& hash);
    // The run was clipped: by its own limit alone it ends elsewhere.
    void needClipped(RunSpec spec, const Outcome& run);

    RunRig m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    std::map<std::pair<WeightFormat, bool>, std::string> m_expected;
};

std::string TestLightRuns::expected(const RunSpec& spec)
{
    std::string& hash = m_expected[{spec.weights, spec.pack}];
    if (!hash.empty())
        return hash;
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.policyOptions.clear();
    plain.outDir = m_rig.folder.path("plain " + std::to_string(m_expected.size()));
    return hash = m_rig.train(plain, *m_device).progress.weightsHash;
}

void TestLightRuns::stopAndResume(RunSpec spec, int stop, Device& device, const std::string& hash)
{
    spec.checkpointEvery = stop;
    const Outcome stopped = m_rig.train(spec, device, stopAt(stop));
    QVERIFY2(stopped.opened.ok(), stopped.opened.message().c_str());
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.step, stop);

    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.step, spec.steps);
    QVERIFY(!hash.empty());
    QCOMPARE(resumed.progress.weightsHash, hash);
}

void TestLightRuns::needClipped(RunSpec spec, const Outcome& run)
{
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY(m_rig.steps(run.id).front().gradNorm > 2.0 * spec.clipNorm);
    spec.outDir += " own limit";
    spec.policyOptions.clear();
    QVERIFY(m_rig.train(spec, *m_device).progress.weightsHash != run.progress.weightsHash);
}

void TestLightRuns::aStoppedRunGoesOnWithTheBitsOfResident()
{
    QFETCH(int, how);
    QFETCH(int, weights);
    QFETCH(bool, pack);
    RunSpec spec = lightSpec(m_rig, QTest::currentDataTag());
    spec.weights = static_cast<WeightFormat>(weights);
    spec.policy = kHows[how].policy;
    spec.policyOptions = kHows[how].options;
    spec.pack = pack;
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    stopAndResume(spec, 5, *threaded, expected(spec));
}

void TestLightRuns::aRunGoesOnBesideAChoiceOfRows_data()
{
    QTest::addColumn<int>("how");
    QTest::addColumn<int>("weights");
    QTest::addColumn<int>("stop");
    const auto row = [](int how, WeightFormat weights, int stop) {
        QTest::addRow("%s, %s, after %d", kHows[how].name, std::string(name(weights)).c_str(), stop)
            << how << int(weights) << stop;
    };
    row(0, WeightFormat::F32, 1);
    row(3, WeightFormat::Bits24, 199);
    row(2, WeightFormat::Random16, 200);
    row(5, WeightFormat::Bits24, 201);
}

// Update 201 chooses rows. Their numbers and moments are in the checkpoint.
void TestLightRuns::aRunGoesOnBesideAChoiceOfRows()
{
    QFETCH(int, how);
    QFETCH(int, weights);
    QFETCH(int, stop);
    RunSpec spec = lightSpec(m_rig, QTest::currentDataTag());
    spec.optimizer = Optimizer::Grass;
    spec.weights = static_cast<WeightFormat>(weights);
    spec.accumulate = 1;
    spec.steps = stop + 2;
    RunSpec plain = spec;
    plain.outDir += " never stopped";
    spec.policy = kHows[how].policy;
    spec.policyOptions = kHows[how].options;
    const Outcome whole = m_rig.train(plain, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    stopAndResume(spec, stop, *threaded, whole.progress.weightsHash);
}

void TestLightRuns::theNormOfTheStepBeforeClips_data()
{
    QTest::addColumn<int>("how");
    for (const int how : {0, 3, 5})
        QTest::newRow(kHows[how].name) << how;
}

// Also the first step after a stop, whose norm before is in the checkpoint.
void TestLightRuns::theNormOfTheStepBeforeClips()
{
    QFETCH(int, how);
    RunSpec spec = lightSpec(m_rig, std::string("previous norm, ") + kHows[how].name);
    spec.policyOptions = {{"clip-mode", "previous-norm"}};
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.outDir = m_rig.folder.path(std::string("never stopped ") + kHows[how].name);
    spec.policy = kHows[how].policy;
    spec.policyOptions.insert(kHows[how].options.begin(), kHows[how].options.end());
    spec.checkpointEvery = 5;
    for (RunSpec* each : {&plain, &spec})
        each->clipNorm = 0.1;
    const Outcome whole = m_rig.train(plain, *m_device);
    needClipped(plain, whole);
    stopAndResume(spec, 5, *m_device, whole.progress.weightsHash);
}

// All that plan and run choose by themselves; a run that is stopped goes on with its bits.
void TestLightRuns::aRunOfTwoPassesResumes()
{
    RunSpec spec = lightSpec(m_rig, "two passes");
    spec.policyOptions = {{"clip-mode", "two-pass"}};
    spec.clipNorm = 0.1;
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.outDir = m_rig.folder.path("two passes, never stopped");
    spec.policy = "streamed";
    const PlanReport report = planRun(spec).value();
    QVERIFY(report.inexactBy.empty() && report.recompute == "block");
    QVERIFY(std::ranges::any_of(report.advice, [](const std::string& advice) {
        return advice.find("every backward is made twice") != std::string::npos;
    }));
    const Outcome whole = m_rig.train(plain, *m_device);
    needClipped(plain, whole);
    stopAndResume(spec, 5, *m_device, whole.progress.weightsHash);
}

void TestLightRuns::aRunWithoutBackwardResumes()
{
    RunSpec spec = lightSpec(m_rig, "no backward");
    spec.deviceMemoryBytes = std::uint64_t{32} << 20;
    spec.optimizer = Optimizer::Mezo;
    spec.learningRate = 1e-3;
    spec.evalEvery = 4;
    RunSpec plain = spec;
    plain.policy = "resident";
    plain.outDir = m_rig.folder.path("no backward, never stopped");
    const Outcome whole = m_rig.train(plain, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    for (const StepRow& step : m_rig.steps(whole.id))
        QVERIFY(step.loss > 1.0 && step.loss < 8.0 && step.gradNorm > 0.0);
    spec.policy = "streamed";
    stopAndResume(spec, 5, *m_device, whole.progress.weightsHash);
}

void TestLightRuns::partsOfAModelAreTrainedToo_data()
{
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("layers");
    QTest::newRow("an adapter") << "lora"
                                << "";
    QTest::newRow("some layers") << "full"
                                 << "1";
}

void TestLightRuns::partsOfAModelAreTrainedToo()
{
    QFETCH(QString, method);
    QFETCH(QString, layers);
    std::vector<std::string> hashes;
    for (const char* policy : {"resident", "streamed"}) {
        RunSpec spec = lightSpec(m_rig, std::string(QTest::currentDataTag()) + " " + policy);
        spec.method = method.toStdString();
        if (isAdapterRun(spec))
            spec.rank = 4;
        spec.trainLayers = layers.toStdString();
        spec.policy = policy;
        const Outcome run = m_rig.train(spec, *m_device);
        QVERIFY2(run.opened.ok(), run.opened.message().c_str());
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        const std::vector<StepRow> steps = m_rig.steps(run.id);
        QVERIFY(steps.back().loss < steps.front().loss);
        hashes.push_back(run.progress.weightsHash);
    }
    QCOMPARE(hashes[1], hashes[0]);
}

void TestLightRuns::whatHasNoPlaceIsRefused_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("option"); // name=value, or a setting
    QTest::addColumn<QString>("words");
    const auto row = [](const char* policy, const char* option, const char* words) {
        QTest::addRow("%s %s", policy, option) << policy << option << words;
    };
    row("zenflow", "", "use resident, zero-offload, streamed, ssd-vertical or auto");
    row("zero-offload-dpu", "", "use resident, zero-offload, streamed");
    row("deep-optimizer-states", "", "no update on the host to hide or to share");
    row("resident", "state=compact", "leave it out and choose its weights with weights");
    row("auto", "state=compact", "leave it out and choose its weights with weights");
    row("streamed", "device-share=0.5", "updates all of a layer on the device");
    row("streamed", "late=0.5", "updates all of a layer on the device");
    row("ssd-vertical", "gradients-on-disk=1", "no gradient leaves the device");
    row("streamed", "clip-mode=exact", "use clip-mode=own");
    row("streamed", "clip-mode=exact", "clip-mode=two-pass, which makes every backward twice");
    row("resident", "passes=none", "recompute is none; use recompute block, or clip-mode=own");
    row("streamed", "passes=int8", "keep-inputs is int8; use keep-inputs bf16");
    row("resident", "mezo=lora", "trains every weight");
    row("resident", "mezo=int8", "leave keep-inputs out");
    row("streamed", "mezo=long", "at most 131072 tokens in a micro-batch");
    row("resident", "lr=0.2", "it must be at most 0.1");
    row("resident", "precision=fp32", "need precision bf16; choose that, or weights fp32");
    row("resident", "optimizer=adamw", "need an optimizer without moments");
    row("resident", "own=adamw", "are of light optimizers");
    row("resident", "lora-plus=4", "the matrices B");
}

void TestLightRuns::whatHasNoPlaceIsRefused()
{
    QFETCH(QString, policy);
    QFETCH(QString, option);
    QFETCH(QString, words);
    RunSpec spec = lightSpec(m_rig, QTest::currentDataTag());
    spec.policy = policy.toStdString();
    const std::string key = option.section(QLatin1Char('='), 0, 0).toStdString();
    const std::string value = option.section(QLatin1Char('='), 1).toStdString();
    spec.weights = WeightFormat::Bits24;
    if (key == "lr")
        spec.learningRate = std::stod(value);
    else if (key == "precision")
        spec.precision = PrecisionChoice::F32;
    else if (key == "optimizer")
        spec.optimizer = Optimizer::AdamW;
    else if (key == "lora-plus")
        spec.method = "lora", spec.loraPlus = 4.0;
    else if (key == "own")
        spec.optimizer = Optimizer::AdamW, spec.weights = WeightFormat::Auto,
        spec.policyOptions["clip-mode"] = "own";
    else if (key == "mezo") {
        spec.optimizer = Optimizer::Mezo;
        spec.method = value == "lora" ? "lora" : "full";
        spec.keepInputs = value == "int8" ? KeepInputs::Int8 : KeepInputs::Bf16;
        spec.seqLen = value == "long" ? 1 << 18 : spec.seqLen;
    } else if (key == "passes") {
        spec.policyOptions["clip-mode"] = "two-pass";
        spec.recompute = value == "none" ? RecomputeChoice::None : RecomputeChoice::Auto;
        spec.keepInputs = value == "int8" ? KeepInputs::Int8 : KeepInputs::Bf16;
    } else if (!key.empty())
        spec.policyOptions[key] = value;

    const Outcome run = m_rig.train(spec, *m_device);

    QVERIFY(!run.opened.ok());
    QVERIFY(run.opened.kind() == ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), words.toStdString()), run.opened.message().c_str());
}

void TestLightRuns::defaultsFollowTheOptimizer()
{
    RunSpec spec = lightSpec(m_rig, "defaults");
    spec.steps = 1000;
    QCOMPARE(resolveSpec(spec, 60).value().warmupSteps, std::int64_t{50});
    QCOMPARE(resolveSpec(spec, 60).value().weights, WeightFormat::Bits24);
    spec.steps = 100;
    QCOMPARE(resolveSpec(spec, 60).value().warmupSteps, std::int64_t{20});
    spec.steps = 12;
    QCOMPARE(resolveSpec(spec, 60).value().warmupSteps, std::int64_t{6});
    spec.precision = PrecisionChoice::F32;
    QCOMPARE(resolveSpec(spec, 60).value().weights, WeightFormat::F32);
    spec.optimizer = Optimizer::AdamW;
    QCOMPARE(resolveSpec(spec, 60).value().weights, WeightFormat::F32);
}

// The record decides; one that names another optimizer does not fit its checkpoint.
void TestLightRuns::aRecordGoesOnWithItsOwnOptimizerAlone()
{
    RunSpec spec = lightSpec(m_rig, "record");
    spec.checkpointEvery = 5;
    (void)m_rig.train(spec, *m_device, stopAt(5));
    QVERIFY(readRunSpec(spec.outDir).value().optimizer == Optimizer::Factored);
    QVERIFY(readRunSpec(spec.outDir).value().weights == WeightFormat::Bits24);
    const std::string file = spec.outDir + "/run.json";
    QFile record(QString::fromStdString(file));
    QVERIFY(record.open(QIODevice::ReadWrite));
    QByteArray text = record.readAll();
    QVERIFY(text.contains("factored"));
    text.replace("factored", "sgd-normalised");
    record.resize(0);
    record.seek(0);
    record.write(text);
    record.close();

    const Outcome resumed = m_rig.resume(spec.outDir, *m_device);

    QVERIFY(!resumed.opened.ok() || !resumed.ended.ok());
    const Status& why = resumed.opened.ok() ? resumed.ended : resumed.opened;
    QVERIFY2(contains(why.message(), "optimizer"), why.message().c_str());
}

MR_TEST(TestLightRuns)

} // namespace mr::test::tst_light_runs

#include "tst_light_runs.moc"
