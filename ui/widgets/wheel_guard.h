// WheelGuard: the wheel scrolls the page; a number or a choice changes by it only where the user
// clicked first.
//
// Threads    GUI.
// Ownership  Belongs to the parent, which outlives the guarded editors.

#pragma once

#include <QObject>

class QWidget;

namespace mr::ui {

class WheelGuard final : public QObject
{
    Q_OBJECT

public:
    using QObject::QObject;

    // All number and choice boxes below `editors`.
    void guard(QWidget* editors);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
};

} // namespace mr::ui
