// HelpDialog: terms with their meanings, in sections, with a field that finds one; and the two
// dialogs of the program, glossary and shortcuts.
//
// Threads    GUI.
// Ownership  Deletes itself when it is closed.

#pragma once

#include <QDialog>
#include <QString>
#include <QVector>

class QLineEdit;
class QTextBrowser;

namespace mr::ui {

struct HelpEntry {
    QString section;
    QString term;
    QString meaning;
};

class HelpDialog final : public QDialog
{
    Q_OBJECT

public:
    HelpDialog(const QString& title, QVector<HelpEntry> entries, QWidget* parent);

    QLineEdit* filter() const { return m_filter; }
    QString shown() const; // as plain text

    static HelpDialog* glossary(QWidget* parent);
    static HelpDialog* shortcuts(QWidget* parent);

private:
    void refresh();

    QVector<HelpEntry> m_entries;
    QLineEdit* m_filter;
    QTextBrowser* m_text;
};

// The version, the licence, and the libraries inside.
QString aboutText(const QString& program);

} // namespace mr::ui
