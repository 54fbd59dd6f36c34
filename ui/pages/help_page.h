// HelpPage: one of the pages of resources/help, with its pictures.
//
// Threads    GUI.
// Ownership  Deletes itself when it is closed.

#pragma once

#include <QDialog>

class QTextBrowser;

namespace mr::ui {

class HelpPage final : public QDialog
{
    Q_OBJECT

public:
    // `name` of a file there, without ".md".
    HelpPage(const QString& name, QWidget* parent);

    QTextBrowser* text() const { return m_text; }

private:
    void followTitle();

    QTextBrowser* m_text;
};

} // namespace mr::ui
