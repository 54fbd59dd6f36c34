// MessageLabel: a line of text that says how things stand, by icon, colour and word together.
//
// Hidden while it has no text.

#pragma once

#include <QString>
#include <QStringList>
#include <QWidget>

class QLabel;

namespace mr::ui {

class MessageLabel final : public QWidget
{
    Q_OBJECT

public:
    enum class Kind { Info, Busy, Good, Warning, Error };

    explicit MessageLabel(QWidget* parent = nullptr);

    void show(Kind kind, const QString& text);
    void showLines(Kind kind, const QStringList& lines);
    void clear();

    Kind kind() const { return m_kind; }
    QString text() const;

protected:
    void changeEvent(QEvent* event) override;

private:
    void recolor();

    Kind m_kind = Kind::Info;
    QLabel* m_icon;
    QLabel* m_text;
};

} // namespace mr::ui
