// The programs with data as strangers have it: rows that cannot be read, pipes in place of files,
// texts larger than the memory that is left.

#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace mr::test::tst_cli_data {

namespace {

QString key(const char* name)
{
    return QString::fromLatin1(name);
}

} // namespace

class TestCliData : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_rig = std::make_unique<CliRig>(); }
    void rowsThatCannotBeReadAreListedBesideTheRun();
    void rowsThatCannotBeReadAreCountedInTheRefusal();
    void everyCommandLeavesThemOut_data();
    void everyCommandLeavesThemOut();
    void checksAreListedWithTheirRows();
    void checksOfRefusedDataSayWhy();
    void excludedRowsAreNotTrained();
    void aPipeIsNoInput_data();
    void aPipeIsNoInput();
    void aPipeInARunFolderIsRefused_data();
    void aPipeInARunFolderIsRefused();
    void littleMemoryEndsWithASentence_data();
    void littleMemoryEndsWithASentence();

private:
    QString badRows() const
    {
        m_rig->folder.write("bad.jsonl",
            smallPairs(30) + "{\"prompt\":\n" + smallPairs(30, 7) + "{\"prompt\": \"alone\"}\n");
        return m_rig->path("bad.jsonl");
    }

    std::unique_ptr<CliRig> m_rig;
};

void TestCliData::rowsThatCannotBeReadAreListedBesideTheRun()
{
    QStringList arguments = m_rig->train("skips", words("--steps 2 --eval-every 0"));
    arguments[arguments.indexOf(m_rig->path("pairs.jsonl"))] = badRows();
    arguments << key("--skip-bad-rows");

    const Finished run = m_rig->run(arguments);

    QVERIFY2(run.code == 0, run.errors.constData());
    const QJsonObject data = run.events("start")[0][key("data")].toObject();
    QCOMPARE(data[key("rows")].toInt(), 60);
    QCOMPARE(data[key("rows_skipped")].toObject()[key("json")].toInt(), 1);
    QCOMPARE(data[key("rows_skipped")].toObject()[key("columns")].toInt(), 1);
    const std::string log = readFile(m_rig->folder.path("skips") + "/skipped.jsonl");
    QCOMPARE(std::count(log.begin(), log.end(), '\n'), 2);
    QVERIFY(contains(log, "\"line\":31"));
    QVERIFY(contains(readFile(m_rig->folder.path("skips") + "/run.json"), "skip_bad_rows"));

    std::filesystem::remove(m_rig->folder.path("skips") + "/skipped.jsonl");
    const Finished again = m_rig->run(m_rig->resume("skips"));
    QCOMPARE(again.code, 2); // it is done, and its data was read as before
    QVERIFY2(again.says("has done all of its 2 steps"), again.errors.constData());
}

void TestCliData::rowsThatCannotBeReadAreCountedInTheRefusal()
{
    QStringList arguments = m_rig->train("refused", words("--steps 2"));
    arguments[arguments.indexOf(m_rig->path("pairs.jsonl"))] = badRows();

    const Finished run = m_rig->run(arguments);

    QCOMPARE(run.code, 2);
    QVERIFY2(run.says("bad.jsonl, line 31: not valid JSON"), run.errors.constData());
    QVERIFY2(run.says("2 rows of this file cannot be read (columns 1, json 1)"), run.errors);
    QVERIFY2(run.says("--skip-bad-rows"), run.errors.constData());
}

void TestCliData::everyCommandLeavesThemOut_data()
{
    QTest::addColumn<QStringList>("arguments");
    const QStringList data{key("--data"), badRows(), key("--skip-bad-rows"), key("--json")};
    const QStringList model{key("--model"), m_rig->modelPath()};
    QTest::newRow("eval") << (words("eval --seq-len 40 --threads 1") + model + data);
    QTest::newRow("plan") << (words("plan --seq-len 40 --threads 1") + model + data);
    QTest::newRow("inspect") << (QStringList{key("inspect"), badRows(), key("--skip-bad-rows"),
                                     key("--json")} +
                                 model);
}

void TestCliData::everyCommandLeavesThemOut()
{
    QFETCH(QStringList, arguments);

    const Finished run = m_rig->run(arguments);

    QVERIFY2(run.code == 0, run.errors.constData());
    QVERIFY2(run.out.contains("\"rows_skipped\":{\"columns\":1,\"json\":1}"), run.out.constData());
}

void TestCliData::checksAreListedWithTheirRows()
{
    m_rig->folder.write("again.jsonl", smallPairs(30) + smallPairs(2));
    m_rig->folder.write("held.jsonl", smallPairs(1));

    const Finished run = m_rig->run(
        QStringList{key("inspect"), m_rig->path("again.jsonl"), key("--model"), m_rig->modelPath(),
            key("--checks"), key("--eval-data"), m_rig->path("held.jsonl"), key("--json")});

    QVERIFY2(run.code == 0, run.errors.constData());
    const QJsonObject checks = QJsonDocument::fromJson(run.out).object()[key("checks")].toObject();
    QCOMPARE(checks[key("rows")].toInt(), 32);
    QVERIFY(checks[key("seq_len")].toInt() > 0);
    QHash<QString, QJsonObject> found;
    for (const QJsonValue& finding : checks[key("findings")].toArray())
        found[finding[key("check")].toString()] = finding.toObject();
    QCOMPARE(found[key("duplicate")][key("rows")].toInt(), 2);
    QCOMPARE(found[key("duplicate")][key("first")][0][key("row")].toInt(), 31);
    QCOMPARE(found[key("duplicate")][key("first")][0][key("other")].toInt(), 1);
    QCOMPARE(found[key("in-evaluation")][key("rows")].toInt(), 2); // row 1 and its copy
    const QJsonArray lengths = checks[key("by_seq_len")].toArray();
    QCOMPARE(lengths.last()[key("cut_rows")].toInt(), 0);
}

void TestCliData::checksOfRefusedDataSayWhy()
{
    m_rig->folder.write("unclear.jsonl", "{\"x\":\"some words\",\"y\":\"other words\"}\n");

    const Finished run = m_rig->run(
        QStringList{key("inspect"), m_rig->path("unclear.jsonl"), key("--checks"), key("--json")});

    QCOMPARE(run.code, 2);
    const QJsonObject checks = QJsonDocument::fromJson(run.out).object()[key("checks")].toObject();
    QVERIFY(checks[key("problems")][0].toString().contains(key("--map")));
}

// Training without rows equals training on a file without them.
void TestCliData::excludedRowsAreNotTrained()
{
    m_rig->folder.write("all.jsonl", smallPairs(3, 5) + smallPairs(20) + smallPairs(2, 9));
    m_rig->folder.write("rest.jsonl", smallPairs(20));
    m_rig->folder.write("rows.txt", "1-3,\n24-25\n");
    const auto train = [this](const char* run, const char* file, const QStringList& more) {
        QStringList arguments = m_rig->train(run, words("--steps 2 --eval-every 0"));
        arguments[arguments.indexOf(m_rig->path("pairs.jsonl"))] = m_rig->path(file);
        return m_rig->run(arguments + more);
    };

    const Finished rest = train("rest", "rest.jsonl", {});
    const Finished listed = train("listed", "all.jsonl", words("--exclude-rows 24-25,1,2,3"));
    const Finished filed =
        train("filed", "all.jsonl", {key("--exclude-rows"), m_rig->path("rows.txt")});

    QVERIFY2(listed.code == 0, listed.errors.constData());
    QVERIFY2(filed.code == 0, filed.errors.constData());
    const QJsonObject data = listed.events("start")[0][key("data")].toObject();
    QCOMPARE(data[key("rows")].toInt(), 20);
    QCOMPARE(data[key("rows_excluded")].toInt(), 5);
    const QString hash = rest.events("end")[0][key("weights_hash")].toString();
    QVERIFY(!hash.isEmpty());
    QCOMPARE(listed.events("end")[0][key("weights_hash")].toString(), hash);
    QCOMPARE(filed.events("end")[0][key("weights_hash")].toString(), hash);
    QVERIFY(contains(readFile(m_rig->folder.path("filed") + "/run.json"), "1-3,24-25"));

    const Finished wrong = train("wrong", "all.jsonl", words("--exclude-rows 3,x"));
    QCOMPARE(wrong.code, 2);
    QVERIFY2(wrong.says("--exclude-rows: 'x' is no row"), wrong.errors.constData());
}

void TestCliData::aPipeIsNoInput_data()
{
    QTest::addColumn<QStringList>("arguments");
    const std::string pipe = m_rig->folder.path("pipe");
    QVERIFY(::mkfifo(pipe.c_str(), 0600) == 0);
    const QString path = QString::fromStdString(pipe);
    QTest::newRow("inspect") << QStringList{key("inspect"), path};
    QTest::newRow("eval") << QStringList{
        key("eval"), key("--model"), m_rig->modelPath(), key("--data"), path};
    QTest::newRow("tokenize") << QStringList{
        key("tokenize"), key("--model"), m_rig->modelPath(), key("--text-file"), path};
}

void TestCliData::aPipeIsNoInput()
{
    QFETCH(QStringList, arguments);

    const Finished run = m_rig->shell("exec timeout 30 \"$0\" \"$@\"", arguments);

    QVERIFY2(run.code == 2 || run.code == 4, run.errors.constData());
    QVERIFY2(run.says("a device or a pipe"), run.errors.constData());
}

void TestCliData::aPipeInARunFolderIsRefused_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"events.jsonl", "steps.jsonl", "samples.jsonl", "run.json"})
        QTest::newRow(name) << name;
}

void TestCliData::aPipeInARunFolderIsRefused()
{
    QFETCH(QString, name);
    const std::string folder = "piped-" + name.toStdString();
    const Finished made = m_rig->run(
        m_rig->train(folder.c_str(), words("--steps 4 --checkpoint-every 2 --eval-every 0")));
    QVERIFY2(made.code == 0, made.errors.constData());
    const std::filesystem::path run = m_rig->folder.path(folder);
    std::filesystem::remove_all(run / "model"); // so that there is something left to do
    std::filesystem::remove(run / name.toStdString());
    QVERIFY(::mkfifo((run / name.toStdString()).c_str(), 0600) == 0);

    const Finished resumed =
        m_rig->shell("exec timeout 30 \"$0\" \"$@\"", m_rig->resume(folder.c_str()));

    QVERIFY2(resumed.code == 2 || resumed.code == 4, resumed.errors.constData());
    QVERIFY2(resumed.says("pipe"), resumed.errors.constData());
}

void TestCliData::littleMemoryEndsWithASentence_data()
{
    QTest::addColumn<QStringList>("arguments");
    std::string text;
    while (text.size() < (std::size_t{4} << 20))
        text += "the miller counts the sacks of flour and the wheel turns\n";
    m_rig->folder.write("long.txt", text);
    const QString path = m_rig->path("long.txt");
    const QStringList model{key("--model"), m_rig->modelPath()};
    QTest::newRow("inspect") << (QStringList{key("inspect"), path} + model);
    QTest::newRow("tokenize") << (QStringList{key("tokenize"), key("--text-file"), path} + model);
    QTest::newRow("eval") << (words("eval --seq-len 40 --threads 1 --blocks 1 --data") +
                              QStringList{path} + model);
    QTest::newRow("plan") << (words("plan --seq-len 40 --data") + QStringList{path} + model);
    QTest::newRow("train") << (words("train --steps 1 --seq-len 40 --threads 2 --data") +
                               QStringList{path} + model +
                               QStringList{key("--out"), m_rig->path("little"), key("--db"),
                                   m_rig->path("little.db")});
}

// Below some hundred megabytes not even the libraries can be loaded, which the system's loader
// says. At 208000 oneDNN's code generator got no pages and crashed.
void TestCliData::littleMemoryEndsWithASentence()
{
    QFETCH(QStringList, arguments);
    for (const char* script :
        {"ulimit -v 130000; exec \"$0\" \"$@\"", "ulimit -v 208000; exec \"$0\" \"$@\"",
            "ulimit -v 300000; exec \"$0\" \"$@\"", "ulimit -v 600000; exec \"$0\" \"$@\""}) {
        const Finished run = m_rig->shell(script, arguments);
        QVERIFY2(run.code >= 0 && run.code < 128, qPrintable(script + QString(run.errors)));
        QVERIFY2(run.code == 0 || !run.errors.isEmpty(), script);
        std::filesystem::remove_all(m_rig->folder.path("little"));
    }
}

MR_TEST(TestCliData)

} // namespace mr::test::tst_cli_data

#include "tst_cli_data.moc"
