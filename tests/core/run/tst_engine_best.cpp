// The best checkpoint by evaluation: which one it is, and that it stays.

#include "core/answer/prompt_reader.h"
#include "core/choose/checkpoint_size.h"
#include "core/data/chat_format.h"
#include "core/run/damage.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>
#include <limits>
#include <map>

namespace mr::test::tst_engine_best {

namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

Steps stepsOf(const fs::path& runDir)
{
    Steps steps;
    for (const CheckpointInfo& one : describeCheckpoints(runDir))
        steps.push_back(one.step);
    return steps;
}

} // namespace

class TestEngineBest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void theBestStaysBesideTheNewest();
    void historyAndFolderSayWhichIsTheBest();
    void whereNoEvaluationMeetsACheckpointThereIsNoBest();
    void onRequestABestEvaluationMakesACheckpoint();
    void aStoppedRunKeepsItsBest_data();
    void aStoppedRunKeepsItsBest();
    void aRunFallsBackToTheBestIfThatIsTheNewestWhole();
    void theModelAtTheEndIsThatOfTheLastStep();
    void aRunThatRuinedTheModelSaysSo();
    void aChatTemplateThatIsTaughtIsSavedWithTheModel();
    void aResumedRunKnowsWhatTheModelWasLike();
    void thePlanCountsTheBest_data();
    void thePlanCountsTheBest();

private:
    // Evaluated with text of another kind, which it expects less and less.
    RunSpec spec(const std::string& name) const;
    std::map<std::int64_t, double> evaluations(std::int64_t run) const;
    // Step with the lowest evaluation loss among the multiples of `every`, without 0; -1: none.
    std::int64_t bestStep(std::int64_t run, std::int64_t every) const;

    std::unique_ptr<RunRig> m_rig;
    std::unique_ptr<Device> m_device = smallDevice();
    Outcome m_whole; // evaluated and saved every other step
};

RunSpec TestEngineBest::spec(const std::string& name) const
{
    RunSpec spec = m_rig->spec(name);
    spec.steps = 16;
    spec.evalEvery = 2;
    spec.checkpointEvery = 2;
    spec.learningRate = 0.05;
    spec.schedule = ScheduleKind::Constant;
    spec.evalData = {{m_rig->folder.path("other.jsonl"), DataFormat::Auto, {}}};
    return spec;
}

std::map<std::int64_t, double> TestEngineBest::evaluations(std::int64_t run) const
{
    std::map<std::int64_t, double> losses;
    const auto reader = std::move(RunReader::open(m_rig->database)).value();
    const std::vector<ScalarRow> rows = reader->scalars(run, "eval_loss", -1).value();
    for (const ScalarRow& row : rows)
        losses[row.step] = row.value;
    return losses;
}

std::int64_t TestEngineBest::bestStep(std::int64_t run, std::int64_t every) const
{
    std::int64_t best = -1;
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& [step, loss] : evaluations(run))
        if (step > 0 && step % every == 0 && loss < lowest) {
            lowest = loss;
            best = step;
        }
    return best;
}

void TestEngineBest::initTestCase()
{
    m_rig = std::make_unique<RunRig>();
    m_rig->folder.write("other.jsonl",
        R"({"prompt": "Who drives?", "response": "Zebras quiz foxes, jinx by jinx."})"
        "\n");
    m_whole = m_rig->train(spec("whole"), *m_device);
    QVERIFY2(m_whole.ended.ok(), m_whole.ended.message().c_str());
    const std::int64_t best = bestStep(m_whole.id, 2);
    QVERIFY2(best > 0 && best < 12, std::to_string(best).c_str()); // else nothing is shown here
}

void TestEngineBest::theBestStaysBesideTheNewest()
{
    const Steps expected{16, 14, bestStep(m_whole.id, 2)};

    QCOMPARE(stepsOf(m_whole.dir), expected);
    QVERIFY(describeCheckpoints(m_whole.dir).back().isBest);
}

void TestEngineBest::historyAndFolderSayWhichIsTheBest()
{
    const std::int64_t best = bestStep(m_whole.id, 2);
    const auto losses = evaluations(m_whole.id);

    const RunRow run = m_rig->row(m_whole.id);
    const auto rows = RunReader::open(m_rig->database).value()->checkpoints(m_whole.id).value();

    QCOMPARE(run.bestCheckpointStep, best);
    QCOMPARE(run.bestEval, losses.at(best));
    for (const CheckpointRow& row : rows) {
        QCOMPARE(row.best, row.step == best);
        QCOMPARE(row.evalLoss, losses.at(row.step));
        QCOMPARE(row.state == "complete", row.step >= 14 || row.step == best);
    }
    for (const CheckpointInfo& one : describeCheckpoints(m_whole.dir))
        QCOMPARE(one.evalLoss, losses.at(one.step));
}

void TestEngineBest::whereNoEvaluationMeetsACheckpointThereIsNoBest()
{
    RunSpec spec = this->spec("apart");
    spec.checkpointEvery = 3;
    spec.evalEvery = 5;

    const Outcome run = m_rig->train(spec, *m_device, stopAt(12));

    const Steps expected{12, 9};
    QCOMPARE(stepsOf(run.dir), expected);
    QCOMPARE(m_rig->row(run.id).bestCheckpointStep, -1);
    QVERIFY(std::isnan(bestEvalLoss(run.dir)));
}

void TestEngineBest::onRequestABestEvaluationMakesACheckpoint()
{
    RunSpec spec = this->spec("asked");
    spec.checkpointEvery = 0;
    spec.keepBest = true;
    spec.keepCheckpoints = 1;
    Steps written;

    const Outcome run =
        m_rig->train(spec, *m_device, [&](Engine&, std::int64_t step) { written.push_back(step); });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const Steps kept{16, bestStep(run.id, 2)};
    QCOMPARE(stepsOf(run.dir), kept);
    Steps expected; // each that was lower than all before
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto& [step, loss] : evaluations(run.id)) {
        if (step > 0 && (loss < lowest || step == 16))
            expected.push_back(step);
        if (step > 0)
            lowest = std::min(lowest, loss);
    }
    QCOMPARE(written, expected);
    QCOMPARE(run.progress.weightsHash, m_whole.progress.weightsHash);
}

void TestEngineBest::aStoppedRunKeepsItsBest_data()
{
    QTest::addColumn<bool>("keepBest");
    QTest::newRow("where both meet") << false;
    QTest::newRow("on request") << true;
}

// The run ends as if it had never been stopped, with the same checkpoints.
void TestEngineBest::aStoppedRunKeepsItsBest()
{
    QFETCH(bool, keepBest);
    RunSpec spec = this->spec(std::string("stopped ") + QTest::currentDataTag());
    spec.keepBest = keepBest;
    const Outcome stopped = m_rig->train(spec, *m_device, stopAt(14));
    QCOMPARE(stopped.progress.step, 14);

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(stepsOf(resumed.dir), stepsOf(m_whole.dir));
    QCOMPARE(m_rig->row(resumed.id).bestCheckpointStep, bestStep(m_whole.id, 2));
    QCOMPARE(resumed.progress.weightsHash, m_whole.progress.weightsHash);
    QCOMPARE(evaluations(resumed.id), evaluations(m_whole.id));
}

void TestEngineBest::aRunFallsBackToTheBestIfThatIsTheNewestWhole()
{
    RunSpec spec = this->spec("fallen back");
    (void)m_rig->train(spec, *m_device, stopAt(14));
    const std::int64_t best = bestStep(m_whole.id, 2);
    const fs::path folder = fs::path(spec.outDir) / "checkpoints";
    const Steps expected{14, 12, best};
    QCOMPARE(stepsOf(spec.outDir), expected);
    flipMiddleBit(folder / checkpointName(14) / "model" / "model.safetensors");
    emptyFolder(folder / checkpointName(12));

    const Outcome resumed = m_rig->resume(spec.outDir, *m_device);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, m_whole.progress.weightsHash);
    QVERIFY(
        contains(m_rig->messages(resumed.id), "Resumed after step " + std::to_string(best) + "."));
    QCOMPARE(evaluations(resumed.id), evaluations(m_whole.id));
    QCOMPARE(stepsOf(resumed.dir), stepsOf(m_whole.dir));
}

void TestEngineBest::theModelAtTheEndIsThatOfTheLastStep()
{
    const auto bytes = [&](const fs::path& model) {
        QFile file(QString::fromStdString((model / "model.safetensors").string()));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    const fs::path folder = fs::path(m_whole.dir) / "checkpoints";

    const QByteArray exported = bytes(fs::path(m_whole.dir) / "model");

    QVERIFY(!exported.isEmpty());
    QCOMPARE(exported, bytes(folder / checkpointName(16) / "model"));
    QVERIFY(exported != bytes(folder / checkpointName(bestStep(m_whole.id, 2)) / "model"));
}

int countOf(const std::string& text, const std::string& part)
{
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

void TestEngineBest::aRunThatRuinedTheModelSaysSo()
{
    RunSpec ruinous = spec("ruined");
    ruinous.learningRate = 10.0;

    const Outcome run = m_rig->train(ruinous, *m_device);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const RunRow row = m_rig->row(run.id);
    QCOMPARE(row.status, RunStatus::Done);
    const RunOutcome outcome = judge(evaluationsOf(row));
    QCOMPARE(outcome.verdict, RunVerdict::Worse);
    const std::string messages = m_rig->messages(run.id);
    QCOMPARE(countOf(messages, "worse: " + describeOutcome(outcome)), 1);
    QCOMPARE(countOf(messages, "loss_spike: "), 1);
    const Outcome good = m_rig->train(m_rig->spec("not_evaluated"), *m_device);
    QCOMPARE(countOf(m_rig->messages(good.id), "worse: "), 0);
    QCOMPARE(countOf(m_rig->messages(good.id), "loss_spike: "), 0);
}

void TestEngineBest::aChatTemplateThatIsTaughtIsSavedWithTheModel()
{
    RunSpec taught = m_rig->spec("taught");
    taught.data.front().columns["chat_template"] = m_rig->folder.write("own.jinja",
        "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}");
    taught.checkpointEvery = 4;

    const Outcome stopped = m_rig->train(taught, *m_device, [](Engine& engine, std::int64_t step) {
        if (step == 4)
            engine.requestStop();
    });
    fs::remove(m_rig->folder.path("own.jinja")); // its text is in the record of the run
    const Outcome run = m_rig->resume(stopped.dir.string(), *m_device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    for (const fs::path& model : {run.dir / "model", listCheckpoints(run.dir, {}).at(0) / "model"})
        QVERIFY(ChatFormat::isIn(model));
    const auto config = readModelConfig(run.dir / "model").value();
    const auto tokenizer = Tokenizer::open(run.dir / "model").value();
    Prompt prompt;
    prompt.form = PromptForm::Chat;
    prompt.text = "Hello";
    auto read = readPrompt(prompt, *tokenizer, config, run.dir / "model");
    QCOMPARE(read.value().text, std::string("user: Hello\nassistant: "));
}

void TestEngineBest::aResumedRunKnowsWhatTheModelWasLike()
{
    RunSpec ruinous = spec("ruined_and_resumed");
    ruinous.learningRate = 10.0;
    const Outcome stopped = m_rig->train(ruinous, *m_device, [](Engine& engine, std::int64_t step) {
        if (step == 4)
            engine.requestStop();
    });
    QCOMPARE(stopped.state, RunState::Stopped);

    const Outcome run = m_rig->resume(stopped.dir.string(), *m_device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(countOf(m_rig->messages(run.id), "worse: "), 1);
}

void TestEngineBest::thePlanCountsTheBest_data()
{
    QTest::addColumn<int>("evalEvery");
    QTest::addColumn<int>("checkpointEvery");
    QTest::addColumn<bool>("keepBest");
    QTest::addColumn<double>("holdOut");
    QTest::addColumn<int>("kept");
    QTest::addColumn<int>("written"); // in 16 steps, at most
    QTest::newRow("both meet") << 2 << 4 << false << 0.1 << 3 << 4;
    QTest::newRow("they meet at the end only") << 4 << 0 << false << 0.1 << 2 << 1;
    QTest::newRow("they never meet") << 5 << 4 << false << 0.1 << 2 << 4;
    QTest::newRow("no evaluation") << 0 << 4 << true << 0.1 << 2 << 4;
    QTest::newRow("nothing to evaluate") << 2 << 4 << true << 0.0 << 2 << 4;
    QTest::newRow("on request") << 2 << 0 << true << 0.1 << 3 << 8;
    QTest::newRow("on request, and both meet") << 2 << 4 << true << 0.1 << 3 << 8;
}

void TestEngineBest::thePlanCountsTheBest()
{
    QFETCH(int, evalEvery);
    QFETCH(int, checkpointEvery);
    QFETCH(bool, keepBest);
    QFETCH(double, holdOut);
    QFETCH(int, kept);
    QFETCH(int, written);
    RunSpec spec = this->spec("plan");
    spec.evalEvery = evalEvery;
    spec.checkpointEvery = checkpointEvery;
    spec.keepBest = keepBest;
    spec.holdOut = holdOut;
    spec.evalData.clear();

    auto setup = setUpRun(spec, 60);

    QVERIFY2(setup.ok(), setup.status().message().c_str());
    QCOMPARE(reportOf(setup.value()).checkpointsKept, kept);
    QCOMPARE(savedBytesOfRun(setup.value()),
        static_cast<std::uint64_t>(written) * checkpointBytes(setup.value()) +
            exportBytes(setup.value()));
}

MR_TEST(TestEngineBest)

} // namespace mr::test::tst_engine_best

#include "tst_engine_best.moc"
