// The New run page keeps every setting of the run it was filled from, also those that it does not
// show and those that it shows with fewer digits.

#include "language.h"
#include "main_window.h"
#include "models/run_command.h"
#include "pages/history_page.h"
#include "pages/new_run_page.h"
#include "pages/settings_form.h"
#include "support/test_room.h"
#include "theme.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QCheckBox>
#include <QComboBox>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

namespace mr::test::tst_new_run_settings {

using namespace mr::ui;
using namespace mr::ui::test;
using Json = nlohmann::json;

namespace {

// A value of its kind that is not the usual one, and that no editor shows to the last digit.
Json otherThan(const std::string& field, const Json& usual)
{
    const std::map<std::string, Json> words = {{"schedule", "linear"}, {"precision", "fp32"},
        {"recompute", "block"}, {"device", "cuda"}, {"policy", "of-another-program"},
        {"seed", (std::uint64_t{1} << 63) + 12345}, {"policy_options", {{"interval", "4"}}},
        {"keep_inputs", "int8"}, {"optimizer", "adalomo"}, {"train", "blocks"},
        {"weights", "bf16-random"}, {"rank_pattern", {{"down_proj", "8"}}},
        {"alpha_pattern", {{"down_proj", "16"}}}, {"disk_paths", {"/fast/one", "/fast/two/"}}};
    const Json source = {{"path", "/data/../data/a.jsonl"}, {"format", "jsonl"},
        {"columns", {{"prompt", "q"}, {"style", "plain"}}}};
    if (const auto word = words.find(field); word != words.end())
        return word->second;
    if (field == "data" || field == "eval_data")
        return {source, {{"path", "/b"}, {"format", "text"}, {"columns", Json::object()}}};
    if (field == "method")
        return "lora";
    if (usual.is_boolean())
        return !usual.get<bool>();
    if (usual.is_number_float())
        return 0.123456789012345;
    if (usual.is_number_unsigned())
        return 987'654'321'987'654;
    if (usual.is_number_integer())
        return usual.get<std::int64_t>() + 123'456'789'012;
    return "  other/";
}

Json fieldsOf(const RunSpec& spec)
{
    return Json::parse(toJson(spec));
}

} // namespace

class TestNewRunSettings : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
    }

    void everySettingComesBackAsItWasGiven_data()
    {
        QTest::addColumn<QString>("field");
        const Json usual = fieldsOf(RunSpec());
        for (const auto& [field, value] : usual.items())
            QTest::newRow(field.c_str()) << QString::fromStdString(field);
        QTest::newRow("all of them") << QString();
    }

    void everySettingComesBackAsItWasGiven()
    {
        QFETCH(const QString, field);
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        Json given = fieldsOf(RunSpec());
        given["database"] = "/nowhere/history.db";
        for (auto& [name, value] : given.items())
            if (field.isEmpty() || name == field.toStdString())
                value = otherThan(name, value);
        const RunSpec spec = runSpecFromJson(given.dump()).value();

        page.setSpec(spec);

        QCOMPARE(fieldsOf(page.spec()).dump(1), given.dump(1));
        QTRY_VERIFY(page.settled()); // nor does anything change later
        QCOMPARE(fieldsOf(page.spec()).dump(1), given.dump(1));
    }

    void aChangeOnThePageChangesThatSettingAlone()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        Json given = fieldsOf(RunSpec());
        for (auto& [name, value] : given.items())
            value = otherThan(name, value);
        page.setSpec(runSpecFromJson(given.dump()).value());

        page.findChild<QCheckBox*>("keep_best")->toggle();
        page.findChild<PathEdit*>("runFolder")->setPath("/runs/new");

        Json expected = given;
        expected["keep_best"] = false;
        expected["out_dir"] = "/runs/new";
        QCOMPARE(fieldsOf(page.spec()).dump(1), expected.dump(1));
    }

    void checkpointsComeByTimeUnlessThatIsTurnedOff()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        auto* minutes = page.findChild<QSpinBox*>("checkpoint_minutes");
        QVERIFY(minutes);
        QCOMPARE(minutes->value(), 15);

        minutes->setValue(0);

        QCOMPARE(minutes->text(), QString("Not by time"));
        QCOMPARE(page.spec().checkpointMinutes, std::int64_t{0});
        RunSpec spec;
        spec.checkpointMinutes = 1;
        page.setSpec(spec);
        QCOMPARE(minutes->value(), 1);
        QCOMPARE(trainCommand(page.spec()).contains("--checkpoint-minutes 1"), true);
    }

    void optionsOfAPolicyGoWithIt()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec;
        spec.policy = "zero-offload";
        spec.policyOptions = {{"late", "0.5"}};
        page.setSpec(spec);
        auto* policy = page.findChild<QComboBox*>("policy");

        policy->setCurrentIndex(policy->findData("resident"));

        QCOMPARE(page.spec().policy, std::string("resident"));
        QVERIFY(page.spec().policyOptions.empty());
    }

    void anotherDatasetHasNoColumnsOfTheOne()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec;
        spec.data = {{"/a.csv", DataFormat::Csv, {{"prompt", "q"}}}, {"/b.csv", {}, {}}};
        page.setSpec(spec);

        page.findChild<PathEdit*>("dataPath")->setPath("/c.jsonl");

        QCOMPARE(page.spec().data.size(), std::size_t{1});
        QCOMPARE(page.spec().data[0].path, std::string("/c.jsonl"));
        QVERIFY(page.spec().data[0].format == DataFormat::Auto);
        QVERIFY(page.spec().data[0].columns.empty());
    }

    void whatHasNoEditorIsSaid()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        const auto* said = page.findChild<MessageLabel*>("keptSettings");
        QVERIFY(said->text().isEmpty());
        RunSpec spec;
        spec.eps = 1e-6;
        spec.split = "<end>";

        page.setSpec(spec);

        QCOMPARE(said->text(), QString("Also set for this run: --split '<end>' --eps 1e-06"));
        page.setSpec(RunSpec());
        QVERIFY(said->text().isEmpty());
    }

    void theBestIsKeptOnlyWhereThereIsAnEvaluation()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        const auto* box = page.findChild<QCheckBox*>("keep_best");
        RunSpec spec;
        page.setSpec(spec);
        QVERIFY(box->isEnabled());

        spec.evalEvery = 0;
        page.setSpec(spec);
        QVERIFY(!box->isEnabled());

        spec.evalEvery = 10;
        spec.holdOut = 0.0;
        page.setSpec(spec);
        QVERIFY(!box->isEnabled());
        page.findChild<PathEdit*>("evalPath")->setPath("/eval.jsonl");
        QVERIFY(box->isEnabled());
    }

    void theCommandLineLeavesNothingOut()
    {
        RunSpec spec;
        spec.modelDir = "/m";
        spec.data = {{"/d.txt", DataFormat::Text, {{"style", "plain"}}}};
        spec.split = "===";
        spec.holdOut = 0.1;
        spec.beta2 = 0.9899999999999999;
        spec.seed = (std::uint64_t{1} << 63) + 1;
        spec.keepBest = true;
        spec.threadedDevice = true;
        spec.linkBytesPerSecond = 12345678901.5;

        QCOMPARE(trainCommand(spec),
            QString("millrace train --model /m --data /d.txt --format text --pairs plain --split "
                    "=== --hold-out 0.1 --beta2 0.9899999999999999 --seed 9223372036854775809 "
                    "--keep-best --threaded-device --link 12.3456789015GB/s"));
    }

    void aNewRunLikeAnOldOneHasItsSettingsAndAFolderOfItsOwn()
    {
        Theme theme;
        Language language;
        MainWindow window(fakeServices(std::make_shared<FakeRun>()), theme, language);
        RunSpec spec;
        spec.modelDir = kGoodModel;
        spec.data = {{kGoodData, DataFormat::Jsonl, {{"prompt", "q"}}}};
        spec.evalAnswers = 3;
        spec.outDir = "/runs/old";
        spec.saveDir = "/runs/moved";

        window.newRunLike(QString::fromStdString(toJson(spec)));

        QCOMPARE(window.page(), MainWindow::Page::NewRun);
        RunSpec expected = spec;
        expected.outDir = expected.saveDir = {};
        expected.database = "/nowhere/history.db";
        QCOMPARE(toJson(window.newRun()->spec()), toJson(expected));
    }

private:
    QTemporaryDir m_folder;
};

MR_TEST_WITH_WINDOWS(TestNewRunSettings)

} // namespace mr::test::tst_new_run_settings

#include "tst_new_run_settings.moc"
