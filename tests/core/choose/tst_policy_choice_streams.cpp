// Whether the device has a share of the updates where weights stream.

#include "core/choose/trial.h"
#include "core/plan/placement.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <string>

namespace mr::test::tst_policy_choice_streams {

namespace {

using Options = std::map<std::string, std::string>;

RunSetup endlessSetup(double hostRate, const Options& options)
{
    RunSetup setup;
    setup.spec.policy = "auto";
    setup.spec.policyOptions = options;
    setup.shape = smallShape(8);
    setup.step.microBatches = 1;
    setup.step.clipNorm = 1.0;
    setup.budget = endless();
    setup.rates = rates(1e6, 1e6, hostRate, 1e9, 1e6);
    setup.spec.policyOptions.insert({"tile", "8KiB"});
    return setup;
}

// A run that is short of device memory. The host updates `hostRate` elements a second.
RunSetup setupOf(double hostRate, const Options& options, int microBatches = 1)
{
    RunSetup setup = endlessSetup(hostRate, options);
    setup.step.microBatches = microBatches;
    RunSetup streamed = endlessSetup(hostRate, options);
    streamed.step.microBatches = microBatches;
    Options shared = streamed.spec.policyOptions;
    shared.insert({"device-share", "1"}); // gradients take the most memory
    if (!planWith(streamed, trialOf("streamed", shared, Recompute::Block)).ok())
        qFatal("no plan");
    setup.budget.deviceBytes = streamed.memory.bytes(Tier::Device);
    return setup;
}

RunSetup chosen(RunSetup setup)
{
    const Status status = chooseFromOptions(setup);
    if (!status.ok() || !setup.limit.empty())
        qFatal("no policy: %s%s", status.message().c_str(), setup.limit.c_str());
    return setup;
}

std::string shareOf(const RunSetup& setup)
{
    const auto share = setup.spec.policyOptions.find("device-share");
    return share == setup.spec.policyOptions.end() ? std::string() : share->second;
}

} // namespace

class TestPolicyChoiceStreams : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aSlowHostGivesAShareToTheDevice()
    {
        const RunSetup setup = chosen(setupOf(1e4, {}));

        QCOMPARE(setup.spec.policy, std::string("streamed"));
        QCOMPARE(std::stod(shareOf(setup)), balancedDeviceShare(setup.rates, kStreamedVisits));
        QVERIFY(std::stod(shareOf(setup)) > 0.5);
        QVERIFY(setup.memory.visitsStream);
    }

    void aFastHostUpdatesAll()
    {
        const RunSetup setup = chosen(setupOf(1e9, {}));

        QCOMPARE(setup.spec.policy, std::string("streamed"));
        QCOMPARE(shareOf(setup), std::string());
    }

    void withoutRatesTheHostUpdatesAll()
    {
        RunSetup setup = setupOf(1e4, {});
        setup.rates = {};
        const RunSetup plain = chosen(std::move(setup));

        QCOMPARE(plain.spec.policy, std::string("streamed"));
        QCOMPARE(shareOf(plain), std::string());
    }

    void aShareThatWasAskedForIsKept()
    {
        for (const char* share : {"0", "0.25"}) {
            const RunSetup setup = chosen(setupOf(1e4, {{"device-share", share}}));

            QCOMPARE(setup.spec.policy, std::string("streamed"));
            QCOMPARE(shareOf(setup), std::string(share));
        }
    }

    // Trials without these options are faster here.
    void whatElseWasAskedForIsKeptBesideAShare()
    {
        const RunSetup setup =
            chosen(setupOf(1e4, {{"late", "0.5"}, {"weights-on-device", "0.25"}}));

        QVERIFY(!shareOf(setup).empty());
        QCOMPARE(setup.spec.policyOptions.at("late"), std::string("0.5"));
        QCOMPARE(setup.spec.policyOptions.at("weights-on-device"), std::string("0.25"));
    }

    // The device may not keep them all. It makes them again in a tenth of a second; the link brings
    // them in 2 ms, or in 0.2 s.
    void activationsAreKeptWhereThatPays_data()
    {
        QTest::addColumn<double>("linkRate");
        QTest::addColumn<bool>("pays");
        QTest::newRow("a fast link") << 1e6 << true;
        QTest::newRow("a slow link") << 1e4 << false;
    }

    void activationsAreKeptWhereThatPays()
    {
        QFETCH(const double, linkRate);
        QFETCH(const bool, pays);
        RunSetup asked = setupOf(1e9, {}, 2);
        constexpr std::size_t kSaved = 2000;
        asked.shape.savedBytesPerBlock = kSaved;
        asked.budget.deviceBytes += 2 * kSaved;
        asked.spec.recompute = RecomputeChoice::Block;
        asked.rates.block = {0.1, 0.2, 0.1};
        asked.rates.hostToDeviceBytesPerSecond = linkRate;
        asked.rates.deviceToHostBytesPerSecond = linkRate;
        const RunSetup setup = chosen(std::move(asked));

        QCOMPARE(setup.spec.policy, std::string("streamed"));
        QCOMPARE(setup.spec.policyOptions.count("activations-on-host") > 0, pays);
        QCOMPARE(setup.memory.bytes(Tier::PinnedHost, MemoryUse::Activations),
            pays ? 8 * 2 * kSaved : std::size_t{0});
    }

    // A chosen share stays chosen: the record has the number.
    void aBalancedShareIsWrittenDown()
    {
        RunSetup asked = setupOf(1e4, {{"device-share", "auto"}});
        asked.spec.policy = "streamed";
        const RunSetup setup = chosen(std::move(asked));

        QCOMPARE(std::stod(shareOf(setup)), balancedDeviceShare(setup.rates, kStreamedVisits));
        asked = setupOf(1e4, {});
        asked.spec.policy = "streamed";
        QCOMPARE(shareOf(chosen(std::move(asked))), std::string()); // nothing was asked for
    }
};

MR_TEST(TestPolicyChoiceStreams)

} // namespace mr::test::tst_policy_choice_streams

#include "tst_policy_choice_streams.moc"
