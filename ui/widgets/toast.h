// Toast: a line at the bottom that names the last change, with Undo, and goes away by itself.
//
// Threads  GUI.

#pragma once

#include <QFrame>
#include <QString>

class QLabel;
class QPushButton;
class QTimer;
class QToolButton;

namespace mr::ui {

class Toast final : public QFrame
{
    Q_OBJECT

public:
    explicit Toast(QWidget* parent = nullptr); // hidden

    // For ten seconds, and as long as the keyboard or the pointer is in it.
    void say(const QString& sentence, bool canUndo);
    QString text() const;
    QPushButton* undoButton() const { return m_undo; }

signals:
    void undoRequested();

protected:
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void retranslate();
    void goAway();

    QLabel* m_text;
    QPushButton* m_undo;
    QToolButton* m_close;
    QTimer* m_timer;
};

} // namespace mr::ui
