// TierMapModel: every byte of the plan is in exactly one cell.

#include "math/share_bar.h"
#include "models/tier_map_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "ui/support/demo_timeline.h"

#include <QAbstractItemModelTester>
#include <QTest>

namespace mr::test::tst_tier_map_model {

using namespace mr::ui;
using namespace mr::ui::test;

class TestTierMapModel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void cellsAddUpToThePlansTiers()
    {
        const auto plan = std::make_shared<const PlanReport>(demoPlan());
        TierMapModel model;
        const QAbstractItemModelTester tester(
            &model, QAbstractItemModelTester::FailureReportingMode::Fatal);

        model.setPlan(plan);

        const int last = model.rowCount() - 1;
        QCOMPARE(last, 25); // 22 layers, embedding, head, shared slots
        QCOMPARE(model.bytes(last, TierMapModel::Total, TierMapModel::Device),
            plan->tiers[0].totalBytes);
        QCOMPARE(
            model.bytes(last, TierMapModel::Total, TierMapModel::Host), plan->tiers[1].totalBytes);
        for (int row = 0; row <= last; ++row) {
            std::uint64_t sum = 0;
            for (int column = TierMapModel::Weights; column < TierMapModel::Total; ++column)
                sum += model.bytes(row, column);
            QCOMPARE(sum, model.bytes(row, TierMapModel::Total));
        }
    }

    void stateOnDiskIsStateAndSoAreItsSlots()
    {
        PlanReport plan;
        plan.groups = {{"block 0", {{"disk", "state on disk", 30}, {"host", "high plane", 4}}},
            {"shared", {{"host", "disk slots", 8}, {"host", "batches", 1}}}};
        TierMapModel model;

        model.setPlan(std::make_shared<const PlanReport>(plan));

        QCOMPARE(model.bytes(0, TierMapModel::Moments, TierMapModel::Disk), std::uint64_t{30});
        QCOMPARE(model.bytes(0, TierMapModel::Weights, TierMapModel::Host), std::uint64_t{4});
        QCOMPARE(model.bytes(1, TierMapModel::Moments, TierMapModel::Host), std::uint64_t{8});
        QCOMPARE(model.bytes(1, TierMapModel::Other, TierMapModel::Host), std::uint64_t{1});
    }

    void aCellKnowsItsShareOfEachTier()
    {
        PlanReport plan;
        plan.groups = demoGroups(DemoPolicy::Streamed);
        TierMapModel model;
        model.setPlan(std::make_shared<const PlanReport>(plan));
        const QModelIndex moments = model.index(3, TierMapModel::Moments);

        const auto share = moments.data(kShareRole).value<ShareBar>();

        QCOMPARE(share.parts.size(), 3);
        QVERIFY(share.parts[0] > 0.0 && share.parts[1] > 0.0 && share.parts[2] > 0.0);
        const QString words = moments.data(Qt::AccessibleTextRole).toString();
        for (const char* word : {"Layer 2", "Moments", "Device", "Host", "Disk"})
            QVERIFY2(words.contains(QString::fromLatin1(word)), qPrintable(words));
        QVERIFY(moments.data(Qt::ToolTipRole).toString().contains(QStringLiteral("%")));
    }

    // They have no bytes but those of the master's high half.
    void weightsThatStreamAreTheHighHalfOfTheMaster()
    {
        PlanReport plan;
        plan.groups = {{"embedding", {{"device", "weights", 20}, {"host", "high plane", 20},
                                         {"host", "low plane", 20}}},
            {"block 0", {{"host", "high plane", 30}, {"host", "low plane", 30}}}};
        TierMapModel model;
        model.setPlan(std::make_shared<const PlanReport>(plan));

        QCOMPARE(model.bytes(0, TierMapModel::Weights, TierMapModel::Device), std::uint64_t{20});
        QCOMPARE(model.bytes(0, TierMapModel::Master, TierMapModel::Host), std::uint64_t{40});
        QCOMPARE(model.bytes(1, TierMapModel::Weights, TierMapModel::Host), std::uint64_t{30});
        QCOMPARE(model.bytes(1, TierMapModel::Master, TierMapModel::Host), std::uint64_t{30});
    }

    void whatIsNotThereIsADashWithoutABar()
    {
        TierMapModel model;
        model.setPlan(std::make_shared<const PlanReport>(demoPlan()));
        const QModelIndex other = model.index(1, TierMapModel::Other); // a layer's

        QCOMPARE(other.data().toString(), QStringLiteral("–"));
        QVERIFY(!other.data(kShareRole).isValid());
    }

    void aPlanWithoutGroupsHasNoRows()
    {
        TierMapModel model;
        model.setPlan(std::make_shared<const PlanReport>());
        QCOMPARE(model.rowCount(), 0);
        model.setPlan(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void theCsvNamesLayerKindAndTier()
    {
        TierMapModel model;
        model.setPlan(std::make_shared<const PlanReport>(demoPlan()));

        QVERIFY(model.csv().contains("block 3,weights,device,"));
        QVERIFY(model.csv().contains("total,total,host,22932357120"));
    }
};

MR_TEST_WITH_WINDOWS(TestTierMapModel)

} // namespace mr::test::tst_tier_map_model

#include "tst_tier_map_model.moc"
