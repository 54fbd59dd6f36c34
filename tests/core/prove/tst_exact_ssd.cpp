// Optimizer state on disk changes no bit, whatever its share, its tiles and the engine that moves
// it.

#include "core/model/weights.h"
#include "core/prove/plain_run.h"
#include "core/prove/tiny_device.h"
#include "core/step/run_master.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_exact_ssd {

namespace {

using Mode = CpuDeviceOptions::Mode;
using Options = std::map<std::string, std::string>;

struct Variant {
    const char* name;
    Options options;
    DiskEngine engine = DiskEngine::Auto;
    Mode mode = Mode::Threaded;
    Recompute recompute = Recompute::Block;
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
    {"embedding and head alone on disk", {{"disk-groups", "vocabulary"}, {"tile", "4KiB"}}},
    {"half of embedding and head, half late, some visit",
        {{"disk-groups", "vocabulary"}, {"disk-share", "0.5"}, {"late", "0.5"},
            {"device-share", "0.3"}, {"tile", "4KiB"}}},
    {"every read verified", {{"verify", "all"}, {"tile", "8KiB"}}},
    {"a third visits the device", {{"device-share", "0.3"}, {"tile", "8KiB"}}},
    {"a block stays whole on the device",
        {{"weights-on-device", "0.7"}, {"state-on-device", "0.35"}, {"tile", "4KiB"}}},
    {"weights on disk, too", {{"weights-on-disk", "1"}, {"tile", "4KiB"}}},
    {"all on disk", {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"tile", "2KiB"}}},
    {"all on disk, none late, inline",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"late", "0"}, {"tile", "2KiB"}},
        DiskEngine::Auto, Mode::Inline},
    {"all on disk, all late, by threads",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"late", "1"}, {"tile", "8KiB"}},
        DiskEngine::Threads},
    {"half the weights, a third of the gradients",
        {{"weights-on-disk", "0.5"}, {"gradients-on-disk", "0.3"}, {"tile", "4KiB"}}},
    {"gradients on disk, a third visits the device",
        {{"disk-share", "0.8"}, {"gradients-on-disk", "0.8"}, {"device-share", "0.3"},
            {"tile", "4KiB"}}},
    {"all on disk, weights of some blocks stay",
        {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"weights-on-device", "0.7"},
            {"tile", "4KiB"}}},
    {"weights stay", {{"weights-on-device", "1"}, {"boundary", "device"}, {"tile", "8KiB"}}},
    {"cheap recompute, weights stay",
        {{"weights-on-device", "1"}, {"boundary", "device"}, {"tile", "4KiB"}}, DiskEngine::Auto,
        Mode::Threaded, Recompute::Cheap},
    {"no recompute, half on disk", {{"disk-share", "0.5"}, {"tile", "8KiB"}}, DiskEngine::Auto,
        Mode::Threaded, Recompute::None},
};

} // namespace

class TestExactSsd : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void bitsAreThoseOfResident_data();
    void bitsAreThoseOfResident();
    void whatMovesIsWhatWasPlanned();
    void stateWrittenBetweenStepsIsThatOfTheNext();

private:
    TinyRun ssd(const Variant& variant) const;

    QTemporaryDir m_folder;
    ReferenceRuns m_residents;
};

TinyRun TestExactSsd::ssd(const Variant& variant) const
{
    TinyRun run;
    run.policy = "ssd-vertical";
    run.options = variant.options;
    run.recompute = variant.recompute;
    // Every other variant on two drives, of which one is twice as fast.
    run.disk.folders = {m_folder.path().toStdString()};
    if ((&variant - kVariants) % 2 == 1) {
        run.disk.folders.push_back(run.disk.folders.front() / "second");
        std::filesystem::create_directories(run.disk.folders.back());
        run.disk.shares = {1.0, 2.0};
    }
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
    QTest::addColumn<bool>("byGroup");
    const char* types[] = {"fp32", "bf16", "compact"};
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        for (const int type : {0, 1, 2}) {
            const bool isOwn = type == i % 3;
#ifdef __SANITIZE_THREAD__ // a type changes no wait, and clipping those of updates alone
            const bool clips = isOwn && i % 2 == 0;
            const bool clipsNot = isOwn && i % 2 != 0;
#else
            const bool clips = true;
            const bool clipsNot = true;
#endif
            if (clips)
                QTest::addRow("%s, %s", kVariants[i].name, types[type])
                    << i << type << 0.25 << 3 << false;
            if (clipsNot)
                QTest::addRow(
                    "%s, %s, no clipping, one micro-batch", kVariants[i].name, types[type])
                    << i << type << 0.0 << 1 << false;
            if (isOwn)
                QTest::addRow("%s, %s, each group clipped", kVariants[i].name, types[type])
                    << i << type << 0.1 << 3 << true;
        }
}

void TestExactSsd::bitsAreThoseOfResident()
{
    QFETCH(int, index);
    QFETCH(int, type);
    QFETCH(double, clip);
    QFETCH(int, accumulate);
    QFETCH(bool, byGroup);
    const auto with = [&](TinyRun run) {
        run.compute = type == 0 ? DType::F32 : DType::BF16;
        run.clipNorm = clip;
        run.accumulate = accumulate;
        run.config = tinyConfig(index % 2 == 0);
        if (type == 2)
            run.options["state"] = "compact";
        if (byGroup)
            run.options["clip-mode"] = "per-group";
        return run;
    };
    const TinyResult& resident =
        m_residents.of(with(TinyRun{}), type, clip, accumulate, index % 2, byGroup);

    const TinyResult result = resultOn(kVariants[index].mode, with(ssd(kVariants[index])));

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

        const TinyResult result = resultOn(variant.mode, run);

        QCOMPARE(result.diskReadBytes, result.plannedDisk.readBytes);
        QCOMPARE(result.diskWrittenBytes, result.plannedDisk.writtenBytes);
        const bool readsWeights = variant.options.count("weights-on-disk") > 0; // for every pass
        QCOMPARE(result.diskReadBytes > result.diskWrittenBytes, readsWeights);
        QVERIFY(result.diskReadBytes >= result.diskWrittenBytes);
        QCOMPARE(result.h2dBytes, result.plannedH2dBytes);
        QVERIFY((result.diskReadBytes > 0) == (std::string(variant.name) != "none on disk"));
    }
}

// Moments of every group, as a resumed run puts them there: all first ones, then all second ones,
// so that tiles are opened again.
Status writeMoments(PlainRun& run)
{
    for (const StatePart part : {StatePart::FirstMoment, StatePart::SecondMoment})
        for (std::size_t g = 0; g < run.shape().groups.size(); ++g) {
            std::vector<float> values(static_cast<std::size_t>(run.shape().groups[g].elements));
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = 1e-4F * static_cast<float>(i % 100 + 1);
            MR_TRY(run.executor().state().write(
                GroupId{static_cast<std::int32_t>(g)}, part, 0, std::as_bytes(std::span(values))));
        }
    return {};
}

// All moments, one behind the other.
Result<std::vector<float>> readMoments(PlainRun& run)
{
    std::vector<float> all;
    for (std::size_t g = 0; g < run.shape().groups.size(); ++g)
        for (const StatePart part : {StatePart::FirstMoment, StatePart::SecondMoment}) {
            std::vector<float> values(static_cast<std::size_t>(run.shape().groups[g].elements));
            MR_TRY(run.executor().state().read(GroupId{static_cast<std::int32_t>(g)}, part, 0,
                std::as_writable_bytes(std::span(values))));
            all.insert(all.end(), values.begin(), values.end());
        }
    return all;
}

// Moments after a step that began with those of writeMoments().
Result<std::vector<float>> momentsAfterAStep(const PlainRunSpec& spec)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    auto created = PlainRun::create(*device, spec);
    MR_TRY(created.status());
    PlainRun& run = *created.value();
    MR_TRY(
        installMaster(run.executor(), run.memory(), *initialWeights(spec.config, run.table(), 3)));
    MR_TRY(writeMoments(run));
    MicroBatchData micro;
    const auto tokens = static_cast<std::size_t>(spec.micro.seqLen * spec.micro.microBatch);
    for (auto* each : {&micro.ids, &micro.targets, &micro.positions, &micro.visibleFrom})
        each->assign(tokens, 0);
    micro.order.resize(tokens);
    std::iota(micro.order.begin(), micro.order.end(), 0);
    StepInputs inputs;
    inputs.micros = {&micro, 1};
    inputs.lossScale = 1.0F / static_cast<float>(tokens);
    inputs.factors = adamwFactors({0.9, 0.99, 1e-8, 0.1}, 1e-2, 1);
    MR_TRY(run.step(inputs).status());
    MR_TRY(run.finishLateParts());
    return readMoments(run);
}

void TestExactSsd::stateWrittenBetweenStepsIsThatOfTheNext()
{
    const TinyRun tiny = ssd({"", {{"tile", "8KiB"}}});
    PlainRunSpec spec = plainRunSpec(tiny);
    spec.micro = {tiny.seqLen, tiny.microBatch, 1, DType::BF16};
    auto onDisk = momentsAfterAStep(spec);
    spec.options["disk-share"] = "0";
    auto inMemory = momentsAfterAStep(spec);

    QVERIFY2(onDisk.ok(), onDisk.status().message().c_str());
    QVERIFY2(inMemory.ok(), inMemory.status().message().c_str());
    QVERIFY(onDisk.value() == inMemory.value());
    QVERIFY(std::ranges::count(onDisk.value(), 0.0F) == 0);
}

MR_TEST_WITH_APP(TestExactSsd)

} // namespace mr::test::tst_exact_ssd

#include "tst_exact_ssd.moc"
