// Every op of the CPU device against double precision, in both modes and with several threads.

#include "core/device/cpu/cpu_device.h"
#include "core/prove/conformance.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <map>
#include <memory>
#include <set>
#include <string>

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

    void everyOpMatchesDouble()
    {
#ifndef __SANITIZE_ADDRESS__ // the numbers of release; every op runs below
        const auto cpu = device(CpuDeviceOptions::Mode::Inline, 1);

        std::string missed;
        const auto report = runConformance(*cpu, [&](const ConformanceResult& r) {
            m_inlineBits[r.name] = r.bits;
            if (!r.pass)
                missed += r.name + ": error " + std::to_string(r.error) + " tolerances, " +
                          r.worst + (r.sameBits ? "" : ", other bits on the second run") + " " +
                          r.message + "\n";
        });

        QVERIFY2(report.ok(), report.status().message().c_str());
        QVERIFY2(missed.empty(), missed.c_str());
#endif
    }

    // Two of the cases that a card runs in `selftest`.
    void modelSizesAreComparedAtSampledPlaces()
    {
#ifndef __SANITIZE_ADDRESS__ // the numbers of release; every op runs below
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
#endif
    }

    // Address sanitizer looks at memory, not at bits: one device is enough.
    void bitsDoNotDependOnThreadsOrMode()
    {
        const auto three = device(CpuDeviceOptions::Mode::Threaded, 3);
#ifndef __SANITIZE_ADDRESS__
        const auto one = device(CpuDeviceOptions::Mode::Inline, 1);
#endif

        for (const conformance::Case& line : conformance::wholeTable()) {
            conformance::CaseRun run(*three, conformance::kCaseSeed);
            line.run(run);
            QVERIFY2(run.status().ok(), run.status().message().c_str());
            QVERIFY2(run.error() <= 1.0, (line.name + ": " + run.worst()).c_str());
#ifndef __SANITIZE_ADDRESS__
            if (m_inlineBits.count(line.name) == 0) {
                conformance::CaseRun inlined(*one, conformance::kCaseSeed);
                line.run(inlined);
                m_inlineBits[line.name] = inlined.digest();
            }
            QVERIFY2(run.digest() == m_inlineBits[line.name], line.name.c_str());
#endif
        }
    }

    void everyCaseHasANameOfItsOwn()
    {
        std::set<std::string> names;
        conformance::Table sizes = conformance::modelSizeTable();
        conformance::addModelSizeAttentionCases(sizes);
        for (const conformance::Table& table : {conformance::wholeTable(), sizes})
            for (const conformance::Case& line : table)
                QVERIFY2(names.insert(line.name).second, line.name.c_str());
    }

    // All NaNs count as one, and nothing else does.
    void digestsTellResultsApart()
    {
        const auto cpu = device(CpuDeviceOptions::Mode::Inline, 1);
        const auto digestOf = [&](DType type, const conformance::Values& codes) {
            conformance::CaseRun run(*cpu, 7);
            TensorView view = run.given(DType::U16, {2}, codes).view;
            view.dtype = type;
            run.expectExactly("codes", view, {});
            return run.digest();
        };
        const std::string nan = digestOf(DType::BF16, {0x7FC0, 0x3F80});

        QCOMPARE(nan.size(), std::size_t{16});
        QCOMPARE(digestOf(DType::BF16, {0xFF81, 0x3F80}), nan);
        QVERIFY(digestOf(DType::BF16, {0x7F80, 0x3F80}) != nan);
        QVERIFY(digestOf(DType::BF16, {0x7FC0, 0x3F81}) != nan);
        QVERIFY(digestOf(DType::U16, {0x7FC0, 0x3F80}) != digestOf(DType::U16, {0xFF81, 0x3F80}));
        QVERIFY(digestOf(DType::BF16, {0x0000, 0x3F80}) != digestOf(DType::BF16, {0x8000, 0x3F80}));
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

private:
    std::map<std::string, std::string> m_inlineBits; // by case
};

MR_TEST(TestConformance)

} // namespace mr::test::tst_conformance

#include "tst_conformance.moc"
