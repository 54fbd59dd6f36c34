// ScratchSection: the folders on SSDs for policies that keep state there, one per drive, and the
// bytes that the run may use and write there.
//
// Threads  GUI.

#pragma once

#include "bridge/ui_services.h"

#include <QWidget>

#include <string>
#include <vector>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace mr::ui {

class ByteSpinBox;
class MessageLabel;
class PathEdit;
class ScratchFolderEdit;

class ScratchSection final : public QWidget
{
    Q_OBJECT

public:
    explicit ScratchSection(const UiServices& services, QWidget* parent = nullptr);

    void writeTo(RunSpec& spec) const;
    void readFrom(const RunSpec& spec);

    // Why no run can start with these folders; empty if one can, and if none is named.
    QString problem() const;
    // Nothing is being looked at, nor about to be.
    bool settled() const;
    bool measuring() const;
    PathEdit* pathEdit() const; // first folder that has a problem, else the first
    ScratchFolderEdit* folder(std::size_t index) const { return m_folders.at(index); }
    std::size_t folderCount() const { return m_folders.size(); }
    MessageLabel* hint() const { return m_hint; }
    QPushButton* addButton() const { return m_add; }

signals:
    void changed(); // a folder or a budget did

protected:
    void changeEvent(QEvent* event) override;

private:
    void arrange();
    void setCount(std::size_t count);
    void orderTabs();
    void folderChanged();
    QString twice() const;
    QString sharedDrive() const;
    void retranslateUi();

    UiServices m_services;
    QLabel* m_pathLabel;
    QVBoxLayout* m_list;
    std::vector<ScratchFolderEdit*> m_folders; // at least one; only the last may be empty
    MessageLabel* m_hint;
    QPushButton* m_add;
    QLabel* m_spaceLabel;
    ByteSpinBox* m_space;
    QLabel* m_writesLabel;
    ByteSpinBox* m_writes;
};

} // namespace mr::ui
