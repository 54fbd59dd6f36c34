// Boundaries on disk change no bit, whatever their share and the engine that moves them. A fault of
// one of them ends the run with a clear error.

#include "core/prove/plain_run.h"
#include "core/prove/tiny_device.h"
#include "core/tier/faulty_io.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_ssd_boundaries {

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

struct Variant {
    const char* name;
    Options options;
    DiskEngine engine = DiskEngine::Auto;
    Mode mode = Mode::Threaded;
};

const Variant kVariants[] = {
    {"alone", {{"boundaries-on-disk", "1"}, {"disk-share", "0"}}},
    {"a third, alone, inline", {{"boundaries-on-disk", "0.3"}, {"disk-share", "0"}},
        DiskEngine::Auto, Mode::Inline},
    {"with state", {{"boundaries-on-disk", "1"}}},
    {"with state, inline", {{"boundaries-on-disk", "1"}, {"tile", "8KiB"}}, DiskEngine::Auto,
        Mode::Inline},
    {"a third, with all", {{"boundaries-on-disk", "0.3"}, {"weights-on-disk", "1"},
                              {"gradients-on-disk", "1"}, {"tile", "4KiB"}}},
    {"all of all, by threads",
        {{"boundaries-on-disk", "1"}, {"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
            {"tile", "2KiB"}},
        DiskEngine::Threads},
    {"all of all, all late, inline, by threads",
        {{"boundaries-on-disk", "1"}, {"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
            {"tile", "4KiB"}, {"late", "1"}},
        DiskEngine::Threads, Mode::Inline},
    {"layer by layer", {{"boundaries-on-disk", "1"}, {"order", "by-layer"}, {"buffers", "1"}}},
    {"micro-batch by micro-batch", {{"boundaries-on-disk", "1"}, {"order", "by-microbatch"}}},
    {"micro-batch by micro-batch, inline",
        {{"boundaries-on-disk", "0.5"}, {"order", "by-microbatch"}}, DiskEngine::Threads,
        Mode::Inline},
};

FaultRule failing(DiskOp op, int nth)
{
    return {FaultKind::Result, op, nth, -EIO, 2};
}

} // namespace

class TestSsdBoundaries : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bitsAreThoseOfResident_data();
    void bitsAreThoseOfResident();
    void aFaultNamesTheActivation();

private:
    TinyRun ssd(const Variant& variant) const;

    QTemporaryDir m_folder;
};

TinyRun TestSsdBoundaries::ssd(const Variant& variant) const
{
    TinyRun run;
    run.policy = "ssd-vertical";
    run.options = variant.options;
    run.recompute = Recompute::Block;
    run.disk.folders = {m_folder.path().toStdString()};
    run.disk.store.engine = variant.engine;
    run.disk.store.verify = DiskVerify::All;
    return run;
}

void TestSsdBoundaries::bitsAreThoseOfResident_data()
{
    QTest::addColumn<int>("index");
    QTest::addColumn<bool>("full");
    QTest::addColumn<int>("accumulate");
    QTest::addColumn<double>("clip");
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        for (const bool full : {false, true})
            for (const int accumulate : {1, 3, 8})
                QTest::addRow("%s, %s, %d", kVariants[i].name, full ? "fp32" : "bf16", accumulate)
                    << i << full << accumulate << (accumulate == 3 ? 0.0 : 0.25);
}

void TestSsdBoundaries::bitsAreThoseOfResident()
{
    QFETCH(int, index);
    QFETCH(bool, full);
    QFETCH(int, accumulate);
    QFETCH(double, clip);
    const Variant& variant = kVariants[index];
    const auto with = [&](TinyRun run) {
        run.compute = full ? DType::F32 : DType::BF16;
        run.clipNorm = clip;
        run.accumulate = accumulate;
        run.config = tinyConfig(index % 2 == 0);
        run.config.layers = 5;
        return run;
    };
    TinyRun plain;
    if (const auto order = variant.options.find("order"); order != variant.options.end())
        plain.options = {*order};
    auto resident = runOn(Mode::Inline, with(plain));
    QVERIFY2(resident.ok(), resident.status().message().c_str());

    auto outcome = runOn(variant.mode, with(ssd(variant)));

    QVERIFY2(outcome.ok(), outcome.status().message().c_str());
    const TinyResult& result = outcome.value();
    QCOMPARE(result.weightsHash, resident.value().weightsHash);
    QCOMPARE(result.losses, resident.value().losses);
    QCOMPARE(result.norms, resident.value().norms);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
    QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
    QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
    QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
    QCOMPARE(result.d2hBytes, result.plannedD2hBytes);
    QVERIFY(result.diskWrittenBytes > 0);
}

void TestSsdBoundaries::aFaultNamesTheActivation()
{
    std::set<std::string> named;
    for (const DiskOp op : {DiskOp::Read, DiskOp::Write})
        for (const int nth : {2, 9, 20}) {
            DiskFaults faults;
            faults.rules = {failing(op, nth)};
            TinyRun run = ssd(kVariants[0]); // 6 of each a step
            run.compute = DType::BF16;
            run.disk.store.wrapIo = [&faults](std::unique_ptr<DiskIo> io) {
                return std::unique_ptr<DiskIo>(std::make_unique<FaultyIo>(std::move(io), faults));
            };

            const auto outcome = runOn(nth % 2 == 0 ? Mode::Threaded : Mode::Inline, run);

            QVERIFY(!outcome.ok());
            const std::string& message = outcome.status().message();
            QVERIFY2(outcome.status().kind() == ErrorKind::Io, message.c_str());
            QVERIFY2(message.find("smartctl") != std::string::npos, message.c_str());
            QVERIFY2(message.find(" boundary ") != std::string::npos, message.c_str());
            named.insert(op == DiskOp::Read ? "read" : "write");
            QCOMPARE(faults.inFlightAtEnd.load(), 0);
        }
    QCOMPARE(named.size(), std::size_t{2});
}

MR_TEST_WITH_APP(TestSsdBoundaries)

} // namespace mr::test::tst_ssd_boundaries

#include "tst_ssd_boundaries.moc"
