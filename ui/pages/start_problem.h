// Message for a history that cannot be opened, when there is no window to show it in: the sentence,
// and the ways out. A person who starts the program by its icon sees no terminal.
//
// Threads  GUI.

#pragma once

#include <QMessageBox>

#include <functional>

namespace mr::ui {

class StartProblem final : public QMessageBox
{
    Q_OBJECT

public:
    enum class Answer { OpenAnother, Quit };
    Q_ENUM(Answer)

    // `database` is the file that cannot be opened. `showFolder` opens a folder for the user, and
    // says whether somebody did.
    using ShowFolder = std::function<bool(const QString& folder)>;
    StartProblem(const QString& sentence, const QString& database, ShowFolder showFolder);

    Answer ask(); // shows it, and blocks until it is answered
    // The folder of the file, or the nearest one above it that is there.
    static QString folderOf(const QString& database);

private:
    void onShowFolder();

    QString m_folder;
    ShowFolder m_showFolder;
    QAbstractButton* m_another = nullptr;
};

} // namespace mr::ui
