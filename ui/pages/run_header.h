// The head of a run: state, name, progress, the numbers of now, and the one thing to do with it.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <QFrame>
#include <QString>

#include <vector>

class QHBoxLayout;
class QLabel;
class QProgressBar;
class QPushButton;

namespace mr::ui {

class RunHeader final : public QFrame
{
    Q_OBJECT

public:
    explicit RunHeader(QWidget* parent = nullptr);

    void setSnapshot(const RunSnapshotPtr& snapshot);
    void setClosable(bool on);
    // The tool tip of the state while the run goes on.
    void setStateNote(const QString& note);
    QString stateNote() const;
    // Another run is active in this program: this one cannot be resumed now.
    void setResumeAllowed(bool on);

signals:
    void stopRequested();
    void resumeRequested(const QString& runDir);
    void tryRequested(qint64 runId);
    void closeRequested();

protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    struct Metric {
        QLabel* caption = nullptr;
        QLabel* value = nullptr;
    };
    enum MetricIndex { Step, Elapsed, Eta, Speed, Loss, Eval, MetricCount };

    QHBoxLayout* makeTop();
    QHBoxLayout* makeNumbers();
    void setMetric(MetricIndex index, const QString& value, const QString& toolTip = {});
    void showNumbers();
    void showState();

    RunSnapshotPtr m_snapshot;
    QString m_stateNote;
    QLabel* m_icon = nullptr;
    QLabel* m_state = nullptr;
    QLabel* m_name = nullptr;
    QLabel* m_method = nullptr; // hidden where all of the model is trained
    QLabel* m_link = nullptr;
    QLabel* m_reason = nullptr;
    QProgressBar* m_progress = nullptr;
    QPushButton* m_stop = nullptr;
    QPushButton* m_resume = nullptr;
    QPushButton* m_try = nullptr;
    QPushButton* m_close = nullptr;
    std::vector<Metric> m_metrics;
    bool m_resumeAllowed = true;
    bool m_closable = false; // on the History page, which cannot stop a run
    bool m_stopAsked = false;
};

} // namespace mr::ui
