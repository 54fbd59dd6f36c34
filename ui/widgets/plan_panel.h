// PlanPanel: a PlanReport as a person reads it before pressing Start.
//
// Bytes of every tier by kind against its limit, the forecast of a step by cause, the checkpoints
// against the free disk, and advice if the plan does not fit. Shows, computes nothing.

#pragma once

#include "widgets/stacked_bar.h"

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QWidget>

#include <optional>

class QVBoxLayout;

namespace mr::ui {

class MessageLabel;

struct PlanView {
    PlanReport report;
    std::uint64_t diskFreeBytes = 0; // where checkpoints go
    std::int64_t keepCheckpoints = 0;

    std::uint64_t checkpointsBytes() const
    {
        // One more than is kept exists while the newest is written.
        return report.checkpointBytes * static_cast<std::uint64_t>(keepCheckpoints + 1);
    }
    bool diskFits() const { return checkpointsBytes() <= diskFreeBytes; }
    bool fits() const { return report.fits && diskFits(); }
};

class PlanPanel final : public QWidget
{
    Q_OBJECT

public:
    explicit PlanPanel(QWidget* parent = nullptr);

    // `compared`: the run that follows, to be compared with it; its forecast is shown on one scale
    // with the first.
    void setPlan(PlanView view, std::optional<PlanView> compared = std::nullopt);
    void setProblem(const QString& sentence); // why there is no plan
    void setWaiting(const QString& sentence); // names the missing input; no plan
    // A newer plan is being computed; the old one stays, marked.
    void setBusy(bool busy);

    const std::optional<PlanView>& plan() const { return m_view; }
    const std::optional<PlanView>& compared() const { return m_compared; }
    QString headline() const;

signals:
    void lighterChosen(const mr::LighterWay& way);

protected:
    void changeEvent(QEvent* event) override;

private:
    void rebuild();
    void clearContent();
    void addVerdict(QVBoxLayout* layout);
    void addTier(QVBoxLayout* layout, const PlanTier& tier);
    void showVerdict(const PlanView& view);
    void addForecasts(QVBoxLayout* layout);
    void addForecast(QVBoxLayout* layout, const PlanReport& report, double wholeMs);
    void addView(QVBoxLayout* layout, const PlanView& view);
    void addTraffic(QVBoxLayout* layout, const PlanReport& report);
    void addWear(QVBoxLayout* layout, const PlanReport& report);
    void addCheckpoints(QVBoxLayout* layout, const PlanView& view);
    void addDoubts(QVBoxLayout* layout);
    void addHelp(QVBoxLayout* layout, const PlanReport& report);
    void addAdvice(QVBoxLayout* layout, const PlanReport& report);
    void addLighter(QVBoxLayout* layout, const PlanReport& report);

    MessageLabel* m_headline;
    QWidget* m_content = nullptr;
    std::optional<PlanView> m_view;
    std::optional<PlanView> m_compared;
};

} // namespace mr::ui
