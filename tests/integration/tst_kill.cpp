// A run that is killed, however often and wherever, ends with the bits of one that was not.

#include "integration/cli_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <random>

namespace mr::test::tst_kill {

namespace {

constexpr int kKills = 10;

} // namespace

class TestKill : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRunKilledTenTimesEndsWithTheHashOfTheUninterruptedOne();
    void aPackedRunThatWasKilledEndsWithTheSameHash();
    void aRunKilledBeforeItsFirstCheckpointStartsAgain_data();
    void aRunKilledBeforeItsFirstCheckpointStartsAgain();
};

// Lets the process go on until it has reported `checkpoints` more, and `moreMs` longer, and
// kills it. False: it had ended by then.
bool killAfter(QProcess& process, int checkpoints, int moreMs)
{
    while (checkpoints > 0) {
        if (!process.canReadLine() && !process.waitForReadyRead(30'000))
            return false;
        while (process.canReadLine())
            checkpoints -= process.readLine().contains("\"event\":\"checkpoint\"") ? 1 : 0;
    }
    if (process.waitForFinished(moreMs))
        return false;
    process.kill(); // SIGKILL
    return process.waitForFinished(30'000) && process.exitStatus() == QProcess::CrashExit;
}

void TestKill::aRunKilledTenTimesEndsWithTheHashOfTheUninterruptedOne()
{
    const CliRig rig;
    const QStringList steps = words("--steps 90 --eval-every 30 --checkpoint-every 2");
    const Finished whole = rig.run(rig.train("whole", steps));
    QVERIFY2(whole.code == 0, whole.errors.constData());
    std::mt19937 random(17);

    int killed = 0;
    for (; killed < kKills; ++killed) {
        QProcess process;
        CliRig::start(process, killed == 0 ? rig.train("killed", steps) : rig.resume("killed"));
        if (!killAfter(
                process, 1 + static_cast<int>(random() % 2), static_cast<int>(random() % 30)))
            break;
    }
    const Finished last = rig.run(rig.resume("killed"));

    QCOMPARE(killed, kKills);
    QVERIFY2(last.code == 0, last.errors.constData());
    QCOMPARE(last.hash(), whole.hash());
    const Finished shown = rig.run(words("runs export 2 --db") + QStringList{rig.database()});
    QCOMPARE(shown.lines().size(), std::size_t{90}); // one curve, no step twice
}

// Rows of 60 tokens that two or three of the pairs share; killed within an epoch.
void TestKill::aPackedRunThatWasKilledEndsWithTheSameHash()
{
    const CliRig rig;
    const QStringList steps = words("--pack --steps 40 --eval-every 0 --checkpoint-every 3");
    const auto train = [&](const char* out) {
        QStringList arguments = rig.train(out, steps);
        arguments[arguments.indexOf(QStringLiteral("--seq-len")) + 1] = QStringLiteral("60");
        return arguments;
    };
    const Finished whole = rig.run(train("whole"));
    QVERIFY2(whole.code == 0, whole.errors.constData());
    const QJsonObject data = whole.events("start")[0][QStringLiteral("data")].toObject();
    QVERIFY(data[QStringLiteral("batch_rows")].toInt() < data[QStringLiteral("sequences")].toInt());
    for (int killed = 0; killed < 3; ++killed) {
        QProcess process;
        CliRig::start(process, killed == 0 ? train("killed") : rig.resume("killed"));
        QVERIFY(killAfter(process, 1 + killed, 2));
    }

    const Finished last = rig.run(rig.resume("killed"));

    QVERIFY2(last.code == 0, last.errors.constData());
    QCOMPARE(last.hash(), whole.hash());
}

void TestKill::aRunKilledBeforeItsFirstCheckpointStartsAgain_data()
{
    QTest::addColumn<bool>("isResumed");
    QTest::newRow("resumed") << true;
    QTest::newRow("trained again in its folder") << false;
}

void TestKill::aRunKilledBeforeItsFirstCheckpointStartsAgain()
{
    QFETCH(bool, isResumed);
    const CliRig rig;
    const QStringList steps = words("--steps 60 --eval-every 0");
    const Finished whole = rig.run(rig.train("whole", steps));
    QVERIFY2(whole.code == 0, whole.errors.constData());
    QProcess process;
    CliRig::start(process, rig.train("killed", steps));
    while (!process.readLine().contains("\"step\":3,"))
        QVERIFY(process.canReadLine() || process.waitForReadyRead(30'000));
    process.kill();
    QVERIFY(process.waitForFinished(30'000));
    QCOMPARE(process.exitStatus(), QProcess::CrashExit);

    const Finished last = rig.run(
        isResumed ? rig.resume("killed") + words("--threads 2") : rig.train("killed", steps));

    QVERIFY2(last.code == 0, last.errors.constData());
    QCOMPARE(last.hash(), whole.hash());
    QVERIFY(contains(
        last.out.toStdString(), isResumed ? "starts again from the beginning" : "takes its place"));
    QCOMPARE(last.events("step").size(), std::size_t{60});
    QCOMPARE(rig.run(rig.train("killed", steps)).code, 2); // now there is work in it
}

MR_TEST_WITH_APP(TestKill)

} // namespace mr::test::tst_kill

#include "tst_kill.moc"
