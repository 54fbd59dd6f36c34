#include "pages/settings_editors.h"

#include <QDoubleSpinBox>
#include <QSpinBox>

namespace mr::ui {

QSpinBox* makeInteger(QWidget* parent, int low, int high, int value)
{
    auto* box = new QSpinBox(parent);
    box->setRange(low, high);
    box->setValue(value);
    box->setGroupSeparatorShown(true);
    box->setKeyboardTracking(false);
    return box;
}

QDoubleSpinBox* makeNumber(QWidget* parent, double high, int decimals, double step, double value)
{
    auto* box = new QDoubleSpinBox(parent);
    box->setDecimals(decimals);
    box->setRange(0.0, high);
    box->setSingleStep(step);
    box->setValue(value);
    box->setKeyboardTracking(false);
    return box;
}

} // namespace mr::ui
