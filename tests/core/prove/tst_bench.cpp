// Benchmarks: figures that are numbers, limits for all of them, and a clock that tells the truth.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/bench.h"
#include "core/prove/bench_rig.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <cmath>
#include <memory>
#include <set>

namespace mr::test::tst_bench {

namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20; // the smallest sizes

std::unique_ptr<Device> device(const CpuDeviceOptions& options)
{
    return std::move(makeCpuDevice(options).value());
}

using Bench = Result<std::vector<BenchRow>> (*)(Device&);

const BenchRow* find(const std::vector<BenchRow>& rows, const std::string& begin)
{
    for (const BenchRow& row : rows)
        if (row.name.starts_with(begin))
            return &row;
    return nullptr;
}

} // namespace

class TestBench : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyRowHasAFigureAndALimit_data()
    {
        QTest::addColumn<Bench>("bench");
        QTest::addRow("copy") << Bench(benchCopy);
        QTest::addRow("adamw") << Bench(benchAdamw);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        qInfo("elements, matmul and attention are left out: minutes under a sanitizer");
#else
        QTest::addRow("elements") << Bench(benchElements);
        QTest::addRow("matmul") << Bench(benchMatmul);
        QTest::addRow("attention") << Bench(benchAttention);
#endif
    }

    void everyRowHasAFigureAndALimit()
    {
        QFETCH(const Bench, bench);
        CpuDeviceOptions options;
        options.memoryBytes = kMemory;
        const auto cpu = device(options);

        auto rows = bench(*cpu);

        QVERIFY2(rows.ok(), rows.status().message().c_str());
        QVERIFY(!rows.value().empty());
        for (const BenchRow& row : rows.value()) {
            QVERIFY2(std::isfinite(row.ours) && row.ours > 0.0, row.name.c_str());
            QVERIFY2(std::isfinite(row.limit) && row.limit > 0.0, row.name.c_str());
            QCOMPARE(row.ratio, row.ours / row.limit);
            QVERIFY(!row.unit.empty());
        }
        QCOMPARE(cpu->memoryUsage().deviceBytes, std::size_t{0}); // all given back
    }

    // A loaded machine measures a lower rate; no machine measures a higher one.
    void aThrottledLinkIsMeasuredAtItsRateAtMost()
    {
        CpuDeviceOptions options;
        options.memoryBytes = kMemory;
        options.mode = CpuDeviceOptions::Mode::Threaded;
        options.linkBytesPerSecond = 2e8;
        const auto cpu = device(options);

        auto rows = benchCopy(*cpu);

        QVERIFY2(rows.ok(), rows.status().message().c_str());
        const BenchRow* up = find(rows.value(), "copy host to device");
        const BenchRow* both = find(rows.value(), "copy both ways");
        QVERIFY(up && both);
        const double oneWay = 2.0 * options.linkBytesPerSecond * 1e-9; // read and written
        QVERIFY2(
            up->ours > 0.0 && up->ours <= oneWay * 1.01, qPrintable(QString::number(up->ours)));
        QVERIFY2(both->ours > 0.0 && both->ours <= 2.0 * oneWay * 1.01,
            qPrintable(QString::number(both->ours)));
    }

    void theFirstFailureStopsARig()
    {
        CpuDeviceOptions options;
        options.memoryBytes = std::size_t{1} << 20;
        const auto cpu = device(options);
        BenchRig rig(*cpu);

        const TensorView tooLarge = rig.random(DType::F32, 1024, 1024);
        bool called = false;
        const BenchTime time = rig.time([&](int) {
            called = true;
            return Status();
        });

        QVERIFY(!tooLarge.data);
        QVERIFY(!rig.status().ok());
        QCOMPARE(rig.status().kind(), ErrorKind::OutOfMemory);
        QVERIFY(!called);
        QVERIFY(time.median > 0.0); // no row divides by nothing
    }

    void randomInputsAreNoConstants()
    {
        CpuDeviceOptions options;
        options.memoryBytes = kMemory;
        const auto cpu = device(options);
        BenchRig rig(*cpu);

        const TensorView x = rig.random(DType::F32, 64, 64, -1.0F, 1.0F);
        const TensorView y = rig.random(DType::F32, 64, 64, -1.0F, 1.0F);

        QVERIFY(rig.status().ok());
        const float* values = x.as<float>(); // memory of the CPU device can be read
        std::set<float> distinct(values, values + x.count());
        QVERIFY(distinct.size() > 4000);
        QVERIFY(*distinct.begin() >= -1.0F && *distinct.rbegin() < 1.0F);
        QVERIFY(!std::equal(values, values + x.count(), y.as<float>()));
    }
};

MR_TEST(TestBench)

} // namespace mr::test::tst_bench

#include "tst_bench.moc"
