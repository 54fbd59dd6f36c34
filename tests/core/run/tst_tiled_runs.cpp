// Runs whose embedding and head lie on the host and come by rows and by tiles: the bits of
// `resident`, evaluations and answers too; records of programs that knew no parts of a vocabulary.

#include "core/choose/run_setup.h"
#include "core/run/changed_model.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_tiled_runs {

namespace {

constexpr std::int64_t kPart = 64; // rows; the vocabulary has 400

} // namespace

class TestTiledRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunGoesOnWithTheBitsOfResident_data();
    void aStoppedRunGoesOnWithTheBitsOfResident();
    void evaluationsAndAnswersAreThoseOfResident();
    void aRecordWithoutPartsGoesOnWithItsBits();
    void whatHasNoTilesIsRefused_data();
    void whatHasNoTilesIsRefused();

private:
    RunSpec spec(const std::string& name) const
    {
        RunSpec spec = m_rig.spec(name);
        spec.modelDir = m_model.folder.path();
        spec.optimizer = Optimizer::Factored;
        spec.precision = PrecisionChoice::BF16;
        spec.accumulate = 3;
        spec.headPart = kPart;
        return spec;
    }

    static void putOnHost(RunSpec& spec, const char* tile)
    {
        spec.policy = "streamed";
        spec.policyOptions = {{"vocabulary", "host"}, {"tile", tile}};
    }

    RunRig m_rig;
    ChangedModel m_model{{{"tie_word_embeddings", false}}};
    std::unique_ptr<Device> m_device = smallDevice();
};

void TestTiledRuns::aStoppedRunGoesOnWithTheBitsOfResident_data()
{
    QTest::addColumn<int>("weights");
    QTest::addColumn<QString>("tile");
    QTest::addColumn<bool>("pack");
    QTest::newRow("4 bytes") << int(WeightFormat::F32) << "8KiB" << false;
    QTest::newRow("3 bytes, packed") << int(WeightFormat::Bits24) << "4KiB" << true;
    QTest::newRow("2 bytes") << int(WeightFormat::Random16) << "64MiB" << false;
}

void TestTiledRuns::aStoppedRunGoesOnWithTheBitsOfResident()
{
    QFETCH(int, weights);
    QFETCH(QString, tile);
    QFETCH(bool, pack);
    RunSpec plain = spec(std::string("plain ") + QTest::currentDataTag());
    plain.weights = static_cast<WeightFormat>(weights);
    plain.pack = pack;
    const Outcome whole = m_rig.train(plain, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    RunSpec tiled = plain;
    tiled.outDir = m_rig.folder.path(std::string("tiled ") + QTest::currentDataTag());
    putOnHost(tiled, tile.toUtf8().constData());
    tiled.checkpointEvery = 5;
    const auto threaded = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome stopped = m_rig.train(tiled, *threaded, stopAt(5));
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());

    const Outcome resumed = m_rig.resume(tiled.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.step, 12);
    QVERIFY(!whole.progress.weightsHash.empty());
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
    QCOMPARE(resumed.progress.lastLoss, whole.progress.lastLoss);
    // The model that is written is that of the run.
    QCOMPARE(readFile(tiled.outDir + "/model/model.safetensors"),
        readFile(plain.outDir + "/model/model.safetensors"));
}

// A token of an answer is a pass with the head's tiles behind it.
void TestTiledRuns::evaluationsAndAnswersAreThoseOfResident()
{
    std::vector<Outcome> runs;
    std::vector<std::string> answers;
    Prompt prompt;
    prompt.text = "How many sacks of flour?";
    prompt.temperature = 0.0;
    prompt.maxTokens = 6;
    for (const bool byTiles : {false, true}) {
        RunSpec each = spec(byTiles ? "asked by tiles" : "asked");
        if (byTiles)
            putOnHost(each, "4KiB");
        each.holdOut = 0.2;
        each.evalEvery = 4;
        each.checkpointEvery = 4;
        runs.push_back(m_rig.train(each, *m_device, [&](Engine& engine, std::int64_t step) {
            QVERIFY(step == 12 || engine.ask({step, prompt}).ok());
        }));
        QVERIFY2(runs.back().ended.ok(), runs.back().ended.message().c_str());
        std::string all;
        const auto reader = std::move(RunReader::open(m_rig.database)).value();
        const std::vector<AnswerRow> rows = reader->answers(runs.back().id).value();
        for (const AnswerRow& row : rows)
            all += row.answer.text + "|";
        answers.push_back(all);
    }
    QCOMPARE(runs[1].progress.evalLoss, runs[0].progress.evalLoss);
    QVERIFY(runs[0].progress.evalLoss > 0.0);
    QVERIFY(answers[0].size() > 4);
    QCOMPARE(answers[1], answers[0]);
}

void TestTiledRuns::aRecordWithoutPartsGoesOnWithItsBits()
{
    RunSpec old = spec("old");
    old.headPart = 0;
    const Outcome whole = m_rig.train(old, *m_device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    RunSpec parts = spec("parts");
    parts.weights = old.weights = WeightFormat::F32;
    old.outDir = m_rig.folder.path("old, stopped");
    old.checkpointEvery = 5;
    (void)m_rig.train(old, *m_device, stopAt(5));
    const std::string file = old.outDir + "/run.json";
    std::string record = readFile(file);
    const std::string member =
        contains(record, "\\\"head_part") ? "\\\"head_part\\\":0," : "\"head_part\":0,";
    const std::size_t at = record.find(member);
    QVERIFY(at != std::string::npos);
    record.erase(at, member.size());
    m_rig.folder.write("old, stopped/run.json", record);
    old.outDir = m_rig.folder.path("old, never stopped");
    const Outcome never = m_rig.train(old, *m_device);

    const Outcome resumed = m_rig.resume(m_rig.folder.path("old, stopped"), *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, never.progress.weightsHash);
    // Sums in parts have another order.
    const Outcome other = m_rig.train(parts, *m_device);
    QVERIFY2(other.ended.ok(), other.ended.message().c_str());
    QVERIFY(other.progress.weightsHash != never.progress.weightsHash);
    QVERIFY(std::abs(other.progress.lastLoss - never.progress.lastLoss) < 0.05);
    // A vocabulary that is no larger than a part is not divided.
    QCOMPARE(setUpRun(m_rig.spec("new"), 60).value().spec.headPart, kHeadPart);
}

void TestTiledRuns::whatHasNoTilesIsRefused_data()
{
    QTest::addColumn<QString>("what");
    QTest::addColumn<QString>("words");
    QTest::newRow("adamw") << "adamw"
                           << "use --optimizer factored, or leave the option out";
    QTest::newRow("adalomo") << "adalomo"
                             << "measures all weights of a matrix";
    QTest::newRow("boundary") << "boundary"
                              << "leave boundary out";
    QTest::newRow("precision") << "precision"
                               << "needs precision bf16";
    QTest::newRow("tied") << "tied"
                          << "where they are two matrices of more than 8192 rows";
    QTest::newRow("old") << "old"
                         << "a run that forms the head's sums in parts";
    QTest::newRow("adapter") << "adapter"
                             << "where they are two matrices";
    QTest::newRow("layers") << "layers"
                            << "both trained";
    QTest::newRow("resident") << "resident"
                              << "is not of this policy";
}

void TestTiledRuns::whatHasNoTilesIsRefused()
{
    QFETCH(QString, what);
    QFETCH(QString, words);
    RunSpec refused = spec(QTest::currentDataTag());
    putOnHost(refused, "4KiB");
    if (what == QLatin1String("adamw"))
        refused.optimizer = Optimizer::AdamW;
    else if (what == QLatin1String("adalomo"))
        refused.optimizer = Optimizer::AdaLomo;
    else if (what == QLatin1String("boundary"))
        refused.policyOptions["boundary"] = "device";
    else if (what == QLatin1String("precision"))
        refused.precision = PrecisionChoice::F32;
    else if (what == QLatin1String("tied"))
        refused.modelDir = m_rig.model.path();
    else if (what == QLatin1String("adapter"))
        refused.method = "lora", refused.rank = 4;
    else if (what == QLatin1String("layers"))
        refused.trainLayers = "1,head";
    else if (what == QLatin1String("old"))
        refused.headPart = 0;
    else
        refused.policy = "resident", refused.policyOptions.erase("tile");

    const Outcome run = m_rig.train(refused, *m_device);

    QVERIFY(!run.opened.ok());
    QVERIFY(run.opened.kind() == ErrorKind::InvalidArgument);
    QVERIFY2(contains(run.opened.message(), words.toStdString()), run.opened.message().c_str());
}

MR_TEST(TestTiledRuns)

} // namespace mr::test::tst_tiled_runs

#include "tst_tiled_runs.moc"
