// The Try it page: base and tuned side by side, the same prompt and seed, also while a run goes on.
//
// Threads    GUI.
// Ownership  Owns its asker (a worker) and asks the history by workers.

#pragma once

#include "bridge/background.h"
#include "bridge/try_asker.h"
#include "bridge/ui_services.h"
#include "models/run_snapshot.h"

#include <QWidget>

#include <array>

class QLabel;

namespace mr::ui {

class TryColumn;
class TryForm;

class TryPage final : public QWidget
{
    Q_OBJECT

public:
    explicit TryPage(const UiServices& services, QWidget* parent = nullptr);
    ~TryPage() override;

    void setLiveRun(LiveRun live);
    // Runs of the history, newest first.
    void setRuns(const mr::ui::RunRowsPtr& runs);
    void setLive(qint64 runId); // the run that goes on; 0: none does
    // Shows a run on the right, and the model it began with on the left.
    void tryRun(qint64 runId);

    TryForm* form() const { return m_form; }
    TryColumn* base() const { return m_columns[0]; }
    TryColumn* tuned() const { return m_columns[1]; }
    TryAsker* asker() const { return m_asker; }

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void ask();
    void fillChoices();
    void readCheckpoints(int column, qint64 runId);
    void enable();
    void retranslateUi();

    UiServices m_services;
    TryAsker* m_asker;
    TryForm* m_form;
    QLabel* m_title;
    QLabel* m_hint;
    std::array<TryColumn*, 2> m_columns{};
    RunRowsPtr m_runs;
    qint64 m_live = 0;
    bool m_liveIsNew = false; // not yet among the choices
};

} // namespace mr::ui
