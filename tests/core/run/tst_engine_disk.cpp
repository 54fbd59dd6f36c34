// Whole runs with optimizer state on disk: to the end, stopped, resumed, evaluated, refused.

#include "core/choose/replan.h"
#include "core/plan/traversal.h"
#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "core/tier/scratch_file.h"
#include "support/test_room.h"

#include <millrace/planner.h>

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mr::test::tst_engine_disk {

namespace fs = std::filesystem;

namespace {

using Options = std::map<std::string, std::string>;

struct Variant {
    const char* name;
    Options options;
    PrecisionChoice precision = PrecisionChoice::F32;
};

const Variant kVariants[] = {
    {"as it comes", {}},
    {"half late", {{"late", "0.5"}, {"tile", "8KiB"}}},
    {"half on disk, all late", {{"disk-share", "0.5"}, {"late", "1"}, {"tile", "8KiB"}}},
    {"bf16, half late", {{"late", "0.5"}, {"tile", "8KiB"}}, PrecisionChoice::BF16},
    {"a third visits", {{"device-share", "0.3"}, {"tile", "8KiB"}}, PrecisionChoice::BF16},
    {"compact, 0.3 late", {{"late", "0.3"}, {"state", "compact"}, {"tile", "4KiB"}},
        PrecisionChoice::BF16},
};

} // namespace

class TestEngineDisk : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aStoppedRunResumesToTheHashOfResident_data();
    void aStoppedRunResumesToTheHashOfResident();
    void evaluatingMoreOftenChangesNothing();
    void severalFoldersHoldTheTilesTogether();
    void whatACrashLeftIsTakenOver();
    void whatOthersLeftIsRemoved();
    void aStopWhileTheFileIsFilledLeavesNothing();
    void aStopWhileAResumedRunFillsItsFileIsNoFailure();
    void aRunSaysHowFarItsFileIs();
    void stepsSayWhatTheDiskMoved();
    void itIsOfferedWhereMemoryLacks();
    void autoTakesItWhereAFolderIsNamed();
    void windowsTakeItWhereTheHostLacks();
    void whatItCannotDoIsSaidBeforeItStarts();
    void aReplanKeepsTheOrderInWhichGradientsAreSummed();
    void cleanup() { m_rig.opening = {}; }

private:
    RunSpec onDisk(const std::string& name, const Variant& variant) const
    {
        RunSpec spec = m_rig.spec(name);
        spec.policy = "ssd-vertical";
        spec.policyOptions = variant.options;
        spec.precision = variant.precision;
        spec.diskPaths = {m_scratch.path()};
        return spec;
    }

    std::string residentHash(const Variant& variant)
    {
        std::string& hash = m_hashes[variant.name];
        if (!hash.empty())
            return hash;
        RunSpec spec = m_rig.spec("resident " + std::string(variant.name));
        spec.precision = variant.precision;
        if (variant.options.count("state") > 0)
            spec.policyOptions["state"] = "compact";
        const auto device = smallDevice();
        hash = m_rig.train(spec, *device).progress.weightsHash;
        return hash;
    }

    bool isScratchGone() const { return fs::is_empty(m_scratch.path()); }

    RunRig m_rig;
    Folder m_scratch;
    std::map<std::string, std::string> m_hashes; // resident runs
};

void TestEngineDisk::aStoppedRunResumesToTheHashOfResident_data()
{
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(kVariants)); ++i)
        QTest::newRow(kVariants[i].name) << i;
}

void TestEngineDisk::aStoppedRunResumesToTheHashOfResident()
{
    QFETCH(int, index);
    const Variant& variant = kVariants[index];
    const std::string hash = residentHash(variant);
    RunSpec spec = onDisk("stop " + std::string(variant.name), variant);
    spec.checkpointEvery = 5;
    const auto first = smallDevice();
    const Outcome stopped =
        m_rig.train(spec, *first, [](Engine& engine, std::int64_t) { engine.requestStop(); });
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.step, 5);
    QVERIFY(isScratchGone());

    const auto second = smallDevice(2, CpuDeviceOptions::Mode::Threaded);
    const Outcome resumed = m_rig.resume(spec.outDir, *second);

    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.state, RunState::Finished);
    QCOMPARE(resumed.progress.weightsHash, hash);
    QVERIFY(isScratchGone());
}

void TestEngineDisk::severalFoldersHoldTheTilesTogether()
{
    const Folder second;
    RunSpec spec = onDisk("two folders", kVariants[0]);
    spec.diskPaths.push_back(second.path());
    spec.checkpointEvery = 5;
    std::vector<std::uintmax_t> bytes; // size of the file in each folder, in the first step
    const auto first = smallDevice();
    const Outcome stopped = m_rig.train(spec, *first, [&](Engine& engine, std::int64_t) {
        for (const std::string& folder : spec.diskPaths)
            for (const fs::directory_entry& file : fs::directory_iterator(folder))
                bytes.push_back(file.file_size());
        engine.requestStop();
    });
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QVERIFY(bytes.size() >= 2);
    QVERIFY(bytes[0] > 4096 && bytes[1] > 4096); // tiles, beside the header page
    QVERIFY(isScratchGone() && fs::is_empty(second.path()));

    const auto again = smallDevice();
    const Outcome resumed = m_rig.resume(spec.outDir, *again);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, residentHash(kVariants[0]));
    QVERIFY(isScratchGone() && fs::is_empty(second.path()));
}

void TestEngineDisk::evaluatingMoreOftenChangesNothing()
{
    RunSpec spec = onDisk("evaluated", kVariants[1]);
    spec.evalEvery = 1;
    const auto device = smallDevice();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.progress.weightsHash, residentHash(kVariants[1]));
}

// Its file still lies there, full of tiles of other steps.
void TestEngineDisk::whatACrashLeftIsTakenOver()
{
    RunSpec spec = onDisk("crashed", kVariants[1]);
    spec.checkpointEvery = 5;
    const auto first = smallDevice();
    fs::path left;
    const Folder kept;
    const Outcome stopped = m_rig.train(spec, *first, [&](Engine& engine, std::int64_t step) {
        if (step != 10)
            return;
        left = listScratch(m_scratch.path()).value().at(0).path;
        fs::copy_file(left, kept.path("copy"));
        engine.requestStop();
    });
    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    fs::copy_file(kept.path("copy"), left);

    const auto second = smallDevice();
    const Outcome resumed = m_rig.resume(spec.outDir, *second);

    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, residentHash(kVariants[1]));
    QVERIFY(isScratchGone());
}

// A run that crashed before its first checkpoint is never resumed.
void TestEngineDisk::whatOthersLeftIsRemoved()
{
    QVERIFY(ScratchFile::open({m_scratch.path(), "crashed", 0, 1 << 20, 1}).ok());
    auto used = ScratchFile::open({m_scratch.path(), "goes-on", 0, 1 << 20, 1});
    QVERIFY(used.ok());
    used.value().removeOnClose();
    const auto device = smallDevice();
    std::size_t files = 0;
    RunSpec spec = onDisk("after a crash", kVariants[1]);
    spec.checkpointEvery = 5;

    const Outcome run = m_rig.train(spec, *device,
        [&](Engine&, std::int64_t) { files = listScratch(m_scratch.path()).value().size(); });
    used = ScratchFile();

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(files, std::size_t{2}); // its own, and the one that is in use
    QVERIFY(isScratchGone());
}

void TestEngineDisk::aStopWhileTheFileIsFilledLeavesNothing()
{
    const RunSpec spec = onDisk("stopped early", kVariants[1]);
    const auto device = smallDevice();
    m_rig.opening.isCancelled = [this] { return !isScratchGone(); }; // true from the first MiB on

    const Outcome stopped = m_rig.train(spec, *device);
    m_rig.opening = {};
    const Outcome again = m_rig.train(spec, *device); // nothing is in the way

    QCOMPARE(stopped.opened.kind(), ErrorKind::Cancelled);
    QVERIFY(isScratchGone());
    QVERIFY2(again.ended.ok(), again.ended.message().c_str());
    QCOMPARE(again.progress.weightsHash, residentHash(kVariants[1]));
    const RunRow row = m_rig.row(again.id - 1);
    QCOMPARE(row.status, RunStatus::Stopped);
    QVERIFY(row.exitReason.find("scratch file") != std::string::npos);
    QVERIFY(!row.resumable);
}

void TestEngineDisk::aStopWhileAResumedRunFillsItsFileIsNoFailure()
{
    RunSpec spec = onDisk("stopped again", kVariants[1]);
    spec.checkpointEvery = 5;
    const auto device = smallDevice();
    const Outcome first =
        m_rig.train(spec, *device, [](Engine& engine, std::int64_t) { engine.requestStop(); });
    QVERIFY2(first.ended.ok(), first.ended.message().c_str());
    QVERIFY(m_rig.store->endRun(first.id, RunStatus::Failed, 4, "of the test").ok());
    m_rig.opening.isCancelled = [] { return true; };

    const Outcome stopped = m_rig.resume(spec.outDir, *device);
    m_rig.opening = {};
    const RunRow row = m_rig.row(first.id);
    const Outcome resumed = m_rig.resume(spec.outDir, *device);

    QCOMPARE(stopped.opened.kind(), ErrorKind::Cancelled);
    QCOMPARE(row.status, RunStatus::Stopped);
    QVERIFY(row.resumable);
    QCOMPARE(row.lastStep, std::int64_t{5});
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, residentHash(kVariants[1]));
    QVERIFY(isScratchGone());
}

void TestEngineDisk::aRunSaysHowFarItsFileIs()
{
    std::string config = smallModelConfig(); // makes a file of many MiB
    config.replace(config.find(": 24"), 4, ": 256");
    m_rig.folder.write("wide.json", config);
    RunSpec spec = onDisk("told", kVariants[1]);
    spec.modelDir.clear();
    spec.scratchConfig = m_rig.folder.path("wide.json");
    spec.scratchTokenizer = m_rig.model.path();
    spec.steps = 1;
    const auto device = smallDevice();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
    std::uint64_t bytes = 0;
    m_rig.opening.onScratchFill = [&](std::uint64_t done, std::uint64_t all) {
        told.emplace_back(done, all);
        bytes = listScratch(m_scratch.path()).value().at(0).bytes;
    };

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QVERIFY(told.size() >= 2); // ten times a second at most, but the first and the last
    QVERIFY(told.front().first < told.front().second);
    QCOMPARE(told.back().first, told.back().second);
    QCOMPARE(told.back().second, bytes);
}

void TestEngineDisk::stepsSayWhatTheDiskMoved()
{
    RunSpec spec = onDisk("traffic", kVariants[3]);
    const auto device = smallDevice();
    const PlanReport plan = planRun(spec).value();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY(plan.fits);
    QVERIFY(plan.diskWriteBytesPerStep > 0);
    const std::vector<StepRow> steps = m_rig.steps(run.id);
    QCOMPARE(steps.size(), std::size_t{12});
    QVERIFY(m_rig.messages(run.id).find("disk_engine: ") != std::string::npos);
    for (const StepRow& step : steps) { // the first has nothing late to do
        QCOMPARE(step.diskReadBytes, step.diskWriteBytes);
        QVERIFY(step.diskReadBytes > 0);
        QVERIFY(step.step == 1 || step.diskReadBytes == plan.diskReadBytesPerStep);
        QVERIFY(step.step != 1 || step.diskReadBytes < plan.diskReadBytesPerStep);
    }
}

void TestEngineDisk::itIsOfferedWhereMemoryLacks()
{
    RunSpec spec = m_rig.spec("offered");
    spec.policy = "auto";
    spec.policyOptions = {{"tile", "2KiB"}};
    spec.precision = PrecisionChoice::BF16;
    spec.recompute = RecomputeChoice::Block;
    RunSpec disk = onDisk("offered", kVariants[3]);
    disk.policyOptions = {{"tile", "2KiB"}};
    disk.recompute = RecomputeChoice::Block;
    const PlanReport needed = planRun(disk).value();
    spec.deviceMemoryBytes = needed.tiers.at(0).totalBytes;
    spec.hostMemoryBytes = needed.tiers.at(1).totalBytes;

    const PlanReport report = planRun(spec).value();

    QVERIFY(!report.fits);
    std::string advice;
    for (const std::string& sentence : report.advice)
        advice += sentence + "\n";
    QVERIFY2(advice.find("--disk-path") != std::string::npos, advice.c_str());
    QVERIFY2(advice.find("every step writes") != std::string::npos, advice.c_str());
}

void TestEngineDisk::autoTakesItWhereAFolderIsNamed()
{
    RunSpec spec = onDisk("auto", kVariants[3]);
    spec.policyOptions = {{"tile", "2KiB"}};
    spec.recompute = RecomputeChoice::Block;
    const PlanReport needed = planRun(spec).value();
    spec.policy = "auto";
    spec.deviceMemoryBytes = needed.tiers.at(0).totalBytes;
    spec.hostMemoryBytes = needed.tiers.at(1).totalBytes;
    const auto device = smallDevice();

    const PlanReport report = planRun(spec).value();
    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(report.fits, report.limit.c_str());
    QCOMPARE(report.policy, std::string("ssd-vertical"));
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    QCOMPARE(run.state, RunState::Finished);
    QVERIFY(m_rig.steps(run.id).back().diskReadBytes > 0);
}

// As offered without a folder. Losses are those of a host that has the memory.
void TestEngineDisk::windowsTakeItWhereTheHostLacks()
{
    RunSpec spec = onDisk("windows", kVariants[3]);
    spec.policy = "zenflow";
    spec.policyOptions = {{"warmup", "2"}, {"interval", "3"}, {"select", "6"}, {"tile", "2KiB"}};
    const auto device = smallDevice();
    const Outcome roomy = m_rig.train(spec, *device);
    QVERIFY2(roomy.ended.ok(), roomy.ended.message().c_str());
    QCOMPARE(m_rig.steps(roomy.id).back().diskReadBytes, 0);
    spec.policyOptions["disk-share"] = "1";
    spec.hostMemoryBytes = planRun(spec).value().tiers.at(1).totalBytes;
    spec.policyOptions.erase("disk-share");
    spec.outDir = m_rig.folder.path("narrow windows");
    RunSpec homeless = spec;
    homeless.diskPaths.clear();

    const Outcome narrow = m_rig.train(spec, *device);
    const PlanReport offer = planRun(homeless).value();

    QVERIFY2(narrow.ended.ok(), narrow.ended.message().c_str());
    const std::vector<StepRow> expected = m_rig.steps(roomy.id);
    const std::vector<StepRow> steps = m_rig.steps(narrow.id);
    QCOMPARE(steps.size(), expected.size());
    for (std::size_t s = 0; s < steps.size(); ++s)
        QCOMPARE(steps[s].loss, expected[s].loss);
    QVERIFY(steps.back().diskReadBytes > 0);
    QVERIFY(isScratchGone());
    QVERIFY(!offer.fits);
    const auto isOffer = [](const std::string& advice) {
        return advice.find("on an SSD (policy zenflow)") != std::string::npos;
    };
    QVERIFY(std::any_of(offer.advice.begin(), offer.advice.end(), isOffer));
}

void TestEngineDisk::whatItCannotDoIsSaidBeforeItStarts()
{
    const auto device = smallDevice();
    const auto refusal = [&](const RunSpec& spec) {
        const Outcome run = m_rig.train(spec, *device);
        return run.opened.ok() ? QString() : QString::fromStdString(run.opened.message());
    };
    RunSpec spec = onDisk("refused", kVariants[3]);
    spec.diskPaths.clear();
    QVERIFY(refusal(spec).contains(QStringLiteral("--disk-path")));
    spec.diskPaths = {m_scratch.path("no such folder")};
    QVERIFY(refusal(spec).contains(QStringLiteral("no such folder")));
    spec.diskPaths = {m_scratch.path()};
    spec.diskBytes = 8192;
    QVERIFY(refusal(spec).contains(QStringLiteral("disk")));
    spec.diskBytes = 0;
    spec.maxDiskWriteBytes = 100'000;
    QVERIFY(refusal(spec).contains(QStringLiteral("max-disk-writes")));
    QVERIFY(isScratchGone());
}

// Else the run would go on with other bits.
void TestEngineDisk::aReplanKeepsTheOrderInWhichGradientsAreSummed()
{
    const auto setUp = [](const RunSpec& spec) {
        auto setup = setUpRun(spec, 0);
        if (!setup.ok())
            qFatal("%s", setup.status().message().c_str());
        return std::move(setup).value();
    };
    RunSpec plain = m_rig.spec("plain");
    plain.policy = "zero-offload";
    plain.precision = PrecisionChoice::BF16;
    plain.recompute = RecomputeChoice::Block;
    plain.policyOptions = {{"tile", "2KiB"}};
    plain.diskPaths = {m_scratch.path()};
    RunSetup onHost = setUp(plain);
    onHost.budget.deviceBytes = onHost.memory.bytes(Tier::Device);
    RunSpec flipped = onDisk("flipped", kVariants[3]);
    flipped.policyOptions["order"] = "by-layer-flip";
    const RunSetup disk = setUp(flipped);

    plain.policy = "ssd-vertical";
    const std::size_t enough = setUp(plain).memory.bytes(Tier::PinnedHost);

    auto toDisk = replan(onHost, {Tier::PinnedHost, enough}, ReplanScope::Exact);
    auto less = replan(disk, {Tier::Device, {}}, ReplanScope::Exact);

    QVERIFY2(toDisk.ok(), toDisk.status().message().c_str());
    QCOMPARE(toDisk.value().spec.policy, std::string("ssd-vertical"));
    QVERIFY(!flipsSums(*toDisk.value().policy.traversal));
    QVERIFY2(less.ok(), less.status().message().c_str());
    QCOMPARE(less.value().spec.policyOptions.at("order"), std::string("by-layer-flip"));
}

MR_TEST_WITH_APP(TestEngineDisk)

} // namespace mr::test::tst_engine_disk

#include "tst_engine_disk.moc"
