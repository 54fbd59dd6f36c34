// TierMap: legend with limits, readout by keyboard, a sentence where the plan names no layers.

#include "charts/legend.h"
#include "charts/tier_map.h"
#include "models/tier_map_model.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QLabel>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

namespace mr::test::tst_tier_map {

using namespace mr::ui;
using namespace mr::ui::test;

class TestTierMap : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void arrowKeysReadTheCells()
    {
        TierMap map;
        map.resize(900, 500);
        map.setPlan(std::make_shared<const PlanReport>(demoPlan()));
        map.show();
        map.table()->setCurrentIndex(map.model()->index(0, TierMapModel::Layer));

        QTest::keyClick(map.table(), Qt::Key_Right);
        QTest::keyClick(map.table(), Qt::Key_Down);

        QCOMPARE(map.table()->currentIndex(), map.model()->index(1, TierMapModel::Weights));
        bool said = false;
        for (const QLabel* label : map.findChildren<QLabel*>())
            said = said || label->text().contains(QStringLiteral("Layer 0 · Weights: Device 84"));
        QVERIFY(said);
    }

    void aPlanWithoutLayersIsSaidSo()
    {
        PlanReport plan = demoPlan();
        plan.groups.clear();
        TierMap map;

        map.setPlan(std::make_shared<const PlanReport>(plan));

        QVERIFY(map.table()->isHidden());
        bool said = false;
        for (const QLabel* label : map.findChildren<QLabel*>())
            said = said || label->text().contains(QStringLiteral("does not say"));
        QVERIFY(said);
    }

    void theTableIsNeverHigherThanAScreen()
    {
        TierMap map;
        map.setPlan(std::make_shared<const PlanReport>(demoPlan()));

        QVERIFY(map.model()->rowCount() > 20);
        QVERIFY(map.table()->height() < 500);
    }
};

MR_TEST_WITH_WINDOWS(TestTierMap)

} // namespace mr::test::tst_tier_map

#include "tst_tier_map.moc"
