#include "pages/start_problem.h"

#include <QDir>
#include <QFileInfo>
#include <QPushButton>

#include <utility>

namespace mr::ui {

StartProblem::StartProblem(const QString& sentence, const QString& database, ShowFolder showFolder)
    : m_folder(folderOf(database))
    , m_showFolder(std::move(showFolder))
{
    setIcon(QMessageBox::Critical);
    setWindowTitle(QStringLiteral("Millrace"));
    setTextFormat(Qt::PlainText); // a path may look like anything
    setTextInteractionFlags(Qt::TextSelectableByMouse);
    setText(tr("The history cannot be opened."));
    setInformativeText(sentence);
    auto* another = addButton(tr("Open another history…"), AcceptRole);
    auto* folder = addButton(tr("Show folder"), ActionRole);
    auto* quit = addButton(tr("Quit"), RejectRole);
    another->setObjectName(QStringLiteral("openAnother"));
    folder->setObjectName(QStringLiteral("showFolder"));
    quit->setObjectName(QStringLiteral("quit"));
    m_another = another;
    setDefaultButton(another);
    setEscapeButton(quit);
    // A message box closes with every button; this one only helps to choose.
    disconnect(folder, &QAbstractButton::clicked, nullptr, nullptr);
    connect(folder, &QAbstractButton::clicked, this, &StartProblem::onShowFolder);
}

StartProblem::Answer StartProblem::ask()
{
    exec();
    return clickedButton() == m_another ? Answer::OpenAnother : Answer::Quit;
}

QString StartProblem::folderOf(const QString& database)
{
    QString folder = QFileInfo(database).absolutePath();
    while (!QFileInfo(folder).isDir() && folder != QDir::rootPath())
        folder = QFileInfo(folder).absolutePath();
    return folder;
}

void StartProblem::onShowFolder()
{
    if (!m_showFolder(m_folder))
        setDetailedText(tr("No file manager answered. The folder is %1").arg(m_folder));
}

} // namespace mr::ui
