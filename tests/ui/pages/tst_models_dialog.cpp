// Models on this PC: only what can be trained can be chosen, and the others say why.

#include "models/local_model_table.h"
#include "pages/export_dialog.h"
#include "pages/models_dialog.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/message_label.h"

#include <QComboBox>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

namespace mr::test::tst_models_dialog {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

LocalModel made(const char* name, ModelUse use, std::uint64_t bytes, const char* reason)
{
    LocalModel model;
    model.name = name;
    model.path = std::string("/models/") + name;
    model.use = use;
    model.bytes = bytes;
    model.reason = reason;
    return model;
}

LocalModels someModels()
{
    LocalModels found;
    found.models = {made("parted", ModelUse::Nothing, 9, "It is split into 3 files."),
        made("whole", ModelUse::Train, 100, "All of it can be trained."),
        made("broken", ModelUse::Nothing, 20, "incomplete: shard 2 of 2 is missing")};
    found.models.push_back(made("beside", ModelUse::Nothing, 5, "An adapter of whole."));
    found.models.back().isAdapter = true;
    found.places = {{ModelStore::Folder, "/gone", false, {}}};
    return found;
}

} // namespace

class TestModelsDialog : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { keepSettingsIn(m_settings.path()); }
    void onlyWhatCanBeTrainedIsChosen();
    void theEmptyStateNamesThePlaces();
    void foldersAreKeptAndLookedIn();

private:
    static void select(ModelsDialog& dialog, const QString& name)
    {
        dialog.filter()->setText(name);
        dialog.table()->selectRow(0);
    }

    QTemporaryDir m_settings;
};

void TestModelsDialog::onlyWhatCanBeTrainedIsChosen()
{
    UiServices services = fakeServices(std::make_shared<FakeRun>());
    services.findModels = [](const std::vector<std::string>&) { return someModels(); };
    ModelsDialog dialog(services, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    QSignalSpy chosen(&dialog, &ModelsDialog::chosen);
    QVERIFY(!dialog.use()->isEnabled());
    QTRY_VERIFY(!dialog.busy());
    QTRY_COMPARE(dialog.table()->model()->rowCount(), 4);
    QVERIFY(dialog.use()->isEnabled()); // what can be trained comes first
    QVERIFY(dialog.faults()->text().contains("/gone"));
    for (const char* name : {"parted", "broken"}) {
        select(dialog, name);
        QVERIFY(!dialog.use()->isEnabled() && !dialog.exporter()->isEnabled());
        QVERIFY(dialog.reason()->text().contains(
            QString(name) == "parted" ? "split into 3 files" : "shard 2 of 2"));
        emit dialog.table()->doubleClicked(dialog.table()->model()->index(0, 0));
        QCOMPARE(chosen.count(), 0);
    }
    select(dialog, "beside");
    QVERIFY(!dialog.use()->isEnabled());
    dialog.exporter()->click();
    QPointer<ExportDialog> adapter = dialog.findChild<ExportDialog*>();
    QVERIFY(adapter && adapter->form()->count() == 5); // two of them of an adapter alone
    delete adapter;
    select(dialog, "whole");
    dialog.exporter()->click();
    auto* exported = dialog.findChild<ExportDialog*>();
    QVERIFY(exported && exported->windowTitle().contains("whole"));
    exported->close();
    dialog.use()->click();
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen[0][0].toString(), QString("/models/whole"));
}

void TestModelsDialog::theEmptyStateNamesThePlaces()
{
    UiServices services = fakeServices(std::make_shared<FakeRun>());
    services.findModels = [](const std::vector<std::string>&) {
        LocalModels none;
        none.places = {{ModelStore::Ollama, "/home/ada/.ollama/models", false, {}},
            {ModelStore::HuggingFace, "/cache/hub", true, "cannot be read"}};
        return none;
    };
    ModelsDialog dialog(services, nullptr);
    dialog.setAttribute(Qt::WA_DeleteOnClose, false);
    QTRY_VERIFY(dialog.emptyText().contains("/home/ada/.ollama/models (is not there)"));
    QVERIFY(dialog.faults()->text().contains("/cache/hub: cannot be read"));
    QVERIFY(!dialog.use()->isEnabled());
}

void TestModelsDialog::foldersAreKeptAndLookedIn()
{
    auto seen = std::make_shared<std::vector<std::string>>();
    UiServices services = fakeServices(std::make_shared<FakeRun>());
    services.findModels = [seen](const std::vector<std::string>& folders) {
        *seen = folders;
        return LocalModels();
    };
    const std::vector<std::string> one{"/mine"};
    {
        ModelsDialog dialog(services, nullptr);
        dialog.setAttribute(Qt::WA_DeleteOnClose, false);
        dialog.addFolder("/mine");
        QTRY_VERIFY(!dialog.busy());
        QCOMPARE(*seen, one);
    }
    ModelsDialog again(services, nullptr);
    again.setAttribute(Qt::WA_DeleteOnClose, false);
    QTRY_VERIFY(!again.busy());
    QCOMPARE(*seen, one);
    again.forgetFolder("/mine");
    QTRY_VERIFY(!again.busy());
    QVERIFY(seen->empty());
}

MR_TEST_WITH_WINDOWS(TestModelsDialog)

} // namespace mr::test::tst_models_dialog

#include "tst_models_dialog.moc"
