#include "pages/labelled_setting.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include <utility>

namespace mr::ui {

LabelledSetting LabelledSetting::make(
    const SettingLook& look, std::unique_ptr<SettingEditor> editor, QWidget* parent)
{
    LabelledSetting row{&look, new QLabel(parent), std::move(editor)};
    row.label->setBuddy(row.editor->widget());
    return row;
}

void LabelledSetting::retranslate() const
{
    const QString name = SettingWords::text(look->name);
    const QString help = SettingWords::text(look->help);
    label->setText(name);
    label->setToolTip(help);
    editor->widget()->setToolTip(help);
    editor->widget()->setAccessibleName(name);
    editor->retranslate();
}

void placeInPairs(QGridLayout* grid, QWidget* label, QWidget* editor)
{
    const int index = static_cast<int>(grid->count()) / 2;
    const int row = index / 2 * 2;
    const int column = index % 2;
    grid->addWidget(label, row, column);
    grid->addWidget(editor, row + 1, column);
    grid->setColumnStretch(column, 1);
    grid->setHorizontalSpacing(16);
    grid->setVerticalSpacing(4);
}

void onEdited(QWidget* widget, QObject* context, const std::function<void()>& call)
{
    if (auto* whole = qobject_cast<QSpinBox*>(widget))
        QObject::connect(whole, &QSpinBox::valueChanged, context, call);
    else if (auto* number = qobject_cast<QDoubleSpinBox*>(widget))
        QObject::connect(number, &QDoubleSpinBox::valueChanged, context, call);
    else if (auto* choice = qobject_cast<QComboBox*>(widget))
        QObject::connect(choice, &QComboBox::currentIndexChanged, context, call);
    else if (auto* check = qobject_cast<QCheckBox*>(widget))
        QObject::connect(check, &QCheckBox::toggled, context, call);
    else if (auto* line = qobject_cast<QLineEdit*>(widget); line && line->validator())
        QObject::connect(line, &QLineEdit::editingFinished, context, call); // "2e-" is no number
    else if (line)
        QObject::connect(line, &QLineEdit::textChanged, context, call);
}

} // namespace mr::ui
