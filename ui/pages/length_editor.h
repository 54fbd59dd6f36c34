// LengthEditor: how long a run trains, in epochs or in steps.
//
// Threads    GUI.
// Ownership  The widget belongs to `parent`.

#pragma once

#include "pages/settings_editors.h"

#include <QCoreApplication>

#include <vector>

class QComboBox;

namespace mr::ui {

class LengthEditor final : public SettingEditor
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::SettingsForm)

public:
    explicit LengthEditor(QWidget* parent);

    QWidget* widget() const override { return m_row; }
    void read(const RunSpec& spec) override;
    void write(RunSpec& spec) const override;
    void retranslate() override;

    // In the order of the keyboard.
    std::vector<QWidget*> parts() const;

private:
    enum Unit { kEpochs, kSteps }; // items of the box

    void showUnit();

    QWidget* m_row;
    QDoubleSpinBox* m_epochs;
    QSpinBox* m_steps;
    QComboBox* m_unit;
};

} // namespace mr::ui
