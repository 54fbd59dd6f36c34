// How the command line reads the columns of data: certain, asked, or said with --map.

#include "integration/cli_rig.h"
#include "support/test_room.h"

namespace mr::test::tst_cli_columns {

namespace {

QString key(const char* text)
{
    return QString::fromLatin1(text);
}

} // namespace

class TestCliColumns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void columnsThatMayMeanTwoThingsAreAsked_data();
    void columnsThatMayMeanTwoThingsAreAsked();
    void inspectTakesWhatTrainTakes();
    void everyCommandSaysHowItReads();

private:
    QStringList command(const QString& name, const QString& data) const;
    CliRig m_rig;
};

QStringList TestCliColumns::command(const QString& name, const QString& data) const
{
    if (name == key("inspect"))
        return {name, data, key("--model"), m_rig.modelPath(), key("--json")};
    QStringList out{name.section(QLatin1Char(' '), 0, 0), key("--model"), m_rig.modelPath(),
        key("--data"), data, key("--json")};
    if (name.startsWith(key("train")))
        out << key("--out") << m_rig.path("asked") << key("--db") << m_rig.database()
            << key("--steps") << key("1");
    if (name != key("eval"))
        out << key("--device") << key("cpu");
    return name.contains(key("--dry-run")) ? out << key("--dry-run") : out;
}

void TestCliColumns::columnsThatMayMeanTwoThingsAreAsked_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"train", "train --dry-run", "plan", "eval", "inspect"})
        QTest::newRow(name) << key(name);
}

void TestCliColumns::columnsThatMayMeanTwoThingsAreAsked()
{
    QFETCH(const QString, name);
    m_rig.folder.write("two.jsonl", "{\"left\": \"How many?\", \"right\": \"Four sacks.\"}\n");

    const Finished asked = m_rig.run(command(name, m_rig.path("two.jsonl")));

    QCOMPARE(asked.code, 2);
    const std::string said = (asked.out + asked.errors).toStdString();
    QVERIFY(contains(said, "--map prompt=left,response=right"));
    QVERIFY(contains(said, "--map prompt=right,response=left"));
    QVERIFY(!std::filesystem::exists(m_rig.folder.path("asked")));
}

void TestCliColumns::inspectTakesWhatTrainTakes()
{
    m_rig.folder.write("two.jsonl", "{\"left\": \"How many?\", \"right\": \"Four sacks.\"}\n");
    const QStringList inspect = command(key("inspect"), m_rig.path("two.jsonl"));

    const Finished mapped = m_rig.run(inspect + words("--map prompt=left,response=right"));
    const Finished shorter =
        m_rig.run(inspect + words("--map prompt=left,response=right --seq-len 17"));
    const Finished refused = m_rig.run(inspect);

    QVERIFY2(mapped.code == 0, mapped.errors.constData());
    const QJsonObject info = mapped.lines().at(0);
    QCOMPARE(info[key("layout")].toString(), key("as --map says"));
    QCOMPARE(info[key("mapping")].toObject()[key("prompt")].toString(), key("left"));
    QVERIFY(info[key("seq_len")].toInt() < 1024); // the small model's longest
    QCOMPARE(shorter.lines().at(0)[key("seq_len")].toInt(), 17);
    QVERIFY(refused.lines().at(0)[key("readings")].toArray().size() >= 2);
}

void TestCliColumns::everyCommandSaysHowItReads()
{
    m_rig.folder.write("alpaca.jsonl",
        "{\"instruction\": \"How many?\", \"output\": \"Four sacks.\", \"id\": 7}\n"
        "{\"instruction\": \"How much?\", \"output\": \"Two sacks.\", \"id\": 8}\n");
    const QString data = m_rig.path("alpaca.jsonl");

    for (const char* name : {"train --dry-run", "plan", "eval"}) {
        const Finished said = m_rig.run(command(key(name), data));
        QVERIFY2(said.code == 0, said.errors.constData());
        const QJsonObject info = said.lines().at(0)[key("data")].toObject();
        QCOMPARE(info[key("layout")].toString(), key("Alpaca"));
        QCOMPARE(info[key("mapping")].toObject()[key("response")].toString(), key("output"));
        QCOMPARE(info[key("unused_columns")].toArray(), QJsonArray{key("id")});
    }
    QStringList plain = command(key("plan"), data);
    plain.removeAll(key("--json"));
    QVERIFY(contains(m_rig.run(plain).out.toStdString(),
        "data: Alpaca: prompt=instruction, response=output; not used: \"id\""));
}

MR_TEST(TestCliColumns)

} // namespace mr::test::tst_cli_columns

#include "tst_cli_columns.moc"
