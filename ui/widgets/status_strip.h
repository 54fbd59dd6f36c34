// StatusStrip: the run that is going on, in one line at the bottom of the window.
//
// Name, step and time left; the share of the last minute the device waited; peak memory of device
// and host against their budgets. A click anywhere leads to the Live page.

#pragma once

#include "models/run_snapshot.h"

#include <QAbstractButton>

class QLabel;

namespace mr::ui {

class StackedBar;

// Share of wall time that was not compute over the last `windowMs` of the run, in percent; NaN for
// a run without steps.
double recentStallPercent(const StepSeries& steps, std::int64_t windowMs);

class StatusStrip final : public QAbstractButton
{
    Q_OBJECT

public:
    explicit StatusStrip(QWidget* parent = nullptr);

    void setSnapshot(const RunSnapshotPtr& snapshot); // null: no run is active

    QSize sizeHint() const override;
    QString runText() const;
    // "Notes: step 412 of 600, 4 min left"
    static QString line(const RunSnapshot& snapshot);

protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    struct Tier {
        QLabel* label = nullptr;
        StackedBar* bar = nullptr;
    };

    Tier makeTier();
    void showTier(const Tier& tier, const QString& name, const std::string& key,
        std::int64_t usedBytes, const QColor& color);
    void show(bool active);
    void refresh();

    RunSnapshotPtr m_snapshot;
    QLabel* m_run;
    QLabel* m_stall;
    Tier m_device;
    Tier m_host;
};

} // namespace mr::ui
