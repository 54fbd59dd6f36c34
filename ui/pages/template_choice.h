// TemplateChoice: the chat template that a model without one is taught.

#pragma once

#include <QWidget>

class QLabel;
class QPushButton;

namespace mr::ui {

class TemplateChoice final : public QWidget
{
    Q_OBJECT

public:
    explicit TemplateChoice(QWidget* parent = nullptr);

    // Templates to choose from.
    void offer();
    // "chatml", "llama3", or "own" for a file.
    void setChosen(const QString& name);

    QPushButton* chatMl() const { return m_chatMl; }
    QPushButton* llama3() const { return m_llama3; }
    QPushButton* file() const { return m_file; }
    QPushButton* none() const { return m_none; }
    QString text() const;

signals:
    void chosen(const QString& choice); // a name or the path of a file; empty: none

protected:
    void changeEvent(QEvent* event) override;

private:
    void browse();
    void showState();

    QLabel* m_text;
    QPushButton* m_chatMl;
    QPushButton* m_llama3;
    QPushButton* m_file;
    QPushButton* m_none;
    QString m_name; // empty: nothing is chosen
};

} // namespace mr::ui
