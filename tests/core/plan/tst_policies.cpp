// Names and options: what is built is made, the rest is refused by name.

#include "core/plan/policies.h"

#include <QTest>

using namespace mr;

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

private slots:
    void everyBuiltPolicyOfTheTableIsMadeWithFourAnswers()
    {
        int built = 0;
        for (const PolicyInfo& info : policyTable()) {
            if (!info.built)
                continue;
            Result<OffloadPolicy> made = makePolicy(info.name, {});

            QVERIFY(made.ok());
            QVERIFY(made.value().name == info.name);
            QVERIFY(made.value().traversal && made.value().placement && made.value().router &&
                    made.value().clock);
            ++built;
        }
        QCOMPARE(built, 2);
    }

    void policiesThatAreNotBuiltAreRefusedByName()
    {
        for (const PolicyInfo& info : policyTable()) {
            if (info.built)
                continue;
            const QString message = refusal(info.name);

            QVERIFY2(
                message.contains(QString::fromUtf8(info.name.data(), qsizetype(info.name.size()))),
                qPrintable(message));
            QVERIFY(message.contains(QStringLiteral("not built in this version")));
            QVERIFY(message.contains(QStringLiteral("use resident, zero-offload")));
        }
    }

    void unknownNamesAreRefusedWithTheOnesThatExist()
    {
        QCOMPARE(refusal("fast"),
            QStringLiteral("policy 'fast' is not known; use resident, zero-offload"));
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
        QCOMPARE(refusal("resident", {{"urgent", "0.1"}}),
            QStringLiteral("policy option 'urgent' belongs to zenflow, not built in this version; "
                           "'resident' takes order"));
        QVERIFY(refusal("zero-offload", {{"colour", "red"}}).contains(QStringLiteral("not known")));
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
};

QTEST_APPLESS_MAIN(TestPolicies)
#include "tst_policies.moc"
