// How much of a run lives on disk: no more than the host's memory makes necessary.

#include "core/choose/disk_choice.h"
#include "core/choose/replan.h"
#include "core/choose/trial.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace mr::test::tst_disk_choice {

namespace {

using Options = std::map<std::string, std::string>;

// A run on a host with this much memory; bytes of activations and batches do not count.
RunSetup setupOf(std::size_t hostBytes, const std::string& policy, const Options& options = {})
{
    RunSetup setup;
    setup.spec.policy = policy;
    setup.spec.policyOptions = options;
    setup.spec.policyOptions.insert({"tile", "8KiB"});
    setup.spec.diskPaths = {"/"};
    setup.shape = smallShape(8);
    for (GroupShape& group : setup.shape.groups)
        group.elements = 100'000;
    setup.step.microBatches = 1;
    setup.step.clipNorm = 1.0;
    setup.budget = endless();
    setup.budget.hostBytes = hostBytes;
    return setup;
}

std::size_t hostBytesOf(const Options& options)
{
    RunSetup setup = setupOf(0, "ssd-vertical", options);
    if (!planWith(setup, trialOf("ssd-vertical", setup.spec.policyOptions, Recompute::Block)).ok())
        qFatal("no plan");
    return setup.memory.bytes(Tier::PinnedHost);
}

const Options kAllOnDisk = {
    {"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"boundaries-on-disk", "1"}};

RunSetup chosen(RunSetup setup)
{
    const Status status = chooseFromOptions(setup);
    if (!status.ok())
        qFatal("no policy: %s", status.message().c_str());
    return setup;
}

double shareOf(const RunSetup& setup, const std::string& name, double otherwise)
{
    const auto share = setup.spec.policyOptions.find(name);
    return share == setup.spec.policyOptions.end() ? otherwise : std::stod(share->second);
}

// setupOf() with weights that have columns, for policies with windows.
RunSetup windowSetup(
    std::size_t hostBytes, const std::string& policy = "zenflow", Options options = {})
{
    options.insert({"warmup", "1"});
    if (policy == "zenflow")
        options.insert({"interval", "4"});
    RunSetup setup = setupOf(hostBytes, policy, options);
    for (GroupShape& group : setup.shape.groups)
        group.weights = {{0, 1000, 100, false}};
    return setup;
}

std::size_t windowBytesOf(const std::string& share, const std::string& policy = "zenflow")
{
    RunSetup setup = windowSetup(0, policy, {{"disk-share", share}});
    if (!planWith(setup, trialOf(policy, setup.spec.policyOptions, Recompute::Block)).ok())
        qFatal("no plan");
    return setup.memory.bytes(Tier::PinnedHost);
}

// Room for an adapter's run beside its frozen blocks, which have 1,600,000 bytes.
constexpr std::size_t kRest = 8'700'000;

// An adapter beside frozen blocks, which lie in the model's own files. The device has not the room
// for them.
RunSetup adapterSetup(std::size_t hostBytes, const std::string& policy, const Options& options = {})
{
    RunSetup setup = setupOf(hostBytes, policy, options);
    setup.spec.diskPaths.clear();
    setup.spec.method = "lora";
    setup.shape.readsFrozen = true;
    setup.readsOwnFiles = true;
    for (std::size_t g = 0; g < setup.shape.groups.size(); ++g) {
        const bool isEnd = g == 0 || g + 1 == setup.shape.groups.size();
        setup.shape.groups[g].frozenElements = 100'000;
        setup.shape.groups[g].elements = isEnd ? 0 : 1024;
    }
    setup.budget.deviceBytes = 1'500'000;
    setup.budget.diskBytes = 0;
    return setup;
}

double weightsOf(const RunSetup& setup)
{
    return shareOf(setup, "weights-on-disk", 0.0);
}

double gradientsOf(const RunSetup& setup)
{
    return shareOf(setup, "gradients-on-disk", 0.0);
}

double boundariesOf(const RunSetup& setup)
{
    return shareOf(setup, "boundaries-on-disk", 0.0);
}

} // namespace

class TestDiskChoice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Budgets from the host memory of all on disk up to that of the state alone on disk.
    void theMoreMemoryTheLessIsOnDisk()
    {
        const std::size_t least = hostBytesOf(kAllOnDisk);
        const std::size_t stateOnly = hostBytesOf({});
        QVERIFY(stateOnly > least + 3'000'000); // out of about 4 bytes each for a million elements
        double weights = 1.0;
        double gradients = 1.0;
        std::int64_t moved = 0;
        for (int part = 0; part <= 10; ++part) {
            const std::size_t budget =
                least + (stateOnly - least) / 10 * static_cast<std::size_t>(part);
            const RunSetup setup = chosen(setupOf(budget, "ssd-vertical"));

            QVERIFY2(setup.limit.empty(), setup.limit.c_str());
            QVERIFY(setup.memory.bytes(Tier::PinnedHost) <= budget);
            QVERIFY(weightsOf(setup) <= weights && gradientsOf(setup) <= gradients);
            // Gradients leave before weights do.
            QVERIFY(weightsOf(setup) == 0.0 || gradientsOf(setup) == 1.0);
            const std::int64_t both = setup.diskTraffic.readBytes + setup.diskTraffic.writtenBytes;
            QVERIFY(moved == 0 || both <= moved);
            weights = weightsOf(setup);
            gradients = gradientsOf(setup);
            moved = both;
        }
        QVERIFY(weights == 0.0 && gradients < 0.1);
    }

    // A sixty-fourth less on disk would not fit.
    void noMoreThanNecessary()
    {
        const std::size_t budget = (hostBytesOf(kAllOnDisk) + hostBytesOf({})) / 2;
        const RunSetup setup = chosen(setupOf(budget, "ssd-vertical"));
        QVERIFY(gradientsOf(setup) > 0.0 || weightsOf(setup) > 0.0);
        Options less = setup.spec.policyOptions;
        const std::string name = weightsOf(setup) > 0.0 ? "weights-on-disk" : "gradients-on-disk";
        less[name] = std::to_string(std::stod(less[name]) - 1.0 / 64);

        QVERIFY(hostBytesOf(less) > budget);
    }

    void whatFitsAsItIsStaysAsItIs()
    {
        const RunSetup setup = chosen(setupOf(hostBytesOf({}), "ssd-vertical"));
        QCOMPARE(setup.spec.policyOptions.count("weights-on-disk"), std::size_t{0});
        QVERIFY(setup.reason.empty());
    }

    void whatWasFittedIsSaid()
    {
        const RunSetup setup = chosen(setupOf(hostBytesOf(kAllOnDisk), "ssd-vertical"));
        QVERIFY(setup.reason.find("weights-on-disk=1") != std::string::npos);
    }

    void whatTheUserSaidHolds()
    {
        const std::size_t budget = hostBytesOf(kAllOnDisk) + 100'000;
        const RunSetup setup =
            chosen(setupOf(budget, "ssd-vertical", {{"gradients-on-disk", "0.5"}}));
        QCOMPARE(setup.spec.policyOptions.at("gradients-on-disk"), std::string("0.5"));
        QVERIFY(!setup.limit.empty()); // names the shortage
    }

    void whereNothingFitsAllIsOnDisk()
    {
        const RunSetup setup = chosen(setupOf(1000, "ssd-vertical"));
        QVERIFY(setup.limit.find("host memory: needs") != std::string::npos);
        QCOMPARE(weightsOf(setup), 1.0);
        QCOMPARE(gradientsOf(setup), 1.0);
    }

    // With many micro-batches boundaries take the most bytes. They leave the host after state, and
    // before gradients and weights.
    void boundariesLeaveBeforeGradientsAndWeights()
    {
        const auto setupWith = [](std::size_t hostBytes) {
            RunSetup setup = setupOf(hostBytes, "ssd-vertical");
            setup.shape.boundaryBytes = 100'000;
            setup.step.microBatches = 16;
            return setup;
        };
        const auto needed = [&](const Options& options) {
            RunSetup setup = setupWith(0);
            for (const auto& [option, value] : options)
                setup.spec.policyOptions.insert_or_assign(option, value);
            if (!planWith(
                    setup, trialOf("ssd-vertical", setup.spec.policyOptions, Recompute::Block))
                     .ok())
                qFatal("no plan");
            return setup.memory.bytes(Tier::PinnedHost);
        };
        const std::size_t least = needed(kAllOnDisk);
        const std::size_t withBoundaries = needed({{"boundaries-on-disk", "1"}});
        const std::size_t most = needed({});
        QVERIFY(most - withBoundaries > 10'000'000); // seven layers of 16 micro-batches are 11 MB
        QVERIFY(withBoundaries - least > 3'000'000);

        const RunSetup few = chosen(setupWith((most + withBoundaries) / 2));
        QVERIFY(few.limit.empty());
        QVERIFY(boundariesOf(few) > 0.4 && boundariesOf(few) < 0.6);
        QCOMPARE(gradientsOf(few), 0.0);
        QCOMPARE(weightsOf(few), 0.0);
        const RunSetup some = chosen(setupWith((withBoundaries + least) / 2));
        QVERIFY(some.limit.empty());
        QCOMPARE(boundariesOf(some), 1.0);
        QVERIFY(gradientsOf(some) > 0.0);
        const RunSetup all = chosen(setupWith(least));
        QVERIFY(all.limit.empty());
        QCOMPARE(boundariesOf(all), 1.0);
        QCOMPARE(weightsOf(all), 1.0);
        QVERIFY(some.diskTraffic.readBytes < all.diskTraffic.readBytes);
        QVERIFY(few.diskTraffic.readBytes < some.diskTraffic.readBytes);
    }

    void boundariesOfTheDeviceStayThere()
    {
        const RunSetup setup =
            chosen(setupOf(hostBytesOf(kAllOnDisk), "ssd-vertical", {{"boundary", "device"}}));
        QCOMPARE(setup.spec.policyOptions.count("boundaries-on-disk"), std::size_t{0});
        QCOMPARE(weightsOf(setup), 1.0);
    }

    // Gradients that their updates follow cost the disk nothing, so state has the memory first.
    void whereNothingIsClippedStateComesBackBeforeGradients()
    {
        RunSetup eager = setupOf(0, "ssd-vertical", {{"late", "0"}});
        eager.step.clipNorm = 0.0;
        Options all = kAllOnDisk;
        all.insert(eager.spec.policyOptions.begin(), eager.spec.policyOptions.end());
        QVERIFY(planWith(eager, trialOf("ssd-vertical", all, Recompute::Block)).ok());
        const std::size_t least = eager.memory.bytes(Tier::PinnedHost);
        const std::int64_t most = eager.diskTraffic.readBytes + eager.diskTraffic.writtenBytes;
        std::int64_t moved = most;
        double state = 1.0;
        for (int part = 12; part <= 18; part += 2) {
            // Room for the weights of a million elements, 2 bytes each; the rest is less than
            // gradients in memory need.
            eager = setupOf(
                least + 200'000 * static_cast<std::size_t>(part), "ssd-vertical", {{"late", "0"}});
            eager.step.clipNorm = 0.0;
            const RunSetup setup = chosen(std::move(eager));
            QVERIFY2(setup.limit.empty(), setup.limit.c_str());
            QCOMPARE(weightsOf(setup), 0.0);
            QCOMPARE(gradientsOf(setup), shareOf(setup, "disk-share", 1.0));
            QVERIFY(gradientsOf(setup) < state);
            state = gradientsOf(setup);
            const std::int64_t both = setup.diskTraffic.readBytes + setup.diskTraffic.writtenBytes;
            QVERIFY(both < moved);
            moved = both;
        }
        QVERIFY(state < 0.9 && moved < most / 10 * 8);
    }

    // No late share is faster, be the disk, the layers or the host's updates slow.
    void theLateShareIsTheFastestByForecast_data()
    {
        QTest::addColumn<double>("clip");
        QTest::addColumn<double>("diskBytesPerSecond");
        QTest::addColumn<double>("flops");
        QTest::addColumn<QString>("policy");
        for (const double clip : {0.0, 1.0})
            for (const double disk : {1e6, 1e8})
                for (const double flops : {1e3, 1e5})
                    for (const char* policy : {"ssd-vertical", "auto"})
                        QTest::addRow("clip %g, disk %g, flops %g, %s", clip, disk, flops, policy)
                            << clip << disk << flops << QString::fromUtf8(policy);
    }

    void theLateShareIsTheFastestByForecast()
    {
        QFETCH(const double, clip);
        QFETCH(const double, diskBytesPerSecond);
        QFETCH(const double, flops);
        QFETCH(const QString, policy);
        RunSetup setup = setupOf(hostBytesOf(kAllOnDisk) + 200'000, policy.toStdString());
        setup.budget.deviceBytes = 6'000'000; // not the whole model
        setup.step.clipNorm = clip;
        setup.rates = rates(1e9, 1e9, 1e8, 1e9, flops);
        setup.rates.diskReadBytesPerSecond = diskBytesPerSecond;
        setup.rates.diskWriteBytesPerSecond = diskBytesPerSecond;

        setup = chosen(std::move(setup));

        QCOMPARE(setup.spec.policy, std::string("ssd-vertical"));
        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        QVERIFY2(setup.reason.find("of the late shares tried") != std::string::npos,
            setup.reason.c_str());
        const double taken = setup.forecast.stepSeconds;
        QVERIFY(taken > 0.0);
        const std::string late = setup.spec.policyOptions.at("late");
        QVERIFY(clip > 0.0 || late != "1");
        for (const char* other : {"0", "0.1", "0.25", "0.5", "1"}) {
            Options options = setup.spec.policyOptions;
            options["late"] = other;
            QVERIFY(planWith(setup, trialOf("ssd-vertical", options, Recompute::Block)).ok());
            const bool isOpen = clip > 0.0 || std::string(other) != "1";
            QVERIFY(!isOpen || setup.forecast.stepSeconds > 0.989 * taken);
        }
    }

    void lateSharesDifferByWhatIsSlow()
    {
        std::set<std::string> all;
        for (const double clip : {0.0, 1.0})
            for (const double disk : {1e6, 1e7, 1e8}) {
                RunSetup setup = setupOf(hostBytesOf(kAllOnDisk) + 200'000, "ssd-vertical");
                setup.step.clipNorm = clip;
                setup.rates = rates(1e9, 1e9, 1e8, 1e9, 3e3);
                setup.rates.diskReadBytesPerSecond = setup.rates.diskWriteBytesPerSecond = disk;
                all.insert(chosen(std::move(setup)).spec.policyOptions.at("late"));
            }
        QVERIFY(all.size() > 1);
    }

    // Late gradients need stages on their way to the disk.
    void wherePlacesForLateGradientsDoNotFitNothingIsLate()
    {
        const auto eager = [](std::size_t hostBytes) {
            RunSetup setup = setupOf(hostBytes, "ssd-vertical");
            setup.step.clipNorm = 0.0;
            setup.rates = rates(1e9, 1e9, 1e8, 1e9, 1e5);
            setup.rates.diskReadBytesPerSecond = setup.rates.diskWriteBytesPerSecond = 1e7;
            return setup;
        };
        RunSetup least = eager(0);
        Options all = kAllOnDisk;
        all.insert({{"tile", "8KiB"}, {"late", "0"}});
        QVERIFY(planWith(least, trialOf("ssd-vertical", all, Recompute::Block)).ok());

        const RunSetup setup = chosen(eager(least.memory.bytes(Tier::PinnedHost)));

        QVERIFY2(setup.limit.empty(), setup.limit.c_str());
        QCOMPARE(setup.spec.policyOptions.at("late"), std::string("0"));
    }

    // Where the disk is hidden with or without, nothing is late that would have to be spilled.
    void nothingIsLateForNothing()
    {
        RunSetup setup = setupOf(hostBytesOf(kAllOnDisk) + 200'000, "ssd-vertical");
        setup.step.clipNorm = 0.0;
        setup.rates = rates(1e12, 1e12, 1e12, 1e12, 1.0);
        setup.rates.diskReadBytesPerSecond = setup.rates.diskWriteBytesPerSecond = 1e12;
        QCOMPARE(chosen(std::move(setup)).spec.policyOptions.at("late"), std::string("0"));
    }

    void aLateShareThatWasSaidHolds()
    {
        RunSetup setup =
            setupOf(hostBytesOf(kAllOnDisk) + 200'000, "ssd-vertical", {{"late", "0.1"}});
        setup.rates = rates(1e9, 1e9, 1e8, 1e9, 1e5);
        setup.rates.diskReadBytesPerSecond = setup.rates.diskWriteBytesPerSecond = 1e7;
        setup = chosen(std::move(setup));
        QCOMPARE(setup.spec.policyOptions.at("late"), std::string("0.1"));
        QVERIFY(setup.reason.find("late shares") == std::string::npos);
    }

    void windowsKeepOnDiskWhatTheHostLacks_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::newRow("zenflow") << "zenflow";
        QTest::newRow("zero-offload-dpu") << "zero-offload-dpu";
    }

    void windowsKeepOnDiskWhatTheHostLacks()
    {
        QFETCH(const QString, policy);
        const std::string name = policy.toStdString();
        const std::size_t all = windowBytesOf("0", name);
        const std::size_t least = windowBytesOf("1", name);
        QVERIFY(all > least + 5'000'000); // out of 10 bytes each for a million elements
        const std::size_t budget = least + (all - least) / 2;

        const RunSetup fits = chosen(windowSetup(all, name));
        const RunSetup half = chosen(windowSetup(budget, name));
        const RunSetup none = chosen(windowSetup(least, name));
        const RunSetup lacks = chosen(windowSetup(least - 1, name));

        QCOMPARE(fits.spec.policyOptions.count("disk-share"), std::size_t{0});
        QVERIFY(half.limit.empty() && none.limit.empty());
        const double share = shareOf(half, "disk-share", 0.0);
        QVERIFY(share > 0.4 && share < 0.7);
        QVERIFY(windowBytesOf(std::to_string(share - 1.0 / 64), name) > budget);
        QCOMPARE(shareOf(none, "disk-share", 0.0), 1.0);
        QVERIFY(half.reason.find("what host memory lacks is on disk") == 0);
        QVERIFY(lacks.limit.find("host memory: needs") != std::string::npos);
    }

    void withoutAFolderWindowsStayInMemory()
    {
        RunSetup setup = windowSetup(windowBytesOf("1"));
        setup.spec.diskPaths.clear();
        const RunSetup lacks = chosen(std::move(setup));
        QVERIFY(lacks.limit.find("host memory: needs") != std::string::npos);
        QCOMPARE(lacks.spec.policyOptions.count("disk-share"), std::size_t{0});
    }

    // Before there is a checkpoint, within which the host's job counts tiles.
    void aHostThatIsShortKeepsMoreOfAWindowOnDisk()
    {
        const std::size_t all = windowBytesOf("0");
        const std::size_t least = windowBytesOf("1");
        RunSetup before = windowSetup(least + (all - least) / 4 * 3);
        before.asked = before.spec;
        before = chosen(std::move(before));
        const double share = shareOf(before, "disk-share", 0.0);
        QVERIFY(share > 0.0 && share < 0.5);
        const MemoryShortage shortage{Tier::PinnedHost, least + (all - least) / 4};

        auto more = replan(before, shortage, ReplanScope::Any);
        const auto same = replan(before, shortage, ReplanScope::SamePolicy);

        QVERIFY2(more.ok(), more.status().message().c_str());
        QCOMPARE(more.value().spec.policy, std::string("zenflow"));
        QVERIFY(shareOf(more.value(), "disk-share", 0.0) > share);
        QVERIFY(!same.ok());
    }

    // A step of a window of four writes a quarter of the bytes of a step with interval 1.
    void aStepWritesItsPartOfAWindow()
    {
        const auto writtenBy = [](const std::string& interval) {
            const RunSetup setup = chosen(windowSetup(
                endless().hostBytes, "zenflow", {{"interval", interval}, {"disk-share", "1"}}));
            return setup.diskTraffic.writtenBytes;
        };
        const auto once = writtenBy("1");
        QVERIFY(once > 10 * 1'000'000);
        QCOMPARE(writtenBy("4"), once / 4);
        QCOMPARE(writtenBy("8"), once / 8);
    }

    // Stale policies are allowed and steps wait for the disk.
    void autoTakesWindowsOverASlowDisk()
    {
        const auto choose = [](bool allowStale) {
            RunSetup setup = windowSetup(windowBytesOf("1"), "auto");
            setup.spec.allowStale = allowStale;
            setup.spec.policyOptions = {{"tile", "8KiB"}};
            setup.budget.deviceBytes = 20'000'000; // weights and sums, but no state
            setup.rates.hostAdamwElementsPerSecond = 1e9;
            setup.rates.deviceAdamwElementsPerSecond = 1e10;
            setup.rates.deviceFlopsPerSecond = 1e12;
            setup.rates.hostToDeviceBytesPerSecond = 1e10;
            setup.rates.deviceToHostBytesPerSecond = 1e10;
            setup.rates.diskReadBytesPerSecond = 1e8;
            setup.rates.diskWriteBytesPerSecond = 1e8;
            return chosen(std::move(setup));
        };

        const RunSetup exact = choose(false);
        const RunSetup windows = choose(true);

        QCOMPARE(exact.spec.policy, std::string("ssd-vertical"));
        QCOMPARE(windows.spec.policy, std::string("zenflow"));
        QVERIFY(shareOf(windows, "disk-share", 0.0) > 0.0);
        QVERIFY(windows.forecast.stepSeconds < exact.forecast.stepSeconds / 2);
    }

    // Nothing is written, so the model's own files are read without a folder or room on the disk.
    void whatTheHostLacksOfAnAdaptersModelIsReadFromItsFiles()
    {
        const RunSetup inMemory = chosen(adapterSetup(kRest + 2'000'000, "auto"));
        QCOMPARE(inMemory.spec.policy, std::string("streamed"));
        QCOMPARE(inMemory.memory.bytes(Tier::Disk), std::size_t{0});
        double before = 0.0;
        for (const std::size_t host : {kRest + 700'000, kRest + 350'000, kRest}) {
            const RunSetup setup = chosen(adapterSetup(host, "auto"));
            QCOMPARE(setup.limit, std::string());
            QCOMPARE(setup.spec.policy, std::string("ssd-vertical"));
            QVERIFY(setup.memory.bytes(Tier::PinnedHost) <= host);
            QCOMPARE(setup.memory.scratchBytes(), std::size_t{0});
            QCOMPARE(setup.diskTraffic.writtenBytes, 0);
            QVERIFY(setup.diskTraffic.readBytes > 0);
            const double bytes = static_cast<double>(setup.memory.bytes(Tier::Disk));
            QVERIFY(bytes > before);
            before = bytes;
        }
    }

    void anAdapterIsReadAsFarAsItIsAskedFor()
    {
        const RunSetup all =
            chosen(adapterSetup(kRest + 2'000'000, "ssd-vertical", {{"weights-on-disk", "1"}}));
        QCOMPARE(all.memory.bytes(Tier::Disk), std::size_t{8 * 200'000});
        QCOMPARE(all.memory.bytes(Tier::PinnedHost, MemoryUse::FrozenWeights), std::size_t{0});
        const RunSetup none = chosen(adapterSetup(kRest + 2'000'000, "ssd-vertical"));
        QCOMPARE(none.memory.bytes(Tier::Disk), std::size_t{0});
        QVERIFY(none.numbers.late == std::nullopt);
        // A share that was said bounds that of the weights.
        const RunSetup half =
            chosen(adapterSetup(kRest + 900'000, "ssd-vertical", {{"disk-share", "0.5"}}));
        QCOMPARE(half.limit, std::string());
        QVERIFY(weightsOf(half) > 0.0 && weightsOf(half) <= 0.5);
    }

    // Another form than the run's needs a file, and so a folder.
    void weightsOfAnotherFormNeedAFolder()
    {
        RunSetup setup = adapterSetup(kRest, "auto");
        setup.readsOwnFiles = false;
        const RunSetup streamed = chosen(std::move(setup));
        QVERIFY(streamed.spec.policy != "ssd-vertical" && !streamed.limit.empty());
        setup = adapterSetup(kRest, "ssd-vertical");
        setup.readsOwnFiles = false;
        const RunSetup refused = chosen(std::move(setup));
        QVERIFY2(
            refused.limit.find("no scratch folder is named for a file of") != std::string::npos,
            refused.limit.c_str());
        setup = adapterSetup(kRest, "auto");
        setup.readsOwnFiles = false;
        setup.spec.diskPaths = {"/"};
        const RunSetup prepared = chosen(std::move(setup));
        QCOMPARE(prepared.limit, std::string());
        QCOMPARE(prepared.spec.policy, std::string("ssd-vertical"));
    }

    // `auto` takes the disk where streaming does not fit, and keeps as much in memory as fits.
    void autoKeepsStateInMemoryWhileItCan()
    {
        // Half of ten bytes for each of a million elements.
        const std::size_t budget = hostBytesOf({}) + 5'000'000;
        RunSetup setup = setupOf(budget, "auto", {{"tile", "8KiB"}});
        setup.budget.deviceBytes = 6'000'000; // not the whole model
        const RunSetup half = chosen(std::move(setup));
        QCOMPARE(half.spec.policy, std::string("ssd-vertical"));
        const double share = shareOf(half, "disk-share", 1.0);
        QVERIFY(share > 0.3 && share < 1.0);
        QCOMPARE(weightsOf(half), 0.0);
        QCOMPARE(gradientsOf(half), 0.0);
        QVERIFY(half.memory.bytes(Tier::PinnedHost) > budget / 10 * 9);
    }
};

MR_TEST_WITH_APP(TestDiskChoice)

} // namespace mr::test::tst_disk_choice

#include "tst_disk_choice.moc"
