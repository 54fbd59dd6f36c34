// ScratchFolderEdit: a folder on an SSD for policies that keep state there: its drive, its problems
// and its speed.
//
// Threads  GUI; looking and measuring run on workers. A measurement stops when the widget dies or
//          another folder is named.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"

#include <QTimer>
#include <QWidget>

#include <atomic>
#include <memory>
#include <optional>

class QProgressBar;
class QPushButton;

namespace mr::ui {

class MessageLabel;
class PathEdit;

class ScratchFolderEdit final : public QWidget
{
    Q_OBJECT

public:
    explicit ScratchFolderEdit(const UiServices& services, QWidget* parent = nullptr);
    ~ScratchFolderEdit() override;

    std::string folder() const; // as entered; empty: none
    void setFolder(const std::string& folder);
    // Facts of the named folder, once it was looked at.
    const std::optional<ScratchInfo>& info() const { return m_info; }
    // Why no run can start with this folder; empty if one can, and if none is named.
    QString problem() const;
    // Nothing is being looked at, nor about to be.
    bool settled() const { return !m_delay.isActive() && !m_question.busy(); }
    bool measuring() const { return m_measuring != nullptr; }
    PathEdit* pathEdit() const { return m_path; }
    MessageLabel* facts() const { return m_facts; }
    MessageLabel* warnings() const { return m_warnings; }
    QPushButton* measureButton() const { return m_measure; }

signals:
    void changed(); // folder() or info() did

protected:
    void changeEvent(QEvent* event) override;

private:
    // Shared with the worker.
    struct Measuring {
        std::atomic<double> share = 0.0;
        std::atomic<bool> stop = false;
    };

    void arrange();
    void pathChanged();
    void inspect();
    void inspected(const Result<ScratchInfo>& result);
    void showInfo();
    void toggleMeasuring();
    void startMeasuring();
    void stopMeasuring();
    void measured(const Result<ScratchSpeed>& result);
    void showMeasuring();
    QStringList factLines() const;
    void retranslateUi();

    UiServices m_services;
    PathEdit* m_path;
    MessageLabel* m_facts;
    MessageLabel* m_warnings;
    QPushButton* m_measure;
    QProgressBar* m_progress;
    MessageLabel* m_measureMessage;
    QTimer m_delay;
    QTimer m_poll; // while measuring
    LatestOnly<Result<ScratchInfo>> m_question;
    std::optional<ScratchInfo> m_info; // facts of the path now shown
    std::shared_ptr<Measuring> m_measuring;
};

} // namespace mr::ui
