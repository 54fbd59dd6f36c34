// StepTableModel keeps Qt's model contract while rows arrive.

#include "models/step_table_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QAbstractItemModelTester>
#include <QLocale>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_step_table_model {

using mr::ui::StepSeries;
using mr::ui::StepTableModel;

class TestStepTableModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void newStepsAreInsertedOnceAndNeverReset()
    {
        StepTableModel model;
        QAbstractItemModelTester contract(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const std::vector<mr::StepRow> rows = mr::ui::test::demoSteps(5000);
        StepSeries steps;
        steps.append(std::span(rows).first(100));
        model.setSteps(steps, true);
        QSignalSpy inserted(&model, &StepTableModel::rowsInserted);
        QSignalSpy reset(&model, &StepTableModel::modelReset);

        steps.append(std::span(rows).subspan(100));
        model.setSteps(steps, true);
        model.setSteps(steps, true);

        QCOMPARE(model.rowCount(), 5000);
        QCOMPARE(inserted.count(), 1); // one batch, one signal: views repaint once
        QCOMPARE(inserted[0][1].toInt(), 100);
        QCOMPARE(reset.count(), 0); // a reset would lose the user's selection
    }

    void anotherRunStartsOver()
    {
        StepTableModel model;
        StepSeries steps;
        steps.append(mr::ui::test::demoSteps(10));
        model.setSteps(steps, true);
        QSignalSpy reset(&model, &StepTableModel::modelReset);

        model.setSteps(steps, false);

        QCOMPARE(reset.count(), 1);
    }

    void textAndValue_data()
    {
        QTest::addColumn<int>("column");
        QTest::addColumn<QString>("text");
        QTest::addColumn<double>("value");
        QTest::newRow("step") << int(StepTableModel::Step) << "12,000" << 12000.0;
        QTest::newRow("loss") << int(StepTableModel::Loss) << "1.6539" << 1.653923;
        QTest::newRow("rate") << int(StepTableModel::LearningRate) << "2.5E-05" << 2.5e-5;
        QTest::newRow("speed") << int(StepTableModel::TokensPerSecond) << "4,000" << 4000.0;
        QTest::newRow("time") << int(StepTableModel::Wall) << "2,000.000" << 2000.0;
        QTest::newRow("compute") << int(StepTableModel::Compute) << "1,500.000" << 1500.0;
        QTest::newRow("disk") << int(StepTableModel::FirstCause) + 3 << "500.000" << 500.0;
        QTest::newRow("nan") << int(StepTableModel::GradNorm) << "–" << std::nan("");
    }

    void textAndValue()
    {
        QFETCH(const int, column);
        QFETCH(const QString, text);
        QFETCH(const double, value);
        mr::StepRow row;
        row.step = 12000;
        row.loss = 1.653923;
        row.learningRate = 2.5e-5;
        row.tokens = 8000;
        row.wallUs = 2'000'000;
        row.computeUs = 1'500'000;
        row.stallUs[3] = 500'000;
        StepSeries steps;
        steps.append(std::span(&row, 1));
        StepTableModel model;
        model.setSteps(steps, true);

        const QModelIndex cell = model.index(0, column);

        QCOMPARE(cell.data(Qt::DisplayRole).toString().toUpper(), text);
        QCOMPARE(cell.data(StepTableModel::ValueRole).toDouble(), value);
    }
};

MR_TEST_WITH_APP(TestStepTableModel)

} // namespace mr::test::tst_step_table_model

#include "tst_step_table_model.moc"
