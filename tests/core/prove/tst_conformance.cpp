// Every op of the CPU device against double precision, in both modes and with several threads.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/conformance.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <memory>

namespace mr::test::tst_conformance {

namespace {

std::unique_ptr<Device> device(CpuDeviceOptions::Mode mode, int threads)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{1} << 28;
    options.threads = threads;
    options.mode = mode;
    return std::move(makeCpuDevice(options).value());
}

} // namespace

class TestConformance : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyOpMatchesDouble_data()
    {
        QTest::addColumn<bool>("threaded");
        QTest::addColumn<int>("threads");
        QTest::addRow("inline, 1 thread") << false << 1;
        QTest::addRow("threaded, 3 threads") << true << 3;
    }

    void everyOpMatchesDouble()
    {
        QFETCH(const bool, threaded);
        QFETCH(const int, threads);
        const auto cpu = device(
            threaded ? CpuDeviceOptions::Mode::Threaded : CpuDeviceOptions::Mode::Inline, threads);

        std::string missed;
        const auto report = runConformance(*cpu, [&](const ConformanceResult& r) {
            if (!r.pass)
                missed += r.name + ": error " + std::to_string(r.error) + " tolerances, " +
                          r.worst + (r.sameBits ? "" : ", other bits on the second run") + " " +
                          r.message + "\n";
        });

        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY2(missed.empty(), missed.c_str());
    }

    // Two of the cases that a card runs in `selftest`.
    void modelSizesAreComparedAtSampledPlaces()
    {
#ifdef __SANITIZE_ADDRESS__
        QSKIP("numbers are compared in the release build; every op ran above");
#endif
        const auto cpu = device(CpuDeviceOptions::Mode::Inline, 2);
        const conformance::Table table = conformance::modelSizeTable();
        QVERIFY(table.size() >= 24);
        int ran = 0;
        for (const conformance::Case& line : table) {
            if (line.name.find("bf16 (2048, 1536, 2048)") == std::string::npos)
                continue;
            conformance::CaseRun run(*cpu, 7);
            line.run(run);
            QVERIFY2(run.status().ok(), run.status().message().c_str());
            QVERIFY2(run.error() <= 1.0, (line.name + ": " + run.worst()).c_str());
            ++ran;
        }
        QCOMPARE(ran, 3);
    }

    void bitsDoNotDependOnThreadsOrMode()
    {
#ifdef __SANITIZE_ADDRESS__
        QSKIP("numbers are compared in the release build; every op ran above");
#endif
        const auto one = device(CpuDeviceOptions::Mode::Inline, 1);
        const auto three = device(CpuDeviceOptions::Mode::Threaded, 3);

        for (const conformance::Case& line : conformance::wholeTable()) {
            conformance::CaseRun first(*one, 7);
            line.run(first);
            conformance::CaseRun second(*three, 7);
            line.run(second);
            QVERIFY2(first.bytes() == second.bytes(), line.name.c_str());
        }
    }

    void oneOpCanBeAskedForAlone()
    {
        const auto cpu = device(CpuDeviceOptions::Mode::Inline, 1);
        bool others = false;

        auto report = runConformance(
            *cpu, [&](const ConformanceResult& r) { others = others || r.op != "rope"; }, "rope");

        QVERIFY(report.ok());
        QVERIFY(!others);
        QVERIFY(report.value().ok());
    }
};

MR_TEST(TestConformance)

} // namespace mr::test::tst_conformance

#include "tst_conformance.moc"
