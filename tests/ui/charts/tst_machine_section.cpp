// The machine's charts show measured series, grow with them, and are absent for series without
// samples.

#include "charts/line_chart.h"
#include "charts/machine_section.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QSignalSpy>
#include <QTest>

#include <cmath>
#include <limits>

namespace mr::test::tst_machine_section {

using mr::ui::LineChart;
using mr::ui::MachineHistory;
using mr::ui::MachineSection;
using mr::ui::test::demoMachine;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

// A machine without a GPU, without sensors.
mr::ui::MachineHistoryPtr onlyTheHost(std::int64_t count)
{
    auto history = std::make_shared<MachineHistory>(*demoMachine(count));
    for (std::size_t i = 0; i < kMachineMetrics; ++i) {
        const std::string_view name = kMachineMetricInfos[i].name;
        if (name.starts_with("device.") || name == "host.power" || name == "host.temperature" ||
            name == "disk.temperature")
            history->series[i].entries.clear();
    }
    return history;
}

QStringList names(const MachineSection& section)
{
    QStringList names;
    for (const LineChart* chart : section.shownCharts())
        names << chart->accessibleName();
    return names;
}

} // namespace

class TestMachineSection : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void everyChartHasItsUnitInItsName()
    {
        MachineSection section;

        section.setHistory(demoMachine(60), kNone);

        QCOMPARE(names(section), QStringList({"Utilization (%)", "Memory (GiB)", "PCIe (GB/s)",
                                     "Power (W)", "Temperature (°C)", "Clocks (MHz)"}));
    }

    void whatWasNotMeasuredHasNoChart()
    {
        MachineSection section;

        section.setHistory(onlyTheHost(60), kNone);

        QCOMPARE(names(section), QStringList({"Utilization (%)", "Memory (GiB)"}));
        QCOMPARE(section.shownCharts()[0]->csv().split('\n')[0],
            QByteArray("time_s,process_cpu_percent,host_cpu_percent"));
    }

    void aRunWithoutSamplesHasNoSection()
    {
        MachineSection section;
        QVERIFY(section.isHidden());
        section.setHistory(demoMachine(60), kNone);
        QVERIFY(!section.isHidden());

        section.setHistory(nullptr, kNone);

        QVERIFY(section.isHidden());
    }

    void anotherRunsChartsDoNotStay()
    {
        MachineSection section;
        section.setHistory(demoMachine(60), kNone);

        section.clear();
        section.setHistory(onlyTheHost(30), kNone);

        QCOMPARE(names(section), QStringList({"Utilization (%)", "Memory (GiB)"}));
        QVERIFY(section.shownCharts()[0]->readout().contains("Millrace"));
        QVERIFY(!section.shownCharts()[0]->readout().contains("device"));
    }

    void growingGivesTheSameChartsAsTheWhole()
    {
        MachineSection grown;
        for (const std::int64_t count : {1, 2, 17, 200})
            grown.setHistory(demoMachine(count), kNone);
        MachineSection whole;
        whole.setHistory(demoMachine(200), kNone);

        for (std::size_t i = 0; i < 6; ++i)
            QCOMPARE(grown.shownCharts()[i]->csv(), whole.shownCharts()[i]->csv());
    }

    void aCoarseSeriesKeepsItsPeaks()
    {
        auto history = std::make_shared<MachineHistory>();
        CounterSeries& power =
            history->series[static_cast<std::size_t>(MachineMetric::DevicePower)];
        power.periodMs = 16'000;
        power.entries = {{0, 100.0F, 300.0F, 120.0F}, {16'000, 90.0F, 110.0F, 100.0F}};
        history->endMs = 32'000;
        MachineSection section;

        section.setHistory(history, kNone);

        QCOMPARE(section.shownCharts()[0]->csv(),
            QByteArray("time_s,device_power_w\n0,100\n8,300\n16,90\n24,110\n"));
    }

    void aSecondThatWasMissedBreaksTheLineWithoutAMark()
    {
        auto history = std::make_shared<MachineHistory>(*onlyTheHost(10));
        for (CounterSeries& series : history->series) {
            if (!series.entries.empty())
                series.entries[4] = {5000, kNothing, kNothing, kNothing};
        }
        MachineSection section;

        section.setHistory(history, kNone);

        QVERIFY(section.shownCharts()[0]->csv().contains("\n5,nan,nan\n"));
        QCOMPARE(section.shownCharts()[0]->gapMarks(), qsizetype{0});
    }

    void zoomAndCursorOfAnyChartAreTheSections()
    {
        MachineSection section;
        section.setHistory(demoMachine(60), kNone);
        QSignalSpy picked(&section, &MachineSection::rangePicked);
        QSignalSpy all(&section, &MachineSection::allPicked);
        QSignalSpy moved(&section, &MachineSection::cursorMoved);
        section.setRange(0.0, 60.0);

        QTest::keyClick(section.shownCharts()[5], Qt::Key_Plus);
        QTest::keyClick(section.shownCharts()[1], Qt::Key_0);
        QTest::keyClick(section.shownCharts()[2], Qt::Key_End);

        QCOMPARE(picked.count(), 1);
        QCOMPARE(all.count(), 1);
        QCOMPARE(moved.count(), 1);
        QCOMPARE(moved[0][0].toDouble(), 60.0);
    }

    void narrowWindowsHaveOneColumn()
    {
        MachineSection section;
        section.setHistory(demoMachine(60), kNone);
        section.show();
        const auto columns = [&section](int width) {
            section.resize(width, 800);
            QCoreApplication::processEvents();
            QSet<int> left;
            for (const LineChart* chart : section.shownCharts())
                left.insert(chart->parentWidget()->x());
            return left.size();
        };

        QCOMPARE(columns(400), qsizetype{1});
        QCOMPARE(columns(700), qsizetype{2});
        QCOMPARE(columns(1200), qsizetype{3});
    }
};

MR_TEST_WITH_WINDOWS(TestMachineSection)

} // namespace mr::test::tst_machine_section

#include "tst_machine_section.moc"
