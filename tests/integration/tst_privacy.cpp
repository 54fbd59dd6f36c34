// Nothing leaves this PC: the programs run where the kernel ends a process that makes a socket
// other than the desktop's own (tests/support/no_network.cpp).

#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <sys/wait.h>

#include <csignal>
#include <string>

namespace mr::test::tst_privacy {

namespace {

struct Watched {
    bool exited = false;
    int code = -1;
    QByteArray errors;
};

Watched end(QProcess& process, int milliseconds)
{
    if (!process.waitForFinished(milliseconds))
        qFatal("%s did not end", qPrintable(process.program()));
    return {process.exitStatus() == QProcess::NormalExit, process.exitCode(),
        process.readAllStandardError()};
}

} // namespace

class TestPrivacy : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void theWatchEndsAProgramThatConnects();
    void commandsMakeNoConnection_data();
    void commandsMakeNoConnection();
    void theWindowMakesNoConnection();
    void theOneCommandThatConnectsIsEnded();

private:
    static Watched watch(const QStringList& command)
    {
        QProcess process;
        process.start(QStringLiteral(MR_NO_NETWORK), command);
        return end(process, 60'000);
    }
    QStringList model() const { return {"--model", m_rig.modelPath(), "--device", "cpu"}; }

    CliRig m_rig;
};

void TestPrivacy::initTestCase()
{
    constexpr int kNoFilter = 125; // of no_network
    if (const Watched none = watch({"/bin/true"}); none.code == kNoFilter)
        QSKIP(("this machine has no seccomp filters: " + none.errors).constData());
}

void TestPrivacy::theWatchEndsAProgramThatConnects()
{
    const Watched quiet = watch({"/bin/bash", "-c", "exit 3"});
    QVERIFY2(quiet.exited && quiet.code == 3, quiet.errors.constData());
    const Watched loud = watch({"/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9; exit 0"});
    QVERIFY(!loud.exited && loud.code == SIGSYS);
}

void TestPrivacy::commandsMakeNoConnection_data()
{
    QTest::addColumn<QStringList>("command");
    const QString out = m_rig.path("exported");
    QTest::newRow("train") << m_rig.train("run", {"--steps", "3", "--device", "cpu"});
    QTest::newRow("eval") << words("eval --json --data") + QStringList{m_rig.path("pairs.jsonl")} +
                                 model();
    QTest::newRow("generate") << words("generate --text --max-tokens 4 --prompt The") + model();
    QTest::newRow("inspect") << QStringList{"inspect", m_rig.modelPath()};
    QTest::newRow("plan") << words("plan --method full --data") +
                                 QStringList{m_rig.path("pairs.jsonl")} + model();
    QTest::newRow("gguf") << QStringList{
        "export", m_rig.modelPath(), "--to", "gguf", "--out", out + ".gguf", "--device", "cpu"};
    QTest::newRow("safetensors") << QStringList{
        "export", m_rig.modelPath(), "--to", "safetensors", "--out", out};
}

void TestPrivacy::commandsMakeNoConnection()
{
    QFETCH(QStringList, command);
    qputenv("XDG_CACHE_HOME", m_rig.path("cache").toUtf8());
    const Watched done = watch(QStringList{QStringLiteral(MR_MILLRACE)} + command);
    QVERIFY2(done.exited && done.code == 0, done.errors.constData());
}

// The demonstration trains in it.
void TestPrivacy::theWindowMakesNoConnection()
{
    if (QByteArray(MR_DESKTOP).isEmpty())
        QSKIP("the workstation is not built");
    qputenv("XDG_DATA_HOME", m_rig.path("data").toUtf8());
    qputenv("XDG_CONFIG_HOME", m_rig.path("config").toUtf8());
    QProcess process;
    process.start(QStringLiteral(MR_NO_NETWORK),
        {QStringLiteral(MR_DESKTOP), "--new-window", "--demo", "--db", m_rig.path("window.db")});
    QVERIFY(!process.waitForFinished(6'000)); // it is open, and trains
    process.terminate();
    const Watched done = end(process, 60'000);
    QVERIFY2(done.exited && done.code == 0, done.errors.constData());
}

// Port 9 of this machine, where nobody listens, would refuse the connection.
void TestPrivacy::theOneCommandThatConnectsIsEnded()
{
    qputenv("HF_ENDPOINT", "http://127.0.0.1:9");
    qputenv("HF_HOME", m_rig.path("hub").toUtf8());
    const Watched done = watch({QStringLiteral(MR_MILLRACE), "get", "people/tiny-model", "--yes"});
    QVERIFY2(!done.exited && done.code == SIGSYS, done.errors.constData());
}

MR_TEST(TestPrivacy)

} // namespace mr::test::tst_privacy

#include "tst_privacy.moc"
