// TimelineTableModel: the tasks of a step as rows.

#include "models/timeline_table_model.h"
#include "support/test_room.h"
#include "ui/support/demo_timeline.h"

#include <QAbstractItemModelTester>
#include <QTest>

#include <cmath>

namespace mr::test::tst_timeline_table_model {

using namespace mr::ui;
using namespace mr::ui::test;

class TestTimelineTableModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void everySpanIsARowByBegin()
    {
        TimelineTableModel model;
        const QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const auto timeline =
            std::make_shared<const StepTimeline>(demoTimeline(DemoPolicy::ZeroOffload, 50));

        model.setTimeline(timeline, {"embedding", "block 0"});

        QCOMPARE(model.rowCount(), static_cast<int>(timeline->spans.size()));
        double before = 0.0;
        for (int row = 0; row < model.rowCount(); ++row) {
            const double begin = model.index(row, TimelineTableModel::Begin)
                                     .data(TimelineTableModel::ValueRole)
                                     .toDouble();
            QVERIFY(begin >= before);
            before = begin;
        }
        QCOMPARE(model.index(0, TimelineTableModel::Task).data().toString(),
            QStringLiteral("Compute waits: Data"));
        QCOMPARE(
            model.index(0, TimelineTableModel::Lane).data().toString(), QStringLiteral("Compute"));
    }

    void onlyCopiesHaveARate()
    {
        TimelineTableModel model;
        StepTimeline timeline;
        timeline.spans.resize(2);
        timeline.spans[0].endNs = 1'000'000;
        timeline.spans[0].bytes = 4'000'000;
        timeline.spans[1].endNs = 1'000'000;
        model.setTimeline(std::make_shared<const StepTimeline>(timeline), {});

        QCOMPARE(model.index(0, TimelineTableModel::Rate).data().toString(),
            QStringLiteral("4.00\u00a0GB/s"));
        QCOMPARE(model.index(1, TimelineTableModel::Rate).data().toString(), QString());
        QVERIFY(std::isnan(model.index(1, TimelineTableModel::Rate)
                               .data(TimelineTableModel::ValueRole)
                               .toDouble()));
    }

    void theCsvHasPlainNumbersAndCauses()
    {
        TimelineTableModel model;
        model.setTimeline(
            std::make_shared<const StepTimeline>(demoTimeline(DemoPolicy::ZeroOffload, 50)), {});

        const QByteArray csv = model.csv();

        QVERIFY(csv.startsWith("lane,kind,task,group,micro,begin_ns,end_ns,bytes,cause\n"));
        QVERIFY(csv.contains("engine,wait,,-1,-1,0,700000,0,data\n"));
        QVERIFY(csv.contains(",h2d\n"));
    }
};

MR_TEST_WITH_WINDOWS(TestTimelineTableModel)

} // namespace mr::test::tst_timeline_table_model

#include "tst_timeline_table_model.moc"
