// Which plan takes over where memory lacks, and which may not.

#include "core/choose/policy_choice.h"
#include "core/choose/replan.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

#include <memory>

namespace mr::test::tst_replan {

class TestReplan : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void itsOwnPolicyComesFirst();
    void recomputationGrowsAsMemoryLacks();
    void whatStreamsIsTheLastResort();
    void aShareOfTheDeviceGoesWhereNobodyAskedForIt();
    void whatTheUserFixedStaysFixed();
    void anExplicitPolicyIsReplacedByAnExactOneOnly();
    void whatLagsIsChosenOnlyWhereItIsAllowed();
    void whatChangesBitsIsTakenAlong();
    void whatIsFreeIsTheBudget();
    void theTierThatIsShortIsTheOneThatIsNamed();
    void whereNothingFitsItSaysWhatLacks();
    void aPolicyWithWindowsIsNotReplacedOnceItHasTrained();

private:
    static RunSetup setUp(const RunSpec& spec)
    {
        auto setup = setUpRun(spec, 0);
        if (!setup.ok())
            qFatal("%s", setup.status().message().c_str());
        return std::move(setup).value();
    }

    static std::size_t deviceBytes(const RunSetup& setup)
    {
        return setup.memory.bytes(Tier::Device);
    }

    RunRig m_rig;
};

// So little that only state on the host leaves room.
MemoryShortage muchLess(const RunSetup& setup)
{
    return {Tier::Device, setup.memory.bytes(Tier::Device) * 7 / 10};
}

void TestReplan::itsOwnPolicyComesFirst()
{
    const RunSetup before = setUp(m_rig.spec("a"));
    QCOMPARE(before.spec.recompute, RecomputeChoice::None);

    auto after = replan(before, {Tier::Device, {}}, ReplanScope::Any);

    QVERIFY2(after.ok(), after.status().message().c_str());
    const RunSetup& setup = after.value();
    QCOMPARE(setup.spec.policy, std::string("resident"));
    QCOMPARE(setup.spec.recompute, RecomputeChoice::Block);
    QVERIFY(setup.limit.empty());
    QCOMPARE(setup.step.recompute, Recompute::Block);
    QCOMPARE(setup.budget.deviceBytes, deviceBytes(before) - deviceBytes(before) / 10);
    QCOMPARE(setup.spec.deviceMemoryBytes, std::uint64_t{setup.budget.deviceBytes});
    QVERIFY(deviceBytes(setup) <= setup.budget.deviceBytes);
    QVERIFY(!setup.reason.empty());
}

// Each time the device has a little less than the plan needs.
void TestReplan::recomputationGrowsAsMemoryLacks()
{
    RunSpec spec = m_rig.spec("a");
    spec.seqLen = 60;
    spec.microBatch = 8; // so that activations are most of the memory
    RunSetup before = setUp(spec);
    QCOMPARE(before.step.recompute, Recompute::None);
    for (const Recompute next : {Recompute::Cheap, Recompute::Block}) {
        const MemoryShortage shortage{Tier::Device, deviceBytes(before) - 1};
        before.asked.recompute = choiceOf(before.step.recompute); // the user's: it stays
        auto asked = replan(before, shortage, ReplanScope::Exact);
        QVERIFY(!asked.ok() || asked.value().step.recompute == before.step.recompute);
        before.asked.recompute = RecomputeChoice::Auto;

        auto after = replan(before, shortage, ReplanScope::Exact);

        QVERIFY2(after.ok(), after.status().message().c_str());
        before = std::move(after).value();
        QCOMPARE(before.spec.policy, std::string("resident"));
        QCOMPARE(before.step.recompute, next);
        QCOMPARE(before.spec.recompute, choiceOf(next));
    }
}

// Less and less memory, until no other policy can do with it.
void TestReplan::whatStreamsIsTheLastResort()
{
    RunSetup before = setUp(m_rig.spec("a"));
    std::size_t bytes = deviceBytes(before);
    std::string policy;
    while (policy != "streamed") {
        auto after = replan(before, {Tier::Device, bytes - 1}, ReplanScope::Exact);
        QVERIFY2(after.ok(), after.status().message().c_str());
        before = std::move(after).value();
        policy = before.spec.policy;
        QVERIFY(deviceBytes(before) < bytes);
        bytes = deviceBytes(before);
    }
}

// State that visits takes slots, and more of them where weights stream.
void TestReplan::aShareOfTheDeviceGoesWhereNobodyAskedForIt()
{
    RunSpec spec = m_rig.spec("a");
    spec.policy = "streamed";
    spec.recompute = RecomputeChoice::Block;
    spec.policyOptions = {{"buffers", "1"}};
    const std::size_t least = deviceBytes(setUp(spec));
    spec.policyOptions["device-share"] = "0.5";
    RunSetup before = setUp(spec);
    QVERIFY(deviceBytes(before) > least);

    auto asked = replan(before, {Tier::Device, least}, ReplanScope::Exact);
    before.asked.policyOptions.erase("device-share");
    QVERIFY(readNumbers(before).ok());
    auto open = replan(before, {Tier::Device, least}, ReplanScope::Exact);

    QVERIFY(!asked.ok());
    QVERIFY2(open.ok(), open.status().message().c_str());
    QCOMPARE(open.value().spec.policy, std::string("streamed"));
    QCOMPARE(open.value().spec.policyOptions.count("device-share"), std::size_t{0});
}

void TestReplan::whatTheUserFixedStaysFixed()
{
    RunSpec spec = m_rig.spec("a");
    spec.recompute = RecomputeChoice::None;

    auto after = replan(setUp(spec), {Tier::Device, {}}, ReplanScope::Any);

    QVERIFY2(after.ok(), after.status().message().c_str());
    QCOMPARE(after.value().spec.policy, std::string("zero-offload"));
    QCOMPARE(after.value().spec.recompute, RecomputeChoice::None);
    QVERIFY(after.value().spec.threadedDevice);
}

void TestReplan::anExplicitPolicyIsReplacedByAnExactOneOnly()
{
    RunSpec spec = m_rig.spec("a");
    spec.policy = "zenflow";
    spec.allowStale = true;
    const RunSetup before = setUp(spec);

    auto after = replan(before, muchLess(before), ReplanScope::Any);

    QVERIFY2(after.ok(), after.status().message().c_str());
    for (const PolicyInfo& info : policyTable())
        if (info.name == after.value().spec.policy)
            QVERIFY2(info.exact, after.value().spec.policy.c_str());
    QVERIFY(after.value().spec.policyOptions.count("interval") == 0);
}

// A host so slow that only a stale policy hides it.
void TestReplan::whatLagsIsChosenOnlyWhereItIsAllowed()
{
    RunSpec spec = m_rig.spec("a");
    spec.precision = PrecisionChoice::BF16;
    spec.recompute = RecomputeChoice::None; // so that its own policy does not fit
    const auto chosen = [&](const char* asked, bool allowed, const char* state, ReplanScope scope) {
        RunSetup before = setUp(spec);
        before.asked.policy = asked;
        before.asked.allowStale = allowed;
        before.asked.policyOptions["state"] = state;
        if (!readNumbers(before).ok())
            return std::string("options");
        before.rates.hostToDeviceBytesPerSecond = 1e9;
        before.rates.deviceToHostBytesPerSecond = 1e9;
        before.rates.hostAdamwElementsPerSecond = 1e6;
        before.rates.deviceAdamwElementsPerSecond = 1e6;
        before.rates.deviceFlopsPerSecond = 1e9;
        auto after = replan(before, {Tier::Device, {}}, scope);
        return after.ok() ? after.value().spec.policy : after.status().message();
    };
    const auto isExact = [](const std::string& policy) {
        return policy == "resident" || policy == "zero-offload" ||
               policy == "deep-optimizer-states" || policy == "streamed";
    };

    for (const char* state : {"fp32", "compact"}) {
        const std::string lagging = chosen("auto", true, state, ReplanScope::Any);
        QVERIFY2(lagging == "zenflow" || lagging == "zero-offload-dpu", lagging.c_str());
    }
    QVERIFY(isExact(chosen("auto", false, "fp32", ReplanScope::Any)));
    QVERIFY(isExact(chosen("resident", true, "fp32", ReplanScope::Any)));
    QVERIFY(isExact(chosen("auto", true, "fp32", ReplanScope::Exact)));
    QVERIFY(isExact(chosen("auto", true, "compact", ReplanScope::Exact)));
}

void TestReplan::whatChangesBitsIsTakenAlong()
{
    RunSpec spec = m_rig.spec("a");
    spec.precision = PrecisionChoice::BF16;
    spec.policyOptions = {{"state", "compact"}, {"order", "by-layer-flip"}};
    spec.recompute = RecomputeChoice::Block;

    auto after = replan(setUp(spec), {Tier::Device, {}}, ReplanScope::Exact);

    QVERIFY2(after.ok(), after.status().message().c_str());
    const RunSpec& chosen = after.value().spec;
    QVERIFY2(chosen.policy != "resident", chosen.policy.c_str());
    QCOMPARE(chosen.policyOptions.at("state"), std::string("compact"));
    QCOMPARE(chosen.policyOptions.at("order"), std::string("by-layer-flip"));
}

void TestReplan::whatIsFreeIsTheBudget()
{
    const RunSetup before = setUp(m_rig.spec("a"));
    const std::size_t planned = deviceBytes(before);

    auto less = replan(before, {Tier::Device, planned * 8 / 10}, ReplanScope::Any);
    auto more = replan(before, {Tier::Device, planned * 2}, ReplanScope::Any);

    QVERIFY2(less.ok(), less.status().message().c_str());
    QCOMPARE(less.value().budget.deviceBytes, planned * 8 / 10);
    QVERIFY(more.ok()); // it was enough and failed all the same
    QCOMPARE(more.value().budget.deviceBytes, planned - planned / 10);
}

void TestReplan::theTierThatIsShortIsTheOneThatIsNamed()
{
    RunSpec spec = m_rig.spec("a");
    spec.policy = "zero-offload";
    const RunSetup before = setUp(spec);

    // Nearly all of it is the staging buffer, which every policy has.
    const auto after = replan(before, {Tier::PinnedHost, {}}, ReplanScope::Exact);

    QVERIFY(!after.ok());
    QVERIFY2(
        contains(after.status().message(), "host memory: needs"), after.status().message().c_str());
}

void TestReplan::whereNothingFitsItSaysWhatLacks()
{
    const RunSetup before = setUp(m_rig.spec("a"));

    const auto after = replan(before, {Tier::Device, 1000}, ReplanScope::Any);

    QVERIFY(!after.ok());
    QCOMPARE(after.status().kind(), ErrorKind::OutOfMemory);
    QVERIFY2(contains(after.status().message(), "no other plan fits: device memory: needs"),
        after.status().message().c_str());
}

void TestReplan::aPolicyWithWindowsIsNotReplacedOnceItHasTrained()
{
    RunSpec spec = m_rig.spec("a");
    spec.policy = "zenflow";
    const RunSetup before = setUp(spec);

    auto little = replan(before, {Tier::Device, {}}, ReplanScope::SamePolicy);
    const auto tooLittle = replan(before, muchLess(before), ReplanScope::SamePolicy);

    QVERIFY2(little.ok(), little.status().message().c_str());
    QCOMPARE(little.value().spec.policy, std::string("zenflow"));
    QCOMPARE(little.value().memory.window.tiles.size(), before.memory.window.tiles.size());
    QVERIFY(!tooLittle.ok());
}

MR_TEST(TestReplan)

} // namespace mr::test::tst_replan

#include "tst_replan.moc"
