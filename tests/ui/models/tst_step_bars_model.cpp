// Both bars share one scale of time: the shorter step has the shorter bar, and each bar is whole.

#include "math/share_bar.h"
#include "models/step_bars_model.h"
#include "support/test_room.h"

#include <QAbstractItemModelTester>
#include <QLocale>
#include <QTest>

#include <numeric>

namespace mr::test::tst_step_bars_model {

using namespace mr::ui;

namespace {

// `steps` steps of compute + upload microseconds each.
LedgerTotals ledger(std::int64_t steps, std::int64_t compute, std::int64_t upload)
{
    LedgerTotals totals;
    totals.us[0] = steps * compute;
    totals.us[1] = steps * upload;
    totals.wallUs = steps * (compute + upload);
    totals.steps = steps;
    return totals;
}

ShareBar bar(const StepBarsModel& model, int row)
{
    return model.index(row, StepBarsModel::Picture).data(kShareRole).value<ShareBar>();
}

} // namespace

class TestStepBarsModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void theShorterStepHasTheShorterBar()
    {
        StepBarsModel model;
        const QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);

        // Runs of different lengths: the bars compare a mean step, not the run.
        model.setRuns(
            {"slow", "exact", ledger(10, 6000, 4000)}, {"fast", "stale", ledger(300, 4900, 100)});

        QCOMPARE(bar(model, 0).whole, 10.0);
        QCOMPARE(bar(model, 1).whole, 10.0);
        const QRectF box(0.0, 0.0, 200.0, 10.0);
        const auto slow = sharePieces(bar(model, 0), box, 1.0);
        const auto fast = sharePieces(bar(model, 1), box, 1.0);
        QCOMPARE(slow[1].right(), 200.0);
        QCOMPARE(slow[0].width(), 120.0);
        QCOMPARE(fast[1].right(), 100.0);
    }

    void thePartsAddUpToTheMeanStepAndToAHundredPercent()
    {
        StepBarsModel model;
        model.setRuns({"a", {}, ledger(3, 6667, 3333)}, {"b", {}, ledger(3, 1, 2)});

        const ShareBar first = bar(model, 0);

        QCOMPARE(std::accumulate(first.parts.begin(), first.parts.end(), 0.0), 10.0);
        QCOMPARE(model.index(0, StepBarsModel::Step).data().toString(), QString("10.0 ms"));
        QString words = model.index(0, StepBarsModel::Picture).data(Qt::ToolTipRole).toString();
        words.replace(QChar(0xa0), ' ');
        QCOMPARE(words, QString("Compute: 66.7 %\nUpload: 33.3 %"));
    }

    void aRunThatHasNotBegunHasNoBarAndChangesNoScale()
    {
        StepBarsModel model;

        model.setRuns({"first", {}, ledger(4, 2000, 1000)}, {"later", {}, {}});

        QCOMPARE(bar(model, 0).whole, 3.0);
        QVERIFY(!model.index(1, StepBarsModel::Picture).data(kShareRole).isValid());
        QCOMPARE(model.index(1, StepBarsModel::Step).data().toString(), QString("–"));
        QVERIFY(model.csv().contains("h2d,1.000,\n"));
    }
};

MR_TEST_WITH_WINDOWS(TestStepBarsModel)

} // namespace mr::test::tst_step_bars_model

#include "tst_step_bars_model.moc"
