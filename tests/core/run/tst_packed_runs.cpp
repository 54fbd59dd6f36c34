// Runs that pack short sequences into shared rows: counted right, the same bits by every exact
// policy and after a stop, evaluated as any other run.

#include "core/run/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

namespace mr::test::tst_packed_runs {

namespace {

// Not as raw strings: moc 6.4 counts their braces and loses the namespace.
std::string pair(const std::string& prompt, const std::string& response)
{
    return "{\"prompt\": \"" + prompt + "\", \"response\": \"" + response + "\"}\n";
}

// Answers of one to some thirty words, one row that is too long and one with nothing to train.
std::string mixedPairs()
{
    std::string text;
    for (int i = 0; i < 70; ++i) {
        std::string answer = "sacks";
        for (int word = 0; word < i * i % 8; ++word)
            answer += i % 2 == 0 ? " of flour" : " the";
        text += pair(std::to_string(i) + "?", answer);
    }
    return text + pair("a", std::string(300, 'z')) + pair("nothing", "");
}

RunSpec packedSpec(const RunRig& rig, const std::string& name)
{
    RunSpec spec = rig.spec(name);
    spec.data = {{rig.folder.path("mixed.jsonl"), DataFormat::Auto, {}}};
    spec.pack = true;
    return spec;
}

} // namespace

class TestPackedRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void anEpochHasTheStepsOfItsRows();
    void exactPoliciesGiveTheBitsOfResident_data();
    void exactPoliciesGiveTheBitsOfResident();
    void aRunStoppedWithinAnEpochGoesOnWithTheSameBits_data();
    void aRunStoppedWithinAnEpochGoesOnWithTheSameBits();
    void evaluationIsThatOfAnyOtherRun();
    void theLogCountsRowsThatAreCutOrEmpty();
    void aRunThatWouldGainFromPackingSaysSo();
    void anotherAssignmentIsAnotherData();

private:
    std::unique_ptr<RunRig> m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    DataReport m_data;
    Outcome m_plain;
};

void TestPackedRuns::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    m_rig->folder.write("mixed.jsonl", mixedPairs());
    const RunSpec spec = packedSpec(*m_rig, "plain");
    const auto data = inspectRunData(spec);
    QVERIFY2(data.ok(), data.status().message().c_str());
    m_data = Result(data).value();
    m_plain = m_rig->train(spec, *m_device);
    QVERIFY2(m_plain.ended.ok(), m_plain.ended.message().c_str());
}

void TestPackedRuns::anEpochHasTheStepsOfItsRows()
{
    RunSpec spec = packedSpec(*m_rig, "epochs");
    spec.steps = 0;
    spec.epochs = 2.0;
    spec.microBatch = 1;
    spec.accumulate = 1;

    const Outcome run = m_rig->train(spec, *m_device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY(m_data.batchRows() < m_data.sequences);
    QCOMPARE(run.progress.step, 2 * m_data.batchRows());
    QCOMPARE(run.progress.sampler.count, static_cast<std::uint64_t>(m_data.batchRows()));
    QCOMPARE(run.progress.sampler.epoch, 1U);
    QCOMPARE(run.progress.tokens, 2 * m_data.inputs); // all of them, twice, no padding
    spec.pack = false;
    spec.outDir += " alone";
    QCOMPARE(m_rig->train(spec, *m_device).progress.tokens, 2 * m_data.inputs);
}

void policies()
{
    QTest::addColumn<QString>("words");
    for (const char* words :
        {"zero-offload late=0.6", "deep-optimizer-states device-share=0.5", "streamed late=0.6",
            "ssd-vertical late=0.25", "ssd-vertical weights-on-disk=1 gradients-on-disk=1"})
        QTest::newRow(words) << QString::fromLatin1(words);
}

RunSpec specOf(const RunRig& rig, const QString& words, const std::string& name)
{
    RunSpec spec = packedSpec(rig, name);
    QStringList options = words.split(QLatin1Char(' '));
    spec.policy = options.takeFirst().toStdString();
    for (const QString& option : options)
        spec.policyOptions[option.section(QLatin1Char('='), 0, 0).toStdString()] =
            option.section(QLatin1Char('='), 1).toStdString();
    spec.diskPaths = {rig.folder.path()};
    return spec;
}

void TestPackedRuns::exactPoliciesGiveTheBitsOfResident_data()
{
    policies();
}

void TestPackedRuns::exactPoliciesGiveTheBitsOfResident()
{
    QFETCH(QString, words);
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

    const Outcome run = m_rig->train(
        specOf(*m_rig, words, std::string("exact ") + QTest::currentDataTag()), *threaded);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, m_plain.progress.weightsHash);
}

void TestPackedRuns::aRunStoppedWithinAnEpochGoesOnWithTheSameBits_data()
{
    policies();
    QTest::newRow("resident") << QString("resident");
}

void TestPackedRuns::aRunStoppedWithinAnEpochGoesOnWithTheSameBits()
{
    QFETCH(QString, words);
    RunSpec spec = specOf(*m_rig, words, std::string("stopped ") + QTest::currentDataTag());
    spec.checkpointEvery = 3;
    const Outcome stopped = m_rig->train(spec, *m_device, stopAt(3));
    QCOMPARE(stopped.progress.step, 3);
    QVERIFY(stopped.progress.sampler.position % stopped.progress.sampler.count != 0);

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_plain.progress.weightsHash);
    QCOMPARE(resumed.progress.tokens, m_plain.progress.tokens);
    QVERIFY(readRunSpec(spec.outDir).value().pack);
}

void TestPackedRuns::evaluationIsThatOfAnyOtherRun()
{
    std::vector<double> losses;
    for (const bool pack : {true, false}) {
        RunSpec spec = packedSpec(*m_rig, pack ? "evaluated" : "evaluated alone");
        spec.pack = pack;
        spec.steps = 1;
        spec.evalEvery = 1;
        spec.holdOut = 0.3;
        spec.learningRate = 1e-30; // the weights stay, so only how they are looked at differs
        spec.weightDecay = 0.0;
        const Outcome run = m_rig->train(spec, *m_device);
        QVERIFY2(run.ended.ok(), run.ended.message().c_str());
        losses.push_back(run.progress.evalLoss);
    }

    QVERIFY(losses[0] == losses[1]);
}

void TestPackedRuns::theLogCountsRowsThatAreCutOrEmpty()
{
    QCOMPARE(m_data.rows, 72);
    QCOMPARE(m_data.cutRows, 1);
    QCOMPARE(m_data.emptyRows, 1);
    QCOMPARE(m_data.sequences + m_data.evalSequences, 71);
    const std::string log = m_rig->messages(m_plain.id);
    QVERIFY2(
        contains(log, "data: Data: 72 rows, 1 of them cut, 1 with nothing to train"), log.c_str());
    QVERIFY2(contains(log, std::to_string(m_data.batchRows()) + " packed rows of 40 tokens"),
        log.c_str());
    QVERIFY(!contains(log, "packing: "));
}

void TestPackedRuns::aRunThatWouldGainFromPackingSaysSo()
{
    RunSpec spec = packedSpec(*m_rig, "alone");
    spec.pack = false;

    const Outcome run = m_rig->train(spec, *m_device);

    const std::string log = m_rig->messages(run.id);
    const std::string said = "packing: Pack short sequences (--pack): rows " +
                             std::to_string(m_data.packedRows) + " instead of " +
                             std::to_string(m_data.sequences);
    QVERIFY2(contains(log, said), log.c_str());
    QVERIFY(run.progress.weightsHash != m_plain.progress.weightsHash);
    QVERIFY(!readRunSpec(spec.outDir).value().pack);
}

// Resumed as if it had not been packed: its place among the rows would mean nothing.
void TestPackedRuns::anotherAssignmentIsAnotherData()
{
    RunSpec spec = packedSpec(*m_rig, "changed");
    spec.checkpointEvery = 3;
    (void)m_rig->train(spec, *m_device, stopAt(3));
    NewRun record = readRunRecord(spec.outDir).value();
    RunSpec other = runSpecFromJson(record.configJson).value();
    other.pack = false;
    record.configJson = toJson(other);
    QVERIFY(saveRunRecord(spec.outDir, record).ok());

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY(!resumed.opened.ok());
    QVERIFY2(
        contains(resumed.opened.message(), "the run began with"), resumed.opened.message().c_str());
}

MR_TEST(TestPackedRuns)

} // namespace mr::test::tst_packed_runs

#include "tst_packed_runs.moc"
