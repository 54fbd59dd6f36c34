// PlanPanel: a PlanReport as a person reads it before pressing Start.
//
// Bytes of every tier by kind against its limit, the forecast of a step by cause, what a checkpoint
// takes of the free disk, and what to change if it does not fit. Shows, computes nothing.

#pragma once

#include "widgets/stacked_bar.h"

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QWidget>

#include <optional>

class QGridLayout;
class QLabel;
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
};

class PlanPanel final : public QWidget
{
    Q_OBJECT

public:
    explicit PlanPanel(QWidget* parent = nullptr);

    void setPlan(PlanView view);
    void setProblem(const QString& sentence); // why there is no plan
    void setWaiting(const QString& sentence); // what is still missing; no plan
    // A newer plan is being computed; the old one stays, marked.
    void setBusy(bool busy);

    const std::optional<PlanView>& plan() const { return m_view; }
    QString headline() const;

protected:
    void changeEvent(QEvent* event) override;

private:
    void rebuild();
    void clearContent();
    void addVerdict(QVBoxLayout* layout);
    void addTier(QVBoxLayout* layout, const PlanTier& tier);
    void addForecast(QVBoxLayout* layout);
    void addTraffic(QVBoxLayout* layout);
    void addCheckpoints(QVBoxLayout* layout);
    void addAdvice(QVBoxLayout* layout);
    void addHeading(QVBoxLayout* layout, const QString& left, const QString& right);
    void addLegendRow(
        QGridLayout* grid, const BarPiece& piece, const QString& value, const QString& toolTip);

    MessageLabel* m_headline;
    QWidget* m_content = nullptr;
    std::optional<PlanView> m_view;
};

} // namespace mr::ui
