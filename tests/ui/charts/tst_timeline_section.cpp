// TimelineSection: the step it asks for, and its use of the answer.

#include "charts/step_timeline.h"
#include "charts/timeline_section.h"
#include "models/timeline_table_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_timeline.h"

#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_timeline_section {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

TimelinePtr demo(std::int64_t step)
{
    return std::make_shared<const StepTimeline>(demoTimeline(DemoPolicy::ZeroOffload, step));
}

} // namespace

class TestTimelineSection : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void theNewestKeptStepIsAskedForOnce()
    {
        TimelineSection section;
        QSignalSpy asked(&section, &TimelineSection::timelineRequested);

        section.setSnapshot(demoSnapshot(412, 600));
        section.setSnapshot(demoSnapshot(413, 600));

        QCOMPARE(asked.count(), 1);
        QCOMPARE(asked[0][0].toLongLong(), 400LL);
        QCOMPARE(section.findChild<QComboBox*>()->count(), 8);
    }

    void aNewKeptStepIsFollowedUntilOneIsChosen()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(120, 600));
        section.setTimeline(demo(100));
        QSignalSpy asked(&section, &TimelineSection::timelineRequested);

        section.setSnapshot(demoSnapshot(160, 600));
        QCOMPARE(asked.count(), 1);
        QCOMPARE(asked[0][0].toLongLong(), 150LL);
        QCOMPARE(section.chart()->timeline()->step, std::int64_t{100}); // until the other is there
        section.setTimeline(demo(150));
        QTest::keyClick(section.chart(), Qt::Key_PageUp);
        QCOMPARE(asked.count(), 2);
        QCOMPARE(asked[1][0].toLongLong(), 100LL);
        section.setSnapshot(demoSnapshot(260, 600));

        QCOMPARE(asked.count(), 2);
    }

    void anAnswerForAnotherStepIsDropped()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(120, 600));

        section.setTimeline(demo(50));

        QVERIFY(section.chart()->timeline() == nullptr);
    }

    void aCauseOpensItsWorstStepAtItsLongestWait()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(412, 600));
        QSignalSpy asked(&section, &TimelineSection::timelineRequested);

        QVERIFY(section.showWorst(1 + static_cast<std::size_t>(StallCause::HostUpdate)));
        QCOMPARE(asked.count(), 1);
        const qint64 step = asked[0][0].toLongLong();
        section.setTimeline(demo(step));

        QCOMPARE(step, 400LL); // after step 380 the update takes three times as long
        const int selected = section.chart()->selected();
        QVERIFY(selected >= 0);
        const TimelineSpan& span =
            section.chart()->timeline()->spans[static_cast<std::size_t>(selected)];
        QVERIFY(span.kind == TimelineKind::Wait);
    }

    void withoutKeptStepsThereIsNothingToOpen()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(20, 600));

        QVERIFY(!section.showWorst(0));
        QVERIFY(section.findChild<QComboBox*>()->isHidden());
    }

    void aFileThatIsGoneIsSaid()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(120, 600));

        section.setFailure(100, QStringLiteral("/runs/7/trace-100.json: no such file"));

        bool said = false;
        for (const QLabel* label : section.findChildren<QLabel*>())
            said = said || label->text().contains(QStringLiteral("no such file"));
        QVERIFY(said);
    }

    void anotherRunForgetsEverything()
    {
        TimelineSection section;
        section.setSnapshot(demoSnapshot(120, 600));
        section.setTimeline(demo(100));

        section.clear();

        QVERIFY(section.chart()->timeline() == nullptr);
        QCOMPARE(section.tasks()->rowCount(), 0);
        QCOMPARE(section.findChild<QComboBox*>()->count(), 0);
    }
};

MR_TEST_WITH_WINDOWS(TestTimelineSection)

} // namespace mr::test::tst_timeline_section

#include "tst_timeline_section.moc"
