// LineChart hands few vertices to the painter however long the run, and can be read without eyes.

#include "charts/line_chart.h"
#include "support/test_room.h"

#include <QCoreApplication>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>
#include <QtTest/qtestspontaneevent.h>

#include <cmath>
#include <limits>

namespace mr::test::tst_line_chart {

using mr::ui::LineChart;

namespace {

LineChart::Series plain(const char* name)
{
    return {QString::fromLatin1(name), QString::fromLatin1(name), LineChart::Style::Line,
        [](const QPalette&) { return QColor(Qt::blue); },
        [](double value) { return QString::number(value, 'f', 2); }};
}

void fill(LineChart& chart, int series, int count)
{
    std::vector<double> x;
    std::vector<double> y;
    for (int i = 1; i <= count; ++i) {
        x.push_back(i);
        y.push_back(2.0 + std::sin(i / 50.0));
    }
    chart.append(series, x, y);
}

} // namespace

class TestLineChart : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aHundredThousandStepsAreDrawnWithTwoPointsForEachPixelColumn()
    {
        LineChart chart(QStringLiteral("loss"));
        const int series = chart.addSeries(plain("loss"));
        chart.resize(600, 240);
        chart.show();
        QVERIFY(QTest::qWaitForWindowExposed(&chart));
        fill(chart, series, 100'000);

        chart.setRange(0.5, 100'000.5);

        const auto columns = static_cast<std::size_t>(chart.width() * chart.devicePixelRatioF());
        QVERIFY(chart.vertexCount(series) > 100);
        QVERIFY(chart.vertexCount(series) <= 2 * columns);
    }

    void theReadoutFollowsTheCursorAndElseTheEnd()
    {
        LineChart chart(QStringLiteral("loss"));
        const int series = chart.addSeries(plain("loss"));
        const std::vector<double> x = {1.0, 2.0, 3.0};
        const std::vector<double> y = {5.0, 4.0, 3.5};
        chart.append(series, x, y);
        chart.setRange(0.5, 3.5);

        QCOMPARE(chart.readout(), QStringLiteral("loss 3.50"));
        chart.setCursor(2.0);
        QCOMPARE(chart.readout(), QStringLiteral("step 2 · loss 4.00"));
        chart.setCursor(std::numeric_limits<double>::quiet_NaN());
        QCOMPARE(chart.readout(), QStringLiteral("loss 3.50"));
    }

    void theSummaryIsTheAccessibleDescription()
    {
        LineChart chart(QStringLiteral("loss"));
        const int series = chart.addSeries(plain("loss"));
        const std::vector<double> x = {1.0, 2.0, 3.0};
        const std::vector<double> y = {5.0, 3.25, 3.5};
        chart.append(series, x, y);

        chart.setRange(0.5, 3.5);

        QCOMPARE(chart.accessibleDescription(),
            QStringLiteral("loss: 3 points, last 3.50, lowest 3.25 at step 2."));
    }

    void aChartOverTimeSaysTimes()
    {
        LineChart chart(QStringLiteral("power"));
        chart.setXAxis({mr::ui::XAxis::Kind::Time, 1.0});
        const int series = chart.addSeries(plain("power"));
        chart.append(
            series, std::vector<double>{1.0, 2.0, 187.0}, std::vector<double>{9.0, 4.0, 5.0});
        chart.setRange(0.0, 200.0);

        chart.setCursor(187.0);

        QCOMPARE(chart.readout(), QStringLiteral("3 min 07 s · power 5.00"));
        QCOMPARE(chart.accessibleDescription(),
            QStringLiteral("power: 3 points, last 5.00, lowest 4.00 after 2.0 s."));
        QCOMPARE(chart.csv(), QByteArray("time_s,power\n1,9\n2,4\n187,5\n"));
    }

    void aCursorFindsTheEntryOfACoarseSeries()
    {
        LineChart chart(QStringLiteral("power"));
        chart.setXAxis({mr::ui::XAxis::Kind::Time, 16.0});
        const int series = chart.addSeries(plain("power"));
        chart.append(series, std::vector<double>{16.0, 32.0}, std::vector<double>{9.0, 4.0});
        chart.setRange(0.0, 64.0);

        chart.setCursor(35.0);
        QCOMPARE(chart.readout(), QStringLiteral("35 s · power 4.00"));
        chart.setCursor(60.0);
        QCOMPARE(chart.readout(), QStringLiteral("1 min 00 s"));
    }

    void theWheelOverAChartScrollsThePage()
    {
        QScrollArea area;
        auto* page = new QWidget;
        auto* chart = new LineChart(QStringLiteral("loss"), page);
        chart->setGeometry(0, 0, 300, 300);
        page->resize(300, 2000);
        area.setWidget(page);
        area.resize(320, 400);
        area.show();
        QVERIFY(QTest::qWaitForWindowExposed(&area));
        QWidget* under = area.childAt(150, 150);
        QVERIFY(under != nullptr && under != chart); // the widget that draws it

        // Only one of the system's goes from widget to widget.
        const QPointF at = under->mapFromGlobal(area.mapToGlobal(QPoint(150, 150)));
        QWheelEvent wheel(at, under->mapToGlobal(at), {}, QPoint(0, -120), Qt::NoButton,
            Qt::NoModifier, Qt::NoScrollPhase, false);
        QSpontaneKeyEvent::setSpontaneous(&wheel);
        QVERIFY(wheel.spontaneous());
        QCoreApplication::instance()->notify(under, &wheel);

        QVERIFY(area.verticalScrollBar()->value() > 0);
    }

    void csvJoinsSeriesByStep()
    {
        LineChart chart(QStringLiteral("loss"));
        const int raw = chart.addSeries(plain("loss"));
        const int eval = chart.addSeries(plain("eval"));
        chart.append(raw, std::vector<double>{1.0, 2.0}, std::vector<double>{5.5, 4.5});
        chart.append(eval, std::vector<double>{0.0, 2.0}, std::vector<double>{6.0, 4.0});

        QCOMPARE(chart.csv(), QByteArray("step,loss,eval\n0,,6\n1,5.5,\n2,4.5,4\n"));
    }

    void arrowKeysMoveTheCursor()
    {
        LineChart chart(QStringLiteral("loss"));
        const int series = chart.addSeries(plain("loss"));
        fill(chart, series, 100);
        chart.setRange(0.5, 100.5);
        QSignalSpy moved(&chart, &LineChart::cursorMoved);
        connect(&chart, &LineChart::cursorMoved, &chart, &LineChart::setCursor);

        QTest::keyClick(&chart, Qt::Key_End);
        QTest::keyClick(&chart, Qt::Key_Left);

        QCOMPARE(moved.count(), 2);
        QCOMPARE(moved[1][0].toDouble(), 99.0);
    }

    void theLogAxisSaysWhatItCannotShow()
    {
        LineChart chart(QStringLiteral("loss"));
        const int series = chart.addSeries(plain("loss"));
        chart.append(series, std::vector<double>{1.0, 2.0}, std::vector<double>{0.0, 4.5});
        chart.setRange(0.5, 2.5);

        QTest::keyClick(&chart, Qt::Key_L);

        QVERIFY(chart.logScale());
        QVERIFY(chart.readout().contains(QStringLiteral("log axis")));
    }
};

MR_TEST_WITH_WINDOWS(TestLineChart)

} // namespace mr::test::tst_line_chart

#include "tst_line_chart.moc"
