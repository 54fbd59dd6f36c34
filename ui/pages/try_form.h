// TryForm: the prompt of the Try it page, and the options of its answer.
//
// Threads  GUI.

#pragma once

#include <millrace/try_it.h>

#include <QWidget>

#include <array>

class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace mr::ui {

class TryForm final : public QWidget
{
    Q_OBJECT

public:
    explicit TryForm(QWidget* parent = nullptr);

    Prompt prompt() const;
    void setText(const QString& text);
    // Answers are on their way: nothing can be asked, but it can be stopped.
    void setBusy(bool busy);
    void setAskable(bool askable); // somebody is there to be asked
    QPushButton* askButton() const { return m_ask; }
    QPushButton* stopButton() const { return m_stop; }

signals:
    void askRequested();
    void stopRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void enable();
    void retranslateUi();

    QPlainTextEdit* m_text;
    QLineEdit* m_system;
    QSpinBox* m_seed;
    QDoubleSpinBox* m_temperature;
    QDoubleSpinBox* m_topP;
    QSpinBox* m_maxTokens;
    QPushButton* m_ask;
    QPushButton* m_stop;
    std::array<QLabel*, 6> m_labels{};
    bool m_busy = false;
    bool m_askable = false;
};

} // namespace mr::ui
