#include "app/desktop/start.h"

#include "app/compose.h"
#include "bridge/app_log.h"
#include "pages/start_problem.h"

#include <millrace/run_reader.h>

#include <QDesktopServices>
#include <QFile>
#include <QFileDialog>
#include <QStandardPaths>
#include <QUrl>

#include <cstdio>

namespace mr::app {
namespace {

constexpr int kAnswerMs = 3000; // a window that is busy answers between two of its events
constexpr int kCannotOpen = 4;

// Empty: none was chosen.
QString chooseHistory(const QString& before)
{
    return QFileDialog::getSaveFileName(nullptr,
        ui::StartProblem::tr("Open another history, or name a new one"),
        ui::StartProblem::folderOf(before),
        ui::StartProblem::tr("Histories (*.db)") + QStringLiteral(";;") +
            ui::StartProblem::tr("All files (*)"),
        nullptr, QFileDialog::DontConfirmOverwrite);
}

// The next file to try; empty: the program ends.
QString askForAnother(const Status& why, const QString& database)
{
    ui::StartProblem problem(
        QString::fromStdString(why.message()), database, [](const QString& folder) {
            return QDesktopServices::openUrl(QUrl::fromLocalFile(folder));
        });
    while (problem.ask() == ui::StartProblem::Answer::OpenAnother) {
        const QString chosen = chooseHistory(database);
        if (!chosen.isEmpty())
            return chosen;
    }
    return {};
}

} // namespace

Start prepareStart(const QString& database, bool newWindow)
{
    QString path = database.isEmpty() ? QFile::decodeName(defaultDatabasePath().c_str()) : database;
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::RuntimeLocation);
    while (true) {
        Start start;
        start.instance = std::make_unique<ui::SingleInstance>(folder, path);
        if (!newWindow && start.instance->claim(kAnswerMs) == ui::SingleInstance::Found::Answered)
            return start;
        auto store = openStore(QFile::encodeName(path).toStdString());
        if (store.ok()) {
            start.store = std::move(store).value();
            return start;
        }
        (void)std::fprintf(stderr, "millrace-desktop: %s\n", store.status().message().c_str());
        ui::AppLog::write(QString::fromStdString(store.status().message()));
        path = askForAnother(store.status(), path);
        if (path.isEmpty())
            return {nullptr, nullptr, kCannotOpen};
    }
}

} // namespace mr::app
