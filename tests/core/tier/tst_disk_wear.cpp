// Bytes that a run writes, in words: steps and time to the rating, the run's share, and the
// refusal.

#include "core/tier/disk_wear.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_disk_wear {

namespace {

constexpr std::uint64_t kGB = 1'000'000'000;
constexpr std::uint64_t kTB = 1000 * kGB;

DiskHealth drive(std::uint64_t bytes)
{
    DiskHealth health;
    health.drive = "nvme0n1";
    health.driveBytes = bytes;
    return health;
}

bool has(const std::string& text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

#define VERIFY_HAS(text, part) QVERIFY2(has(text, part), (text).c_str())

} // namespace

class TestDiskWear : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    // The reference's 70B: 958 GB a step, 1,250 steps to the 1200 TB of a 2 TB drive.
    void theRatingIsAssumedFromTheSizeAndSaysSo()
    {
        const std::string line = wearLine({958 * kGB, 500, 336.0, 0}, drive(2 * kTB));

        VERIFY_HAS(line, "The run writes 479 TB to nvme0n1, 958 GB a step.");
        VERIFY_HAS(line, "For a drive of 2.00 TB a rating of 1.20 PB written is assumed");
        VERIFY_HAS(line, "1,252 steps or 4.9 days, of which the run takes 40 %.");
        VERIFY_HAS(line, "bytes given to the drive; inside it may write more");
    }

    void aGivenRatingIsNoAssumption()
    {
        const std::string line = wearLine({kGB, 100, 0.0, 300 * kTB}, drive(2 * kTB));

        VERIFY_HAS(line, "The drive is rated for 300 TB written: 300,000 steps, of which the run "
                         "takes 0.03 %.");
        QVERIFY(!has(line, "assumed"));
        QVERIFY(!has(line, "days")); // no forecast
    }

    void whatIsNotKnownIsLeftOut()
    {
        const std::string line = wearLine({kGB, 0, 1.0, 0}, {});

        VERIFY_HAS(line, "Every step writes 1.00 GB to the scratch drive.");
        VERIFY_HAS(line, "The size of the drive is not known");
        QVERIFY(!has(line, "run"));
    }

    void theDrivesOwnCountersAreSaid()
    {
        DiskHealth health = drive(kTB);
        health.counters = SmartCounters{0, 35 * kTB, 0, 7, 40.0};

        VERIFY_HAS(wearLine({kGB, 1, 1.0, 0}, health),
            "So far it was given 35.0 TB, and says that 7 % of its life is used.");
    }

    void aStepThatWritesNothingHasNoLine()
    {
        QCOMPARE(wearLine({0, 10, 1.0, 0}, drive(kTB)), std::string());
    }

    void sharesAndTimesKeepTheirScale_data()
    {
        QTest::addColumn<quint64>("step");
        QTest::addColumn<double>("seconds");
        QTest::addColumn<QString>("words");
        // For a rating of 600 TB and a run of 1,000 steps.
        QTest::newRow("tiny") << quint64(1000) << 1e-3 << "takes less than 0.01 %";
        QTest::newRow("years") << quint64(600'000) << 1.0
                               << "1,000,000,000 steps or 31.7 years, of which the run takes less";
        QTest::newRow("days") << quint64(600'000'000) << 1.0
                              << "1,000,000 steps or 11.6 days, of which the run takes 0.1 %";
        QTest::newRow("a percent") << quint64(6 * kGB) << 1.0
                                   << "100,000 steps or 27.8 hours, of which the run takes 1.0 %";
        QTest::newRow("nearly all") << quint64(599 * kGB) << 1.0
                                    << "1,001 steps or 0.3 hours, of which the run takes 100 %";
        QTest::newRow("many drives") << quint64(60 * kTB) << 1.0 << "takes 10,000 %";
    }
    void sharesAndTimesKeepTheirScale()
    {
        QFETCH(quint64, step);
        QFETCH(double, seconds);
        QFETCH(QString, words);

        VERIFY_HAS(wearLine({step, 1000, seconds, 0}, drive(kTB)), words.toStdString());
    }

    void aRunBeyondItsLimitIsRefusedWithBothNumbers()
    {
        QVERIFY(checkDiskWrites(100, 0).ok()); // no limit
        QVERIFY(checkDiskWrites(100, 100).ok());

        const Status refused = checkDiskWrites(3 * kTB + 1, 3 * kTB);

        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        for (const char* part : {"3000000000001", "3000000000000", "max-disk-writes", "3.00 TB"})
            VERIFY_HAS(refused.message(), part);
    }
};

MR_TEST(TestDiskWear)

} // namespace mr::test::tst_disk_wear

#include "tst_disk_wear.moc"
