// The export dialog: forms that the subject has, places, progress, the verdict, and a stop.

#include "pages/export_dialog.h"
#include "pages/ollama_row.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "widgets/message_label.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include <atomic>
#include <chrono>
#include <thread>

namespace mr::test::tst_export_dialog {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

const ExportSubject kRun{QStringLiteral("/runs/7"), QStringLiteral("Eggs: first try"), true, true};

ExportOutcome written(const ExportOrder& order)
{
    return {order.out, 1000, "q8_0", {"asked: 200 of 200 texts become the same tokens"}, {}, {}};
}

} // namespace

class TestExportDialog : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aSubjectHasTheFormsThatFitIt();
    void theOrderIsWhatWasChosen();
    void aFailedCheckIsNoSuccess();
    void anErrorIsShownAsItIs();
    void ollamaIsAskedWhereItIsWanted();
    void theButtonStopsAnExport();
    void closingStopsAnExport();

private:
    static UiServices services(
        std::function<Result<ExportOutcome>(const ExportOrder&, const ExportProgress&)> write)
    {
        UiServices made = fakeServices(std::make_shared<FakeRun>());
        made.exportModel = std::move(write);
        return made;
    }
    static void choose(ExportDialog& dialog, ExportForm form)
    {
        dialog.form()->setCurrentIndex(dialog.form()->findData(static_cast<int>(form)));
    }
};

void TestExportDialog::aSubjectHasTheFormsThatFitIt()
{
    const UiServices none = services({});
    auto* run = new ExportDialog(none, kRun, nullptr);
    QCOMPARE(run->form()->count(), 6);
    run->show();
    QVERIFY(run->start()->isDefault()); // Enter exports
    auto* model = new ExportDialog(none, {"/models/a", "a", false, false}, nullptr);
    QCOMPARE(model->form()->count(), 3);
    QVERIFY(model->place()->text().endsWith("/a-ollama"));
    QVERIFY(run->place()->text().endsWith("/Eggs-first-try-ollama"));
    choose(*run, ExportForm::GgufAdapter);
    QVERIFY(run->place()->text().endsWith("/Eggs-first-try-gguf-adapter.gguf"));
    QVERIFY(run->type()->isHidden());
    run->place()->setText("/elsewhere/mine.gguf"); // from now on it is the user's
    choose(*run, ExportForm::Safetensors);
    QCOMPARE(run->place()->text(), QString("/elsewhere/mine.gguf"));
    QCOMPARE(run->type()->count(), 4);
    run->place()->clear();
    QVERIFY(!run->start()->isEnabled());
    delete run;
    delete model;
}

void TestExportDialog::theOrderIsWhatWasChosen()
{
    ExportOrder seen;
    ExportDialog dialog(services([&seen](const ExportOrder& order, const ExportProgress& progress) {
        seen = order;
        (void)progress(1, 2);
        return Result<ExportOutcome>(written(order));
    }),
        kRun, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    QSignalSpy told(&dialog, &ExportDialog::written);
    choose(dialog, ExportForm::Gguf);
    dialog.type()->setCurrentIndex(dialog.type()->findData("q8_0"));
    dialog.place()->setText("/out/eggs.gguf");
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QCOMPARE(seen.model, std::string("/runs/7"));
    QVERIFY(seen.form == ExportForm::Gguf && seen.type == "q8_0" && seen.out == "/out/eggs.gguf");
    QVERIFY(dialog.verdict()->kind() == MessageLabel::Kind::Good);
    QVERIFY(dialog.verdict()->text().contains("200 of 200 texts"));
    QCOMPARE(told.count(), 1);
}

void TestExportDialog::aFailedCheckIsNoSuccess()
{
    ExportDialog dialog(services([](const ExportOrder& order, const ExportProgress&) {
        ExportOutcome outcome = written(order);
        outcome.path += ".failed";
        outcome.faults = {"the end of an answer is another"};
        return Result<ExportOutcome>(outcome);
    }),
        kRun, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.verdict()->kind() == MessageLabel::Kind::Error);
    QVERIFY(dialog.verdict()->text().contains("the end of an answer is another"));
    QVERIFY(dialog.verdict()->text().contains(".failed"));
}

void TestExportDialog::anErrorIsShownAsItIs()
{
    ExportDialog dialog(services([](const ExportOrder&, const ExportProgress&) {
        return Result<ExportOutcome>(
            Status::error(ErrorKind::InvalidArgument, "/out: is there already"));
    }),
        kRun, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.verdict()->kind() == MessageLabel::Kind::Error);
    QVERIFY(dialog.verdict()->text().contains("/out: is there already"));
    QVERIFY(dialog.start()->isEnabled());
}

void TestExportDialog::ollamaIsAskedWhereItIsWanted()
{
    ExportOrder seen;
    std::string notCreated;
    ExportDialog dialog(services([&](const ExportOrder& order, const ExportProgress&) {
        seen = order;
        ExportOutcome outcome = written(order);
        outcome.notCreated = notCreated;
        outcome.ollamaName = notCreated.empty() ? order.ollamaName : "";
        return Result<ExportOutcome>(outcome);
    }),
        kRun, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(seen.ollamaName.empty()); // not unasked
    QVERIFY(!dialog.verdict()->text().contains("ollama run"));
    QVERIFY(!dialog.ollama()->name()->isEnabled());
    dialog.ollama()->choice()->click();
    QCOMPARE(dialog.ollama()->name()->text(), QString("eggs-first-try"));
    QCOMPARE(OllamaRow(QString::fromUtf8("卵-Ab.1")).name()->text(), QString("ab.1"));
    QCOMPARE(OllamaRow(QString::fromUtf8("-卵")).name()->text(), QString("my-model"));
    dialog.ollama()->name()->setText(" ");
    QVERIFY(!dialog.start()->isEnabled());
    dialog.ollama()->name()->setText("eggs:v2 ");
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QCOMPARE(seen.ollamaName, std::string("eggs:v2"));
    QVERIFY(dialog.verdict()->kind() == MessageLabel::Kind::Good);
    QVERIFY(dialog.verdict()->text().contains("ollama run eggs:v2"));
    notCreated = "no Ollama answers";
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.verdict()->kind() == MessageLabel::Kind::Warning);
    QVERIFY(dialog.verdict()->text().contains("no Ollama answers"));
    choose(dialog, ExportForm::Gguf);
    QVERIFY(dialog.ollama()->isHidden());
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(seen.ollamaName.empty());
}

namespace {

// Goes on until it is stopped.
Result<ExportOutcome> endless(const ExportProgress& progress)
{
    for (std::uint64_t done = 0; progress(done, 1'000'000); ++done)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::error(ErrorKind::Cancelled, "stopped");
}

} // namespace

void TestExportDialog::theButtonStopsAnExport()
{
    ExportDialog dialog(services([](const ExportOrder&, const ExportProgress& progress) {
        return endless(progress);
    }),
        kRun, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    dialog.start()->click();
    QVERIFY(dialog.busy() && !dialog.form()->isEnabled());
    QTRY_VERIFY(dialog.verdict()->text().contains("Writing"));
    dialog.start()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.verdict()->text().contains("Nothing was left behind"));
    QVERIFY(dialog.form()->isEnabled());
}

void TestExportDialog::closingStopsAnExport()
{
    std::atomic<bool> hasEnded = false;
    QPointer<ExportDialog> dialog =
        new ExportDialog(services([&hasEnded](const ExportOrder&, const ExportProgress& progress) {
            Result<ExportOutcome> done = endless(progress);
            hasEnded = true;
            return done;
        }),
            kRun, nullptr);
    dialog->show();
    dialog->start()->click();
    dialog->close();
    QTRY_VERIFY(dialog.isNull());
    QTRY_VERIFY(hasEnded.load());
}

MR_TEST_WITH_WINDOWS(TestExportDialog)

} // namespace mr::test::tst_export_dialog

#include "tst_export_dialog.moc"
