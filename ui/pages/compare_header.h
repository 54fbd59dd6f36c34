// The head of a comparison: the result in a sentence, both runs with their states, the differences
// between them.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <QFrame>
#include <QString>

#include <array>

class QGridLayout;
class QLabel;
class QPushButton;

namespace mr::ui {

class MessageLabel;

class CompareHeader final : public QFrame
{
    Q_OBJECT

public:
    explicit CompareHeader(QWidget* parent = nullptr);

    // Null: not begun; then `waitingName` is how it will be called.
    void setRuns(const std::array<RunSnapshotPtr, 2>& runs, const QString& waitingName);
    void setSentence(const QString& sentence);
    // Why the second run does not start; empty: it does, or has.
    void setProblem(const QString& sentence);
    QString sentence() const;
    MessageLabel* problem() const { return m_problem; }
    MessageLabel* differences() const { return m_differences; }

signals:
    void openRequested(qint64 runId, bool isLive);

protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    struct Line {
        QLabel* icon = nullptr;
        QLabel* state = nullptr;
        QLabel* name = nullptr;
        QLabel* progress = nullptr;
        QPushButton* open = nullptr;
    };

    Line makeLine(QGridLayout* grid, int row);
    void showLine(int run);
    void showDifferences();
    void openRun(int run);

    std::array<RunSnapshotPtr, 2> m_runs;
    QString m_waitingName;
    QLabel* m_sentence = nullptr;
    std::array<Line, 2> m_lines;
    MessageLabel* m_problem = nullptr;
    MessageLabel* m_differences = nullptr;
};

} // namespace mr::ui
