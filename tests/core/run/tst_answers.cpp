// A run that is asked while it goes on: it answers with the weights of its step, and ends with the
// bits of a run that nobody asked.

// The engine's headers come before those of Qt.
// clang-format off
#include "core/answer/inference.h"
#include "core/save/model_folder.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <optional>

namespace mr::test::tst_answers {

namespace fs = std::filesystem;

namespace {

struct Case {
    const char* name;
    const char* policy;
    std::map<std::string, std::string> options = {};
    bool isOnDisk = false;
};

const std::vector<Case> kCases = {
    {"resident", "resident"},
    {"zero-offload, half late", "zero-offload", {{"late", "0.5"}, {"tile", "4KiB"}}},
    {"zero-offload-dpu", "zero-offload-dpu"},
    {"deep-optimizer-states", "deep-optimizer-states", {{"device-share", "0.5"}}},
    {"streamed, a third late", "streamed", {{"late", "0.3"}, {"tile", "4KiB"}}},
    {"zenflow", "zenflow", {{"interval", "3"}, {"select", "1"}, {"tile", "4KiB"}}},
    {"ssd-vertical", "ssd-vertical", {{"late", "0.5"}, {"tile", "4KiB"}}, true},
};

Prompt someQuestion()
{
    Prompt prompt;
    prompt.text = "How many sacks of flour? 7";
    prompt.maxTokens = 6;
    prompt.temperature = 0.0;
    return prompt;
}

std::vector<AnswerRow> answersOf(const RunRig& rig, std::int64_t run)
{
    return RunReader::open(rig.database).value()->answers(run).value();
}

// Answer of the model in `folder` to `prompt`.
Generated fromFolder(const fs::path& folder, const Prompt& prompt)
{
    InferenceOptions options;
    options.cache = true;
    const auto device = smallDevice();
    auto model = InferenceModel::load(folder.string(), options, *device);
    if (!model.ok())
        qFatal("%s", model.status().message().c_str());
    const auto read =
        readPrompt(prompt, model.value()->tokenizer(), model.value()->config(), folder);
    return model.value()
        ->generate(Result(read).value(),
            {prompt.maxTokens, prompt.temperature, prompt.topP, prompt.seed, {}})
        .value();
}

} // namespace

class TestAnswers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_rig.emplace(); }

    void anAnswerIsThatOfTheWeightsAndChangesNothing_data();
    void anAnswerIsThatOfTheWeightsAndChangesNothing();
    void aPromptThatIsTooLongFailsAloneAndTheRunGoesOn();
    void longAnswersAreBoundedAndBadFiguresRefused();
    void questionsThatComeTooLateAreRefusedOrAnsweredWithAReason();
    void aStoppedAnswerSaysSo();
    void tooManyQuestionsAreRefused();

private:
    RunSpec specOf(const Case& of, const std::string& name) const
    {
        RunSpec spec = m_rig->spec(std::string(of.name) + " " + name);
        spec.policy = of.policy;
        spec.policyOptions = of.options;
        if (of.isOnDisk)
            spec.diskPaths = {m_scratch.path()};
        return spec;
    }

    std::optional<RunRig> m_rig;
    Folder m_scratch;
};

void TestAnswers::anAnswerIsThatOfTheWeightsAndChangesNothing_data()
{
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < kCases.size(); ++i)
        QTest::newRow(kCases[i].name) << static_cast<int>(i);
}

void TestAnswers::anAnswerIsThatOfTheWeightsAndChangesNothing()
{
    QFETCH(int, index);
    const Case& of = kCases[static_cast<std::size_t>(index)];
    const auto first = smallDevice();
    const Outcome never = m_rig->train(specOf(of, "never"), *first);
    QVERIFY2(never.ended.ok(), never.opened.message().c_str());
    RunSpec spec = specOf(of, "asked");
    spec.checkpointEvery = 1;
    spec.keepCheckpoints = 20;
    const Prompt prompt = someQuestion();
    const auto device = smallDevice();

    const Outcome asked = m_rig->train(spec, *device, [&](Engine& engine, std::int64_t step) {
        // Answered behind the next step, before that is saved.
        if (step == 4 || step == 7)
            QVERIFY(engine.ask({step, prompt}).ok());
    });

    QVERIFY2(asked.ended.ok(), asked.ended.message().c_str());
    QCOMPARE(asked.progress.weightsHash, never.progress.weightsHash);
    const std::vector<StepRow> steps = m_rig->steps(asked.id);
    const std::vector<StepRow> expected = m_rig->steps(never.id);
    QCOMPARE(steps.size(), expected.size());
    for (std::size_t s = 0; s < steps.size(); ++s)
        QCOMPARE(steps[s].loss, expected[s].loss);
    const std::vector<AnswerRow> rows = answersOf(*m_rig, asked.id);
    QCOMPARE(rows.size(), std::size_t{2});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t step = i == 0 ? 5 : 8;
        QCOMPARE(rows[i].step, step);
        QCOMPARE(rows[i].id, step - 1);
        QVERIFY2(rows[i].state == AnswerState::Done, rows[i].message.c_str());
        QCOMPARE(rows[i].answer.read, prompt.text + "\n"); // as in training: no template
        const Generated same = fromFolder(
            asked.dir / "checkpoints" / ("step-0000000" + std::to_string(step)) / "model", prompt);
        QCOMPARE(rows[i].answer.text, same.text);
        QCOMPARE(rows[i].answer.tokens, static_cast<std::int64_t>(same.tokens.size()));
        QCOMPARE(rows[i].answer.promptTokens, same.promptTokens);
    }
    QVERIFY(contains(m_rig->messages(asked.id), "answered: A prompt was answered after step 5"));
}

void TestAnswers::aPromptThatIsTooLongFailsAloneAndTheRunGoesOn()
{
    RunSpec spec = m_rig->spec("too long");
    spec.checkpointEvery = 4;
    Prompt prompt = someQuestion();
    prompt.text = std::string(500, '7');
    const auto device = smallDevice();

    const Outcome run = m_rig->train(spec, *device, [&](Engine& engine, std::int64_t step) {
        if (step == 4)
            QVERIFY(engine.ask({1, prompt}).ok());
    });

    QCOMPARE(run.state, RunState::Finished);
    const std::vector<AnswerRow> rows = answersOf(*m_rig, run.id);
    QCOMPARE(rows.size(), std::size_t{1});
    QVERIFY(rows[0].state == AnswerState::Failed);
    QVERIFY2(contains(rows[0].message, "room for 39"), rows[0].message.c_str());
}

void TestAnswers::longAnswersAreBoundedAndBadFiguresRefused()
{
    RunSpec spec = m_rig->spec("bounds");
    spec.checkpointEvery = 4;
    Prompt longest = someQuestion();
    longest.maxTokens = 1'000'000'000;
    Prompt bad = someQuestion();
    bad.topP = 1.5;
    const auto device = smallDevice();
    Status refused;

    const Outcome run = m_rig->train(spec, *device, [&](Engine& engine, std::int64_t step) {
        if (step != 4)
            return;
        refused = engine.ask({1, bad});
        QVERIFY(engine.ask({2, longest}).ok());
    });

    QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
    const std::vector<AnswerRow> rows = answersOf(*m_rig, run.id);
    QCOMPARE(rows.size(), std::size_t{1});
    QCOMPARE(rows[0].prompt.maxTokens, kMostAnswerTokens);
    QVERIFY(rows[0].answer.tokens + rows[0].answer.promptTokens <= spec.seqLen);
}

void TestAnswers::questionsThatComeTooLateAreRefusedOrAnsweredWithAReason()
{
    RunSpec spec = m_rig->spec("late");
    spec.checkpointEvery = 4;
    const auto device = smallDevice();
    auto engine = Engine::open(spec, *device, *m_rig->store, {});
    QVERIFY(engine.ok());
    QVERIFY(engine.value()->ask({7, someQuestion()}).ok());
    engine.value()->requestStop();
    QVERIFY(engine.value()->start().ok() || true);
    (void)engine.value()->wait().ok();

    const Status refused = engine.value()->ask({8, someQuestion()});

    QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
    const std::vector<AnswerRow> rows = answersOf(*m_rig, engine.value()->runId());
    QCOMPARE(rows.size(), std::size_t{1});
    QCOMPARE(rows[0].id, 7);
    QVERIFY(rows[0].state == AnswerState::Failed);
    QVERIFY(contains(rows[0].message, "the run ended before"));
}

void TestAnswers::aStoppedAnswerSaysSo()
{
    PromptQueue queue;
    QVERIFY(queue.push({1, someQuestion()}).ok());
    QVERIFY(queue.push({2, someQuestion()}).ok());
    QCOMPARE(queue.take()->id, 1);
    QVERIFY(!queue.isCancelled());

    queue.cancel();

    QVERIFY(queue.isCancelled());
    QVERIFY(!queue.take());
    QVERIFY(queue.push({3, someQuestion()}).ok());
    QCOMPARE(queue.take()->id, 3);
    QVERIFY(!queue.isCancelled()); // a stop is of the answer it was meant for
}

void TestAnswers::tooManyQuestionsAreRefused()
{
    PromptQueue queue;
    for (std::size_t i = 0; i < PromptQueue::kMost; ++i)
        QVERIFY(queue.push({1, someQuestion()}).ok());

    QVERIFY(!queue.push({2, someQuestion()}).ok());
    QCOMPARE(queue.close().size(), PromptQueue::kMost);
    QVERIFY(!queue.push({3, someQuestion()}).ok());
}

MR_TEST(TestAnswers)

} // namespace mr::test::tst_answers

#include "tst_answers.moc"
