// StallStrip names its colours in words, and stays cheap when zoomed out.

#include "charts/stall_strip.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QSignalSpy>
#include <QTest>

namespace mr::test::tst_stall_strip {

using mr::ui::StallStrip;
using mr::ui::StepSeries;

namespace {

StepSeries demo(std::int64_t count)
{
    StepSeries steps;
    steps.append(mr::ui::test::demoSteps(count));
    return steps;
}

} // namespace

class TestStallStrip : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aLongRunIsDrawnWithOneBarForEachPixelColumn()
    {
        StallStrip strip;
        strip.resize(700, 160);
        strip.setSteps(demo(100'000));
        strip.setRange(0.5, 100'000.5);

        strip.grab();

        QVERIFY(strip.barCount() > 100);
        QVERIFY(strip.barCount() <= static_cast<std::size_t>(700 * strip.devicePixelRatioF()));
    }

    void theToolTipHasAllCausesWithTimeAndShare()
    {
        const mr::StepRow row = mr::ui::test::demoSteps(1).front();

        const QString text = StallStrip::toolTipFor(row);

        for (const char* word :
            {"Compute", "Upload", "Download", "Host update", "Disk", "Data", "Other", " ms", "%"})
            QVERIFY2(text.contains(QString::fromLatin1(word)), word);
    }

    void keysMoveTheCursorAndTheReadoutNamesTheStep()
    {
        StallStrip strip;
        strip.resize(700, 160);
        strip.setSteps(demo(50));
        strip.setRange(0.5, 50.5);
        strip.grab();
        connect(&strip, &StallStrip::cursorMoved, &strip, &StallStrip::setCursor);

        QTest::keyClick(&strip, Qt::Key_Home);
        QTest::keyClick(&strip, Qt::Key_Right);

        QVERIFY2(
            strip.readout().startsWith(QStringLiteral("step 2 ")), qPrintable(strip.readout()));
        QVERIFY(strip.readout().contains(QStringLiteral("Data"))); // the longest stall of step 2
    }

    void theSummaryNamesTheLongestWait()
    {
        StallStrip strip;
        strip.setSteps(demo(300));

        QVERIFY2(strip.accessibleDescription().contains(QStringLiteral("The longest wait: Upload")),
            qPrintable(strip.accessibleDescription()));
    }

    void draggingPicksARange()
    {
        StallStrip strip;
        strip.resize(700, 160);
        strip.setSteps(demo(200));
        strip.setRange(0.5, 200.5);
        QSignalSpy picked(&strip, &StallStrip::rangePicked);

        QTest::mousePress(&strip, Qt::LeftButton, {}, {300, 60});
        QTest::mouseMove(&strip, {400, 60});
        QTest::mouseRelease(&strip, Qt::LeftButton, {}, {400, 60});

        QCOMPARE(picked.count(), 1);
        QVERIFY(picked[0][0].toDouble() < picked[0][1].toDouble());
    }
};

MR_TEST_WITH_WINDOWS(TestStallStrip)

} // namespace mr::test::tst_stall_strip

#include "tst_stall_strip.moc"
