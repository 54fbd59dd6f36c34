// The editors of a form of numbers and choices, and what is read from them.
//
// Threads    GUI.
// Ownership  Editors belong to `parent`.

#pragma once

#include <QComboBox>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>

class QDoubleSpinBox;
class QSpinBox;

namespace mr::ui {

// Their values change when typing is done, not with each key.
QSpinBox* makeInteger(QWidget* parent, int low, int high, int value);
QDoubleSpinBox* makeNumber(QWidget* parent, double high, int decimals, double step, double value);

// Texts are set by whoever translates the form.
template <typename Enum>
void addChoices(QComboBox* box, std::initializer_list<Enum> values)
{
    for (const Enum value : values)
        box->addItem(QString(), static_cast<int>(value));
}

template <typename Enum>
Enum chosen(const QComboBox* box)
{
    return static_cast<Enum>(box->currentData().toInt());
}

// A value the box does not have chooses its first.
inline void choose(QComboBox* box, int value)
{
    box->setCurrentIndex(std::max(0, box->findData(value)));
}

// As a spin box can show it.
inline int clamped(std::int64_t value)
{
    return static_cast<int>(std::clamp<std::int64_t>(
        value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

} // namespace mr::ui
