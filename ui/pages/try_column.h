// TryColumn: one of the two models of the Try it page, and its answer.
//
// Threads  GUI.
// Errors   Shown below the answer.

#pragma once

#include "bridge/try_asker.h"
#include "models/try_choices.h"

#include <QWidget>

#include <vector>

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QToolButton;

namespace mr::ui {

class Card;
class MessageLabel;

class TryColumn final : public QWidget
{
    Q_OBJECT

public:
    enum class Side { Base, Tuned };

    explicit TryColumn(Side side, QWidget* parent = nullptr);

    // Models and runs to ask, the usual one first; a choice stays if it is still there.
    void setChoices(const std::vector<TryChoice>& choices);
    void addFolder(const QString& folder);
    void choose(qint64 runId);
    // Checkpoints of the chosen run, newest first; `bestStep` -1: unknown.
    void setCheckpoints(
        qint64 runId, const std::vector<CheckpointRow>& checkpoints, qint64 bestStep);
    void setProgress(const TryProgress& progress);
    // Answers are on their way: the choice is fixed.
    void setBusy(bool busy);

    TryTarget target() const;
    TryChoice choice() const;
    QComboBox* models() const { return m_models; }
    QComboBox* weights() const { return m_weights; }
    MessageLabel* message() const { return m_message; }
    QString answerText() const;
    QString figuresText() const;
    QString readText() const;

signals:
    void chosen();                // another model, or other weights of it
    void runChosen(qint64 runId); // its checkpoints are of interest; 0: a model

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void askForFolder();
    void fill();
    void onChosen();
    void enable();
    void showState();
    void showFigures();
    QString emptyText() const;
    void retranslateUi();

    const Side m_side;
    Card* m_card;
    QComboBox* m_models;
    QComboBox* m_weights;
    QToolButton* m_folder;
    QPlainTextEdit* m_answer;
    QLabel* m_figures;
    MessageLabel* m_message;
    QToolButton* m_fold;
    QPlainTextEdit* m_read;
    std::vector<TryChoice> m_choices;
    std::vector<TryChoice> m_folders; // named by the user
    TryChoice m_shown;                // model or run of the shown answer
    TryProgress m_progress;
    bool m_busy = false;
};

} // namespace mr::ui
