// The Home page: runs that need attention, the last runs, this machine, and the first step.
//
// Threads  UI thread. The machine and the sample folder are looked at by workers.

#pragma once

#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QStringList>
#include <QWidget>

#include <optional>

class QGridLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace mr::ui {

class Card;
class MessageLabel;

// The run that the sample button starts; paths below `sampleDir`.
RunSpec sampleSpec(const std::string& sampleDir);

class HomePage final : public QWidget
{
    Q_OBJECT

public:
    explicit HomePage(const UiServices& services, QWidget* parent = nullptr);

    void setRunActive(bool active);
    void refreshMachine();
    QPushButton* sampleButton() const { return m_sampleButton; }
    MessageLabel* sampleMessage() const { return m_sampleMessage; }

public slots:
    void setRuns(const mr::ui::RunRowsPtr& runs);

signals:
    void openRequested(qint64 runId, bool isLive);
    void resumeRequested(const QString& runDir);
    void sampleRequested(const mr::RunSpec& spec);
    void newRunRequested();
    void historyRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void showMachine();
    void showSample();
    void showRuns();
    void addRunRow(QGridLayout* grid, const RunRow& run);
    void addAttention(QVBoxLayout* layout, const RunRow& run);
    void readLeft();
    bool isLeft(const RunRow& run) const;
    void leave(const QString& key);
    void addFact(QGridLayout* grid, const QString& name, const QString& value);
    void retranslateUi();

    UiServices m_services;
    RunRowsPtr m_runs;
    std::optional<MachineInfo> m_machine;
    QStringList m_left; // runs that need no attention any more, as leftKey()
    bool m_sampleThere = false;
    bool m_runActive = false;

    QLabel* m_title;
    QLabel* m_subtitle;
    Card* m_sampleCard;
    QLabel* m_sampleText;
    MessageLabel* m_sampleMessage;
    QPushButton* m_sampleButton;
    Card* m_attentionCard;
    QWidget* m_attention = nullptr;
    Card* m_machineCard;
    QWidget* m_facts = nullptr;
    Card* m_recentCard;
    QWidget* m_recent = nullptr;
    QPushButton* m_newRun;
    QPushButton* m_history;
};

} // namespace mr::ui
