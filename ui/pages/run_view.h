// RunView: one run, with all its charts. The Live page and the History page show the same one.
//
// The charts over steps and those over time show the same stretch of the run: zooming one zooms
// all, and so does the cursor.
//
// Threads    GUI.
// Ownership  Keeps the last snapshot it was given; charts hold the points they show.

#pragma once

#include "models/run_range.h"
#include "models/run_snapshot.h"
#include "models/step_timeline_ptr.h"

#include <millrace/session.h>

#include <QWidget>

#include <vector>

class QGridLayout;
class QPushButton;
class QScrollArea;
class QTableView;

namespace mr::ui {

class ChartPanel;
class EventTableModel;
class ExportTableModel;
class ForecastPanel;
class LineChart;
class LossPanel;
class MachineSection;
class MemoryPanel;
class PausePanel;
class RunHeader;
class StallLedgerModel;
class StallStrip;
class StepCharts;
class StepTableModel;
class TierMap;
class TimelineSection;

class RunView final : public QWidget
{
    Q_OBJECT

public:
    explicit RunView(QWidget* parent = nullptr);
    ~RunView() override;

    void setSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    const RunSnapshotPtr& snapshot() const { return m_snapshot; }
    RunHeader* header() const { return m_header; }
    LineChart* lossChart() const;
    StallStrip* stallStrip() const { return m_strip; }
    StallLedgerModel* ledger() const { return m_ledger; }
    MachineSection* machine() const { return m_machine; }
    TimelineSection* timeline() const { return m_timeline; }
    ForecastPanel* forecast() const { return m_forecast; }
    TierMap* tierMap() const { return m_tiers; }
    ChartPanel* exports() const { return m_exportsPanel; }
    // Another program's run, or an old one: it is not answered here.
    void setAnswerable(bool on);
    // Answer to timelineRequested().
    void setTimeline(const mr::ui::TimelinePtr& timeline);
    void setTimelineFailure(qint64 step, const QString& sentence);
    // Opens the kept step that lost most time to a row of the ledger.
    void showWorst(int ledgerRow);
    void scrollTo(QWidget* part);

signals:
    void stopRequested();
    void resumeRequested(const QString& runDir);
    void tryRequested(qint64 runId);
    void closeRequested();
    void pauseAnswered(const mr::PauseAnswer& answer);
    void timelineRequested(qint64 step);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Place {
        QWidget* panel;
        bool isWide; // takes a row
    };

    void makeStepCharts();
    void makeStalls();
    void makeLedger();
    void makeTimeline();
    void makeMachine();
    void makeExports();
    void makeLog();
    void layOut();
    void showStripLegend(bool planned);
    std::vector<Place> places() const;
    void arrange(int columns);

    void startOver();
    void showLog();
    void showRange();
    void pickRange(double lower, double upper);
    void pickTimes(double lower, double upper);
    void pickAll();
    void setCursor(double step);
    void setTimeCursor(double seconds);
    void setCursors(double step, double seconds);
    void showLedger();

    RunSnapshotPtr m_snapshot;
    std::size_t m_stepsShown = 0;
    RunRange m_range;
    bool m_forecastShown = false;

    RunHeader* m_header = nullptr;
    PausePanel* m_pause = nullptr;
    QScrollArea* m_scroll = nullptr;
    QWidget* m_panels = nullptr;
    QGridLayout* m_grid = nullptr;
    int m_columns = 0;
    bool m_diskShown = false;
    QPushButton* m_showAll = nullptr;
    LossPanel* m_loss = nullptr;
    StepCharts* m_small = nullptr;
    std::vector<LineChart*> m_charts; // over steps
    StallStrip* m_strip = nullptr;
    ChartPanel* m_stripPanel = nullptr;
    StallLedgerModel* m_ledger = nullptr;
    ChartPanel* m_ledgerPanel = nullptr;
    MemoryPanel* m_memory = nullptr;
    ChartPanel* m_memoryPanel = nullptr;
    MachineSection* m_machine = nullptr;
    TimelineSection* m_timeline = nullptr;
    ForecastPanel* m_forecast = nullptr;
    TierMap* m_tiers = nullptr;
    StepTableModel* m_steps = nullptr;
    ExportTableModel* m_exports = nullptr;
    ChartPanel* m_exportsPanel = nullptr; // hidden where there are none
    EventTableModel* m_events = nullptr;
    QTableView* m_eventTable = nullptr;
    ChartPanel* m_logPanel = nullptr;
};

} // namespace mr::ui
