// Which activations between layers wait on disk: those that wait longest.

#include "core/plan/boundary_homes.h"
#include "core/plan/traversal.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <string>
#include <vector>

namespace mr::test::tst_boundary_homes {

namespace {

// By layer a word of its micro-batches in flight: D on disk, h on the host.
std::string homesText(const BoundaryHomes& homes)
{
    std::string text;
    for (std::size_t i = 0; i < homes.places.size(); ++i) {
        if (i > 0 && i % static_cast<std::size_t>(homes.inFlight) == 0)
            text += ' ';
        text += homes.places[i] < 0 ? 'D' : 'h';
    }
    return text;
}

BoundaryHomes homesOf(WorkOrder order, int microBatches, const std::vector<double>& shares)
{
    return boundaryHomes(*makeTraversal(order), microBatches, shares);
}

// Shares on disk of six groups: half of the first three, which are saved.
const std::vector<double> kHalf = {1.0, 0.5, 0.0, 0.0, 0.0, 0.0};

} // namespace

class TestBoundaryHomes : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // Odd layers are gone through from the last micro-batch to the first.
    void whatWaitsLongestGoesFirst()
    {
        QCOMPARE(
            homesText(homesOf(WorkOrder::ByLayerFlip, 4, kHalf)), std::string("DDDD hhDD hhhh"));
        QCOMPARE(homesText(homesOf(WorkOrder::ByLayerFlip, 4, {0.0, 0.0, 0.5, 0.0, 0.0, 0.0})),
            std::string("hhhh hhhh DDhh"));
        QCOMPARE(homesText(homesOf(WorkOrder::ByLayer, 4, kHalf)), std::string("DDDD DDhh hhhh"));
    }

    void microBatchesThatTakeTurnsHaveOnePlace()
    {
        const BoundaryHomes homes = homesOf(WorkOrder::ByMicroBatch, 4, kHalf);
        QCOMPARE(homes.inFlight, 1);
        QCOMPARE(homesText(homes), std::string("D D h")); // a half of one is one
    }

    void theLastTwoLayersAreNotSaved()
    {
        const std::vector<double> all(6, 1.0);
        QCOMPARE(homesText(homesOf(WorkOrder::ByLayerFlip, 2, all)), std::string("DD DD DD"));
        QCOMPARE(homesOf(WorkOrder::ByLayerFlip, 2, {1.0, 1.0, 1.0}).places.size(), std::size_t{0});
        QCOMPARE(homesOf(WorkOrder::ByLayerFlip, 2, {1.0, 1.0, 1.0, 1.0}).onDisk, 2);
        QCOMPARE(savedLayers(2, false), 0);
        QCOMPARE(savedLayers(6, false), 3);
        QCOMPARE(savedLayers(6, true), 5); // backward comes to them again
    }

    void tilesAndCopiesAreNumberedOn()
    {
        const BoundaryHomes homes = homesOf(WorkOrder::ByLayerFlip, 4, kHalf);
        std::vector<std::int32_t> tiles;
        std::vector<std::int32_t> copies;
        for (int layer = 0; layer < 6; ++layer)
            for (int slot = 0; slot < 4; ++slot) {
                const std::int32_t tile = homes.tileOf(layer, slot);
                const std::int32_t copy = homes.copyOf(layer, slot);
                QCOMPARE(tile >= 0 || copy >= 0, layer < 3);
                QVERIFY(tile < 0 || copy < 0);
                if (tile >= 0)
                    tiles.push_back(tile);
                if (copy >= 0)
                    copies.push_back(copy);
            }
        QCOMPARE(tiles, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
        QCOMPARE(copies, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
        QCOMPARE(homes.onDisk, 6);
        QCOMPARE(homes.onHost, 6);
    }

    void fewOnDiskNeedFewPlaces()
    {
        const std::vector<double> one = {0.5, 0.0, 0.0, 0.0};
        QCOMPARE(homesOf(WorkOrder::ByLayerFlip, 2, one).stages, 1);
        QCOMPARE(homesOf(WorkOrder::ByLayerFlip, 2, std::vector<double>(40, 1.0)).stages, 4);
        QCOMPARE(homesOf(WorkOrder::ByLayerFlip, 2, std::vector<double>(40, 0.0)).stages, 0);
    }
};

MR_TEST(TestBoundaryHomes)

} // namespace mr::test::tst_boundary_homes

#include "tst_boundary_homes.moc"
