// Another device share: taken where the forecasts say that it pays, and nowhere else.

#include "core/choose/share_choice.h"
#include "core/choose/trial.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QtTest>

#include <map>
#include <string>

namespace mr::test::tst_share_choice {

namespace {

using Options = std::map<std::string, std::string>;

// The host is slow: nearly all of the update wants to be on the device.
const Feedback kSlowHost = rates(1e9, 1e9, 1e3, 1e9, 1e9);
// The device is: all of it wants to be on the host.
const Feedback kSlowDevice = rates(1e9, 1e9, 1e9, 1e3, 1e9);

RunSetup setupOf(const Feedback& known, const Options& options = {})
{
    RunSetup setup;
    setup.spec.policy = "deep-optimizer-states";
    setup.spec.policyOptions = options;
    setup.spec.recompute = RecomputeChoice::None;
    setup.asked = setup.spec;
    setup.shape = smallShape(4);
    setup.step.microBatches = 1;
    setup.step.clipNorm = 1.0;
    setup.step.precision = Precision::BF16;
    setup.budget = endless();
    setup.rates = known;
    if (!chooseFromOptions(setup).ok() || !setup.limit.empty())
        qFatal("no policy: %s", setup.limit.c_str());
    return setup;
}

ShareDecision decide(
    const RunSetup& setup, const Feedback& measured, StepIndex left = 1000, double cost = 1.0)
{
    auto decision = decideShare(setup, measured, left, cost);
    if (!decision.ok())
        qFatal("%s", decision.status().message().c_str());
    return decision.value();
}

} // namespace

class TestShareChoice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void onlyAShareThatWasLeftOpenIsChosenAgain()
    {
        QVERIFY(isShareOpen(setupOf(kSlowHost)));
        QVERIFY(isShareOpen(setupOf(kSlowHost, {{"device-share", "auto"}})));
        QVERIFY(!isShareOpen(setupOf(kSlowHost, {{"device-share", "0.5"}})));
        RunSetup other = setupOf(kSlowHost);
        other.policy.id = PolicyId::ZeroOffload;
        QVERIFY(!isShareOpen(other));
    }

    void anExchangeMustPay_data()
    {
        QTest::addColumn<double>("now");
        QTest::addColumn<double>("then");
        QTest::addColumn<int>("left");
        QTest::addColumn<double>("cost");
        QTest::addColumn<bool>("pays");
        QTest::newRow("it does") << 1.0 << 0.5 << 100 << 49.0 << true;
        QTest::newRow("it costs more") << 1.0 << 0.5 << 100 << 51.0 << false;
        QTest::newRow("no steps are left") << 1.0 << 0.5 << 0 << 0.0 << false;
        QTest::newRow("4 % of a step") << 1.0 << 0.96 << 1'000'000 << 1.0 << true;
        QTest::newRow("2 % of a step") << 1.0 << 0.98 << 1'000'000 << 1.0 << false;
        QTest::newRow("slower") << 1.0 << 1.5 << 100 << 0.0 << false;
        QTest::newRow("the same") << 1.0 << 1.0 << 100 << 0.0 << false;
    }

    void anExchangeMustPay()
    {
        QFETCH(double, now);
        QFETCH(double, then);
        QFETCH(int, left);
        QFETCH(double, cost);
        QFETCH(bool, pays);
        QCOMPARE(paysToExchange(now, then, left, cost), pays);
    }

    void aShareFromWrongRatesIsReplacedByTheBalancedOne()
    {
        const RunSetup setup = setupOf(kSlowDevice);

        const ShareDecision decision = decide(setup, kSlowHost);

        QVERIFY(decision.isWorthIt);
        QVERIFY(decision.shareNow < 0.01);
        QVERIFY(decision.shareNew > 0.99);
        QCOMPARE(decision.shareNew, balancedDeviceShare(kSlowHost));
        QVERIFY(decision.secondsNew < 0.1 * decision.secondsNow);
        const RunSetup next = withShare(setup, decision.shareNew, kSlowHost).value();
        QCOMPARE(std::stod(next.spec.policyOptions.at("device-share")), decision.shareNew);
        QCOMPARE(next.forecast.stepSeconds, decision.secondsNew);
        QCOMPARE(next.rates.hostAdamwElementsPerSecond, 1e3);
        QVERIFY(next.limit.empty());
    }

    void theOtherWayToo()
    {
        const ShareDecision decision = decide(setupOf(kSlowHost), kSlowDevice);

        QVERIFY(decision.isWorthIt);
        QVERIFY(decision.shareNew < 0.01 && decision.shareNow > 0.99);
    }

    void ratesThatWereRightChangeNothing()
    {
        QVERIFY(!decide(setupOf(kSlowHost), kSlowHost).isWorthIt);
        QVERIFY(!decide(setupOf(kSlowDevice), kSlowDevice).isWorthIt);
    }

    void whatAnExchangeCostsMustComeBack()
    {
        const RunSetup setup = setupOf(kSlowDevice);
        const ShareDecision decision = decide(setup, kSlowHost);
        const double gain = decision.secondsNow - decision.secondsNew;

        QVERIFY(decide(setup, kSlowHost, 10, 9.9 * gain).isWorthIt);
        QVERIFY(!decide(setup, kSlowHost, 10, 10.1 * gain).isWorthIt);
    }

    void withoutRatesNothingIsForecastAndNothingChanged()
    {
        const ShareDecision decision = decide(setupOf(kSlowHost), {});

        QVERIFY(!decision.isWorthIt);
        QCOMPARE(decision.secondsNow, 0.0);
    }

    void aShareThatDoesNotFitIsNotTaken()
    {
        RunSetup setup = setupOf(kSlowDevice); // no state visits: no room for slots
        const std::size_t visiting =
            withShare(setup, 1.0, kSlowHost).value().memory.bytes(Tier::Device);
        QVERIFY(setup.memory.bytes(Tier::Device) < visiting);
        setup.budget.deviceBytes = visiting - 1;

        QVERIFY(!decide(setup, kSlowHost).isWorthIt);
    }

    void allOtherOptionsStay()
    {
        const RunSetup setup = setupOf(kSlowDevice, {{"order", "by-layer"}, {"tile", "4KiB"}});

        const RunSetup next = withShare(setup, 0.75, kSlowHost).value();

        Options expected = setup.spec.policyOptions;
        expected["device-share"] = "0.75";
        QCOMPARE(next.spec.policyOptions, expected);
        QCOMPARE(next.asked.policyOptions, setup.asked.policyOptions);
        QVERIFY(isShareOpen(next));
    }

    void theLogSaysWhatAndWhy()
    {
        const ShareDecision decision{true, 0.25, 0.75, 1.5, 1.25};

        const std::string words = shareWords(decision, rates(2e9, 3e9, 4e6, 5e9));

        for (const char* part :
            {"updates 0.750 of", "before 0.250", "2.00 GB/s to the device", "3.00 GB/s to the host",
                "4e+06", "5e+09", "1.25 s a step, before 1.5 s", "0.25 s less"})
            QVERIFY2(words.find(part) != std::string::npos, words.c_str());
    }
};

MR_TEST(TestShareChoice)

} // namespace mr::test::tst_share_choice

#include "tst_share_choice.moc"
