// A model of a hub in the window: nobody is asked before the button, the plan comes before the
// download, and a stop or an error takes nothing for whole.

#include "pages/get_model_dialog.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "widgets/message_label.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QTreeWidget>

#include <atomic>
#include <chrono>
#include <thread>

namespace mr::test::tst_get_model_dialog {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

struct FakeHub {
    std::atomic<int> plans = 0;
    std::atomic<int> runs = 0;
    std::atomic<bool> waits = false; // a download goes on until it is stopped
    std::atomic<bool> ended = false;
    HubRequest request;
    HubPlan plan;
    Status planFailure;
    Status runFailure;

    FakeHub()
    {
        plan.folder = "/cache/small";
        plan.files = {
            {{"config.json", 700, "aa", false}, 700}, {{"model.safetensors", 9000, "bb", true}, 0}};
        plan.leftOut = {{"run.py", 50, "a script"}};
        plan.bytes = 9700;
        plan.fetchBytes = 9000;
        plan.freeBytes = 100000;
        plan.host = "hub.example";
    }
};

Status fakeDownload(FakeHub& hub, const HubWatch& watch)
{
    ++hub.runs;
    watch.progress({4500, 9700, 1, 2});
    while (hub.waits && !watch.stop.stop_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    hub.ended = true;
    if (watch.stop.stop_requested())
        return Status::error(ErrorKind::Cancelled, "stopped");
    return hub.runFailure;
}

UiServices servicesOf(FakeHub& hub)
{
    UiServices made = fakeServices(std::make_shared<FakeRun>());
    made.hubPeer = [] { return Result<HubPeer>(HubPeer{"hub.example", true}); };
    made.planDownload = [&hub](const HubRequest& request, const HubWatch&) -> Result<HubPlan> {
        ++hub.plans;
        hub.request = request;
        if (!hub.planFailure.ok())
            return hub.planFailure;
        return hub.plan;
    };
    made.runDownload = [&hub](const HubPlan&, const HubWatch& watch) {
        return fakeDownload(hub, watch);
    };
    return made;
}

} // namespace

class TestGetModelDialog : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void nobodyIsAskedBeforeTheButton();
    void filesAreShownThenFetched();
    void aFullDiskIsSaidBefore();
    void errorsAreShownAsTheyAre();
    void aStopKeepsWhatWasFetched();
    void closingStopsADownload();

private:
    static void list(GetModelDialog& dialog)
    {
        dialog.setAttribute(Qt::WA_DeleteOnClose, false);
        dialog.name()->setText("people/small");
        QTRY_VERIFY(dialog.list()->isEnabled());
        dialog.list()->click();
        QTRY_VERIFY(!dialog.busy());
    }
};

void TestGetModelDialog::nobodyIsAskedBeforeTheButton()
{
    FakeHub hub;
    GetModelDialog dialog(servicesOf(hub), nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    QTRY_VERIFY(dialog.host()->text().contains("hub.example"));
    QVERIFY(dialog.host()->text().contains("with your token"));
    QVERIFY(!dialog.list()->isEnabled() && !dialog.fetch()->isEnabled());
    for (const char* bad : {"small", "/small", "people/", "a/b/c", "peo ple/small"}) {
        dialog.name()->setText(bad);
        QVERIFY(!dialog.list()->isEnabled());
    }
    dialog.name()->setText("people/small");
    QVERIFY(dialog.list()->isEnabled());
    QCOMPARE(hub.plans.load(), 0);
}

void TestGetModelDialog::filesAreShownThenFetched()
{
    FakeHub hub;
    GetModelDialog dialog(servicesOf(hub), nullptr);
    QSignalSpy chosen(&dialog, &GetModelDialog::chosen);
    list(dialog);
    QCOMPARE(hub.request.name, std::string("people/small"));
    QCOMPARE(dialog.files()->topLevelItemCount(), 3);
    QCOMPARE(dialog.files()->topLevelItem(0)->text(2), QString("is there"));
    QCOMPARE(dialog.files()->topLevelItem(1)->text(2), QString("to be fetched"));
    QVERIFY(dialog.files()->topLevelItem(2)->text(2).contains("a script"));
    QVERIFY(dialog.message()->text().contains("/cache/small"));
    QCOMPARE(hub.runs.load(), 0);

    dialog.fetch()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.message()->kind() == MessageLabel::Kind::Good);
    QCOMPARE(dialog.files()->topLevelItem(1)->text(2), QString("is there"));
    QVERIFY(!dialog.fetch()->isEnabled() && !dialog.use()->isHidden());
    dialog.use()->click();
    QCOMPARE(chosen.front().front().toString(), QString("/cache/small"));

    dialog.kind()->setCurrentIndex(1); // a dataset: another plan is needed
    QVERIFY(dialog.use()->isHidden() && dialog.files()->topLevelItemCount() == 0);
    QVERIFY(!dialog.fetch()->isEnabled());
}

void TestGetModelDialog::aFullDiskIsSaidBefore()
{
    FakeHub hub;
    hub.plan.freeBytes = 8999;
    GetModelDialog dialog(servicesOf(hub), nullptr);
    list(dialog);
    QVERIFY(dialog.message()->kind() == MessageLabel::Kind::Error);
    QVERIFY(dialog.message()->text().contains("too full"));
    QVERIFY(!dialog.fetch()->isEnabled());
}

void TestGetModelDialog::errorsAreShownAsTheyAre()
{
    FakeHub hub;
    hub.planFailure = Status::error(ErrorKind::InvalidArgument, "people/small: there is none");
    GetModelDialog dialog(servicesOf(hub), nullptr);
    list(dialog);
    QVERIFY(dialog.message()->text().contains("people/small: there is none"));
    QVERIFY(!dialog.fetch()->isEnabled());
    hub.planFailure = Status();
    hub.runFailure = Status::error(ErrorKind::DataCorrupt, "model.safetensors: has another hash");
    list(dialog);
    dialog.fetch()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.message()->kind() == MessageLabel::Kind::Error);
    QVERIFY(dialog.message()->text().contains("another hash"));
    QVERIFY(dialog.use()->isHidden() && dialog.fetch()->isEnabled());
}

void TestGetModelDialog::aStopKeepsWhatWasFetched()
{
    FakeHub hub;
    hub.waits = true;
    GetModelDialog dialog(servicesOf(hub), nullptr);
    list(dialog);
    dialog.fetch()->click();
    QTRY_VERIFY(dialog.message()->text().contains("hub.example"));
    QVERIFY(!dialog.name()->isEnabled());
    dialog.fetch()->click();
    QTRY_VERIFY(!dialog.busy());
    QVERIFY(dialog.message()->text().contains("is kept"));
    QVERIFY(dialog.fetch()->isEnabled() && dialog.use()->isHidden());
}

void TestGetModelDialog::closingStopsADownload()
{
    FakeHub hub;
    hub.waits = true;
    QPointer<GetModelDialog> dialog = new GetModelDialog(servicesOf(hub), nullptr);
    list(*dialog);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->show();
    dialog->fetch()->click();
    QTRY_COMPARE(hub.runs.load(), 1);
    dialog->close();
    QTRY_VERIFY(dialog.isNull());
    QTRY_VERIFY(hub.ended.load());
}

MR_TEST_WITH_WINDOWS(TestGetModelDialog)

} // namespace mr::test::tst_get_model_dialog

#include "tst_get_model_dialog.moc"
