// BinView: the runs that were deleted, until they are restored, erased, or too old.
//
// Threads  GUI.

#pragma once

#include "models/run_snapshot.h"

#include <millrace/run_edits.h>

#include <QWidget>

#include <vector>

class QLabel;
class QPushButton;

namespace mr::ui {

class RunList;

class BinView final : public QWidget
{
    Q_OBJECT

public:
    explicit BinView(QWidget* parent = nullptr);

    void setRuns(const mr::ui::RunRowsPtr& runs);
    RunList* list() const { return m_list; }
    QPushButton* restoreButton() const { return m_restore; }
    QPushButton* eraseButton() const { return m_erase; }
    // Asks whether these are to go for good; the answer is eraseConfirmed(), or nothing.
    void askToErase(const std::vector<std::int64_t>& runs, const RunFiles& files);

signals:
    void closed();
    void restoreRequested(const std::vector<std::int64_t>& runs);
    // How much these are is to be found out, for askToErase().
    void eraseRequested(const std::vector<std::int64_t>& runs);
    void eraseConfirmed(const std::vector<std::int64_t>& runs, quint64 bytes);

private:
    void updateState();

    RunList* m_list;
    QLabel* m_hint;
    QPushButton* m_restore;
    QPushButton* m_erase;
    QPushButton* m_back;
};

} // namespace mr::ui
