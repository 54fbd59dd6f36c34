// Names and options: known ones make a policy, the rest is refused by name.

#include "core/plan/placement.h"
#include "core/plan/policies.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

namespace mr::test::tst_policies {

class TestPolicies : public QObject
{
    Q_OBJECT

private:
    static QString refusal(
        std::string_view name, const std::map<std::string, std::string>& options = {})
    {
        const Result<OffloadPolicy> made = makePolicy(name, options);
        if (made.ok() || made.status().kind() != ErrorKind::InvalidArgument)
            return {};
        return QString::fromStdString(made.status().message());
    }

private Q_SLOTS:
    void everyBuiltPolicyOfTheTableIsMadeWithFourAnswers()
    {
        int built = 0;
        for (const PolicyInfo& info : policyTable()) {
            Result<OffloadPolicy> made = makePolicy(info.name, {});

            QVERIFY(made.ok());
            QVERIFY(made.value().name == info.name);
            QVERIFY(made.value().traversal && made.value().placement && made.value().router &&
                    made.value().clock);
            ++built;
        }
        QCOMPARE(built, 7);
    }

    void unknownNamesAreRefusedWithTheOnesThatExist()
    {
        QCOMPARE(refusal("fast"),
            QStringLiteral("policy 'fast' is not known; use resident, zero-offload, "
                           "zero-offload-dpu, deep-optimizer-states, zenflow, streamed, "
                           "ssd-vertical"));
    }

    void everyPolicyTakesAnOrder()
    {
        Result<OffloadPolicy> made = makePolicy("resident", {{"order", "by-layer"}});

        QVERIFY(made.ok());
        const auto order = made.value().traversal->order(2, 2);
        QCOMPARE(order[1].micro.value, 1);
        QCOMPARE(order[1].layer.value, 0);
    }

    void ordersThatDoNotExistAreRefused()
    {
        QVERIFY(refusal("resident", {{"order", "sideways"}}).contains(QStringLiteral("sideways")));
    }

    void optionsOfOtherPoliciesAreRefusedWithTheirOwner()
    {
        QCOMPARE(refusal("resident", {{"disk-share", "1"}}),
            QStringLiteral("policy option 'disk-share' is not of this policy; 'resident' takes "
                           "order, clip-mode, state"));
        QCOMPARE(refusal("resident", {{"urgent", "0.1"}}),
            QStringLiteral("policy option 'urgent' is not of this policy; 'resident' takes order, "
                           "clip-mode, state"));
        QVERIFY(refusal("zero-offload", {{"colour", "red"}}).contains(QStringLiteral("not known")));
    }

    void optionsOfAnotherBuiltPolicyAreRefusedWithWhatThisOneTakes()
    {
        QCOMPARE(refusal("resident", {{"late", "0.5"}}),
            QStringLiteral("policy option 'late' is not of this policy; 'resident' takes order, "
                           "clip-mode, state"));
        QCOMPARE(refusal("resident", {{"tile", "1MiB"}}),
            QStringLiteral("policy option 'tile' is not of this policy; 'resident' takes order, "
                           "clip-mode, state"));
        QCOMPARE(refusal("zero-offload", {{"device-share", "0.5"}}),
            QStringLiteral("policy option 'device-share' is not of this policy; 'zero-offload' "
                           "takes order, clip-mode, tile, late, state"));
        QVERIFY(refusal("deep-optimizer-states", {{"interval", "4"}})
                    .endsWith(
                        QStringLiteral("takes order, clip-mode, tile, late, device-share, state")));
    }

    void compactStateIsTakenByEveryPolicy()
    {
        for (const PolicyInfo& info : policyTable()) {
            QVERIFY(makePolicy(info.name, {}).value().stateCodec == StateCodec::Plain);
            QVERIFY(
                makePolicy(info.name, {{"state", "fp32"}}).value().stateCodec == StateCodec::Plain);
            QVERIFY(makePolicy(info.name, {{"state", "compact"}}).value().stateCodec ==
                    StateCodec::Compact);
        }
        QCOMPARE(refusal("resident", {{"state", "half"}}),
            QStringLiteral("policy option state=half: want fp32 or compact"));
    }

    void homesOfStreamedWeightsAreShares()
    {
        const ModelShape shape = smallShape(10);
        const auto homes = [&](const std::map<std::string, std::string>& options) {
            int weights = 0;
            int states = 0;
            Result<OffloadPolicy> made = makePolicy("streamed", options);
            if (!made.ok())
                return std::pair(-1, -1);
            for (const GroupPlacement& home : made.value().placement->place(shape, {}, {})) {
                weights += home.weights == Tier::Device ? 1 : 0;
                states += home.state == Tier::Device && home.deviceShare == 1.0 ? 1 : 0;
            }
            return std::pair(weights, states);
        };
        QCOMPARE(homes({}), std::pair(2, 0)); // embedding and head
        QCOMPARE(homes({{"weights-on-device", "0.3"}}), std::pair(5, 0));
        QCOMPARE(
            homes({{"weights-on-device", "0.6"}, {"state-on-device", "0.2"}}), std::pair(8, 2));
        QCOMPARE(homes({{"weights-on-device", "1"}, {"state-on-device", "1"}}), std::pair(12, 12));
        QVERIFY(refusal("streamed", {{"state-on-device", "0.2"}})
                    .contains(QStringLiteral("state stays only where weights stay")));
        QCOMPARE(makePolicy("streamed", {}).value().buffers, 2);
        QCOMPARE(makePolicy("streamed", {{"buffers", "1"}}).value().buffers, 1);
        QCOMPARE(makePolicy("streamed", {{"turns", "1"}}).value().buffers, 1); // earlier spelling
        QVERIFY(refusal("streamed", {{"buffers", "3"}}).contains(QStringLiteral("want 1 or 2")));
        QVERIFY(refusal("streamed", {{"boundary", "disk"}})
                    .contains(QStringLiteral("want host or device")));
        QVERIFY(refusal("zero-offload", {{"boundary", "host"}})
                    .contains(QStringLiteral("is not of this policy")));
        QVERIFY(refusal("streamed", {{"weights-on-device", "2"}})
                    .contains(QStringLiteral("want a share from 0 to 1")));
        QCOMPARE(makePolicy("streamed", {}).value().clock->rule(GroupId{1}, 5, {}).lateShare, 1.0);
    }

    // No share unless asked for. The device updates a group whole when it keeps the group's state.
    void aShareOfWhatStreamsIsTheDevices()
    {
        const ModelShape shape = smallShape(10);
        const auto onDevice = [&](std::map<std::string, std::string> options) {
            options.insert({{"weights-on-device", "0.6"}, {"state-on-device", "0.2"}});
            std::int64_t elements = 0;
            Result<OffloadPolicy> made = makePolicy("streamed", options);
            if (!made.ok())
                return std::int64_t{-1};
            for (const GroupPlacement& home : made.value().placement->place(shape, {}, {}))
                elements += firstHostElement(home.deviceShare, kGroupElements);
            return elements;
        };
        const auto kWhole = 2 * kGroupElements; // two blocks of ten
        QCOMPARE(onDevice({}), kWhole);
        QCOMPARE(onDevice({{"device-share", "0"}}), kWhole);
        QCOMPARE(onDevice({{"device-share", "0.5"}}), kWhole + 10 * kGroupElements / 2);
        QCOMPARE(onDevice({{"device-share", "auto"}}), kWhole + 10 * kGroupElements / 4);
        QCOMPARE(onDevice({{"device-share", "1"}}), 12 * kGroupElements);
        for (int percent = 0; percent <= 100; ++percent) { // cut as if the others were not there
            const std::int64_t elements =
                onDevice({{"device-share", std::to_string(percent / 100.0)}}) - kWhole;
            QVERIFY(std::abs(100 * elements - percent * 10 * kGroupElements) <=
                    100 * (kCutElements / 2 + 1));
        }
        QVERIFY(
            refusal("streamed", {{"device-share", "some"}}).contains(QStringLiteral("or auto")));
    }

    void columnsAreComparedByTheirSquaresUnlessAsked()
    {
        const auto energyOf = [](const std::map<std::string, std::string>& options) {
            return makePolicy("zenflow", options).value().columnEnergy;
        };

        QVERIFY(energyOf({}) == ColumnEnergy::Squares);
        QVERIFY(energyOf({{"energy", "l2"}}) == ColumnEnergy::Squares);
        QVERIFY(energyOf({{"energy", "l1"}}) == ColumnEnergy::Absolutes);
        QCOMPARE(refusal("zenflow", {{"energy", "max"}}),
            QStringLiteral("policy option energy=max: want l2 or l1"));
        QVERIFY(refusal("zero-offload-dpu", {{"energy", "l1"}})
                    .startsWith(QStringLiteral("policy option 'energy' is not of this policy")));
    }

    void theMagnitudeRuleComparesMeansOfTheWarmUp()
    {
        const OffloadPolicy policy = policyWith("zenflow", {{"interval", "magnitude"}});

        QVERIFY(policy.intervalByMagnitude);
        QVERIFY(policy.columnEnergy == ColumnEnergy::Absolutes);
        QCOMPARE(policy.clock->rule(GroupId{0}, kWholeRun, {}).windowSteps, 4); // a stand-in
        QVERIFY(!policyWith("zenflow", {{"interval", "auto"}}).intervalByMagnitude);
        QVERIFY(!policyWith("zenflow", {{"interval", "4"}}).intervalByMagnitude);
        QVERIFY(makePolicy("zenflow", {{"interval", "magnitude"}, {"energy", "l1"}}).ok());
        const auto refused = [](const std::string& option, const std::string& value) {
            return refusal("zenflow", {{"interval", "magnitude"}, {option, value}});
        };
        QVERIFY(refused("energy", "l2").contains(QStringLiteral("leave energy away")));
        QVERIFY(refused("warmup", "0").contains(QStringLiteral("want warmup=1 or more")));
        for (const char* share : {"0", "1"})
            QVERIFY(refused("urgent", share).contains(QStringLiteral("above 0 and below 1")));
        QVERIFY(refusal("zenflow", {{"interval", "often"}})
                    .endsWith(QStringLiteral("to 1000000, auto or magnitude")));
        QVERIFY(refusal("zero-offload-dpu", {{"interval", "magnitude"}})
                    .contains(QStringLiteral("is not of this policy")));
    }

    void windowsAreSummedOnTheHostUnlessAsked()
    {
        for (const char* name : {"zenflow", "zero-offload-dpu"}) {
            const auto siteOf = [name](const std::map<std::string, std::string>& options) {
                return makePolicy(name, options).value().windowSums;
            };
            QVERIFY(siteOf({}) == Tier::PinnedHost);
            QVERIFY(siteOf({{"accumulate-on", "auto"}}) == Tier::PinnedHost);
            QVERIFY(siteOf({{"accumulate-on", "host"}}) == Tier::PinnedHost);
            QVERIFY(siteOf({{"accumulate-on", "device"}}) == Tier::Device);
        }
        QCOMPARE(refusal("zenflow", {{"accumulate-on", "disk"}}),
            QStringLiteral("policy option accumulate-on=disk: want device, host or auto"));
        QVERIFY(
            refusal("zero-offload", {{"accumulate-on", "device"}})
                .startsWith(QStringLiteral("policy option 'accumulate-on' is not of this policy")));
    }

    void clippingByGroupIsTakenWhereThereAreNoWindows()
    {
        for (const PolicyInfo& info : policyTable()) {
            auto exact = makePolicy(info.name, {{"clip-mode", "exact"}});
            QVERIFY(exact.ok() && exact.value().clipMode == ClipMode::Exact);
            auto byGroup = makePolicy(info.name, {{"clip-mode", "per-group"}});
            QCOMPARE(byGroup.ok(), info.exact);
            if (byGroup.ok())
                QVERIFY(byGroup.value().clipMode == ClipMode::PerGroup);
            else
                QVERIFY(QString::fromStdString(byGroup.status().message())
                            .contains(QStringLiteral("clipped by the norm of all groups")));
        }
    }

    void aClipModeThatHasNoPlaceIsRefusedByName()
    {
        QVERIFY(refusal("resident", {{"clip-mode", "previous-norm"}})
                    .contains(QStringLiteral("are of light optimizers")));
        QVERIFY(refusal("resident", {{"clip-mode", "soft"}}).contains(QStringLiteral("not known")));
    }

    void lateShareIsTheClocks()
    {
        for (const char* name : {"zero-offload", "deep-optimizer-states"}) {
            Result<OffloadPolicy> made = makePolicy(name, {{"late", "0.375"}});
            Result<OffloadPolicy> plain = makePolicy(name, {});

            QVERIFY(made.ok() && plain.ok());
            const UpdateRule rule = made.value().clock->rule(GroupId{1}, 5, {});
            QCOMPARE(rule.lateShare, 0.375);
            QCOMPARE(rule.windowSteps, 1);
            QCOMPARE(rule.maxStaleSteps, 0);
            QCOMPARE(plain.value().clock->rule(GroupId{1}, 5, {}).lateShare, 0.0);
        }
    }

    // Two bytes per element; cut down to a multiple.
    void tileIsBytesOfAnUpload()
    {
        const auto elements = [](const char* value) {
            Result<OffloadPolicy> made = makePolicy("zero-offload", {{"tile", value}});
            return made.ok() ? made.value().tileElements : -1;
        };
        QCOMPARE(elements("64MiB"), kTileElements);
        QCOMPARE(elements("2KiB"), std::int64_t{1024});
        QCOMPARE(elements("2049"), std::int64_t{1024});
        QCOMPARE(elements("5KiB"), std::int64_t{2048});
        QCOMPARE(elements("16GiB"), std::int64_t{1} << 33);
        Result<OffloadPolicy> plain = makePolicy("deep-optimizer-states", {});
        QVERIFY(plain.ok());
        QCOMPARE(plain.value().tileElements, kTileElements);
    }

    void deviceShareIsANumberOrFollowsFromRates()
    {
        ModelShape shape;
        shape.groups.resize(2);
        for (GroupShape& group : shape.groups)
            group.elements = 1048576;
        const auto firstOnHost = [&](const std::map<std::string, std::string>& options) {
            Result<OffloadPolicy> made = makePolicy("deep-optimizer-states", options);
            if (!made.ok())
                return std::int64_t{-1};
            const auto placed = made.value().placement->place(shape, {}, {});
            return firstHostElement(placed[1].deviceShare, shape.groups[1].elements);
        };

        QCOMPARE(firstOnHost({{"device-share", "0.5"}}), std::int64_t{524288});
        QCOMPARE(firstOnHost({{"device-share", "1"}}), std::int64_t{1048576});
        QCOMPARE(firstOnHost({{"device-share", "0"}}), std::int64_t{0});
        // Without rates a quarter.
        QCOMPARE(firstOnHost({{"device-share", "auto"}}), std::int64_t{262144});
        QCOMPARE(firstOnHost({}), std::int64_t{262144});
    }

    void valuesThatMakeNoSenseAreRefused_data()
    {
        QTest::addColumn<QString>("option");
        QTest::addColumn<QString>("value");
        for (const char* option : {"late", "device-share"}) {
            for (const char* value : {"", "1.5", "-0.1", "nan", "inf", "half", "0.5x", " 0.5"})
                QTest::addRow("%s=%s", option, value)
                    << QString::fromUtf8(option) << QString::fromUtf8(value);
        }
        for (const char* value : {"0", "-1", "1000", "nan", "twice"})
            QTest::addRow("host-lr=%s", value)
                << QStringLiteral("host-lr") << QString::fromUtf8(value);
        for (const char* value : {"0", "-1", "2.5", "often", "9999999"})
            QTest::addRow("interval=%s", value)
                << QStringLiteral("interval") << QString::fromUtf8(value);
        for (const char* value : {"-1", "x", "1e3"})
            QTest::addRow("warmup=%s", value)
                << QStringLiteral("warmup") << QString::fromUtf8(value);
        QTest::addRow("overlap=yes") << QStringLiteral("overlap") << QStringLiteral("yes");
        QTest::addRow("host-clock=3") << QStringLiteral("host-clock") << QStringLiteral("3");
        QTest::addRow("energy=l3") << QStringLiteral("energy") << QStringLiteral("l3");
        QTest::addRow("urgent=2") << QStringLiteral("urgent") << QStringLiteral("2");
        QTest::addRow("late=auto") << QStringLiteral("late") << QStringLiteral("auto");
        for (const char* value : {"", "0", "2047", "17GiB", "-1", "much"})
            QTest::addRow("tile=%s", value) << QStringLiteral("tile") << QString::fromUtf8(value);
    }

    void valuesThatMakeNoSenseAreRefused()
    {
        QFETCH(const QString, option);
        QFETCH(const QString, value);

        const QStringList ofWindows{QStringLiteral("host-lr"), QStringLiteral("host-clock"),
            QStringLiteral("interval"), QStringLiteral("warmup"), QStringLiteral("overlap"),
            QStringLiteral("urgent"), QStringLiteral("energy")};
        const QString message =
            refusal(ofWindows.contains(option) ? "zenflow" : "deep-optimizer-states",
                {{option.toStdString(), value.toStdString()}});

        QVERIFY(!message.isEmpty());
        if (option != QStringLiteral("tile"))
            QVERIFY2(message.contains(option + QStringLiteral("=") + value), qPrintable(message));
    }

    void residentKeepsAllOnTheDeviceAndZeroOffloadTheStateOnTheHost()
    {
        ModelShape shape;
        shape.groups.resize(3);
        Result<OffloadPolicy> resident = makePolicy("resident", {});
        Result<OffloadPolicy> offload = makePolicy("zero-offload", {});

        const auto device = resident.value().placement->place(shape, {}, {});
        const auto host = offload.value().placement->place(shape, {}, {});

        QCOMPARE(device.size(), std::size_t{3});
        QCOMPARE(device[2].deviceShare, 1.0);
        QVERIFY(device[2].state == Tier::Device);
        QCOMPARE(host[1].deviceShare, 0.0);
        QVERIFY(host[1].state == Tier::PinnedHost);
        QVERIFY(host[1].weights == Tier::Device);
    }

    void deepOptimizerStatesVisitFromTheHost()
    {
        ModelShape shape;
        shape.groups.resize(3);
        for (GroupShape& group : shape.groups)
            group.elements = 4096;
        Result<OffloadPolicy> made = makePolicy("deep-optimizer-states", {{"device-share", "0.5"}});

        QVERIFY(made.ok());
        for (const GroupPlacement& group : made.value().placement->place(shape, {}, {})) {
            QVERIFY(group.weights == Tier::Device);
            QVERIFY(group.state == Tier::PinnedHost);
            QVERIFY(group.deviceShare > 0.49 && group.deviceShare < 0.51);
        }
    }
};

MR_TEST(TestPolicies)

} // namespace mr::test::tst_policies

#include "tst_policies.moc"
