// RunView: one run, with all its charts. The Live page and the History page show the same one.
//
// Threads    GUI.
// Ownership  Keeps the last snapshot it was given; charts hold the points they show.

#pragma once

#include "charts/series_math.h"
#include "models/run_snapshot.h"

#include <QWidget>

#include <vector>

class QCheckBox;
class QGridLayout;
class QPushButton;
class QScrollArea;
class QSpinBox;
class QTableView;

namespace mr::ui {

class ChartPanel;
class EventTableModel;
class LineChart;
class MemoryPanel;
class RunHeader;
class StallLedgerModel;
class StallStrip;
class StepTableModel;

class RunView final : public QWidget
{
    Q_OBJECT

public:
    explicit RunView(QWidget* parent = nullptr);
    ~RunView() override;

    void setSnapshot(const mr::ui::RunSnapshotPtr& snapshot);
    const RunSnapshotPtr& snapshot() const { return m_snapshot; }
    RunHeader* header() const { return m_header; }
    LineChart* lossChart() const { return m_loss; }
    StallStrip* stallStrip() const { return m_strip; }
    StallLedgerModel* ledger() const { return m_ledger; }

signals:
    void stopRequested();
    void resumeRequested(const QString& runDir);
    void closeRequested();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void makeLoss();
    void makeStalls();
    void makeLedger();
    void showStepTable();
    void makeTraffic();
    void showStripLegend(bool planned);
    void makeSpeed();
    void makeOptimizer();
    void makeLog();
    LineChart* addLineChart(const QString& title, const QString& fileName, ChartPanel*& panel);
    void addSeries(LineChart* chart, const QString& name, const QString& column, int color,
        const QString& unit);
    void link(LineChart* chart);
    void arrange(int columns);

    void startOver();
    void appendSteps(std::size_t first);
    void resmooth();
    void showRange();
    void pickRange(double lower, double upper);
    void pickAll();
    void setCursor(double step);
    void showLedger();

    RunSnapshotPtr m_snapshot;
    std::size_t m_stepsShown = 0;
    double m_lower = 0.5;
    double m_upper = 10.5;
    bool m_all = true; // follows the end
    bool m_forecastShown = false;
    Ema m_ema;

    RunHeader* m_header = nullptr;
    QScrollArea* m_scroll = nullptr;
    QWidget* m_panels = nullptr;
    QGridLayout* m_grid = nullptr;
    int m_columns = 0;
    QPushButton* m_showAll = nullptr;
    QSpinBox* m_window = nullptr;
    QCheckBox* m_log = nullptr;
    LineChart* m_loss = nullptr;
    LineChart* m_traffic = nullptr;
    LineChart* m_speed = nullptr;
    LineChart* m_rate = nullptr;
    LineChart* m_norm = nullptr;
    StallStrip* m_strip = nullptr;
    StallLedgerModel* m_ledger = nullptr;
    QTableView* m_ledgerTable = nullptr;
    MemoryPanel* m_memory = nullptr;
    StepTableModel* m_steps = nullptr;
    EventTableModel* m_events = nullptr;
    QTableView* m_eventTable = nullptr;
    std::vector<LineChart*> m_charts;
    ChartPanel* m_lossPanel = nullptr;
    ChartPanel* m_stripPanel = nullptr;
    ChartPanel* m_ledgerPanel = nullptr;
    ChartPanel* m_trafficPanel = nullptr;
    ChartPanel* m_memoryPanel = nullptr;
    ChartPanel* m_speedPanel = nullptr;
    ChartPanel* m_ratePanel = nullptr;
    ChartPanel* m_normPanel = nullptr;
    ChartPanel* m_logPanel = nullptr;
};

} // namespace mr::ui
