// NoticeBar: one message above the page, until it is dismissed or over.
//
// Threads  GUI.

#pragma once

#include <QString>
#include <QWidget>

class QPushButton;
class QToolButton;

namespace mr::ui {

class MessageLabel;

class NoticeBar final : public QWidget
{
    Q_OBJECT

public:
    explicit NoticeBar(QWidget* parent = nullptr); // hidden

    void showError(const QString& message);
    void showBusy(const QString& message);
    // With a button that emits stopRequested().
    void showStoppable(const QString& message);

signals:
    void stopRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void retranslate();

    MessageLabel* m_message;
    QPushButton* m_stop;
    QToolButton* m_close;
};

} // namespace mr::ui
