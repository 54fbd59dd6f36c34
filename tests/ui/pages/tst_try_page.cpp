// The Try it page: one prompt to two models, one after the other, also to a run that goes on.

#include "language.h"
#include "main_window.h"
#include "pages/try_column.h"
#include "pages/try_form.h"
#include "pages/try_page.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/message_label.h"

#include <QAccessible>
#include <QComboBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

namespace mr::test::tst_try_page {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

RunRow runOf(std::int64_t id, RunStatus status, const std::string& model = kGoodModel)
{
    RunRow run;
    run.id = id;
    run.name = "run " + std::to_string(id);
    run.status = status;
    run.modelName = "small-llama";
    run.modelPath = model;
    run.dir = "/runs/" + std::to_string(id);
    run.resumable = status == RunStatus::Stopped;
    return run;
}

struct PageRig {
    std::shared_ptr<FakeRun> run = std::make_shared<FakeRun>();
    TryPage page{fakeServices(run)};
    std::vector<Question> questions; // to the live run
    int stops = 0;

    explicit PageRig(std::vector<RunRow> rows, qint64 live = 0)
    {
        LiveRun asked;
        asked.ask = [this](const Question& question) {
            questions.push_back(question);
            return Status();
        };
        asked.stop = [this] { ++stops; };
        page.setLiveRun(asked);
        page.setRuns(std::make_shared<const std::vector<RunRow>>(std::move(rows)));
        page.setLive(live);
        page.form()->setText("How many eggs?");
    }

    void answer(AnswerRow row)
    {
        const std::scoped_lock lock(run->mutex);
        run->runAnswers = {std::move(row)};
    }
};

} // namespace

class TestTryPage : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void anAnswerWithoutAWordSaysThatItEnded()
    {
        PageRig rig({runOf(3, RunStatus::Done)});
        const auto* answer = rig.page.tuned()->findChild<QPlainTextEdit*>();
        QCOMPARE(answer->placeholderText(), QString("The answer appears here."));

        rig.page.tuned()->setProgress({TryProgress::State::Done, {}, 412, {}});

        QVERIFY(answer->placeholderText().contains("ended its answer at once"));
    }

    void bothAreAskedTheSameOneAfterTheOther()
    {
        PageRig rig({runOf(3, RunStatus::Done)});
        rig.page.form()->findChild<QSpinBox*>()->setValue(5);

        QTest::keyClick(rig.page.form()->findChild<QPlainTextEdit*>("tryPrompt"), Qt::Key_Return,
            Qt::ControlModifier);
        rig.page.form()->askButton()->click();
        QTRY_VERIFY(!rig.page.asker()->busy());

        QCOMPARE(rig.run->asked.size(), std::size_t{2});
        QCOMPARE(rig.run->asked[0].first, kGoodModel);
        QCOMPARE(rig.run->asked[1].first, std::string("/runs/3"));
        QCOMPARE(rig.run->asked[0].second.text, std::string("How many eggs?"));
        QCOMPARE(rig.run->asked[0].second.seed, rig.run->asked[1].second.seed);
        QCOMPARE(rig.page.tuned()->answerText(), QString("Four boxes of six eggs are 24 eggs."));
        QVERIFY(rig.page.base()->answerText().startsWith("Eggs are sold"));
        QVERIFY(rig.page.tuned()->figuresText().contains("9 token"));
        QVERIFY(rig.page.tuned()->figuresText().contains("18.0 tokens/s"));
        QVERIFY(rig.page.base()->figuresText().contains("cut at the most tokens"));
        QVERIFY(rig.page.tuned()->readText().contains("<|im_start|>user\nHow many eggs?"));
    }

    void anAnswerIsShownAsItComesAndCanBeStopped()
    {
        PageRig rig({runOf(3, RunStatus::Done)});
        rig.run->holdAnswer = true;

        rig.page.form()->askButton()->click();
        QVERIFY(!rig.page.form()->askButton()->isEnabled());
        QTRY_COMPARE(rig.page.base()->answerText(), QString("Eggs"));
        QCOMPARE(rig.page.tuned()->message()->text(), QString("Waiting for its turn…"));
        rig.page.form()->stopButton()->click();
        QTRY_VERIFY(!rig.page.asker()->busy());

        QCOMPARE(rig.page.base()->message()->text(), QString("Stopped."));
        QCOMPARE(rig.page.tuned()->message()->text(), QString("Stopped."));
        QCOMPARE(rig.run->asked.size(), std::size_t{1}); // the second was never asked
        QVERIFY(rig.page.form()->askButton()->isEnabled());
    }

    void aModelThatCannotBeAskedSaysWhyAndTheOtherAnswers()
    {
        PageRig rig({runOf(3, RunStatus::Done, kBadModel)});

        rig.page.form()->askButton()->click();
        QTRY_VERIFY(!rig.page.asker()->busy());

        QVERIFY(rig.page.base()->message()->kind() == MessageLabel::Kind::Error);
        QVERIFY(rig.page.base()->message()->text().contains("no config.json"));
        QVERIFY(!rig.page.tuned()->answerText().isEmpty());
    }

    void aModelWithoutTemplateIsSaidToReadPlainText()
    {
        PageRig rig({runOf(3, RunStatus::Done, kPlainModel)});

        rig.page.form()->askButton()->click();
        QTRY_VERIFY(!rig.page.asker()->busy());

        QVERIFY(rig.page.base()->message()->text().contains("no chat template"));
        QVERIFY(rig.page.tuned()->message()->text().isEmpty());
    }

    void aRunThatGoesOnIsAskedThroughItsSessionAndReadFromTheHistory()
    {
        PageRig rig({runOf(7, RunStatus::Running), runOf(3, RunStatus::Done)}, 7);
        QVERIFY(rig.page.tuned()->choice().isLive);
        QVERIFY(rig.page.tuned()->models()->currentText().contains("as it is now"));

        rig.page.form()->askButton()->click();
        QTRY_COMPARE(rig.questions.size(), std::size_t{1});
        QCOMPARE(rig.page.tuned()->message()->text(), QString("Waiting for the end of a step…"));
        AnswerRow row;
        row.step = 42;
        row.id = rig.questions[0].id;
        row.answer.text = "Tw";
        rig.answer(row);
        QTRY_COMPARE(rig.page.tuned()->answerText(), QString("Tw"));
        QVERIFY(rig.page.asker()->busy());
        row.answer.text = "Two.";
        row.answer.tokens = 2;
        row.state = AnswerState::Done;
        rig.answer(row);
        QTRY_VERIFY(!rig.page.asker()->busy());

        QCOMPARE(rig.page.tuned()->answerText(), QString("Two."));
        QVERIFY(rig.page.tuned()->figuresText().contains("answered after step 42"));
        QCOMPARE(rig.run->asked.size(), std::size_t{1}); // the base alone was loaded
    }

    void anAnswerThatFailedOrNeverComesIsNotWaitedFor()
    {
        PageRig rig({runOf(7, RunStatus::Running)}, 7);
        rig.page.form()->askButton()->click();
        QTRY_COMPARE(rig.questions.size(), std::size_t{1});
        AnswerRow row;
        row.id = rig.questions[0].id;
        row.state = AnswerState::Failed;
        row.message = "the prompt has 900 tokens";
        rig.answer(row);
        QTRY_VERIFY(!rig.page.asker()->busy());
        QCOMPARE(rig.page.tuned()->message()->text(), QString("the prompt has 900 tokens"));

        rig.page.form()->askButton()->click(); // its row is of another question
        QTRY_COMPARE(rig.questions.size(), std::size_t{2});
        rig.page.setLive(0);

        QTRY_VERIFY(!rig.page.asker()->busy());
        QCOMPARE(rig.page.tuned()->message()->text(), QString("The run has ended."));
    }

    void stoppingWhileARunIsWaitedForTakesTheQuestionBack()
    {
        PageRig rig({runOf(7, RunStatus::Running)}, 7);
        rig.page.form()->askButton()->click();
        QTRY_COMPARE(rig.questions.size(), std::size_t{1});

        rig.page.form()->stopButton()->click();

        QVERIFY(!rig.page.asker()->busy());
        QCOMPARE(rig.stops, 1);
        QCOMPARE(rig.page.tuned()->message()->text(), QString("Stopped."));
    }

    void withoutARunThereIsABaseAtMost()
    {
        PageRig rig({});

        QVERIFY(!rig.page.form()->askButton()->isEnabled());
        QVERIFY(rig.page.base()->message()->text().contains("No model yet"));
        QVERIFY(rig.page.tuned()->message()->text().contains("No tuned model yet"));
        rig.page.base()->addFolder(QString::fromStdString(kGoodModel));
        QVERIFY(rig.page.form()->askButton()->isEnabled());
        rig.page.form()->askButton()->click();
        QTRY_VERIFY(!rig.page.asker()->busy());
        QCOMPARE(rig.run->asked.size(), std::size_t{1});
    }

    void whatWasChosenStaysWhenTheListChanges()
    {
        PageRig rig({runOf(5, RunStatus::Done), runOf(3, RunStatus::Done)});
        rig.page.tryRun(3);
        QCOMPARE(rig.page.tuned()->choice().runId, 3);

        rig.page.setRuns(std::make_shared<const std::vector<RunRow>>(std::vector<RunRow>{
            runOf(9, RunStatus::Done), runOf(5, RunStatus::Done), runOf(3, RunStatus::Done)}));

        QCOMPARE(rig.page.tuned()->choice().runId, 3);
    }

    void anAnswerGoesWithTheModelThatGaveIt()
    {
        PageRig rig({runOf(5, RunStatus::Done), runOf(3, RunStatus::Done)});
        rig.page.form()->askButton()->click();
        QVERIFY(!rig.page.tuned()->models()->isEnabled());
        QTRY_VERIFY(!rig.page.asker()->busy());
        rig.page.setRuns(std::make_shared<const std::vector<RunRow>>(std::vector<RunRow>{
            runOf(9, RunStatus::Done), runOf(5, RunStatus::Done), runOf(3, RunStatus::Done)}));
        QVERIFY(!rig.page.tuned()->answerText().isEmpty());

        rig.page.tryRun(3);

        QVERIFY(rig.page.tuned()->answerText().isEmpty());
        QVERIFY(rig.page.tuned()->figuresText().isEmpty());
        QVERIFY(!rig.page.base()->answerText().isEmpty()); // its model is the same
    }

    void aCheckpointOfARunCanBeChosen()
    {
        PageRig rig({runOf(3, RunStatus::Done)});
        std::vector<CheckpointRow> rows(3);
        rows[0] = {100, "/runs/3/checkpoints/step-00000100", 1, "complete", 0, 0};
        rows[1] = {200, "/runs/3/checkpoints/step-00000200", 1, "broken", 0, 0};
        rows[2] = {300, "/runs/3/checkpoints/step-00000300", 1, "verified", 0, 0};

        rig.page.tuned()->setCheckpoints(3, rows, 100);

        QComboBox* weights = rig.page.tuned()->weights();
        QCOMPARE(weights->count(), 3); // the last, 300 and 100
        QCOMPARE(rig.page.tuned()->target().path, std::string("/runs/3"));
        QCOMPARE(weights->itemText(2), QString("Step 100, the best"));
        weights->setCurrentIndex(2);
        QCOMPARE(rig.page.tuned()->target().path, rows[0].path);
    }

    void runsFromRandomWeightsHaveNoBase()
    {
        const std::vector<RunRow> rows = {runOf(4, RunStatus::Done, "/x/config.json"),
            runOf(3, RunStatus::Failed), runOf(2, RunStatus::Done)};

        const auto models = TryChoices::models(rows);
        const auto runs = TryChoices::runs(rows, 0);

        QCOMPARE(models.size(), std::size_t{1});
        QCOMPARE(models[0].path, kGoodModel);
        QCOMPARE(runs.size(), std::size_t{2});
    }

    void theWindowAsksTheRunThatGoesOn()
    {
        QTemporaryDir settings;
        keepSettingsIn(settings.path());
        const auto run = std::make_shared<FakeRun>();
        const auto rows = std::make_shared<const std::vector<RunRow>>(
            std::vector<RunRow>{runOf(7, RunStatus::Running)});
        Theme theme;
        Language words;
        MainWindow window(fakeServices(run, rows), theme, words);
        window.startRun(RunSpec());
        QTRY_COMPARE(window.controller()->runId(), 7);
        window.showPage(MainWindow::Page::Try);
        QTRY_VERIFY(window.tryIt()->tuned()->choice().isLive);
        window.tryIt()->form()->setText("And now?");

        window.tryIt()->form()->askButton()->click();

        const auto count = [&] {
            const std::scoped_lock lock(run->mutex);
            return run->questions.size();
        };
        QTRY_COMPARE(count(), std::size_t{1});
        QCOMPARE(run->questions[0].prompt.text, std::string("And now?"));
        window.tryIt()->form()->stopButton()->click();
        QVERIFY(run->answerStopped);
        run->finish();
        QTRY_VERIFY(!window.controller()->busy());
        QVERIFY(!window.controller()->ask({1, {}}).ok());
        QTRY_VERIFY(!window.tryIt()->tuned()->choice().isLive);
    }

    void everyControlHasAName()
    {
        PageRig rig({runOf(3, RunStatus::Done)});

        for (QWidget* widget : rig.page.findChildren<QWidget*>()) {
            const bool isPopup = widget->window() != rig.page.window(); // a combo box's
            const bool isLabel = qobject_cast<QLabel*>(widget);         // its text is its name
            if (isPopup || isLabel || widget->focusPolicy() == Qt::NoFocus ||
                widget->objectName().startsWith("qt_"))
                continue;
            auto* face = QAccessible::queryAccessibleInterface(widget);
            QVERIFY2(face && !face->text(QAccessible::Name).isEmpty(),
                widget->metaObject()->className());
        }
    }
};

MR_TEST_WITH_WINDOWS(TestTryPage)

} // namespace mr::test::tst_try_page

#include "tst_try_page.moc"
