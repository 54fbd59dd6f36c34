// ExportDialog: a run, model or adapter written for other programs. The form, the type of its
// weights and the place are chosen; progress and the verdict of the check come below.
//
// Threads    GUI; the export runs on a worker, and a timer looks at its bytes.
// Ownership  Deletes itself when it is closed. Closing stops an export, which leaves nothing.

#pragma once

#include "bridge/ui_services.h"

#include <QDialog>
#include <QTimer>

#include <atomic>
#include <memory>
#include <vector>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace mr::ui {

class MessageLabel;
class OllamaRow;
class ProgressLine;

// The thing to be exported, as the window knows it.
struct ExportSubject {
    QString path; // folder of a run, a checkpoint, an adapter or a model
    QString name;
    bool isRun = false;
    bool isAdapter = false;
};

class ExportDialog final : public QDialog
{
    Q_OBJECT

public:
    ExportDialog(const UiServices& services, ExportSubject subject, QWidget* parent);
    ~ExportDialog() override;

    QComboBox* form() const { return m_form; }
    QComboBox* type() const { return m_type; }
    QLineEdit* place() const { return m_place; }
    OllamaRow* ollama() const { return m_ollama; }
    QPushButton* start() const { return m_start; }
    MessageLabel* verdict() const { return m_verdict; }
    bool busy() const { return m_work != nullptr; }

signals:
    void written(); // a file or folder is there; the history of its run has a row more

private:
    struct Work; // shared with the worker

    static std::vector<ExportForm> formsOf(const ExportSubject& subject);
    QString formName(ExportForm form) const;
    QString formHelp(ExportForm form) const;
    QString typeName(const QString& type) const;
    const ExportFormInfo& chosen() const;
    QString suggestedPlace() const;
    QWidget* makePlaceRow();
    ExportOrder order() const;
    void showForm();
    void browse();
    void run();
    void look();
    void finish(const std::shared_ptr<Result<ExportOutcome>>& done);
    void showOutcome(const ExportOutcome& outcome);
    void enable();

    UiServices m_services;
    const ExportSubject m_subject;
    QComboBox* m_form;
    QLabel* m_help;
    QComboBox* m_type;
    QLabel* m_typeLabel;
    QLineEdit* m_place;
    OllamaRow* m_ollama;
    ProgressLine* m_progress;
    MessageLabel* m_verdict;
    QPushButton* m_start;
    QPushButton* m_close;
    QPushButton* m_show; // the folder of the result
    QString m_suggested; // the place was not edited as long as it is this
    QString m_written;
    std::shared_ptr<Work> m_work; // null: none is at work
    QTimer m_timer;
};

} // namespace mr::ui
