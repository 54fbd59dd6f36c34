// Card: a titled panel with a hairline border, the one container of all pages.

#pragma once

#include <QFrame>

class QColor;
class QHBoxLayout;
class QLabel;
class QVBoxLayout;

namespace mr::ui {

// Pixels: the least width and height of something to click on.
inline constexpr int kTargetSize = 24;

class Card final : public QFrame
{
    Q_OBJECT

public:
    explicit Card(QWidget* parent = nullptr);

    // Also the accessible name of the panel.
    void setTitle(const QString& title);
    QVBoxLayout* body() const { return m_body; }
    // Right of the title, for small buttons.
    QHBoxLayout* header() const { return m_header; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QLabel* m_title;
    QHBoxLayout* m_header;
    QVBoxLayout* m_body;
};

// The ground and border of a card, for widgets that are one themselves. Within their paintEvent().
void paintCard(QWidget& widget, const QColor& border);

// Secondary text in the muted colour of the theme, wrapped; follows theme changes.
QLabel* makeMutedLabel(QWidget* parent = nullptr);

} // namespace mr::ui
