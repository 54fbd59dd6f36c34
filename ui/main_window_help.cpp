// The window's help: pages, glossary, shortcuts, versions, the log, a report.

#include "main_window.h"
#include "pages/help_dialog.h"
#include "pages/help_page.h"
#include "pages/report_dialog.h"
#include "widgets/help_menu.h"
#include "widgets/nav_rail.h"
#include "widgets/notice_bar.h"

#include <QDesktopServices>
#include <QMessageBox>
#include <QUrl>

namespace mr::ui {

void MainWindow::makeHelp()
{
    m_help = new HelpMenu(m_rail);
    m_rail->addFooter(m_help);
    addAction(m_help->action(HelpMenu::Entry::Shortcuts)); // its key works wherever the focus is
    connect(m_help, &HelpMenu::asked, this, [this](HelpMenu::Entry entry) {
        switch (entry) {
        case HelpMenu::Entry::TenSteps:
            return (new HelpPage(QStringLiteral("from_text_to_ollama"), this))->show();
        case HelpMenu::Entry::Privacy:
            return (new HelpPage(QStringLiteral("what_leaves_this_pc"), this))->show();
        case HelpMenu::Entry::Glossary:
            return HelpDialog::glossary(this)->show();
        case HelpMenu::Entry::Shortcuts:
            return HelpDialog::shortcuts(this)->show();
        case HelpMenu::Entry::About:
            return showAbout();
        case HelpMenu::Entry::Log:
            return openLog();
        case HelpMenu::Entry::Report:
            return (new ReportDialog(m_services, this))->show();
        }
    });
}

void MainWindow::showAbout()
{
    auto* box = new QMessageBox(this);
    box->setObjectName(QStringLiteral("about"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setWindowTitle(tr("About Millrace"));
    box->setIconPixmap(windowIcon().pixmap(64));
    box->setTextFormat(Qt::RichText);
    box->setText(aboutText(QString::fromStdString(m_services.program)));
    box->open();
}

void MainWindow::openLog()
{
    const QString file = QString::fromStdString(m_services.logFile);
    if (!QDesktopServices::openUrl(QUrl::fromLocalFile(file)))
        m_notice->showError(tr("No program opened the log. It is %1").arg(file));
}

} // namespace mr::ui
