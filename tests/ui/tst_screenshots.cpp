// Every page as a picture: light, dark, Japanese, and at twice the scale; to look at, and checked
// not to be blank. Written to $MILLRACE_SCREENSHOTS, or screenshots/ in the working folder.

#include "charts/chart_panel.h"
#include "charts/machine_section.h"
#include "charts/step_timeline.h"
#include "charts/tier_map.h"
#include "charts/timeline_section.h"
#include "language.h"
#include "main_window.h"
#include "pages/bin_view.h"
#include "pages/close_question.h"
#include "pages/compare_page.h"
#include "pages/dataset_section.h"
#include "pages/export_dialog.h"
#include "pages/get_model_dialog.h"
#include "pages/help_dialog.h"
#include "pages/help_page.h"
#include "pages/history_page.h"
#include "pages/home_page.h"
#include "pages/live_page.h"
#include "pages/method_section.h"
#include "pages/models_dialog.h"
#include "pages/new_run_page.h"
#include "pages/policy_choice.h"
#include "pages/reading_choice.h"
#include "pages/report_dialog.h"
#include "pages/row_checks_dialog.h"
#include "pages/run_list.h"
#include "pages/run_view.h"
#include "pages/scratch_folder.h"
#include "pages/scratch_section.h"
#include "pages/settings_form.h"
#include "pages/start_problem.h"
#include "pages/try_column.h"
#include "pages/try_form.h"
#include "pages/try_page.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/demo_pair.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_timeline.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/help_menu.h"
#include "widgets/status_strip.h"
#include "widgets/toast.h"

#include <QAbstractButton>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFontDatabase>
#include <QImage>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSet>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

namespace mr::test::tst_screenshots {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

constexpr QSize kWindow(1280, 800);

QString folder()
{
    const QString wanted = qEnvironmentVariable("MILLRACE_SCREENSHOTS");
    return wanted.isEmpty() ? QDir::current().filePath("screenshots") : wanted;
}

// Colours in a coarse grid over the picture; a blank page has one.
qsizetype colorCount(const QImage& image)
{
    QSet<QRgb> seen;
    for (int y = 0; y < image.height(); y += 3) {
        for (int x = 0; x < image.width(); x += 3)
            seen.insert(image.pixel(x, y));
    }
    return seen.size();
}

RunSpec goodSpec()
{
    RunSpec spec;
    spec.modelDir = kGoodModel;
    spec.data.push_back({kGoodData, DataFormat::Auto, {}});
    return spec;
}

// A run that also moves its optimizer state to a disk and back.
RunSnapshotPtr diskRun()
{
    auto run = std::make_shared<RunSnapshot>(*demoSnapshot(412, 600));
    std::vector<StepRow> rows = demoSteps(412);
    for (StepRow& row : rows) {
        row.diskReadBytes = row.h2dBytes / 2;
        row.diskWriteBytes = row.d2hBytes * 3 / 4;
    }
    run->generation = 2;
    run->steps = {};
    run->steps.append(rows);
    return run;
}

constexpr const char* kAdapterConfig = "{\"method\":\"lora\",\"rank\":16}";

// Runs that somebody has worked with.
RunRowsPtr editedRuns()
{
    auto runs = std::make_shared<std::vector<RunRow>>(*demoRuns());
    (*runs)[1].configJson = kAdapterConfig;
    (*runs)[0].tags = {"notes"};
    (*runs)[1].tags = {"notes"};
    (*runs)[2].tags = {"baseline", "keep"};
    (*runs)[2].notes = "The one to beat.\nLearning rate 2e-5, nothing frozen; the answers get "
                       "longer from step 200 on.";
    (*runs)[4].notes = "Diverged: try 1e-5";
    return runs;
}

RunRowsPtr binnedRuns()
{
    const RunRowsPtr all = editedRuns();
    auto runs = std::make_shared<std::vector<RunRow>>(all->begin() + 3, all->begin() + 5);
    for (RunRow& run : *runs)
        run.deletedMs = 1'700'000'000'000 + run.id * 60'000;
    return runs;
}

// Takes every edit and does nothing, so that the pages offer them.
class NoEdits final : public RunEdits
{
public:
    Result<std::string> rename(std::int64_t, std::string_view) override { return std::string(); }
    Result<std::string> setNote(std::int64_t, std::string_view) override { return std::string(); }
    Result<std::vector<std::int64_t>> addTag(Ids, std::string_view) override { return none(); }
    Result<std::vector<std::int64_t>> removeTag(Ids, std::string_view) override { return none(); }
    Result<std::vector<std::string>> tags() override { return std::vector<std::string>(); }
    Status addExport(std::int64_t, const ExportRow&) override { return {}; }
    Result<std::vector<std::int64_t>> remove(Ids) override { return none(); }
    Status restore(Ids) override { return {}; }
    Result<RunFiles> filesOf(Ids) override { return RunFiles(); }
    Status erase(Ids, std::uint64_t) override { return {}; }
    Status expire(std::int64_t) override { return {}; }

private:
    static std::vector<std::int64_t> none() { return {}; }
};

} // namespace

class TestScreenshots : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(QDir().mkpath(folder()));
        QVERIFY(m_settings.isValid());
        keepSettingsIn(m_settings.path());
        QApplication::setFont(QFont("DejaVu Sans", 10));
        QVERIFY(makeSampleFolder(m_sample.path()));
    }

    void everyPage_data()
    {
        QTest::addColumn<bool>("dark");
        QTest::addColumn<QString>("language");
        QTest::newRow("light") << false << "en";
        QTest::newRow("dark") << true << "en";
        QTest::newRow("japanese") << false << "ja";
    }

    void everyPage()
    {
        QFETCH(const bool, dark);
        QFETCH(const QString, language);
        Theme theme;
        Language words;
        const auto runs = demoRuns();
        const auto edited = editedRuns();
        NoEdits edits;
        auto all = std::make_shared<std::vector<RunRow>>(*edited);
        const auto binned = binnedRuns();
        all->insert(all->end(), binned->begin(), binned->end());
        UiServices services = fakeServices(std::make_shared<FakeRun>(), all);
        services.edits = &edits;
        services.sampleDir = m_sample.path().toStdString();
        MainWindow window(services, theme, words);
        theme.setChoice(dark ? ThemeChoice::Dark : ThemeChoice::Light);
        words.choose(language);
        window.resize(kWindow);
        window.show();
        window.newRun()->setSpec(goodSpec());
        QTRY_VERIFY(window.newRun()->datasetSection()->info());
        QTRY_VERIFY(window.newRun()->settled());
        window.home()->setRuns(runs);

        save(window, MainWindow::Page::Home, "home");
        save(window, MainWindow::Page::NewRun, "new-run");
        RunSpec chats = goodSpec();
        chats.data[0].path = kChatData;
        window.newRun()->setSpec(chats);
        QTRY_VERIFY(window.newRun()->datasetSection()->info());
        QTRY_VERIFY(window.newRun()->settled());
        save(window, MainWindow::Page::NewRun, "new-run-chats");
        saveData(window);
        saveMethods(window);
        window.newRun()->setSpec(goodSpec());
        QTRY_VERIFY(window.newRun()->settled());
        window.findChild<QAbstractButton*>("advanced")->setChecked(true);
        QCoreApplication::processEvents();
        QCoreApplication::processEvents();
        auto* form = window.newRun()->formArea()->verticalScrollBar();
        form->setValue(form->maximum());
        save(window, MainWindow::Page::NewRun, "new-run-settings");
        RunSpec scratch = goodSpec();
        scratch.diskPaths = {kFastScratch};
        window.newRun()->setSpec(scratch);
        QTRY_VERIFY(window.newRun()->settled());
        window.newRun()->scratch()->folder(0)->measureButton()->click();
        QTRY_VERIFY(!window.newRun()->scratch()->measuring());
        QTRY_VERIFY(window.newRun()->settled());
        QCoreApplication::processEvents();
        form->setValue(form->maximum());
        auto* planBar = window.findChild<QScrollArea*>("plan")->verticalScrollBar();
        planBar->setValue(planBar->maximum() / 2);
        save(window, MainWindow::Page::NewRun, "new-run-scratch");
        planBar->setValue(0);
        scratch.diskPaths = {kFastScratch, kOtherScratch, kOtherScratch + "/below"};
        window.newRun()->setSpec(scratch);
        QTRY_VERIFY(window.newRun()->settled());
        QCoreApplication::processEvents();
        form->setValue(form->maximum());
        save(window, MainWindow::Page::NewRun, "new-run-scratch-drives");
        scratch.diskPaths = {kMemoryScratch};
        window.newRun()->setSpec(scratch);
        QTRY_VERIFY(window.newRun()->settled());
        QCoreApplication::processEvents();
        form->setValue(form->maximum());
        save(window, MainWindow::Page::NewRun, "new-run-scratch-warning");
        save(window, MainWindow::Page::Live, "live-empty");
        window.live()->showSnapshot(demoSnapshot(412, 600));
        window.findChild<StatusStrip*>("statusStrip")->setSnapshot(demoSnapshot(412, 600));
        RunView* view = window.live()->view();
        QTRY_VERIFY(view->timeline()->chart()->timeline());
        save(window, MainWindow::Page::Live, "live");
        view->scrollTo(view->machine());
        save(window, MainWindow::Page::Live, "live-machine");
        view->showWorst(1); // uploads
        QTRY_VERIFY(view->timeline()->chart()->selected() >= 0);
        save(window, MainWindow::Page::Live, "live-timeline");
        view->scrollTo(view->tierMap());
        save(window, MainWindow::Page::Live, "live-tiers");
        window.live()->showSnapshot(diskRun());
        QCoreApplication::processEvents();
        view->scrollTo(view->findChild<QWidget*>("disk-traffic"));
        save(window, MainWindow::Page::Live, "live-disk");
        auto* strip = window.findChild<StatusStrip*>("statusStrip");
        window.live()->showSnapshot(demoPaused(412, 600, true));
        strip->setSnapshot(demoPaused(412, 600, true));
        save(window, MainWindow::Page::Live, "live-paused");
        strip->setSnapshot(demoSnapshot(412, 600));
        window.history()->setRuns(edited);
        save(window, MainWindow::Page::History, "history");
        window.history()->table()->selectRow(2);
        window.history()->toast()->say("Deleted 3 runs.", true);
        save(window, MainWindow::Page::History, "history-notes");
        window.history()->toast()->hide();
        auto adapterRun =
            std::make_shared<RunSnapshot>(*demoSnapshot(180, 600, RunStatus::Stopped));
        adapterRun->run.configJson = kAdapterConfig;
        window.history()->showSnapshot(adapterRun);
        save(window, MainWindow::Page::History, "history-run");
        window.history()->showSnapshot(demoExported(300));
        QCoreApplication::processEvents();
        window.history()->view()->scrollTo(window.history()->view()->exports());
        save(window, MainWindow::Page::History, "history-exports");
        window.history()->showBin(true);
        QTRY_COMPARE(window.history()->bin()->list()->model()->rowCount(), 2);
        window.history()->bin()->list()->selectAll();
        save(window, MainWindow::Page::History, "history-bin");
        window.history()->bin()->askToErase(
            {2, 3}, {15'247'000'000U, 31, {"/runs/2", "/runs/3"}, {}});
        savePicture(*window.findChild<QMessageBox*>("eraseQuestion"), "erase-question");
        delete window.findChild<QMessageBox*>("eraseQuestion");
        CloseQuestion question(true, {}, nullptr);
        question.show();
        savePicture(question, "close-question");
        saveHelp(window);
        saveModels();
        tryIt(window, runs);
    }

    void waysOut_data() { everyPage_data(); }

    // Data that needs a choice, a model without a template, a run that made its model worse.
    void waysOut()
    {
        QFETCH(const bool, dark);
        QFETCH(const QString, language);
        Theme theme;
        Language words;
        auto runs = std::make_shared<std::vector<RunRow>>(*demoRuns());
        UiServices services = fakeServices(std::make_shared<FakeRun>(), runs);
        auto refusal = std::make_shared<DataRefusal>(DataRefusal::UnknownColumns);
        services.inspectDataset = [refusal](const DataSource& source, const std::string&,
                                      std::int64_t, int) -> Result<DatasetInfo> {
            DatasetInfo info = *refusal == DataRefusal::NoTemplate ? fakeChats() : fakeDataset();
            info.mapping = *refusal == DataRefusal::NoTemplate ? info.mapping : source.columns;
            info.refusal = *refusal;
            info.unusedColumns = {"id"};
            if (*refusal == DataRefusal::None)
                info.chatTemplate = "chatml";
            else
                info.problems = {"refused"};
            return info;
        };
        MainWindow window(services, theme, words);
        theme.setChoice(dark ? ThemeChoice::Dark : ThemeChoice::Light);
        words.choose(language);
        window.resize(kWindow);
        window.show();
        window.newRun()->setSpec(goodSpec());
        QTRY_VERIFY(window.newRun()->settled());
        save(window, MainWindow::Page::NewRun, "new-run-columns");
        RunSpec chats = goodSpec();
        chats.data[0].path = kChatData;
        *refusal = DataRefusal::NoTemplate;
        window.newRun()->setSpec(chats);
        QTRY_VERIFY(window.newRun()->settled());
        save(window, MainWindow::Page::NewRun, "new-run-template");
        *refusal = DataRefusal::None;
        chats.data[0].path = kGoodData;
        chats.data[0].columns = {{"prompt", "question"}, {"response", "answer"}};
        window.newRun()->setSpec(chats);
        QTRY_VERIFY(window.newRun()->settled());
        save(window, MainWindow::Page::NewRun, "new-run-taught");
        auto ruined = std::make_shared<RunSnapshot>(*demoSnapshot(412, 412, RunStatus::Done));
        for (RunRow* run : {&ruined->run, &(*runs)[3]}) {
            run->firstEval = 1.8344;
            run->lastEval = 2403.4;
            run->lastEvalStep = 412;
        }
        window.live()->showSnapshot(ruined);
        save(window, MainWindow::Page::Live, "live-worse");
        window.home()->setRuns(runs);
        save(window, MainWindow::Page::Home, "home-worse");
        window.history()->setRuns(runs);
        save(window, MainWindow::Page::History, "history-worse");
    }

private:
    static LocalModel localModel(const char* name, ModelStore store, ModelUse use,
        const char* architecture, std::int64_t parameters, const char* reason)
    {
        LocalModel model;
        model.name = name;
        model.store = store;
        model.path = std::string("/home/ada/models/") + name;
        model.architecture = architecture;
        model.parameters = parameters;
        model.bytes = static_cast<std::uint64_t>(2 * parameters);
        model.licence = "apache-2.0";
        model.use = use;
        model.reason = reason;
        return model;
    }

    static LocalModels localModels()
    {
        LocalModels found;
        found.models = {
            localModel("Qwen/Qwen3-0.6B", ModelStore::HuggingFace, ModelUse::Train,
                "Qwen3ForCausalLM", 596'000'000, "All of its weights can be trained."),
            localModel("llama3.2:1b", ModelStore::Ollama, ModelUse::Adapter, "llama", 1'236'000'000,
                "A GGUF file: an adapter beside it can be trained; for all weights take the model "
                "it "
                "was made of."),
            localModel("google/gemma-4-e2b", ModelStore::LmStudio, ModelUse::Nothing,
                "Gemma4ForConditionalGeneration", 0,
                "model-00002-of-00002.safetensors is missing."),
        };
        found.bytes = 3'664'000'000;
        return found;
    }

    static UiServices hubServices()
    {
        UiServices made = fakeServices(std::make_shared<FakeRun>());
        made.hubPeer = [] { return Result<HubPeer>(HubPeer{"huggingface.co", false}); };
        made.planDownload = [](const HubRequest&, const HubWatch&) {
            HubPlan plan;
            plan.folder =
                "/home/ada/.cache/huggingface/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de289";
            plan.files = {{{"config.json", 726, "a", false}, 726},
                {{"model.safetensors", 1'503'300'328, "b", true}, 400'000'000},
                {{"tokenizer.json", 11'422'654, "c", true}, 0}};
            plan.leftOut = {{"README.md", 13'963, "not used here"}};
            plan.bytes = 1'514'723'708;
            plan.fetchBytes = 1'114'722'982;
            plan.freeBytes = 312'000'000'000;
            return Result<HubPlan>(plan);
        };
        return made;
    }

    void saveModels()
    {
        UiServices services = hubServices();
        services.findModels = [](const std::vector<std::string>&) { return localModels(); };
        ModelsDialog models(services, nullptr);
        GetModelDialog get(services, nullptr);
        ExportDialog exported(services,
            {QStringLiteral("/runs/7"), QStringLiteral("Eggs: first try"), true, true}, nullptr);
        HelpPage page(QStringLiteral("from_text_to_ollama"), nullptr);
        CheckRequest request;
        request.source.path = kGoodData;
        request.evaluation = DataSource();
        request.seqLen = 64;
        RowChecksDialog checks(services, request, nullptr);
        QTRY_VERIFY(!checks.busy());
        checks.findings()->setCurrentRow(1);
        checks.findings()->item(1)->setCheckState(Qt::Checked);
        QTRY_VERIFY(!models.busy());
        get.name()->setText(QStringLiteral("Qwen/Qwen3-0.6B"));
        QTRY_VERIFY(get.list()->isEnabled());
        get.list()->click();
        QTRY_VERIFY(!get.busy());
        for (const auto& [dialog, name] : std::initializer_list<std::pair<QDialog*, const char*>>{
                 {&models, "models"}, {&get, "get-model"}, {&exported, "export"},
                 {&checks, "row-checks"}, {&page, "help-page"}}) {
            dialog->setAttribute(Qt::WA_DeleteOnClose, false);
            dialog->show();
            savePicture(*dialog, name);
        }
        services.findModels = [](const std::vector<std::string>&) {
            LocalModels none;
            none.places = {{ModelStore::HuggingFace, "/home/ada/.cache/huggingface/hub", true, {}},
                {ModelStore::Ollama, "/home/ada/.ollama/models", false, {}}};
            return none;
        };
        ModelsDialog empty(services, nullptr);
        empty.setAttribute(Qt::WA_DeleteOnClose, false);
        QTRY_VERIFY(!empty.busy());
        empty.show();
        savePicture(empty, "models-empty");
    }

private slots:

    void saveHelp(MainWindow& window)
    {
        const std::unique_ptr<HelpDialog> glossary(HelpDialog::glossary(&window));
        const std::unique_ptr<HelpDialog> shortcuts(HelpDialog::shortcuts(&window));
        ReportDialog report(fakeServices(std::make_shared<FakeRun>(), demoRuns()), nullptr);
        report.setAttribute(Qt::WA_DeleteOnClose, false);
        QTRY_VERIFY(report.findChild<QCheckBox*>("withTexts")->isEnabled());
        StartProblem problem("history /home/ada/.local/share/millrace/history.db is damaged (row 7 "
                             "missing from index run_recent); move it away or restore a backup, "
                             "run folders keep their own records",
            "/home/ada/.local/share/millrace/history.db", [](const QString&) { return true; });
        problem.open();
        for (const auto& [dialog, name] : std::initializer_list<std::pair<QWidget*, const char*>>{
                 {glossary.get(), "help-words"}, {shortcuts.get(), "help-shortcuts"},
                 {&report, "help-report"}, {&problem, "start-problem"}}) {
            dialog->show();
            savePicture(*dialog, name);
        }
        auto* help = window.findChild<HelpMenu*>();
        help->menu()->popup(help->mapToGlobal(QPoint(0, 0)));
        savePicture(*help->menu(), "help-menu");
        help->menu()->close();
    }

    void comparisons_data() { everyPage_data(); }

    void comparisons()
    {
        QFETCH(const bool, dark);
        QFETCH(const QString, language);
        Theme theme;
        Language words;
        const auto runs = demoRuns();
        MainWindow window(fakeServices(std::make_shared<FakeRun>(), runs), theme, words);
        theme.setChoice(dark ? ThemeChoice::Dark : ThemeChoice::Light);
        words.choose(language);
        window.resize(kWindow);
        window.show();
        RunSpec spec = goodSpec();
        spec.policy = "zero-offload";
        window.newRun()->setSpec(spec);
        PolicyChoice* policies = window.newRun()->settings()->policies();
        policies->compare()->setChecked(true);
        QTRY_VERIFY(window.newRun()->datasetSection()->info());
        QTRY_VERIFY(window.newRun()->settled());
        window.showPage(MainWindow::Page::NewRun);
        policies->second()->setCurrentIndex(policies->second()->findData("zenflow"));
        QTRY_VERIFY(window.newRun()->settled());
        QCoreApplication::processEvents();
        QCoreApplication::processEvents();
        auto* form = window.newRun()->formArea()->verticalScrollBar();
        form->setValue(form->maximum());
        save(window, MainWindow::Page::NewRun, "new-run-compare");

        save(window, MainWindow::Page::Compare, "compare-empty");
        const auto [first, second] = demoPair(140, 600);
        window.compare()->compare(0, 0, "Notes: zenflow");
        auto begun = std::make_shared<RunSnapshot>(*first);
        begun->run.status = RunStatus::Running;
        window.compare()->showSnapshot(0, begun);
        save(window, MainWindow::Page::Compare, "compare-waiting");
        window.compare()->showProblem("“Notes: zenflow” was not started, because “Notes: "
                                      "zero-offload” failed. Device memory: 1.8 GiB short.");
        save(window, MainWindow::Page::Compare, "compare-dropped");
        window.compare()->showSnapshot(0, first);
        window.compare()->showSnapshot(1, second);
        save(window, MainWindow::Page::Compare, "compare-live");
        window.compare()->showSnapshot(1, demoPair(600, 600)[1]);
        save(window, MainWindow::Page::Compare, "compare");
        auto* scroll = window.compare()->findChild<QScrollArea*>()->verticalScrollBar();
        scroll->setValue(scroll->maximum());
        save(window, MainWindow::Page::Compare, "compare-below");
        window.resize(900, 640);
        auto other = std::make_shared<RunSnapshot>(*second);
        other->run.configJson = R"({"seed":2,"steps":600})";
        other->run.simulatedLink = true;
        window.compare()->showSnapshot(1, other);
        scroll->setValue(0);
        save(window, MainWindow::Page::Compare, "compare-narrow");
    }

    void timelinesAndTierMaps_data() { everyPage_data(); }

    void timelinesAndTierMaps()
    {
        QFETCH(const bool, dark);
        QFETCH(const QString, language);
        Theme theme;
        Language words;
        theme.setChoice(dark ? ThemeChoice::Dark : ThemeChoice::Light);
        words.choose(language);
        const auto show = [](DemoPolicy policy, const char* name, bool near) {
            const auto run = std::make_shared<RunSnapshot>(*demoSnapshot(412, 600));
            auto plan = std::make_shared<PlanReport>(demoPlan());
            plan->groups = demoGroups(policy);
            run->plan = plan;
            TimelineSection section;
            section.setSnapshot(run);
            section.setTimeline(std::make_shared<const StepTimeline>(demoTimeline(policy, 400)));
            section.resize(kWindow.width() - 150, section.sizeHint().height());
            section.show();
            StepTimelineChart* chart = section.chart();
            if (near) {
                chart->select(longestWait(*chart->timeline(), StallCause::H2d));
                QTest::keyClick(chart, Qt::Key_F);
                chart->zoomBy(6.0);
            }
            savePicture(section, name);
        };
        show(DemoPolicy::Resident, "timeline-resident", false);
        show(DemoPolicy::ZeroOffload, "timeline-zero-offload", false);
        show(DemoPolicy::ZeroOffload, "timeline-zero-offload-near", true);
        show(DemoPolicy::Streamed, "timeline-streamed", false);
        show(DemoPolicy::Streamed, "timeline-streamed-near", true);
        auto plan = std::make_shared<PlanReport>(demoPlan());
        plan->groups = demoGroups(DemoPolicy::Streamed);
        for (PlanTier& tier : plan->tiers) {
            tier.totalBytes = 0;
            for (const PlanGroup& group : plan->groups) {
                for (const PlanGroupBytes& part : group.bytes)
                    tier.totalBytes += part.tier == tier.tier ? part.bytes : 0;
            }
        }
        plan->tiers[2].budgetBytes = std::uint64_t{64} << 30;
        TierMap map;
        map.setPlan(plan);
        map.resize(760, map.sizeHint().height());
        map.show();
        map.table()->setCurrentIndex(map.table()->model()->index(4, 4));
        savePicture(map, "tier-map-streamed");
    }

    // A process of its own, because the scale is read once, when a program starts.
    void everyPageAtTwiceTheScale()
    {
        if (qEnvironmentVariableIsSet("MILLRACE_SCALED"))
            return;
        QProcess scaled;
        auto environment = QProcessEnvironment::systemEnvironment();
        environment.insert("QT_SCALE_FACTOR", "2");
        environment.insert("MILLRACE_SCALED", "1");
        scaled.setProcessEnvironment(environment);

        scaled.start(QCoreApplication::applicationFilePath(),
            {"screenshots", "everyPage:light", "comparisons:light", "timelinesAndTierMaps:light"});

        QVERIFY(scaled.waitForFinished(100'000));
        QVERIFY2(scaled.exitCode() == 0, scaled.readAllStandardOutput().constData());
    }

private:
    // Columns that may mean several things, and rows that cannot be read, before and after a
    // choice.
    static void saveData(MainWindow& window)
    {
        DatasetSection* data = window.newRun()->datasetSection();
        RunSpec spec = goodSpec();
        for (const auto& [path, name] : {std::pair{kUnclearData, std::string("new-run-readings")},
                 std::pair{kHoleyData, std::string("new-run-bad-rows")}}) {
            spec.data[0].path = path;
            window.newRun()->setSpec(spec);
            QTRY_VERIFY(window.newRun()->settled());
            save(window, MainWindow::Page::NewRun, name.c_str());
            QAbstractButton* choice = data->skip();
            if (path == kUnclearData)
                choice = data->readings()->button(0);
            choice->click();
            QTRY_VERIFY(data->info());
            QTRY_VERIFY(window.newRun()->settled());
            save(window, MainWindow::Page::NewRun, (name + "-chosen").c_str());
        }
    }

    // Each choice of what is trained; the whole model does not fit.
    static void saveMethods(MainWindow& window)
    {
        NewRunPage& page = *window.newRun();
        RunSpec spec = goodSpec();
        spec.microBatch = 64;
        spec.method = "lora";
        spec.rank = 64;
        RunSpec layers = goodSpec();
        layers.trainLayers = "18-21,head";
        RunSpec further = spec;
        further.rank = RunSpec().rank;
        further.adapterDir = "/home/ada/adapters/notes";
        const auto show = [&](const RunSpec& shown, const char* name) {
            page.setSpec(shown);
            QTRY_VERIFY(page.datasetSection()->info());
            QTRY_VERIFY(page.settled());
            QCoreApplication::processEvents();
            const int top = page.method()->mapTo(page.formArea()->widget(), QPoint()).y();
            page.formArea()->verticalScrollBar()->setValue(top - 16);
            save(window, MainWindow::Page::NewRun, name);
        };
        show(goodSpec(), "new-run-method");
        auto* more = window.findChild<QAbstractButton*>("moreOfAdapter");
        more->setChecked(true);
        show(spec, "new-run-adapter");
        show(further, "new-run-adapter-further");
        more->setChecked(false);
        show(layers, "new-run-layers");
        RunSpec blocks = goodSpec();
        blocks.train = TrainOrder::Blocks;
        show(blocks, "new-run-blocks");
        RunSpec large = goodSpec();
        large.microBatch = 64;
        page.setSpec(large);
        QTRY_VERIFY(page.settled() && page.planPanel()->plan());
        QCoreApplication::processEvents();
        save(window, MainWindow::Page::NewRun, "new-run-lighter");
        page.formArea()->verticalScrollBar()->setValue(0);
    }

    static void tryIt(MainWindow& window, const RunRowsPtr& runs)
    {
        TryPage* page = window.tryIt();
        save(window, MainWindow::Page::Try, "try-empty");
        auto rows = std::make_shared<std::vector<RunRow>>(*runs);
        for (RunRow& row : *rows)
            row.dir = "/runs/" + std::to_string(row.id);
        page->setRuns(rows);
        page->base()->addFolder(QString::fromStdString(kPlainModel));
        page->form()->setText(
            "A shop sells eggs in boxes of six. How many eggs are in four boxes?");
        page->form()->askButton()->click();
        QTRY_VERIFY(!page->asker()->busy());
        for (auto* fold : page->tuned()->findChildren<QToolButton*>())
            if (fold->isCheckable())
                fold->setChecked(true);
        save(window, MainWindow::Page::Try, "try");
        window.resize(900, 640);
        TryProgress live = {TryProgress::State::Answering, {}, 412, {}};
        live.answer.text = "There are 24";
        live.answer.tokens = 4;
        live.answer.seconds = 0.4;
        page->tuned()->setProgress(live);
        live.state = TryProgress::State::Failed;
        live.error = "/models/x: the weights have a tensor of another shape; get them again";
        page->base()->setProgress(live);
        save(window, MainWindow::Page::Try, "try-narrow");
        window.resize(kWindow);
    }

    static void save(MainWindow& window, MainWindow::Page page, const char* name)
    {
        window.showPage(page);
        savePicture(window, name);
    }

    static void savePicture(QWidget& widget, const char* name)
    {
        QCoreApplication::processEvents();
        QCoreApplication::processEvents(); // layouts inside of layouts
        const QPixmap picture = widget.grab();
        const bool scaled = picture.devicePixelRatio() > 1.5;
        const QString file =
            QString("%1/%2-%3.png")
                .arg(folder(), name,
                    scaled ? QString("200-percent") : QString(QTest::currentDataTag()));
        QVERIFY(picture.save(file));
        QVERIFY2(colorCount(picture.toImage()) > 20, qPrintable(file));
    }

    QTemporaryDir m_settings;
    QTemporaryDir m_sample;
};

MR_TEST_WITH_WINDOWS(TestScreenshots)

} // namespace mr::test::tst_screenshots

#include "tst_screenshots.moc"
