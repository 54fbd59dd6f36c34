// Updates that follow their gradients change no bit where state is on disk: the device sends them
// the bytes they would have read, at every share on disk and every late share. And each planned
// byte moves.

#include "core/prove/tiny_device.h"
#include "support/test_room.h"

#include <QtTest>

#include <map>
#include <string>
#include <utility>

namespace mr::test::tst_exact_ssd_eager {

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

struct Homes {
    const char* name;
    Options options;
};

const Homes kHomes[] = {
    {"all on disk", {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"tile", "4KiB"}}},
    {"gradients in memory", {{"weights-on-disk", "1"}, {"tile", "8KiB"}}},
    {"weights in memory", {{"gradients-on-disk", "1"}, {"tile", "2KiB"}}},
    {"half the weights, a third of the gradients",
        {{"weights-on-disk", "0.5"}, {"gradients-on-disk", "0.3"}, {"tile", "4KiB"}}},
    {"half of the state, more of its gradients than of its weights",
        {{"disk-share", "0.5"}, {"weights-on-disk", "0.2"}, {"gradients-on-disk", "0.4"},
            {"tile", "4KiB"}}},
    {"one place on the device",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"buffers", "1"}, {"tile", "4KiB"}}},
    {"a third visits the device",
        {{"disk-share", "0.8"}, {"weights-on-disk", "0.8"}, {"gradients-on-disk", "0.8"},
            {"device-share", "0.3"}, {"tile", "4KiB"}}},
    {"weights of some blocks stay",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"weights-on-device", "0.7"},
            {"state-on-device", "0.35"}, {"tile", "4KiB"}}},
    {"all weights stay", {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
                             {"weights-on-device", "1"}, {"boundary", "device"}, {"tile", "8KiB"}}},
    {"activations wait, too",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"boundaries-on-disk", "1"},
            {"activations-on-host", "0.5"}, {"tile", "4KiB"}}},
    {"micro-batch by micro-batch", {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"},
                                       {"order", "by-microbatch"}, {"tile", "4KiB"}}},
};

const char* const kTypes[] = {"fp32", "bf16", "compact"};
const char* const kLate[] = {"0", "0.25", "0.5", "1"};

} // namespace

class TestExactSsdEager : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bitsAreThoseOfResident_data();
    void bitsAreThoseOfResident();

private:
    TinyRun ofType(int type, bool byGroup, int accumulate, const std::string& order) const;

    QTemporaryDir m_folder;
    ReferenceRuns m_residents;
};

TinyRun TestExactSsdEager::ofType(
    int type, bool byGroup, int accumulate, const std::string& order) const
{
    TinyRun run;
    run.options = {{"order", order}};
    run.compute = type == 0 ? DType::F32 : DType::BF16;
    run.config = tinyConfig(byGroup);
    run.config.layers = 4;
    run.clipNorm = byGroup ? 0.1 : 0.0;
    run.accumulate = accumulate;
    if (type == 2)
        run.options["state"] = "compact";
    if (byGroup)
        run.options["clip-mode"] = "per-group";
    return run;
}

void TestExactSsdEager::bitsAreThoseOfResident_data()
{
    QTest::addColumn<int>("homes");
    QTest::addColumn<int>("type");
    QTest::addColumn<int>("late");
    QTest::addColumn<bool>("byGroup");
    QTest::addColumn<int>("accumulate");
    for (int homes = 0; homes < static_cast<int>(std::size(kHomes)); ++homes)
        for (const int type : {0, 1, 2})
            for (const int late : {0, 1, 2, 3})
                for (const bool byGroup : {false, true}) {
                    const int accumulate = (homes + type + late) % 2 == 0 ? 3 : 1;
                    QTest::addRow("%s, %s, %s late, %s", kHomes[homes].name, kTypes[type],
                        kLate[late], byGroup ? "each group clipped" : "no clipping")
                        << homes << type << late << byGroup << accumulate;
                }
}

void TestExactSsdEager::bitsAreThoseOfResident()
{
    QFETCH(const int, homes);
    QFETCH(const int, type);
    QFETCH(const int, late);
    QFETCH(const bool, byGroup);
    QFETCH(const int, accumulate);
    const Options& options = kHomes[homes].options;
    const auto asked = options.find("order");
    const std::string order = asked == options.end() ? "by-layer" : asked->second;
    const TinyResult& resident =
        m_residents.of(ofType(type, byGroup, accumulate, order), type, byGroup, accumulate, order);
    TinyRun run = ofType(type, byGroup, accumulate, order);
    run.policy = "ssd-vertical";
    run.recompute = Recompute::Block;
    run.options.insert(options.begin(), options.end());
    run.options["late"] = kLate[late];
    run.disk.folders = {m_folder.path().toStdString()};
    run.disk.store.verify = DiskVerify::All;

    const TinyResult result = resultOn(late % 2 == 0 ? Mode::Threaded : Mode::Inline, run);

    QCOMPARE(result.weightsHash, resident.weightsHash);
    QCOMPARE(result.losses, resident.losses);
    QCOMPARE(result.norms, resident.norms);
    QCOMPARE(result.peakHostBytes, result.plannedHostBytes);
    QCOMPARE(result.peakDeviceBytes, result.plannedDeviceBytes);
    QCOMPARE(result.allocationsInSteps, std::size_t{0});
    QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
    QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
    QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
    QCOMPARE(result.d2hBytes, result.plannedD2hBytes);
    QVERIFY(result.diskReadBytes > 0);
}

MR_TEST_WITH_APP(TestExactSsdEager)

} // namespace mr::test::tst_exact_ssd_eager

#include "tst_exact_ssd_eager.moc"
