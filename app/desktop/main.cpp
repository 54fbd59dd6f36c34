// millrace-desktop: the workstation over the same engine as the command line.
//
// Destruction runs backwards: window (stops the run and waits for it), store, application.

#include "app/compose.h"
#include "app/desktop/device_session.h"
#include "app/exports.h"
#include "app/hub_session.h"
#include "app/try_models.h"
#include "bridge/app_log.h"
#include "bridge/stop_signals.h"
#include "core/base/heap.h"
#include "core/plan/policies.h"

#include <millrace/local_models.h>

// Qt from here on: its "slots" and "emit" are macros.
#include "app/desktop/start.h"
#include "language.h"
#include "main_window.h"
#include "pages/home_page.h"
#include "theme.h"
#include "widgets/look_menu.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QSysInfo>

#include <clocale>
#include <filesystem>

namespace mr::app {
namespace {

QString logFile()
{
    const std::filesystem::path data = defaultDatabasePath();
    return QString::fromStdString((data.parent_path() / "desktop.log").string());
}

ui::UiServices makeServices(RunStore& store, TryModels& models)
{
    ui::UiServices services;
    services.open = [&store, &models](
                        const RunSpec& spec, Session::Listener listener, OpeningWatch watch) {
        models.release(); // their memory is the run's
        return openOnDevice(spec, store, std::move(listener), std::move(watch));
    };
    services.resume = [&store, &models](const std::string& runDir, Session::Listener listener,
                          OpeningWatch watch) {
        models.release();
        return resumeOnDevice(runDir, store, std::move(listener), std::move(watch));
    };
    services.openReader = &RunReader::open;
    services.answer = [&models](const std::string& path, const Prompt& prompt,
                          const AnswerWatch& watch) { return models.answer(path, prompt, watch); };
    services.exportModel = [&models](const ExportOrder& order, const ExportProgress& progress) {
        models.release(); // their memory is that of the check
        return writeExport(order, progress);
    };
    services.findModels = [](const std::vector<std::string>& folders) {
        return findLocalModels(usualModelPlaces(folders));
    };
    services.hubPeer = &hubPeer;
    services.planDownload = &planDownload;
    services.runDownload = &runDownload;
    services.inspectMachine = &inspectWithDevices;
    services.inspectModel = [](const std::string& model) -> Result<ModelInfo> {
        MR_ASSIGN(const std::string folder, folderToTrainFrom(model));
        return inspectModel(folder);
    };
    services.inspectDataset = [](const DataSource& source, const std::string& model,
                                  std::int64_t seqLen, int previewRows) -> Result<DatasetInfo> {
        MR_ASSIGN(const std::string folder, folderToTrainFrom(model));
        return inspectDataset(source, folder, seqLen, previewRows);
    };
    services.checkDataset = [](const CheckRequest& asked) -> Result<DataChecks> {
        CheckRequest request = asked;
        MR_ASSIGN(request.modelDir, folderToTrainFrom(asked.modelDir));
        return checkDataset(request);
    };
    services.readRowTexts = &readRowTexts;
    services.inspectScratch = &inspectScratch;
    services.measureScratch = &measureScratch;
    services.checkSpec = [](const RunSpec& spec) {
        const Status status = checkSpec(spec);
        return status.ok() ? checkPolicy(spec) : status;
    };
    services.resolveSpec = &resolveForMachine;
    services.planRun = &planForMachine;
    services.planAllMethods = &planMethodsForMachine;
    services.measureRates = &measureForMachine;
    services.planFromJson = [](const std::string& json) { return planReportFromJson(json); };
    services.edits = &store.edits();
    services.policies = {{"auto", {}}};
    for (const PolicyInfo& policy : policyTable())
        services.policies.push_back({std::string(policy.name), std::string(policy.plainName)});
    services.database = store.path();
    services.runsFolder = defaultRunsFolder();
    services.sampleDir = sampleFolder();
    services.program = "Millrace " MR_VERSION;
    services.logFile = logFile().toStdString();
    return services;
}

// Events from outside the window: the end of the session, and another start of the program.
void listenOutside(
    QApplication& application, const ui::SingleInstance& instance, ui::MainWindow& window)
{
    QObject::connect(
        &application, &QGuiApplication::commitDataRequest, &window,
        [&window] { window.saveForSessionEnd(); }, Qt::DirectConnection);
    // Asked for at any time, also of a session that goes on.
    QObject::connect(
        &application, &QGuiApplication::saveStateRequest, &window,
        [&window] { window.controller()->saveNow(); }, Qt::DirectConnection);
    QObject::connect(
        &window, &ui::MainWindow::readyToQuit, &application, [] { QCoreApplication::exit(0); });
    QObject::connect(&instance, &ui::SingleInstance::raiseAsked, &window, [&window] {
        window.bringBack();
        QApplication::alert(&window); // where a program may not come to the front by itself
    });
}

int runWorkstation(int argc, char** argv)
{
    QGuiApplication::setHighDpiScaleFactorRoundingPolicy(
        Qt::HighDpiScaleFactorRoundingPolicy::PassThrough);
    QApplication application(argc, argv);
    // QApplication takes the locale of the session; numbers in files are read with a point.
    std::setlocale(LC_NUMERIC, "C");
    QCoreApplication::setApplicationName(QStringLiteral("millrace"));
    QCoreApplication::setOrganizationName(QStringLiteral("millrace"));
    QCoreApplication::setApplicationVersion(QStringLiteral(MR_VERSION));
    QGuiApplication::setDesktopFileName(QStringLiteral("millrace"));
    QCommandLineParser parser;
    parser.addHelpOption();
    parser.addVersionOption();
    const QCommandLineOption database(QStringLiteral("db"),
        QStringLiteral("History database; the user's by default."), QStringLiteral("file"));
    const QCommandLineOption demo(
        QStringLiteral("demo"), QStringLiteral("Fine-tune the sample project at once."));
    const QCommandLineOption newWindow(QStringLiteral("new-window"),
        QStringLiteral("Open a window even if there is one over this history."));
    parser.addOption(database);
    parser.addOption(newWindow);
    parser.addOption(demo);
    parser.process(application);

    const ui::AppLog log(logFile());
    ui::AppLog::write(QStringLiteral("Millrace " MR_VERSION ", Qt %1, %2")
                          .arg(QString::fromLatin1(qVersion()), QSysInfo::prettyProductName()));
    ui::Theme theme;
    ui::Language language;
    ui::LookMenu::restore(theme, language); // a dialog may come before the window
    const Start start = prepareStart(parser.value(database), parser.isSet(newWindow));
    if (!start.store)
        return start.exitCode;
    TryModels models;
    const ui::UiServices services = makeServices(*start.store, models);
    ui::MainWindow window(services, theme, language);
    listenOutside(application, *start.instance, window);
    const ui::StopSignals signalsOfSystem;
    QObject::connect(
        &signalsOfSystem, &ui::StopSignals::stopAsked, &window, &ui::MainWindow::stopAndQuit);
    window.show();
    if (parser.isSet(demo))
        window.startRun(ui::sampleSpec(services.sampleDir));
    return QApplication::exec();
}

} // namespace
} // namespace mr::app

int main(int argc, char** argv)
{
    mr::returnFreedMemory();
    return mr::app::runWorkstation(argc, argv);
}
