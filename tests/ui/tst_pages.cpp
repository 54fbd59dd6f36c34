// The pages show known facts and errors where the user looks.

#include "bridge/app_log.h"
#include "language.h"
#include "main_window.h"
#include "pages/column_form.h"
#include "pages/dataset_section.h"
#include "pages/help_dialog.h"
#include "pages/history_page.h"
#include "pages/home_page.h"
#include "pages/live_page.h"
#include "pages/model_section.h"
#include "pages/new_run_page.h"
#include "pages/report_dialog.h"
#include "pages/settings_form.h"
#include "pages/start_problem.h"
#include "pages/template_choice.h"
#include "support/test_room.h"
#include "text/units.h"
#include "theme.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/help_menu.h"
#include "widgets/message_label.h"
#include "widgets/notice_bar.h"
#include "widgets/path_edit.h"
#include "widgets/token_preview.h"

#include <QAbstractButton>
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QSemaphore>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <algorithm>
#include <atomic>

namespace mr::test::tst_pages {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

QStringList labelTexts(const QWidget& widget)
{
    QStringList texts;
    for (const auto* label : widget.findChildren<QLabel*>())
        texts << label->text();
    return texts;
}

RunSpec goodSpec()
{
    RunSpec spec;
    spec.modelDir = kGoodModel;
    spec.data.push_back({kGoodData, DataFormat::Auto, {}});
    return spec;
}

// A file of the columns x, y and z, which cannot be told apart.
Result<DatasetInfo> ofColumns(const DataSource& source, const std::string&, std::int64_t, int)
{
    DatasetInfo info = fakeDataset();
    info.path = source.path;
    info.columns = {"x", "y", "z"};
    info.mapping = source.columns;
    for (const std::string& column : info.columns)
        if (std::none_of(source.columns.begin(), source.columns.end(),
                [&](const auto& role) { return role.second == column; }))
            info.unusedColumns.push_back(column);
    if (!source.columns.empty())
        return info;
    info.refusal = DataRefusal::UnknownColumns;
    info.problems = {source.path + ": say it with --map prompt=COLUMN,response=COLUMN"};
    info.preview.clear();
    return info;
}

void choose(QComboBox* box, const QString& text)
{
    const int index = box->findText(text);
    box->setCurrentIndex(index);
    emit box->activated(index);
}

} // namespace

class TestPages : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
    }

    void aFolderThatIsNoModelSaysSoBesideTheField()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.modelDir = kBadModel;

        page.setSpec(spec);

        QTRY_VERIFY(page.modelSection()->message()->kind() == MessageLabel::Kind::Error);
        QVERIFY(page.modelSection()->message()->text().contains("has no config.json"));
    }

    void whatIsTakenForAModelFolderHasAWayOut()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.inspectModel = [](const std::string& path) -> Result<ModelInfo> {
            return Status::error(ErrorKind::InvalidArgument, path + ": no model folder");
        };
        NewRunPage page(services);
        QTemporaryDir adapter;
        QFile config(adapter.filePath("adapter_config.json"));
        QVERIFY(config.open(QIODevice::WriteOnly));
        MessageLabel& message = *page.modelSection()->message();

        page.modelSection()->setPath(adapter.path());
        QTRY_VERIFY2(message.text().contains("It is an adapter."), qPrintable(message.text()));
        page.modelSection()->setPath("Qwen/Qwen2.5-0.5B");
        QTRY_VERIFY2(message.text().contains("name on a hub"), qPrintable(message.text()));
        page.modelSection()->setPath("/models/a");
        QTRY_COMPARE(message.text(), QString("/models/a: no model folder"));
    }

    void aBrokenDatasetNamesItsLineBesideTheField()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.data.front().path = kBadData;

        page.setSpec(spec);

        QTRY_VERIFY(page.datasetSection()->message()->text().contains("line 12"));
        QVERIFY(!page.datasetSection()->info());
    }

    void aGoodRunIsPlannedAndStarted()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);

        page.setSpec(goodSpec());
        QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());
        QCOMPARE(page.datasetSection()->preview()->rows().size(), std::size_t{3});
        page.start();
        QCOMPARE(started.count(), 1);

        const QStringList texts = labelTexts(*page.planPanel());
        QVERIFY(texts.contains("Adam first moments"));
        QString all = texts.join(' ');
        all.replace(QChar(0xa0), ' ');
        QVERIFY2(all.contains("4.80 GiB of 6.00 GiB"), qPrintable(all));
    }

    void aPlanThatDoesNotFitSaysWhatBindsAndIsNotStarted()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);
        RunSpec spec = goodSpec();
        spec.microBatch = 64;

        page.setSpec(spec);
        QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());
        page.start();

        QString headline = page.planPanel()->headline();
        headline.replace(QChar(0xa0), ' ');
        QVERIFY2(
            headline.contains("Device memory: needs 4.80 GiB, the budget is 3.00 GiB, 1.80 GiB "
                              "short"),
            qPrintable(headline));
        QVERIFY(labelTexts(*page.planPanel()).join(' ').contains("sequence length to 512"));
        QCOMPARE(started.count(), 0);
        QVERIFY(!page.startMessage()->text().isEmpty());
    }

    void aLighterWayIsTakenWithOneClick()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.microBatch = 64;
        spec.policy = "zero-offload";
        spec.policyOptions["late"] = "0.5";
        page.setSpec(spec);
        QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());
        const auto press = [&page](const char* name) {
            for (QPushButton* button : page.planPanel()->findChildren<QPushButton*>())
                if (button->accessibleName() == QString(name))
                    return button->click();
            QFAIL("no such button");
        };

        press("Use this: Light optimizer, weights of 24 bits");

        QVERIFY(page.spec().optimizer == Optimizer::Factored);
        QCOMPARE(page.spec().policy, std::string("auto"));
        QVERIFY(page.spec().policyOptions.empty());
        QCOMPARE(page.spec().microBatch, 64);
        QTRY_VERIFY(page.settled());
        press("Use this: AdamW, its state compact");
        QVERIFY(page.spec().optimizer == Optimizer::AdamW);
        QCOMPARE(page.spec().policyOptions.at("state"), std::string("compact"));
    }

    void columnsThatCannotBeToldAreChosenOnThePage()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.inspectDataset = ofColumns;
        NewRunPage page(services);
        DatasetSection& data = *page.datasetSection();

        page.setSpec(goodSpec());

        QTRY_VERIFY(data.message()->text().contains("Choose them here"));
        QVERIFY(!data.message()->text().contains("--"));
        ColumnForm& form = *data.columnForm();
        QVERIFY(!form.isHidden());
        QCOMPARE(form.kind(), ColumnForm::Pair);
        choose(form.box("prompt"), "y");
        QVERIFY(!data.info()); // the response is missing
        choose(form.box("response"), "z");
        QTRY_VERIFY(data.info());
        using Map = std::map<std::string, std::string>;
        QCOMPARE(page.spec().data.front().columns, (Map{{"prompt", "y"}, {"response", "z"}}));
        QVERIFY(data.message()->text().contains("Columns that are not used: x"));
        QVERIFY(!form.isHidden()); // and may be chosen again, as another kind, too
        choose(form.kindBox(), form.kindBox()->itemText(ColumnForm::Text));
        QVERIFY(!data.info());
        QVERIFY(form.box("prompt") == nullptr);
        choose(form.box("text"), "x");
        QTRY_VERIFY(data.info());
        QCOMPARE(page.spec().data.front().columns, (Map{{"text", "x"}}));
    }

    void aTextThatWasGuessedCanBeMadeAPair()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.inspectDataset = ofColumns;
        NewRunPage page(services);
        RunSpec spec = goodSpec();
        spec.data.front().columns = {{"text", "z"}};
        page.setSpec(spec);
        QTRY_VERIFY(page.datasetSection()->info());
        ColumnForm& form = *page.datasetSection()->columnForm();
        QCOMPARE(form.kind(), ColumnForm::Text);

        choose(form.kindBox(), form.kindBox()->itemText(ColumnForm::Pair));
        choose(form.box("prompt"), "x");
        choose(form.box("response"), "z");

        QTRY_VERIFY(page.datasetSection()->info());
        QCOMPARE(page.spec().data.front().columns.at("response"), std::string("z"));
    }

    void aModelWithoutAChatTemplateIsTaughtOne()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.inspectDataset = [](const DataSource& source, const std::string&, std::int64_t,
                                      int) -> Result<DatasetInfo> {
            DatasetInfo info = fakeChats();
            const auto chosen = source.columns.find("chat_template");
            if (chosen != source.columns.end()) {
                info.chatTemplate = chosen->second;
                return info;
            }
            info.refusal = DataRefusal::NoTemplate;
            info.problems = {"/data/chats.jsonl: --chat-template"};
            return info;
        };
        NewRunPage page(services);
        TemplateChoice& choice = *page.datasetSection()->templateChoice();
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.datasetSection()->message()->text().contains("no chat template"));
        QVERIFY(!page.datasetSection()->message()->text().contains("--"));
        QVERIFY(!choice.isHidden());

        choice.chatMl()->click();

        QTRY_VERIFY(page.datasetSection()->info());
        QCOMPARE(page.spec().data.front().columns.at("chat_template"), std::string("chatml"));
        QVERIFY(choice.text().contains("ChatML"));
        QVERIFY(page.commandLine().contains("--chat-template chatml"));
        choice.none()->click();
        QTRY_VERIFY(!page.datasetSection()->info() && page.settled());
        QVERIFY(!choice.chatMl()->isHidden());
    }

    void aModelThatCanOnlyBePlannedShowsItsPlan()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.inspectModel = [look = services.inspectModel](const std::string&) {
            ModelInfo info = look(kGoodModel).value();
            info.canBePlanned = true;
            info.problems = {"this is a config without weights and tokenizer"};
            return Result<ModelInfo>(info);
        };
        NewRunPage page(services);
        QSignalSpy started(&page, &NewRunPage::startRequested);

        page.setSpec(goodSpec());

        QTRY_VERIFY(page.planPanel()->plan());
        QVERIFY(page.modelSection()->message()->text().contains("without weights"));
        page.start();
        QCOMPARE(started.count(), 0);
    }

    void thePlanSaysWhyItsPolicyWasChosen()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.resolveSpec = [](RunSpec spec, std::int64_t) -> Result<RunSpec> {
            spec.policy = "zero-offload"; // as the engine's does
            spec.steps = 250;
            return spec;
        };
        NewRunPage page(services);

        page.setSpec(goodSpec());

        QTRY_VERIFY(page.planPanel()->plan());
        QVERIFY(labelTexts(*page.planPanel()).join(' ').contains("Chosen: "));
    }

    void packingSaysWhatItBringsAndGoesIntoTheRun()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);
        DatasetSection* data = page.datasetSection();
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.planPanel()->plan() && data->info());
        const auto said = [data] {
            return data->packMessage()->text().replace(QChar(0xa0), QLatin1Char(' '));
        };

        // 59,234 tokens are computed, in rows of 64: 2,000, or 931 of them.
        QVERIFY(!page.spec().pack);
        QCOMPARE(data->batchRows(), 2000);
        QVERIFY2(said().contains("Packed: rows 931 instead of 2,000"), qPrintable(said()));
        auto* box = data->findChild<QCheckBox*>("pack");
        box->click();
        QVERIFY2(said().startsWith("Rows 931 instead of 2,000"), qPrintable(said()));
        QVERIFY2(said().contains("instead of 53"), qPrintable(said()));

        QVERIFY(page.spec().pack);
        QCOMPARE(data->batchRows(), 931);
        QVERIFY(page.commandLine().contains("--pack"));
        QTRY_VERIFY(page.settled());
        page.start();
        QCOMPARE(started.count(), 1);
        QVERIFY(started.front().front().value<RunSpec>().pack);
        page.setSpec(goodSpec());
        QVERIFY(!box->isChecked());
    }

    void startWithNothingChosenLeadsToTheFirstField()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));

        page.start();

        QCOMPARE(page.startMessage()->text(), QString("Choose a model folder."));
    }

    void settingsSurviveTheWayThroughTheForm()
    {
        SettingsForm form({{"auto", {}}, {"resident", "all on the card"}});
        RunSpec spec;
        spec.steps = 300;
        spec.learningRate = 2e-3;
        spec.policy = "resident";
        spec.precision = PrecisionChoice::F32;
        spec.recompute = RecomputeChoice::Cheap;
        spec.accumulate = 16;
        spec.warmupSteps = 10;
        spec.deviceMemoryBytes = 6459228; // 6.16 MiB: a third of the sample's
        spec.hostMemoryBytes = std::uint64_t{6} << 30;
        spec.linkBytesPerSecond = 12e9;

        form.readFrom(spec);
        RunSpec back;
        form.writeTo(back);

        QCOMPARE(back.steps, 300);
        QCOMPARE(back.learningRate, 2e-3);
        QCOMPARE(back.policy, std::string("resident"));
        QVERIFY(back.precision == PrecisionChoice::F32);
        QVERIFY(back.recompute == RecomputeChoice::Cheap);
        QCOMPARE(back.accumulate, 16);
        QCOMPARE(back.warmupSteps, 10);
        QCOMPARE(back.deviceMemoryBytes, std::uint64_t{6459228});
        QCOMPARE(back.hostMemoryBytes, std::uint64_t{6} << 30);
        QCOMPARE(back.linkBytesPerSecond, 12e9);
    }

    void homeSaysWhenTheSampleIsMissing()
    {
        HomePage home(fakeServices(std::make_shared<FakeRun>()));

        QTRY_VERIFY(home.sampleMessage()->text().contains("/nowhere/sample"));
        QVERIFY(!home.sampleButton()->isEnabled());
    }

    void homeStartsTheSampleThatIsThere()
    {
        QTemporaryDir sample;
        QVERIFY(makeSampleFolder(sample.path()));
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.sampleDir = sample.path().toStdString();
        HomePage home(services);
        QSignalSpy asked(&home, &HomePage::sampleRequested);
        QTRY_VERIFY(home.sampleButton()->isEnabled());

        home.sampleButton()->click();

        QCOMPARE(asked.count(), 1);
    }

    void homeOffersToResumeALostRun()
    {
        HomePage home(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy resumed(&home, &HomePage::resumeRequested);
        auto runs = std::make_shared<std::vector<RunRow>>();
        RunRow lost;
        lost.id = 3;
        lost.name = "night";
        lost.status = RunStatus::Lost;
        lost.dir = "/runs/3";
        lost.resumable = true;
        runs->push_back(lost);

        home.setRuns(runs);
        for (auto* button : home.findChildren<QPushButton*>()) {
            if (button->text() == "Resume")
                button->click();
        }

        QCOMPARE(resumed.count(), 1);
        QCOMPARE(resumed[0][0].toString(), QString("/runs/3"));
    }

    void homeOffersToStartARunWithoutACheckpointAgain()
    {
        HomePage home(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy resumed(&home, &HomePage::resumeRequested);
        auto runs = std::make_shared<std::vector<RunRow>>();
        RunRow lost;
        lost.id = 3;
        lost.name = "night";
        lost.status = RunStatus::Lost;
        lost.dir = "/runs/3";
        lost.resumable = true;
        lost.startsAgain = true;
        runs->push_back(lost);

        home.setRuns(runs);
        QStringList offered;
        for (auto* button : home.findChildren<QPushButton*>()) {
            offered << button->text();
            if (button->text() == "Start again")
                button->click();
        }

        QVERIFY(!offered.contains("Resume"));
        QCOMPARE(resumed.count(), 1);
        QCOMPARE(resumed[0][0].toString(), QString("/runs/3"));
    }

    void aRunThatIsLeftAsItIsNeedsNoAttention()
    {
        const auto offers = [](const HomePage& home) {
            QStringList names;
            for (const auto* button : home.findChildren<QPushButton*>())
                names << button->accessibleName();
            return names.contains("Leave night as it is");
        };
        auto runs = std::make_shared<std::vector<RunRow>>(1);
        runs->front().id = 3;
        runs->front().name = "night";
        runs->front().lastStep = 40;
        runs->front().status = RunStatus::Lost;
        HomePage home(fakeServices(std::make_shared<FakeRun>()));
        home.setRuns(runs);
        QVERIFY(offers(home));

        for (auto* button : home.findChildren<QPushButton*>())
            if (button->text() == "Leave it")
                button->click();

        QTRY_VERIFY(!offers(home));
        HomePage later(fakeServices(std::make_shared<FakeRun>()));
        later.setRuns(runs);
        QVERIFY(!offers(later));
        auto further = std::make_shared<std::vector<RunRow>>(*runs);
        further->front().lastStep = 60; // it went on, and was lost again
        later.setRuns(further);
        QVERIFY(offers(later));
    }

    void aRunFolderIsAWholePath()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);
        RunSpec spec = goodSpec();
        spec.outDir = "a folder";
        page.setSpec(spec);
        QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());

        page.start();

        QCOMPARE(started.count(), 0);
        QVERIFY2(page.startMessage()->text().contains("a folder does not say where"),
            qPrintable(page.startMessage()->text()));
    }

    void aFieldThatIsOutOfSightIsScrolledTo()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        page.resize(900, 400);
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page));
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.settled());
        auto* name = page.findChild<QLineEdit*>("runName");
        QVERIFY(name->visibleRegion().isEmpty());

        name->setFocus(Qt::ShortcutFocusReason); // as Alt+N does

        QTRY_VERIFY(!name->visibleRegion().isEmpty());
    }

    void tabGoesDownThePage()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        page.resize(900, 3000);
        page.show();
        page.findChild<QAbstractButton*>("advanced")->setChecked(true);
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.datasetSection()->info() && page.settled());
        QCoreApplication::processEvents();

        // Right of the one before on the same line, or below it; the form, then the buttons.
        QPoint last(-1, -1);
        int seen = 0;
        auto* form = page.formArea()->widget();
        for (QWidget* w = page.modelSection()->pathEdit()->edit(); form->isAncestorOf(w);
             w = w->nextInFocusChain()) {
            if (!(w->focusPolicy() & Qt::TabFocus) || !w->isVisible() || w->focusProxy())
                continue;
            const QPoint at = w->mapTo(form, w->rect().center());
            QVERIFY2(at.y() > last.y() + 4 || at.x() > last.x(),
                qPrintable(w->accessibleName() + QString(" at %1").arg(at.y())));
            last = at;
            ++seen;
        }
        QVERIFY(seen > 15);
    }

    void theLanguageChangesWhileTheWindowIsOpen()
    {
        Theme theme;
        Language language;
        MainWindow window(fakeServices(std::make_shared<FakeRun>()), theme, language);

        language.choose("ja");
        QCoreApplication::sendPostedEvents();

        QCOMPARE(window.newRun()->startButton()->text(), QString("開始"));
        language.choose("en");
        QCoreApplication::sendPostedEvents();
        QCOMPARE(window.newRun()->startButton()->text(), QString("Start"));
    }

    void ratesAreMeasuredAgainAndThePlanIsMadeAnew()
    {
        std::atomic<int> plans = 0;
        std::atomic<int> measured = 0;
        QSemaphore mayEnd;
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.planRun = [&plans, plan = services.planRun](const RunSpec& spec) {
            ++plans;
            return plan(spec);
        };
        services.measureRates = [&measured, &mayEnd](const RunSpec& spec) {
            mayEnd.acquire();
            ++measured;
            return spec.modelDir == kGoodModel
                       ? Status::error(ErrorKind::OutOfMemory, "device memory: none is free")
                       : Status();
        };
        NewRunPage page(services);
        QVERIFY(page.measureButton()->isHidden()); // there is no forecast yet
        page.setSpec(goodSpec());
        QTRY_VERIFY(!page.measureButton()->isHidden() && page.settled());
        const int before = plans;

        page.measureButton()->click();

        QVERIFY(!page.measureButton()->isEnabled());
        QCOMPARE(page.measureButton()->text(), QString("Measuring…"));
        mayEnd.release();
        QTRY_VERIFY(page.measureButton()->isEnabled());
        QCOMPARE(measured.load(), 1);
        QTRY_VERIFY(plans > before);
        QCOMPARE(page.measureMessage()->text(), QString("device memory: none is free"));
        QTRY_VERIFY(page.settled());
        page.setRunActive(true);
        QVERIFY(!page.measureButton()->isEnabled());
        page.setRunActive(false);
        QVERIFY(page.measureButton()->isEnabled());
    }

    void theHelpSaysWhatWordsMeanAndFindsThem()
    {
        Theme theme;
        Language language;
        MainWindow window(fakeServices(std::make_shared<FakeRun>()), theme, language);
        window.show();
        auto* help = window.findChild<HelpMenu*>();
        help->action(HelpMenu::Entry::Glossary)->trigger();
        auto* glossary = window.findChild<HelpDialog*>("glossary");
        QVERIFY(glossary != nullptr && glossary->isVisible());

        // Every policy that can be chosen, every cause of the ledger.
        for (const char* word : {"All on the card (resident)", "State in RAM (zero-offload)",
                 "State in RAM, late by one step (zero-offload-dpu)", "deep-optimizer-states",
                 "zenflow", "Weights in RAM (streamed)", "On the SSD (ssd-vertical)",
                 "Adam second moments", "Host update", "Other", "Accumulate"})
            QVERIFY2(glossary->shown().contains(word), word);
        glossary->filter()->setText("loss head");
        QVERIFY(glossary->shown().contains("compares predictions"));
        QVERIFY(!glossary->shown().contains("zenflow"));
        glossary->filter()->setText("no such word");
        QCOMPARE(glossary->shown(), QString("Nothing here matches."));

        help->action(HelpMenu::Entry::Shortcuts)->trigger();
        auto* shortcuts = window.findChild<HelpDialog*>("shortcuts");
        QVERIFY(shortcuts != nullptr);
        QVERIFY2(shortcuts->shown().contains("F9"), qPrintable(shortcuts->shown()));
        QVERIFY(help->action(HelpMenu::Entry::Shortcuts)->shortcut() == QKeySequence(Qt::Key_F1));
    }

    void aboutHasTheVersionAndTheLicence()
    {
        Theme theme;
        Language language;
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.program = "Millrace 9.8.7";
        MainWindow window(services, theme, language);
        window.show();

        window.findChild<HelpMenu*>()->action(HelpMenu::Entry::About)->trigger();

        auto* about = window.findChild<QMessageBox*>("about");
        QVERIFY(about != nullptr);
        for (const char* words : {"Millrace 9.8.7", "General Public License", "QCustomPlot"})
            QVERIFY2(about->text().contains(words), words);
    }

    void aReportHasNoPromptAndNoAnswerUnlessTheyAreTicked()
    {
        auto runs = std::make_shared<std::vector<RunRow>>();
        RunRow row;
        row.id = 7;
        row.status = RunStatus::Failed;
        row.exitReason = "the disk went away";
        row.configJson = R"({"policy":"zenflow"})";
        row.notes = "my secret note";
        runs->push_back(row);
        const auto run = std::make_shared<FakeRun>();
        AnswerRow answer;
        answer.prompt.text = "my secret question";
        answer.answer.text = "its secret answer";
        run->runAnswers = {answer};
        const QString log = m_folder.filePath("desktop.log");
        UiServices services = fakeServices(run, runs);
        services.logFile = log.toStdString();
        {
            const AppLog writing(log);
            AppLog::write("run 7\nended badly");
        }
        ReportDialog report(services, nullptr);
        report.setAttribute(Qt::WA_DeleteOnClose, false);
        auto* withTexts = report.findChild<QCheckBox*>("withTexts");
        QTRY_VERIFY(withTexts->isEnabled());

        for (const char* words : {"the disk went away", "zenflow", "AMD EPYC", "run 7 ended badly"})
            QVERIFY2(report.text().contains(words), words);
        QVERIFY(!report.text().contains("secret"));
        withTexts->click();
        for (const char* words : {"my secret note", "my secret question", "its secret answer"})
            QVERIFY2(report.text().contains(words), words);

        QCOMPARE(report.saveTo(m_folder.filePath("report.txt")), QString());
        QFile saved(m_folder.filePath("report.txt"));
        QVERIFY(saved.open(QIODevice::ReadOnly));
        QCOMPARE(QString::fromUtf8(saved.readAll()), report.text());
        QVERIFY(report.saveTo(m_folder.filePath("none/report.txt")).contains("none/report.txt"));
    }

    void theLogKeepsItsLastLinesAndStartsAgainWhenItIsLarge()
    {
        const QString path = m_folder.filePath("large.log");
        {
            QFile large(path);
            QVERIFY(large.open(QIODevice::WriteOnly));
            large.write(QByteArray((1 << 20) + 1, 'x') + '\n');
        }
        {
            const AppLog log(path);
            for (int i = 0; i < 100; ++i)
                AppLog::write(QString("line %1").arg(i));
        }
        AppLog::write("after its end");

        const QString tail = AppLog::tail(path, 200);
        QVERIFY2(tail.endsWith("line 99\n"), qPrintable(tail));
        QVERIFY(tail.size() <= 200 && !tail.contains("line 0\n"));
        QVERIFY(QRegularExpression("^\\d{4}-").match(tail).hasMatch()); // whole lines
        QVERIFY(QFile(path).size() < 10'000);
        QVERIFY(QFile::exists(path + ".old"));
    }

    void aHistoryThatCannotBeOpenedIsSaidWithWaysOut()
    {
        QString shownFolder;
        StartProblem problem("history /a/history.db is damaged",
            m_folder.filePath("a/b/history.db"), [&shownFolder](const QString& folder) {
                shownFolder = folder;
                return false; // there is no file manager
            });
        const auto press = [&problem](const char* name) {
            QTimer::singleShot(0, &problem, [&problem, name] {
                problem.findChild<QPushButton*>(QLatin1String(name))->click();
            });
        };

        press("openAnother");
        QCOMPARE(problem.ask(), StartProblem::Answer::OpenAnother);
        press("quit");
        QCOMPARE(problem.ask(), StartProblem::Answer::Quit);
        problem.open();
        problem.findChild<QPushButton*>("showFolder")->click();

        QVERIFY(problem.isVisible());
        QCOMPARE(shownFolder, m_folder.path()); // the nearest that is there
        QVERIFY(problem.informativeText().contains("is damaged"));
        QVERIFY(problem.detailedText().contains(m_folder.path()));
    }

    void startingARunLeadsToTheLivePage()
    {
        const auto run = std::make_shared<FakeRun>();
        Theme theme;
        Language language;
        MainWindow window(fakeServices(run, demoRuns()), theme, language);

        window.startRun(goodSpec());

        QTRY_COMPARE(window.controller()->phase(), SessionController::Phase::Running);
        QCOMPARE(window.page(), MainWindow::Page::Live);
        QCOMPARE(run->openedWith.database, std::string("/nowhere/history.db"));
        run->finish();
        QTRY_VERIFY(!window.controller()->busy());
    }

    void aRunThatFillsItsFileSaysHowFarAndCanBeStopped()
    {
        const auto run = std::make_shared<FakeRun>();
        run->fillsFirst = true;
        Theme theme;
        Language language;
        MainWindow window(fakeServices(run), theme, language);
        window.show();
        auto* notice = window.findChild<NoticeBar*>();
        auto* stop = notice->findChild<QPushButton*>("stopOpening");

        window.startRun(goodSpec());
        QVERIFY(stop->isVisible());
        auto* message = notice->findChild<MessageLabel*>();
        QTRY_COMPARE(
            message->text(), QString("Preparing files on disk: %1 of %2")
                                 .arg(memoryText(3.0 * 0x1p30), memoryText(12.0 * 0x1p30)));
        stop->click();

        QCOMPARE(message->text(), QString("Stopping…"));
        QVERIFY(!stop->isVisible());
        QTRY_VERIFY(!window.controller()->busy());
        QVERIFY(!notice->isVisible());
        QCOMPARE(window.page(), MainWindow::Page::Live);
    }

    void aRunThatCannotStartSaysWhy()
    {
        const auto run = std::make_shared<FakeRun>();
        run->openFailure = Status::error(ErrorKind::OutOfMemory, "device memory: 2 GiB short");
        Theme theme;
        Language language;
        MainWindow window(fakeServices(run), theme, language);

        window.startRun(goodSpec());

        QTRY_VERIFY(labelTexts(window).contains("device memory: 2 GiB short"));
    }

private:
    QTemporaryDir m_folder;
};

MR_TEST_WITH_WINDOWS(TestPages)

} // namespace mr::test::tst_pages

#include "tst_pages.moc"
