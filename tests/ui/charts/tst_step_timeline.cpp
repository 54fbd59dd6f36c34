// StepTimelineChart: pointing, keys, words, and the cost of painting thousands of tasks.

#include "charts/step_timeline.h"
#include "support/test_room.h"
#include "ui/support/demo_timeline.h"

#include <QAccessible>
#include <QApplication>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_step_timeline {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

const std::vector<std::string>& names()
{
    static const std::vector<std::string> made = [] {
        std::vector<std::string> list;
        for (const PlanGroup& group : demoGroups(DemoPolicy::ZeroOffload))
            list.push_back(group.name);
        return list;
    }();
    return made;
}

void show(StepTimelineChart& chart, StepTimeline timeline)
{
    chart.setTimeline(std::make_shared<const StepTimeline>(std::move(timeline)), names());
    chart.resize(1000, chart.minimumSizeHint().height());
    chart.grab();
}

const TimelineSpan& selectedSpan(const StepTimelineChart& chart)
{
    return chart.timeline()->spans[static_cast<std::size_t>(chart.selected())];
}

QPoint middleOf(const StepTimelineChart& chart, std::size_t row, double ns)
{
    const TimelineGeometry& rows = chart.geometryOfRows();
    return QPointF(rows.xOf(ns, chart.range()), rows.rows[row].center().y()).toPoint();
}

} // namespace

class TestStepTimeline : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aClickSelectsTheTaskUnderIt()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::ZeroOffload, 50));
        QSignalSpy selected(&chart, &StepTimelineChart::selectionChanged);
        const TimelineSpan& last = chart.timeline()->spans.back();

        QTest::mouseClick(&chart, Qt::LeftButton, {}, middleOf(chart, 0, 60e6));

        QVERIFY(!selected.isEmpty());
        QVERIFY(chart.selected() >= 0);
        QVERIFY(selectedSpan(chart).beginNs <= 61'000'000);
        QVERIFY(selectedSpan(chart).endNs >= 59'000'000);
        QVERIFY(last.endNs > 0);
    }

    void pointingWhereNothingIsSelectsNothing()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::ZeroOffload, 50));
        QTest::keyClick(&chart, Qt::Key_Period);
        QVERIFY(chart.selected() >= 0);

        QTest::mouseClick(&chart, Qt::LeftButton, {}, QPoint(5, 5));

        QCOMPARE(chart.selected(), -1);
    }

    void commaAndFullStopWalkThroughTheLane()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));

        QTest::keyClick(&chart, Qt::Key_Period);
        const std::int64_t first = selectedSpan(chart).beginNs;
        QTest::keyClick(&chart, Qt::Key_Period);
        const std::int64_t second = selectedSpan(chart).beginNs;
        QTest::keyClick(&chart, Qt::Key_Comma);

        QVERIFY(second > first);
        QCOMPARE(selectedSpan(chart).beginNs, first);
        QTest::keyClick(&chart, Qt::Key_Escape);
        QCOMPARE(chart.selected(), -1);
    }

    void upAndDownGoToOtherLanesAtTheSameTime()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Streamed, 50));
        QTest::keyClick(&chart, Qt::Key_Period);
        QVERIFY(selectedSpan(chart).kind == TimelineKind::Wait ||
                selectedSpan(chart).lane == TimelineLane::Compute);

        QTest::keyClick(&chart, Qt::Key_Down);

        QVERIFY(selectedSpan(chart).kind == TimelineKind::Task);
        QVERIFY(selectedSpan(chart).lane == TimelineLane::CopyIn);
        QTest::keyClick(&chart, Qt::Key_Up);
        QTest::keyClick(&chart, Qt::Key_Up); // there is none above
        QVERIFY(selectedSpan(chart).kind == TimelineKind::Wait ||
                selectedSpan(chart).lane == TimelineLane::Compute);
    }

    void returnGoesFromAWaitToWhatItWaitedFor()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::ZeroOffload, 50));
        const int wait = longestWait(*chart.timeline(), StallCause::H2d);
        chart.select(wait);
        QVERIFY2(chart.readout().contains(QStringLiteral("Upload")), qPrintable(chart.readout()));

        QTest::keyClick(&chart, Qt::Key_Return);

        QCOMPARE(selectedSpan(chart).task, std::string("FetchWeights"));
        QVERIFY2(chart.accessibleDescription().contains(QStringLiteral("GB/s")),
            qPrintable(chart.accessibleDescription()));
    }

    void zoomPanAndFitByKeys()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));
        const TimeRange whole = chart.whole();

        for (int i = 0; i < 10; ++i)
            QTest::keyClick(&chart, Qt::Key_Plus);
        const TimeRange near = chart.range();
        QVERIFY(near.length() < whole.length() / 5.0);
        QTest::keyClick(&chart, Qt::Key_Right);
        QVERIFY(chart.range().from > near.from);
        QTest::keyClick(&chart, Qt::Key_Left);
        QTest::keyClick(&chart, Qt::Key_Minus);
        QVERIFY(chart.range().length() > near.length());
        QTest::keyClick(&chart, Qt::Key_Home);

        QVERIFY(chart.range() == whole);
    }

    void fShowsTheSelectedTask()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));
        QTest::keyClick(&chart, Qt::Key_Period);
        QTest::keyClick(&chart, Qt::Key_Period);

        QTest::keyClick(&chart, Qt::Key_F);

        const auto length =
            static_cast<double>(selectedSpan(chart).endNs - selectedSpan(chart).beginNs);
        QVERIFY(chart.range().length() < 2.0 * length);
        QVERIFY(chart.range().from <= static_cast<double>(selectedSpan(chart).beginNs));
    }

    void draggingPansAndSelectsNothing()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));
        chart.setRange({100e6, 200e6});

        QTest::mousePress(&chart, Qt::LeftButton, {}, {600, 50});
        QTest::mouseMove(&chart, {500, 50});
        QTest::mouseRelease(&chart, Qt::LeftButton, {}, {500, 50});

        QVERIFY(chart.range().from > 105e6);
        QCOMPARE(chart.selected(), -1);
    }

    void theWheelScrollsThePageUntilTheChartHasTheFocus()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));
        const auto turn = [&chart](Qt::KeyboardModifiers modifiers) {
            QWheelEvent wheel({500, 50}, chart.mapToGlobal(QPointF(500, 50)), {}, {0, 120}, {},
                modifiers, Qt::NoScrollPhase, false);
            QApplication::sendEvent(&chart, &wheel);
            return wheel.isAccepted();
        };

        QVERIFY(!turn(Qt::NoModifier));
        QVERIFY(chart.range() == chart.whole());
        QVERIFY(turn(Qt::ControlModifier));
        QVERIFY(chart.range().length() < chart.whole().length());
    }

    void pageKeysAskForAnotherStep()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::Resident, 50));
        QSignalSpy asked(&chart, &StepTimelineChart::stepRequested);

        QTest::keyClick(&chart, Qt::Key_PageDown);
        QTest::keyClick(&chart, Qt::Key_PageUp);

        QCOMPARE(asked.count(), 2);
        QCOMPARE(asked[0][0].toInt(), 1);
        QCOMPARE(asked[1][0].toInt(), -1);
    }

    void theToolTipHasNamesTimesBytesAndRate()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::ZeroOffload, 50));
        chart.select(longestWait(*chart.timeline(), StallCause::H2d));
        QTest::keyClick(&chart, Qt::Key_Return);

        const QString text = chart.toolTipFor(chart.selected(), 3);

        for (const char* word : {"Fetch weights", "Layer", "In", "Begins at", "Takes", "ms", "92.0",
                 "MiB", "GB/s", "3 more"})
            QVERIFY2(text.contains(QString::fromLatin1(word)), qPrintable(text));
    }

    void screenReadersMeetAChartWithASummary()
    {
        StepTimelineChart chart;
        show(chart, demoTimeline(DemoPolicy::ZeroOffload, 50));

        QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(&chart);

        QVERIFY(interface != nullptr);
        QVERIFY(interface->role() == QAccessible::Chart);
        QVERIFY2(interface->text(QAccessible::Description).contains(QStringLiteral("longest wait")),
            qPrintable(interface->text(QAccessible::Description)));
    }

    void keysOnAChartWithoutAStepDoNothing()
    {
        StepTimelineChart chart;
        chart.resize(500, 100);

        for (const Qt::Key key : {Qt::Key_Period, Qt::Key_Down, Qt::Key_Return, Qt::Key_Plus,
                 Qt::Key_Home, Qt::Key_F, Qt::Key_Left})
            QTest::keyClick(&chart, key);

        QCOMPARE(chart.selected(), -1);
        QVERIFY(!chart.grab().isNull());
    }

    // Three lanes of 20,000 tasks. The bound is loose, because the machine may be busy: 60 ms for a
    // picture that takes a few.
    void thousandsOfTasksArePaintedQuickly()
    {
        StepTimelineChart chart;
        show(chart, largeTimeline(20'000));
        qint64 best = 1'000'000'000;
        for (int i = 0; i < 8; ++i) {
            const double shift = 1e5 * (i + 1);
            chart.setRange({shift, chart.whole().to});
            QElapsedTimer clock;
            clock.start();
            chart.grab();
            best = std::min(best, clock.nsecsElapsed());
        }
        qInfo("60,000 tasks in %.2f ms", static_cast<double>(best) / 1e6);

#ifndef __SANITIZE_ADDRESS__
        QVERIFY(best < 60'000'000);
#endif
    }
};

MR_TEST_WITH_WINDOWS(TestStepTimeline)

} // namespace mr::test::tst_step_timeline

#include "tst_step_timeline.moc"
