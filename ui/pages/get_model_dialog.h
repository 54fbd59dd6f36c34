// GetModelDialog: a model or dataset of a hub. Its files are listed, then fetched.
//
// Nothing is asked of anyone before a button is pressed; the line beside it names the host.
//
// Threads    GUI; listing and fetching run on a worker, and a timer looks at their progress.
// Ownership  Deletes itself when it is closed. Closing stops a download; what was fetched is kept.

#pragma once

#include "bridge/ui_services.h"

#include <QDialog>
#include <QTimer>

#include <memory>
#include <optional>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;
class QVBoxLayout;

namespace mr::ui {

class MessageLabel;
class ProgressLine;

class GetModelDialog final : public QDialog
{
    Q_OBJECT

public:
    GetModelDialog(const UiServices& services, QWidget* parent);
    ~GetModelDialog() override;

    QLineEdit* name() const { return m_name; }
    QComboBox* kind() const { return m_kind; }
    QLabel* host() const { return m_host; }
    QPushButton* list() const { return m_list; }
    QTreeWidget* files() const { return m_files; }
    QPushButton* fetch() const { return m_fetch; }
    QPushButton* use() const { return m_use; }
    MessageLabel* message() const { return m_message; }
    bool busy() const { return m_work != nullptr; }

signals:
    void fetched(const QString& path);
    void chosen(const QString& path); // a model that was fetched, for the run

private:
    struct Work; // shared with the worker

    static HubWatch watchOf(const std::shared_ptr<Work>& work);

    void makeBody(QVBoxLayout& layout);
    void makeButtons(QVBoxLayout& layout);
    void showHost(const Result<HubPeer>& peer);
    void forget();
    std::shared_ptr<Work> begin();
    void askForFiles();
    void showPlan(const HubPlan& plan);
    void download();
    void finish(const Status& status);
    void look();
    void showProblem(const Status& status);
    void enable();

    UiServices m_services;
    QLineEdit* m_name;
    QComboBox* m_kind;
    QLabel* m_host;
    QPushButton* m_list;
    QTreeWidget* m_files;
    ProgressLine* m_progress;
    MessageLabel* m_message;
    QPushButton* m_fetch; // or stops
    QPushButton* m_use;
    bool m_hasHost = false;
    bool m_isFetched = false;
    std::optional<HubPlan> m_plan;
    std::shared_ptr<Work> m_work; // null: none is at work
    QTimer m_timer;
};

} // namespace mr::ui
