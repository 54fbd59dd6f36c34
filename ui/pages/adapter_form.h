// AdapterForm: the settings of an adapter: rank and alpha or the adapter to go on from, and folded
// away its modules and layers.
//
// Threads  GUI.

#pragma once

#include "pages/labelled_setting.h"

#include <QWidget>

#include <vector>

class QGridLayout;
class QLabel;
class QToolButton;

namespace mr::ui {

class PathEdit;
class WheelGuard;

class AdapterForm final : public QWidget
{
    Q_OBJECT

public:
    explicit AdapterForm(QWidget* parent = nullptr);

    // Settings that come with the adapter's folder are not written.
    void writeTo(RunSpec& spec) const;
    void readFrom(const RunSpec& spec);
    PathEdit* folder() const { return m_folder; }

signals:
    void changed();

protected:
    void changeEvent(QEvent* event) override;

private:
    void addRows();
    void arrange();
    void folderChanged();
    void showMore(bool shown);
    void retranslateUi();

    QGridLayout* m_simpleGrid;
    QLabel* m_folderLabel;
    PathEdit* m_folder;
    QLabel* m_folderNote;
    QToolButton* m_fold;
    QWidget* m_more;
    QGridLayout* m_moreGrid;
    WheelGuard* m_wheel;
    std::vector<LabelledSetting> m_rows; // in the order of SettingWords::adapterLooks()
};

} // namespace mr::ui
