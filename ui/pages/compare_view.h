// Two runs beside each other: in a sentence, as bars of a step, as ledgers, as losses, as figures,
// and the settings that differ.
//
// The second may not have begun, and either may still go on: the figures so far are shown.
//
// Threads    GUI.
// Ownership  Keeps the last snapshot of each.

#pragma once

#include "models/run_figures.h"
#include "models/run_snapshot.h"

#include <QString>
#include <QWidget>

#include <array>

class QCheckBox;
class QGridLayout;
class QScrollArea;

namespace mr::ui {

class ChartPanel;
class CompareHeader;
class ComparisonModel;
class LossOverlay;
class SettingsModel;
class StallLedgerModel;
class StepBarsPanel;

class CompareView final : public QWidget
{
    Q_OBJECT

public:
    using Runs = std::array<RunSnapshotPtr, 2>;

    explicit CompareView(QWidget* parent = nullptr);

    // Null: it has not begun. `waitingName`: how the second will be called until then.
    void setRuns(const Runs& runs, const QString& waitingName);
    void setProblem(const QString& sentence); // why the second does not start
    const Runs& runs() const { return m_runs; }
    CompareHeader* header() const { return m_header; }
    StepBarsPanel* bars() const { return m_bars; }
    StallLedgerModel* ledger(int run) const { return m_ledgers.at(static_cast<std::size_t>(run)); }
    ComparisonModel* figures() const { return m_figures; }
    LossOverlay* losses() const { return m_losses; }
    SettingsModel* settings() const { return m_settings; }
    QCheckBox* allSettings() const { return m_allSettings; }

signals:
    void openRequested(qint64 runId, bool isLive);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void makePanels();
    void makeSettings();
    void showSettings(const std::array<QString, 2>& labels);
    void arrange(int columns);
    void showSentence(const std::array<RunFigures, 2>& figures);
    void showLedger(int run, const RunFigures& figures, const QString& label);

    Runs m_runs;
    QString m_waitingName;
    std::array<RunFigures, 2> m_shown{};
    CompareHeader* m_header = nullptr;
    QScrollArea* m_scroll = nullptr;
    QWidget* m_panels = nullptr;
    QGridLayout* m_grid = nullptr;
    int m_columns = 0;
    StepBarsPanel* m_bars = nullptr;
    std::array<StallLedgerModel*, 2> m_ledgers{};
    std::array<ChartPanel*, 2> m_ledgerPanels{};
    LossOverlay* m_losses = nullptr;
    ComparisonModel* m_figures = nullptr;
    ChartPanel* m_figuresPanel = nullptr;
    SettingsModel* m_settings = nullptr;
    ChartPanel* m_settingsPanel = nullptr;
    QCheckBox* m_allSettings = nullptr;
};

} // namespace mr::ui
