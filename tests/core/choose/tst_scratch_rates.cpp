// Rates of scratch folders: measured once, kept by drive and mount, found again by the planner.

#include "core/choose/scratch_rates.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mr::test::tst_scratch_rates {

namespace {

constexpr ScratchSpeed kSpeed{4e9, 3e9, 2e9, 1e9};

ScratchMeasuring quick()
{
    ScratchMeasuring how;
    how.seconds = 0.15;
    how.bytes = std::uint64_t{48} << 20;
    return how;
}

} // namespace

class TestScratchRates : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_data = std::make_unique<QTemporaryDir>();
        qputenv("XDG_DATA_HOME", m_data->path().toLocal8Bit());
    }

    void aBookKeepsDisksBesideMachines()
    {
        RateCache cache;
        Feedback machine;
        machine.deviceFlopsPerSecond = 5.0;
        cache.put("same key", machine);
        cache.putDisk("same key", kSpeed);
        QVERIFY(cache.save(RateCache::defaultPath()).ok());

        const RateCache again = RateCache::load(RateCache::defaultPath());

        const ScratchSpeed* speed = again.findDisk("same key");
        QVERIFY(speed != nullptr);
        QCOMPARE(speed->readBytesPerSecond, 4e9);
        QCOMPARE(speed->writeBytesPerSecond, 3e9);
        QCOMPARE(speed->mixedReadBytesPerSecond, 2e9);
        QCOMPARE(speed->mixedWriteBytesPerSecond, 1e9);
        QCOMPARE(again.find("same key")->deviceFlopsPerSecond, 5.0);
        QVERIFY(again.findDisk("another") == nullptr);
    }

    void aMeasurementIsKeptAndFoundAgain()
    {
        QCOMPARE(inspectScratch(scratch()).value().speed.readBytesPerSecond, 0.0);
        std::vector<double> shares;
        ScratchMeasuring how = quick();
        how.progress = [&](double share) { shares.push_back(share); };

        auto measured = measureScratch(scratch(), how);

        QVERIFY2(measured.ok(), measured.status().message().c_str());
        const ScratchSpeed speed = measured.value();
        for (const double rate : {speed.readBytesPerSecond, speed.writeBytesPerSecond,
                 speed.mixedReadBytesPerSecond, speed.mixedWriteBytesPerSecond})
            QVERIFY(rate > 0.0);
        auto info = inspectScratch(scratch());
        QCOMPARE(info.value().speed.mixedReadBytesPerSecond, speed.mixedReadBytesPerSecond);
        QVERIFY(info.value().usable && info.value().freeBytes > 0);
        QVERIFY(std::filesystem::is_empty(scratch()));
        QVERIFY(std::ranges::is_sorted(shares));
        QVERIFY(shares.front() < 0.1 && shares.back() > 0.9 && shares.back() <= 1.0);
    }

    // While it fills, while it warms up, while it measures.
    void itStopsWhereverItIsAndLeavesNothing_data()
    {
        QTest::addColumn<double>("at");
        QTest::addColumn<double>("most");
        QTest::newRow("filling") << 0.1 << 0.15;
        QTest::newRow("warming up") << 0.4 << 0.45;
        QTest::newRow("measuring") << 0.7 << 0.87; // the end of its second of three
    }
    void itStopsWhereverItIsAndLeavesNothing()
    {
        QFETCH(double, at);
        QFETCH(double, most);
        double reached = 0.0;
        ScratchMeasuring how = quick();
        how.progress = [&](double share) { reached = share; };
        how.cancelled = [&] { return reached >= at; };

        const auto measured = measureScratch(scratch(), how);

        QVERIFY(!measured.ok());
        QCOMPARE(measured.status().kind(), ErrorKind::Cancelled);
        QVERIFY2(reached < most, std::to_string(reached).c_str());
        QVERIFY(std::filesystem::is_empty(scratch()));
        QCOMPARE(inspectScratch(scratch()).value().speed.readBytesPerSecond, 0.0);
    }

    void aFolderThatIsNotThereIsSaid()
    {
        QCOMPARE(inspectScratch(scratch() + "/x").status().kind(), ErrorKind::Io);
        QCOMPARE(measureScratch(scratch() + "/x").status().kind(), ErrorKind::Io);
    }

private:
    std::string scratch() const { return m_scratch.path().toStdString(); }

    std::unique_ptr<QTemporaryDir> m_data;
    QTemporaryDir m_scratch;
};

MR_TEST(TestScratchRates)

} // namespace mr::test::tst_scratch_rates

#include "tst_scratch_rates.moc"
