// EmptyState: placeholder of a page without content: a sentence, a hint, and buttons that lead on.
//
// Threads  GUI.

#pragma once

#include <QWidget>

class QHBoxLayout;
class QPushButton;

namespace mr::ui {

class EmptyState final : public QWidget
{
    Q_OBJECT

public:
    EmptyState(const QString& sentence, const QString& hint, QWidget* parent = nullptr);

    // The first one is the default. Owned by this.
    QPushButton* addButton(const QString& text);

private:
    QHBoxLayout* m_buttons;
};

} // namespace mr::ui
