// millrace-desktop: the workstation over the same engine as the command line.
//
// Destruction runs backwards: window (stops the run and waits for it), store, application.

#include "app/compose.h"
#include "app/desktop/device_session.h"
#include "app/try_models.h"
#include "core/base/heap.h"
#include "core/plan/policies.h"
#include "language.h"
#include "main_window.h"
#include "pages/home_page.h"
#include "theme.h"

#include <QApplication>
#include <QCommandLineParser>

#include <clocale>
#include <cstdio>

namespace mr::app {
namespace {

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
    services.inspectMachine = &inspectWithDevices;
    services.inspectModel = &inspectModel;
    services.inspectDataset = &inspectDataset;
    services.inspectScratch = &inspectScratch;
    services.measureScratch = &measureScratch;
    services.checkSpec = [](const RunSpec& spec) {
        const Status status = checkSpec(spec);
        return status.ok() ? checkPolicy(spec) : status;
    };
    services.resolveSpec = &resolveForMachine;
    services.planRun = &planForMachine;
    services.planFromJson = [](const std::string& json) { return planReportFromJson(json); };
    services.edits = &store.edits();
    services.policies = {"auto"};
    for (const PolicyInfo& policy : policyTable()) {
        if (policy.name != "auto")
            services.policies.emplace_back(policy.name);
    }
    services.database = store.path();
    services.runsFolder = defaultRunsFolder();
    services.sampleDir = sampleFolder();
    return services;
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
    parser.addOption(database);
    parser.addOption(demo);
    parser.process(application);

    Result<std::unique_ptr<RunStore>> store = openStore(parser.value(database).toStdString());
    if (!store.ok()) {
        (void)std::fprintf(stderr, "millrace-desktop: %s\n", store.status().message().c_str());
        return 4;
    }
    ui::Theme theme;
    ui::Language language;
    TryModels models;
    const ui::UiServices services = makeServices(*store.value(), models);
    ui::MainWindow window(services, theme, language);
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
