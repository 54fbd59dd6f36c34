// ScratchSet: how a run's bytes are divided among its folders, and at which rates they move.

#include "core/choose/scratch_rates.h"
#include "core/choose/scratch_set.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <filesystem>
#include <numeric>

namespace mr::test::tst_scratch_set {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;

ScratchMember member(double readRate, double writeRate, std::uint64_t room = kPlenty)
{
    ScratchMember member;
    member.speed = {2.0 * readRate, 3.0 * writeRate, readRate, writeRate};
    member.roomBytes = room;
    return member;
}

bool isNear(double a, double b)
{
    return std::abs(a - b) <= 1e-9 * std::abs(b);
}

} // namespace

class TestScratchSet : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theFasterFolderHoldsMore()
    {
        const ScratchSet set{{member(2e9, 2e9), member(6e9, 6e9)}};

        const std::vector<double> parts = set.divide(8000);

        QVERIFY(isNear(parts[0], 2000.0));
        QVERIFY(isNear(parts[1], 6000.0));
        Feedback rates;
        set.addRates(8000, rates);
        QVERIFY(isNear(rates.diskReadBytesPerSecond, 8e9)); // both at full speed
        QVERIFY(isNear(rates.diskWriteBytesPerSecond, 8e9));
        QVERIFY(isNear(rates.diskReadAloneBytesPerSecond, 16e9));
        QVERIFY(isNear(rates.diskWriteAloneBytesPerSecond, 24e9));
    }

    void aByteIsReadOnceAndWrittenOnce()
    {
        // 1/3 + 1/6 and 1/2 + 1/2 seconds for a byte each way.
        const ScratchSet set{{member(3.0, 6.0), member(2.0, 2.0)}};

        const std::vector<double> parts = set.divide(300);

        QVERIFY(isNear(parts[0], 200.0));
        QVERIFY(isNear(parts[1], 100.0));
        Feedback rates;
        set.addRates(300, rates);
        QVERIFY(isNear(rates.diskReadBytesPerSecond, 300.0 / (200.0 / 3.0)));
        QVERIFY(isNear(rates.diskWriteBytesPerSecond, 300.0 / (100.0 / 2.0)));
    }

    void whoIsFullLeavesTheRestToTheOthers()
    {
        const ScratchSet set{{member(1.0, 1.0), member(8.0, 8.0, 50), member(3.0, 3.0)}};

        const std::vector<double> parts = set.divide(450);

        QVERIFY(isNear(parts[1], 50.0));
        QVERIFY(isNear(parts[0], 100.0));
        QVERIFY(isNear(parts[2], 300.0));
        Feedback rates;
        set.addRates(450, rates);
        QVERIFY(isNear(rates.diskReadBytesPerSecond, 4.5)); // 300 bytes at 3 a second
    }

    // A folder may become full only in the second round.
    void whatIsLeftMayFillAnother()
    {
        const ScratchSet set{{member(1.0, 1.0), member(1.0, 1.0, 10), member(1.0, 1.0, 60)}};

        const std::vector<double> parts = set.divide(150);

        QVERIFY(isNear(parts[0], 80.0));
        QVERIFY(isNear(parts[1], 10.0));
        QVERIFY(isNear(parts[2], 60.0));
    }

    void moreThanFitsIsDividedBySpeedAlone()
    {
        const ScratchSet set{{member(1.0, 1.0, 10), member(1.0, 1.0, 20)}};

        const std::vector<double> parts = set.divide(100);

        QVERIFY(isNear(parts[0], 50.0));
        QVERIFY(isNear(parts[1], 50.0));
    }

    void oneThatWasNotMeasuredMakesAllAlike()
    {
        const ScratchSet set{{member(1e9, 1e9), member(0.0, 0.0)}};

        const std::vector<double> parts = set.divide(100);

        QVERIFY(isNear(parts[0], 50.0));
        QVERIFY(isNear(parts[1], 50.0));
        Feedback rates;
        rates.diskReadBytesPerSecond = 7.0;
        set.addRates(100, rates);
        ScratchSet{}.addRates(100, rates);                 // no folder
        ScratchSet{{member(1e9, 1e9)}}.addRates(0, rates); // no bytes
        QCOMPARE(rates.diskReadBytesPerSecond, 7.0);
    }

    void foldersOfOneDriveShareIt()
    {
        const QTemporaryDir folder;
        const std::string a = folder.filePath("a").toStdString();
        const std::string b = folder.filePath("b").toStdString();
        fs::create_directory(a);
        fs::create_directory(b);
        RateCache cache;
        cache.putDisk(rateKey(inspectScratchFolder(a).value()), {4e9, 4e9, 2e9, 1e9});
        const std::vector<std::string> one = {a};
        const std::vector<std::string> both = {a, b};

        const ScratchSet alone = inspectScratchSet(one, cache).value();
        const ScratchSet set = inspectScratchSet(both, cache).value();

        QCOMPARE(alone.members[0].speed.mixedReadBytesPerSecond, 2e9);
        QCOMPARE(alone.members[0].speed.mixedWriteBytesPerSecond, 1e9);
        for (const ScratchMember& half : set.members) {
            QCOMPARE(half.speed.mixedReadBytesPerSecond, 1e9);
            QCOMPARE(half.speed.mixedWriteBytesPerSecond, 0.5e9);
        }
        const double room = static_cast<double>(set.roomBytes()); // others may be writing
        QVERIFY(room < 1.2 * static_cast<double>(alone.roomBytes()));
        Feedback rates;
        set.addRates(1, rates);
        QVERIFY(isNear(rates.diskReadBytesPerSecond, 2e9));
    }

    void aFolderCountsOnce()
    {
        const QTemporaryDir folder;
        const std::string a = folder.filePath("a").toStdString();
        fs::create_directory(a);
        fs::create_directory_symlink(a, folder.filePath("link").toStdString());
        const std::vector<std::string> same = {a, folder.filePath("link").toStdString()};
        const std::vector<std::string> none = {a, folder.filePath("none").toStdString()};

        const Status twice = inspectScratchSet(same, {}).status();
        QCOMPARE(twice.kind(), ErrorKind::InvalidArgument);
        QVERIFY(twice.message().find("named twice") != std::string::npos);
        QCOMPARE(inspectScratchSet(none, {}).status().kind(), ErrorKind::Io);
    }
};

MR_TEST_WITH_APP(TestScratchSet)

} // namespace mr::test::tst_scratch_set

#include "tst_scratch_set.moc"
