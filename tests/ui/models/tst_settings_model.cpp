// Settings of two runs: only the different ones, and an unset one is not false, 0 or empty.

#include "models/settings_model.h"
#include "support/test_room.h"

#include <QAbstractItemModelTester>
#include <QTest>

namespace mr::test::tst_settings_model {

using namespace mr::ui;

namespace {

RunRow runOf(const char* config)
{
    RunRow run;
    run.configJson = config;
    return run;
}

QStringList differing(const std::vector<SettingRow>& rows)
{
    QStringList keys;
    for (const SettingRow& row : rows) {
        if (row.differs)
            keys << row.key;
    }
    return keys;
}

} // namespace

class TestSettingsModel : public QObject
{
    Q_OBJECT

private slots:

    void onlyWhatDiffersIsShownUntilAllIsAskedFor()
    {
        SettingsModel model;
        QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        const auto rows = settingRows(runOf(R"({"lr":0.1,"seed":1,"lora":{"rank":8,"alpha":16}})"),
            runOf(R"({"lr":0.1,"seed":2,"lora":{"rank":4,"alpha":16}})"));

        model.setSettings(rows, {"a", "b"});

        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.differing(), 2);
        QCOMPARE(model.index(0, SettingsModel::What).data().toString(), QString("lora.rank"));
        QCOMPARE(model.index(0, SettingsModel::Second).data().toString(), QString("4"));
        QCOMPARE(model.headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), QString("a"));
        model.setAllShown(true);
        QCOMPARE(model.rowCount(), 4);
        model.setAllShown(false);
        QCOMPARE(model.rowCount(), 2);
    }

    void notSetIsNeitherFalseNorZeroNorEmpty()
    {
        SettingsModel model;

        model.setSettings(
            settingRows(runOf(R"({"a":false,"b":0,"c":"","d":null})"), runOf("{}")), {"1", "2"});

        QCOMPARE(model.rowCount(), 4);
        const QStringList words = {"false", "0", "\"\"", "null"};
        for (int row = 0; row < 4; ++row) {
            QCOMPARE(model.index(row, SettingsModel::First).data().toString(), words[row]);
            QCOMPARE(model.index(row, SettingsModel::Second).data().toString(), QString("not set"));
        }
    }

    void kindsOfNothingDiffer()
    {
        QCOMPARE(differing(settingRows(
                     runOf(R"({"a":false,"b":0,"c":"1"})"), runOf(R"({"a":0,"b":"","c":1})"))),
            (QStringList{"a", "b", "c"}));
    }

    void namesAndPlacesAreNoDifference()
    {
        const auto rows = settingRows(runOf(R"({"name":"a","out_dir":"/1","policy":"x"})"),
            runOf(R"({"name":"b","out_dir":"/2","policy":"y"})"));

        QCOMPARE(differing(rows), QStringList{"policy"});
        QCOMPARE(rows.size(), std::size_t{3});
    }

    void aConfigurationThatCannotBeReadHasNoSettings()
    {
        QVERIFY(settingRows(runOf("{"), runOf("[]")).empty());
    }

    void theTableIsSavedWhole()
    {
        SettingsModel model;
        model.setSettings(
            settingRows(runOf(R"({"a":"x \"y\"","b":1})"), runOf(R"({"b":1})")), {"1", "2"});

        QCOMPARE(model.csv(), QByteArray("setting,first,second\n\"a\",\"x \"\"y\"\"\",\"\"\n"
                                         "\"b\",\"1\",\"1\"\n"));
    }
};

MR_TEST_WITH_WINDOWS(TestSettingsModel)

} // namespace mr::test::tst_settings_model

#include "tst_settings_model.moc"
