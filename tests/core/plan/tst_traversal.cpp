// Orders of work: every item once, layers up and then down, and how many buffers that takes.

#include "core/plan/traversal.h"
#include "support/test_room.h"

#include <QTest>

#include <map>

namespace mr::test::tst_traversal {

namespace {

constexpr int kLayers = 5;
constexpr int kMicroBatches = 3;

QString text(const std::vector<WorkItem>& items)
{
    QString out;
    for (const WorkItem& item : items) {
        out += item.pass == WorkItem::Pass::Forward ? QStringLiteral(" f") : QStringLiteral(" b");
        out += QStringLiteral("%1.%2").arg(item.layer.value).arg(item.micro.value);
    }
    return out.mid(1);
}

} // namespace

class TestTraversal : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void onlyTheFlippedOrderSumsDownwards()
    {
        QVERIFY(!flipsSums(*makeTraversal(WorkOrder::ByMicroBatch)));
        QVERIFY(!flipsSums(*makeTraversal(WorkOrder::ByLayer)));
        QVERIFY(flipsSums(*makeTraversal(WorkOrder::ByLayerFlip)));
    }

    void everyOrderVisitsEveryItemOnceAndLayersUpAndThenDown()
    {
        for (const WorkOrder kind :
            {WorkOrder::ByMicroBatch, WorkOrder::ByLayer, WorkOrder::ByLayerFlip}) {
            const auto items = makeTraversal(kind)->order(kLayers, kMicroBatches);

            std::map<int, std::vector<int>> layersOf;
            for (const WorkItem& item : items) {
                const bool forward = item.pass == WorkItem::Pass::Forward;
                layersOf[item.micro.value].push_back(
                    forward ? item.layer.value : 2 * kLayers - 1 - item.layer.value);
            }
            QCOMPARE(layersOf.size(), std::size_t{kMicroBatches});
            for (const auto& [micro, steps] : layersOf) {
                QCOMPARE(steps.size(), std::size_t{2 * kLayers});
                for (int i = 0; i < 2 * kLayers; ++i)
                    QCOMPARE(steps[std::size_t(i)], i);
            }
        }
    }

    void ordersReadAsTheirNamesSay()
    {
        QCOMPARE(text(makeTraversal(WorkOrder::ByMicroBatch)->order(2, 2)),
            QStringLiteral("f0.0 f1.0 b1.0 b0.0 f0.1 f1.1 b1.1 b0.1"));
        QCOMPARE(text(makeTraversal(WorkOrder::ByLayer)->order(2, 2)),
            QStringLiteral("f0.0 f0.1 f1.0 f1.1 b1.0 b1.1 b0.0 b0.1"));
    }

    // Each layer begins with the micro-batch that the layer before did last.
    void flippedOrderTurnsAtEveryLayer()
    {
        QCOMPARE(text(makeTraversal(WorkOrder::ByLayerFlip)->order(3, 2)),
            QStringLiteral("f0.0 f0.1 f1.1 f1.0 f2.0 f2.1 b2.0 b2.1 b1.1 b1.0 b0.0 b0.1"));
    }

    void buffersFollowFromWhatIsInFlight()
    {
        const auto byMicro = makeTraversal(WorkOrder::ByMicroBatch);
        const auto byLayer = makeTraversal(WorkOrder::ByLayer);

        QCOMPARE(microBatchesInFlight(*byMicro, kLayers, kMicroBatches), 1);
        QCOMPARE(microBatchesInFlight(*byLayer, kLayers, kMicroBatches), kMicroBatches);
        QCOMPARE(batchBuffers(1), 2);
        QCOMPARE(batchBuffers(kMicroBatches), kMicroBatches);
    }

    void namesParseBack()
    {
        for (const WorkOrder kind :
            {WorkOrder::ByMicroBatch, WorkOrder::ByLayer, WorkOrder::ByLayerFlip}) {
            Result<WorkOrder> parsed = parseWorkOrder(name(kind));
            QVERIFY(parsed.ok());
            QVERIFY(parsed.value() == kind);
        }
        QVERIFY(!parseWorkOrder("").ok());
    }
};

MR_TEST(TestTraversal)

} // namespace mr::test::tst_traversal

#include "tst_traversal.moc"
