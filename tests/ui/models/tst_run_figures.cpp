// The figures of a run, and the comparison of two runs: known rows give known numbers.

#include "models/comparison_model.h"
#include "models/run_figures.h"
#include "support/test_room.h"
#include "ui/support/demo_pair.h"

#include <QAbstractItemModelTester>
#include <QLocale>
#include <QTest>

#include <cmath>

namespace mr::test::tst_run_figures {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

// Steps of 1000 us, `stall` of them waiting for the host; 500 tokens each.
RunSnapshot steps(std::int64_t count, std::int64_t stall, double loss)
{
    RunSnapshot run;
    run.run.status = RunStatus::Done;
    std::vector<StepRow> rows;
    for (std::int64_t step = 1; step <= count; ++step) {
        StepRow row;
        row.step = step;
        row.wallUs = 1000;
        row.computeUs = 1000 - stall;
        row.stallUs[2] = stall;
        row.tokens = 500;
        row.loss = loss;
        row.h2dBytes = 300 * step;
        row.d2hBytes = 100;
        rows.push_back(row);
    }
    run.steps.append(rows);
    return run;
}

} // namespace

class TestRunFigures : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void figuresAreMeansOfTheSteps()
    {
        const RunFigures figures = figuresOf(steps(3, 250, 2.0));

        QCOMPARE(figures.meanStepUs, 1000.0);
        QCOMPARE(figures.stallShare, 0.25);
        QCOMPARE(figures.tokensPerSecond, 500'000.0);
        QCOMPARE(figures.toDeviceBytes, 600.0);
        QCOMPARE(figures.toHostBytes, 100.0);
        QCOMPARE(figures.lastLoss, 2.0);
        QCOMPARE(figures.ledger.us[3], std::int64_t{750});
    }

    void aRunWithoutStepsHasNoNumbers()
    {
        const RunFigures figures = figuresOf(RunSnapshot{});

        QVERIFY(std::isnan(figures.meanStepUs));
        QVERIFY(std::isnan(figures.stallShare));
        QVERIFY(std::isnan(figures.tokensPerSecond));
        QVERIFY(std::isnan(figures.lastLoss));
        QVERIFY(!figures.isPlanned);
    }

    void heldOutLossesAreComparedAtTheLastStepBothHave()
    {
        RunSnapshot first = steps(4, 0, 9.0);
        RunSnapshot second = steps(2, 0, 9.0);
        first.evalLoss = {{0, 0, 5.0}, {2, 0, 3.0}, {4, 0, 2.0}};
        second.evalLoss = {{0, 0, 5.0}, {2, 0, 3.1}};

        const CommonLoss loss = commonLoss(first, second);

        QVERIFY(loss.known && loss.heldOut);
        QCOMPARE(loss.step, std::int64_t{2});
        QCOMPARE(loss.first, 3.0);
        QCOMPARE(loss.second, 3.1);
    }

    void withoutACommonEvaluationTheSmoothedLossIsTaken()
    {
        RunSnapshot first = steps(5, 0, 4.0);
        RunSnapshot second = steps(3, 0, 3.5);
        first.evalLoss = {{0, 0, 5.0}, {5, 0, 2.0}};
        second.evalLoss = {{0, 0, 5.0}}; // the untrained model: equal, and no result

        const CommonLoss loss = commonLoss(first, second);

        QVERIFY(loss.known && !loss.heldOut);
        QCOMPARE(loss.step, std::int64_t{3});
        QCOMPARE(loss.first, 4.0);
        QCOMPARE(loss.second, 3.5);
    }

    void onlySettingsThatMatterAreDifferences()
    {
        RunRow first;
        RunRow second;
        first.configJson = R"({"name":"a","policy":"x","out_dir":"/1","seed":1,"steps":300})";
        second.configJson = R"({"name":"b","policy":"y","out_dir":"/2","seed":2,"steps":300})";

        QCOMPARE(otherDifferences(first, second), QStringList{"seed: 1, 2"});
        QVERIFY(otherDifferences(first, first).isEmpty());
    }

    void aBudgetThatFollowsTheFreeMemoryIsNoDifference()
    {
        RunRow first;
        RunRow near;
        RunRow far;
        first.configJson = R"({"host_memory_bytes":19379843888})";
        near.configJson = R"({"host_memory_bytes":19428740296})";
        far.configJson = R"({"host_memory_bytes":4294967296})";

        QVERIFY(otherDifferences(first, near).isEmpty());
        QCOMPARE(otherDifferences(first, far),
            QStringList{QString("host_memory_bytes: 18.0\u00a0GiB, 4.00\u00a0GiB")});
    }

    void thePlansPolicyCountsMoreThanWhatWasAskedFor()
    {
        RunRow run;
        run.configJson = R"({"policy":"auto"})";
        QCOMPARE(policyOf(run), QString("auto"));

        run.planJson = R"({"policy":"zero-offload"})";

        QCOMPARE(policyOf(run), QString("zero-offload"));
    }

    void whatARunTrainsIsReadFromItsSettings()
    {
        const auto method = [](const char* config) {
            RunRow run;
            run.configJson = config;
            return methodOf(run);
        };
        QCOMPARE(method(""), QString());
        QCOMPARE(method("{\"method\":\"full\",\"rank\":16}"), QString());
        QCOMPARE(method("{\"method\":\"lora\",\"rank\":8,\"train_layers\":\"1-2\"}"),
            QString("adapter, rank 8"));
        QCOMPARE(method("{\"method\":\"full\",\"train_layers\":\"20-31,head\"}"),
            QString("layers 20-31,head"));
        QCOMPARE(method("{\"method\":\"galore\"}"), QString("galore")); // a later program's
    }

    void aComparisonSaysWhatEachRunTrained()
    {
        RunFigures whole = figuresOf(steps(2, 0, 1.0));
        RunFigures adapter = whole;
        adapter.method = QStringLiteral("adapter, rank 8");
        ComparisonModel model;

        model.setRuns(whole, adapter);

        const auto text = [&](int column) {
            return model.index(ComparisonModel::Trained, column).data().toString();
        };
        QCOMPARE(text(ComparisonModel::First), QString("everything"));
        QCOMPARE(text(ComparisonModel::Second), QString("adapter, rank 8"));
        QVERIFY2(model.csv().contains("\nmethod,,\"adapter, rank 8\"\n"), model.csv().constData());
    }

    void theTableShowsBothAndTheirRatio()
    {
        const auto [first, second] = demoPair(300, 300);
        ComparisonModel model;
        const QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);

        model.setRuns(figuresOf(*first), figuresOf(*second));

        const auto number = [&model](int row, int column) {
            return model.index(row, column).data(ComparisonModel::ValueRole).toDouble();
        };
        const double a = number(ComparisonModel::MeanStep, ComparisonModel::First);
        const double b = number(ComparisonModel::MeanStep, ComparisonModel::Second);
        QVERIFY(a > b && b > 0.0);
        QCOMPARE(number(ComparisonModel::MeanStep, ComparisonModel::Change), b / a);
        const auto text = [&model](int row, int column) {
            return model.index(row, column).data().toString();
        };
        QCOMPARE(text(ComparisonModel::Updates, ComparisonModel::First), QString("exact"));
        QVERIFY(text(ComparisonModel::Updates, ComparisonModel::Second).contains("7"));
        QCOMPARE(model.headerData(ComparisonModel::Second, Qt::Horizontal, Qt::DisplayRole),
            QVariant(QString("zenflow")));
        QVERIFY(model.csv().contains("max_stale_steps,0,7\n"));
        QVERIFY(model.csv().contains("policy,zero-offload,zenflow\n"));
    }

    void runsOfUnequalLengthAreComparedByTheStepOnly()
    {
        const auto [first, second] = demoPair(120, 300);
        ComparisonModel model;

        model.setRuns(figuresOf(*first), figuresOf(*second));

        const auto change = [&model](int row) {
            return model.index(row, ComparisonModel::Change).data(ComparisonModel::ValueRole);
        };
        QVERIFY(!change(ComparisonModel::WallTime).isValid());
        QVERIFY(!change(ComparisonModel::Loss).isValid());
        QVERIFY(!change(ComparisonModel::BestEval).isValid());
        QVERIFY(change(ComparisonModel::MeanStep).isValid());
        QVERIFY(change(ComparisonModel::Stalled).isValid());
    }

    void aRunThatHasNotBegunIsDashesAndNoRatio()
    {
        const auto [first, second] = demoPair(300, 300);
        RunFigures waiting = figuresOf(RunSnapshot{});
        ComparisonModel model;

        model.setRuns(figuresOf(*first), waiting);

        for (int row = ComparisonModel::WallTime; row < ComparisonModel::RowCount; ++row) {
            const QModelIndex cell = model.index(row, ComparisonModel::Second);
            QVERIFY2(cell.data().toString() == QString(QChar(0x2013)),
                qPrintable(model.index(row, 0).data().toString()));
            QVERIFY(model.index(row, ComparisonModel::Change).data().toString().isEmpty());
        }
    }
};

MR_TEST_WITH_WINDOWS(TestRunFigures)

} // namespace mr::test::tst_run_figures

#include "tst_run_figures.moc"
