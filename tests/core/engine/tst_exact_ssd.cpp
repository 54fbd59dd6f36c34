// Optimizer state on disk changes no bit: whatever share of it, however it is cut, and by whichever
// means it is moved.

#include "core/device/cpu/cpu_device.h"
#include "core/engine/exact_check.h"

#include <QtTest>

#include <map>
#include <string>

using namespace mr;

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

// A device of its own, so that its peaks are those of this run.
TinyResult runOn(Mode mode, const TinyRun& run)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 2;
    options.mode = mode;
    auto device = makeCpuDevice(options);
    if (!device.ok())
        qFatal("device: %s", device.status().message().c_str());
    auto result = runTiny(*device.value(), run);
    if (!result.ok())
        qFatal("%s: %s", run.policy.c_str(), result.status().message().c_str());
    return std::move(result).value();
}

struct Variant {
    const char* name;
    Options options;
    DiskEngine engine = DiskEngine::Auto;
    Mode mode = Mode::Threaded;
};

const Variant kVariants[] = {
    {"as it comes", {}},
    {"inline", {}, DiskEngine::Auto, Mode::Inline},
    {"by threads", {}, DiskEngine::Threads},
    {"none late, small tiles", {{"late", "0"}, {"tile", "8KiB"}}},
    {"0.1 late, small tiles", {{"late", "0.1"}, {"tile", "2KiB"}}},
    {"half late, small tiles, by threads", {{"late", "0.5"}, {"tile", "8KiB"}},
        DiskEngine::Threads},
    {"all late", {{"late", "1"}, {"tile", "16KiB"}}},
    {"half on disk", {{"disk-share", "0.5"}, {"tile", "8KiB"}}},
    {"0.3 on disk, 0.1 late", {{"disk-share", "0.3"}, {"late", "0.1"}, {"tile", "4KiB"}}},
    {"0.3 on disk, half late, inline", {{"disk-share", "0.3"}, {"late", "0.5"}, {"tile", "4KiB"}},
        DiskEngine::Auto, Mode::Inline},
    {"none on disk", {{"disk-share", "0"}}},
    {"every read verified", {{"verify", "all"}, {"tile", "8KiB"}}},
    {"a third visits the device", {{"device-share", "0.3"}, {"tile", "8KiB"}}},
    {"a block stays whole on the device",
        {{"weights-on-device", "0.7"}, {"state-on-device", "0.35"}, {"tile", "4KiB"}}},
    {"weights stay", {{"weights-on-device", "1"}, {"boundary", "device"}, {"tile", "8KiB"}}},
};

class TestExactSsd : public QObject
{
    Q_OBJECT

private slots:
    void bitsAreThoseOfResident_data();
    void bitsAreThoseOfResident();
    void whatMovesIsWhatWasPlanned();

private:
    TinyRun ssd(const Variant& variant) const;

    QTemporaryDir m_folder;
};

TinyRun TestExactSsd::ssd(const Variant& variant) const
{
    TinyRun run;
    run.policy = "ssd-vertical";
    run.options = variant.options;
    run.recompute = true;
    run.disk.folder = m_folder.path().toStdString();
    run.disk.store.engine = variant.engine;
    run.disk.store.verify = DiskVerify::All;
    return run;
}

void TestExactSsd::bitsAreThoseOfResident_data()
{
    QTest::addColumn<int>("index");
    QTest::addColumn<int>("type"); // 0 F32, 1 BF16, 2 BF16 with compact state
    QTest::addColumn<double>("clip");
    QTest::addColumn<int>("accumulate");
    const char* types[] = {"fp32", "bf16", "compact"};
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        for (const int type : {0, 1, 2}) {
            QTest::addRow("%s, %s", kVariants[i].name, types[type]) << i << type << 0.25 << 3;
            QTest::addRow("%s, %s, no clipping, one micro-batch", kVariants[i].name, types[type])
                << i << type << 0.0 << 1;
        }
}

void TestExactSsd::bitsAreThoseOfResident()
{
    QFETCH(int, index);
    QFETCH(int, type);
    QFETCH(double, clip);
    QFETCH(int, accumulate);
    const auto with = [&](TinyRun run) {
        run.compute = type == 0 ? DType::F32 : DType::BF16;
        run.clipNorm = clip;
        run.accumulate = accumulate;
        run.config = tinyConfig(index % 2 == 0);
        if (type == 2)
            run.options["state"] = "compact";
        return run;
    };
    TinyRun plain;
    plain.options = {{"order", "by-layer-flip"}};
    const TinyResult resident = runOn(Mode::Inline, with(plain));

    const TinyResult result = runOn(kVariants[index].mode, with(ssd(kVariants[index])));

    QCOMPARE(result.weightsHash, resident.weightsHash);
    QCOMPARE(result.losses, resident.losses);
    QCOMPARE(result.norms, resident.norms);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
}

void TestExactSsd::whatMovesIsWhatWasPlanned()
{
    for (const Variant& variant : kVariants) {
        TinyRun run = ssd(variant);
        run.compute = DType::BF16;

        const TinyResult result = runOn(variant.mode, run);

        QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
        QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
        QCOMPARE(result.diskReadBytes, result.diskWrittenBytes);
        QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
        QVERIFY((result.diskReadBytes > 0) == (std::string(variant.name) != "none on disk"));
    }
}

} // namespace

QTEST_GUILESS_MAIN(TestExactSsd)
#include "tst_exact_ssd.moc"
