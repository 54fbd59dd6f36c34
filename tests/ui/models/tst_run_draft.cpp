// A run that is put together: settings without an editor come through, and related settings change
// together.

#include "models/run_draft.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_run_draft {

using mr::ui::RunDraft;

namespace {

RunSpec given()
{
    RunSpec spec;
    spec.modelDir = "/models/small";
    spec.data = {{"/data/questions.jsonl", DataFormat::Auto, {}}};
    spec.policy = "zenflow";
    spec.policyOptions = {{"interval", "4"}};
    spec.eps = 1e-7; // has no editor
    spec.learningRate = 1.23456789e-5;
    return spec;
}

// given() as editors return it: they know neither eps nor more than five digits.
RunSpec shown()
{
    RunSpec spec = given();
    spec.eps = RunSpec().eps;
    spec.learningRate = 1.2346e-5;
    spec.policyOptions.clear();
    spec.database = "/home/history.db";
    return spec;
}

RunDraft draft(const RunSpec& now, const std::string& second = {})
{
    RunDraft draft;
    draft.fill(given(), shown());
    draft.edit(now, second);
    return draft;
}

} // namespace

class TestRunDraft : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whatNobodyTouchedComesThroughToTheBit()
    {
        RunSpec now = shown();
        now.steps = 7;
        const RunSpec spec = draft(now).spec();
        QCOMPARE(spec.steps, std::int64_t{7});
        QCOMPARE(spec.eps, 1e-7);
        QCOMPARE(spec.learningRate, 1.23456789e-5);
        QCOMPARE(spec.policyOptions.size(), std::size_t{1});
        QCOMPARE(spec.database, std::string("/home/history.db"));
    }

    void optionsGoWithTheirPolicy()
    {
        RunSpec now = shown();
        now.policy = "resident";
        QVERIFY(draft(now).spec().policyOptions.empty());
    }

    void anAdapterGoesWithItsMethod()
    {
        RunSpec from = given();
        from.method = "lora";
        from.rank = 64;
        from.rankPattern = {{"down_proj", "8"}}; // has no editor
        from.trainLayers = "1-2";
        RunSpec seen = from;
        seen.rankPattern.clear();
        RunDraft draft;
        draft.fill(from, seen);
        draft.edit(seen, {});
        QCOMPARE(draft.spec().rankPattern.size(), std::size_t{1});

        RunSpec now = RunSpec();
        draft.edit(now, {});
        QVERIFY(draft.spec().rankPattern.empty() && draft.spec().trainLayers.empty());
        QCOMPARE(draft.spec().rank, RunSpec().rank);
        now = seen;
        now.adapterDir = "/adapters/notes";
        draft.edit(now, {});
        QVERIFY(draft.spec().rankPattern.empty());
    }

    void aModelFolderTakesThePlaceOfAConfig()
    {
        RunSpec from = given();
        from.modelDir.clear();
        from.scratchConfig = "config.json";
        from.scratchTokenizer = "tokenizer.model";
        RunSpec seen = from;
        RunDraft draft;
        draft.fill(from, seen);
        draft.edit(seen, {});
        QCOMPARE(draft.spec().scratchConfig, std::string("config.json"));
        seen.modelDir = "/models/other";
        draft.edit(seen, {});
        QVERIFY(draft.spec().scratchConfig.empty());
        QVERIFY(draft.spec().scratchTokenizer.empty());
    }

    void runsAreNamedByModelAndData()
    {
        const std::vector<RunSpec> one = draft(shown()).runs();
        QCOMPARE(one.size(), std::size_t{1});
        QCOMPARE(one.front().name, std::string("small-questions"));
        const std::vector<RunSpec> two = draft(shown(), "resident").runs();
        QCOMPARE(two.size(), std::size_t{2});
        QCOMPARE(two[0].name, std::string("small-questions: zenflow"));
        QCOMPARE(two[1].name, std::string("small-questions: resident"));
        QVERIFY(two[1].policyOptions.empty());
        QCOMPARE(two[1].learningRate, two[0].learningRate);
    }

    void theCommandLineHasALineForEachRun()
    {
        const QString one = draft(shown()).commandLine();
        QVERIFY(one.startsWith(QStringLiteral("millrace train --model /models/small")));
        QVERIFY(one.contains(QStringLiteral("--eps 1e-07")));
        QVERIFY(!one.contains(QStringLiteral("--name")));
        QVERIFY(!one.contains(QStringLiteral("--db")));
        const QStringList two =
            draft(shown(), "resident").commandLine().split(QStringLiteral(" &&\n"));
        QCOMPARE(two.size(), 2);
        QVERIFY(two[1].contains(QStringLiteral("--policy resident")));
    }
};

MR_TEST(TestRunDraft)

} // namespace mr::test::tst_run_draft

#include "tst_run_draft.moc"
