// The New run page: model, data, settings and the plan of a run, before it starts.
//
// Everything is computed by workers 150 ms after the last edit; an answer to an older question is
// dropped. Start stays enabled and leads to the first problem.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"
#include "models/run_draft.h"
#include "pages/plan_question.h"
#include "widgets/plan_panel.h"

#include <QTimer>
#include <QWidget>

#include <optional>
#include <vector>

class QAction;
class QLabel;
class QLineEdit;
class QPushButton;
class QScrollArea;

namespace mr::ui {

class Card;
class DatasetSection;
class MessageLabel;
class MethodSection;
class ModelSection;
class PathEdit;
class ScratchSection;
class SettingsForm;

class NewRunPage final : public QWidget
{
    Q_OBJECT

public:
    explicit NewRunPage(const UiServices& services, QWidget* parent = nullptr);

    RunDraft draft() const; // as it was filled, and as it was changed on the page since
    RunSpec spec() const { return draft().spec(); }
    // The runs that Start starts.
    std::vector<RunSpec> runs() const { return draft().runs(); }
    void setSpec(const RunSpec& spec);
    // While a run is active, Start says so and does nothing.
    void setRunActive(bool active);
    // Why the last start failed; shown above the button.
    void showStartProblem(const QString& sentence);

    PlanPanel* planPanel() const { return m_plan; }
    QPushButton* measureButton() const { return m_measure; }
    MessageLabel* measureMessage() const { return m_measured; }
    ModelSection* modelSection() const { return m_model; }
    DatasetSection* datasetSection() const { return m_dataset; }
    MethodSection* method() const { return m_method; }
    SettingsForm* settings() const { return m_settings; }
    ScratchSection* scratch() const { return m_scratch; }
    QPushButton* startButton() const { return m_start; }
    MessageLabel* startMessage() const { return m_message; }
    QString commandLine() const { return draft().commandLine(); }
    // Everything shown is up to date with the editors.
    bool settled() const;
    QScrollArea* formArea() const { return m_formArea; }

public slots:
    void start();

signals:
    void startRequested(const mr::RunSpec& spec);
    void comparisonRequested(const std::vector<mr::RunSpec>& runs); // one after the other

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Problem {
        QString sentence;
        QWidget* where = nullptr;
    };

    QWidget* makeForm();
    RunSpec shown() const; // only the editors' content
    void showKept();
    QWidget* makePlanSide();
    QWidget* makeBottomBar();
    void inputChanged();
    std::int64_t dataSeqLen() const;
    void ask();
    void showAnswer(const PlanAnswer& answer);
    std::optional<Problem> firstProblem() const;
    void takeLighter(const LighterWay& way);
    void copyCommand();
    void measureAgain();
    void updateMeasure();
    void retranslateUi();

    UiServices m_services;
    ModelSection* m_model;
    DatasetSection* m_dataset;
    MethodSection* m_method;
    SettingsForm* m_settings;
    ScratchSection* m_scratch;
    MessageLabel* m_kept; // settings that have no editor here
    Card* m_outputCard;
    QLabel* m_nameLabel;
    QLineEdit* m_name;
    QLabel* m_folderLabel;
    PathEdit* m_folder;
    MessageLabel* m_folderMessage;
    QScrollArea* m_formArea;
    Card* m_planCard;
    PlanPanel* m_plan;
    QPushButton* m_measure; // the rates of this machine, again
    MessageLabel* m_measured;
    MessageLabel* m_message;
    QPushButton* m_copy;
    QPushButton* m_start;
    QAction* m_startAction;
    RunDraft m_draft;
    QTimer m_delay;
    LatestOnly<PlanAnswer> m_question;
    bool m_runActive = false;
    bool m_isMeasuring = false;
    bool m_planCurrent = false; // the panel's plan belongs to the settings on the page
};

} // namespace mr::ui
