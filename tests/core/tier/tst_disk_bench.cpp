// The disk benchmark: rates of both are there, the file is gone afterwards, and nonsense is
// refused.

#include "core/tier/disk_bench.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QtTest>

#include <filesystem>

namespace mr::test::tst_disk_bench {

namespace {

DiskBenchSpec smallSpec(const QTemporaryDir& folder, DiskEngine engine)
{
    DiskBenchSpec spec;
    spec.folder = folder.path().toStdString();
    spec.bytes = std::uint64_t{48} << 20;
    spec.seconds = 0.3;
    spec.rounds = 1;
    spec.engine = engine;
    return spec;
}

} // namespace

class TestDiskBench : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyRowHasOursAndTheLimit_data()
    {
        QTest::addColumn<bool>("threads");
        QTest::newRow("auto") << false;
        QTest::newRow("threads") << true;
    }
    void everyRowHasOursAndTheLimit()
    {
        QFETCH(bool, threads);
        const QTemporaryDir folder;

        auto made = benchDisk(smallSpec(folder, threads ? DiskEngine::Threads : DiskEngine::Auto));

        QVERIFY2(made.ok(), made.status().message().c_str());
        const DiskBenchResult& result = made.value();
        QCOMPARE(result.rows.size(), std::size_t{3});
        for (const DiskBenchRow& row : result.rows)
            QVERIFY2(row.ours > 0.0 && row.limit > 0.0, row.name.c_str());
        QCOMPARE(result.rates.readBytesPerSecond, result.rows[0].ours);
        QCOMPARE(result.rates.writeBytesPerSecond, result.rows[1].ours);
        QCOMPARE(result.rates.mixedBytesPerSecond, result.rows[2].ours);
        if (threads)
            QCOMPARE(result.rates.engine, std::string("8 threads"));
        QVERIFY(std::filesystem::is_empty(folder.path().toStdString()));
    }

    void withoutTheLimitTheStoreHasAllTheTime()
    {
        const QTemporaryDir folder;
        DiskBenchSpec spec = smallSpec(folder, DiskEngine::Auto);
        spec.limit = false;

        auto made = benchDisk(spec);

        QVERIFY2(made.ok(), made.status().message().c_str());
        for (const DiskBenchRow& row : made.value().rows)
            QVERIFY2(row.ours > 0.0 && row.limit == 0.0, row.name.c_str());
    }

    void tuningChoosesASetting()
    {
        const QTemporaryDir folder;
        DiskBenchSpec spec = smallSpec(folder, DiskEngine::Auto);
        spec.tune = true;
        spec.depth = 3; // not among those that are tried

        auto made = benchDisk(spec);

        QVERIFY2(made.ok(), made.status().message().c_str());
        QVERIFY(made.value().depth >= 8 && made.value().depth <= 64);
    }

    void nonsenseIsRefused()
    {
        const QTemporaryDir folder;
        const auto kindOf = [](const DiskBenchSpec& spec) {
            return benchDisk(spec).status().kind();
        };
        DiskBenchSpec spec = smallSpec(folder, DiskEngine::Auto);

        spec.depth = 0;
        QCOMPARE(kindOf(spec), ErrorKind::InvalidArgument);
        spec = smallSpec(folder, DiskEngine::Auto);
        spec.requestBytes = 5000;
        QCOMPARE(kindOf(spec), ErrorKind::InvalidArgument);
        spec = smallSpec(folder, DiskEngine::Auto);
        spec.bytes = 1 << 20;
        QCOMPARE(kindOf(spec), ErrorKind::InvalidArgument);
        spec = smallSpec(folder, DiskEngine::Auto);
        spec.bytes = std::uint64_t{1} << 60;
        QCOMPARE(kindOf(spec), ErrorKind::OutOfMemory);
        spec = smallSpec(folder, DiskEngine::Auto);
        spec.folder = folder.path().toStdString() + "/nowhere";
        QCOMPARE(kindOf(spec), ErrorKind::Io);
    }
};

MR_TEST(TestDiskBench)

} // namespace mr::test::tst_disk_bench

#include "tst_disk_bench.moc"
