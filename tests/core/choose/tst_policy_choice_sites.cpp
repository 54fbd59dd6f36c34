// Where windows are summed: chosen by bytes and forecast, once, and only if it was left open.

#include "core/choose/trial.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <map>
#include <string>
#include <utility>

namespace mr::test::tst_policy_choice_sites {

namespace {

using Options = std::map<std::string, std::string>;

// A model of four blocks. A step takes 3 s; its gradients take `sendSeconds` to reach the host.
RunSetup setupOf(double sendSeconds, const Options& options)
{
    RunSetup setup;
    setup.spec.policy = "zenflow";
    setup.spec.policyOptions = options;
    setup.spec.recompute = RecomputeChoice::None;
    setup.shape = columnShape(4);
    setup.step.microBatches = 1;
    setup.step.clipNorm = 1.0;
    setup.budget = endless();
    constexpr double kGradientBytes = 2.0 * 6 * 60 * 48;
    setup.rates = rates(1e9, kGradientBytes / sendSeconds, 1e9, 1e9, 450.0);
    return setup;
}

std::string siteOf(RunSetup&& setup)
{
    if (!chooseFromOptions(setup).ok() || !setup.limit.empty())
        qFatal("no policy: %s", setup.limit.c_str());
    return setup.spec.policyOptions.at("accumulate-on");
}

} // namespace

class TestPolicyChoiceSites : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void sumsStayOnTheHostWhereTheLinkKeepsUp()
    {
        QCOMPARE(siteOf(setupOf(0.01, {{"accumulate-on", "auto"}})), std::string("host"));
    }

    void aSlowLinkMakesTheDeviceAdd()
    {
        QCOMPARE(siteOf(setupOf(6.0, {{"accumulate-on", "auto"}})), std::string("device"));
    }

    void theDeviceAddsOnlyWhereItHasTheBytes()
    {
        RunSetup setup = setupOf(6.0, {{"accumulate-on", "auto"}});
        RunSetup onDevice = setupOf(6.0, {});
        QVERIFY(
            planWith(onDevice, trialOf("zenflow", {{"accumulate-on", "device"}}, Recompute::None))
                .ok());
        setup.budget.deviceBytes = onDevice.memory.bytes(Tier::Device) - 1;

        QCOMPARE(siteOf(std::move(setup)), std::string("host"));
    }

    void aWindowOfOneStepHasNothingToSum()
    {
        RunSetup setup = setupOf(6.0, {{"interval", "1"}, {"accumulate-on", "auto"}});
        QCOMPARE(siteOf(std::move(setup)), std::string("host"));
    }

    void withoutRatesTheHostAdds()
    {
        RunSetup setup = setupOf(6.0, {{"accumulate-on", "auto"}});
        setup.rates = {};
        QCOMPARE(siteOf(std::move(setup)), std::string("host"));
    }

    // A chosen site stays chosen. A run recorded before there was a choice keeps the host.
    void nothingIsChosenTwice()
    {
        RunSetup setup = setupOf(6.0, {{"accumulate-on", "host"}});
        QVERIFY(chooseFromOptions(setup).ok());
        QVERIFY(setup.policy.windowSums == Tier::PinnedHost);
        setup = setupOf(6.0, {});
        QVERIFY(chooseFromOptions(setup).ok());
        QVERIFY(setup.policy.windowSums == Tier::PinnedHost);
        QCOMPARE(setup.spec.policyOptions.count("accumulate-on"), std::size_t{0});
    }

    void autoTriesIt()
    {
        RunSetup setup = setupOf(6.0, {});
        setup.spec.policy = "auto";
        setup.spec.allowStale = true;
        RunSetup resident = setupOf(6.0, {});
        QVERIFY(planWith(resident, trialOf("resident", {}, Recompute::None)).ok());
        setup.budget.deviceBytes = resident.memory.bytes(Tier::Device) - 1;

        QVERIFY(chooseFromOptions(setup).ok());

        QCOMPARE(setup.spec.policy, std::string("zenflow"));
        QCOMPARE(setup.spec.policyOptions.at("accumulate-on"), std::string("device"));
        QVERIFY(setup.policy.windowSums == Tier::Device);
    }
};

MR_TEST(TestPolicyChoiceSites)

} // namespace mr::test::tst_policy_choice_sites

#include "tst_policy_choice_sites.moc"
