// DiskLayout: aligned, in access order, over the files by their speed.

#include "core/tier/disk_layout.h"
#include "support/test_room.h"

#include <QtTest>

#include <limits>

namespace mr::test::tst_disk_layout {

namespace {

std::vector<DiskTileSpec> tilesOf(const std::vector<std::uint64_t>& bytes)
{
    std::vector<DiskTileSpec> tiles;
    for (const std::uint64_t b : bytes)
        tiles.push_back({"t" + std::to_string(tiles.size()), b});
    return tiles;
}

DiskLayout laidOut(const std::vector<std::uint64_t>& bytes, const std::vector<double>& speeds)
{
    return std::move(layOutTiles(tilesOf(bytes), speeds)).value();
}

std::vector<int> filesOf(const DiskLayout& layout)
{
    std::vector<int> files;
    for (const DiskTile& tile : layout.tiles)
        files.push_back(tile.file);
    return files;
}

} // namespace

class TestDiskLayout : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void tilesLieInAccessOrderBehindTheHeaderPage()
    {
        const DiskLayout layout = laidOut({1, 4096, 4097, 10000}, {1.0});

        const std::vector<std::uint64_t> expected = {4096, 8192, 12288, 20480};
        for (std::size_t i = 0; i < expected.size(); ++i)
            QCOMPARE(layout.tiles[i].offset, expected[i]);
        QCOMPARE(layout.tiles[3].bytes, std::uint64_t{10000});
        QCOMPARE(layout.tiles[3].name, std::string("t3"));
        QCOMPARE(layout.fileBytes, (std::vector<std::uint64_t>{20480 + 12288}));
    }

    void equalDisksTakeTurns()
    {
        const DiskLayout layout = laidOut({4096, 4096, 4096, 4096, 4096}, {1.0, 1.0});

        QCOMPARE(filesOf(layout), (std::vector<int>{0, 1, 0, 1, 0}));
        QCOMPARE(layout.tiles[2].offset, std::uint64_t{8192});
        QCOMPARE(layout.fileBytes, (std::vector<std::uint64_t>{4 * 4096, 3 * 4096}));
    }

    void aDiskHoldsBytesInProportionToItsSpeed()
    {
        const DiskLayout layout = laidOut(std::vector<std::uint64_t>(300, 65536), {2.0, 1.0, 3.0});

        std::vector<int> counts(3, 0);
        for (const int file : filesOf(layout))
            ++counts[static_cast<std::size_t>(file)];
        QCOMPARE(counts, (std::vector<int>{100, 50, 150}));
    }

    void noTwoTilesOverlapAndAllAreAligned()
    {
        const DiskLayout layout =
            laidOut({1, 999999, 4096, 123, 77777, 8192, 3, 500000}, {1.0, 2.5});

        std::vector<std::uint64_t> ends(2, 4096);
        for (const DiskTile& tile : layout.tiles) {
            const auto file = static_cast<std::size_t>(tile.file);
            QCOMPARE(tile.offset, ends[file]);
            QCOMPARE(tile.offset % kDiskPageBytes, std::uint64_t{0});
            ends[file] += diskPadded(tile.bytes);
        }
        QCOMPARE(layout.fileBytes, ends);
    }

    void theHashTellsLayoutsApart()
    {
        const std::uint64_t base = laidOut({4096, 8192}, {1.0, 1.0}).hash();

        QCOMPARE(laidOut({4096, 8192}, {1.0, 1.0}).hash(), base);
        QVERIFY(laidOut({8192, 4096}, {1.0, 1.0}).hash() != base);
        QVERIFY(laidOut({4096, 8191}, {1.0, 1.0}).hash() != base);
        QVERIFY(laidOut({4096, 8192}, {1.0}).hash() != base);
        DiskLayout renamed = laidOut({4096, 8192}, {1.0, 1.0});
        renamed.tiles[0].name = "other";
        QVERIFY(renamed.hash() != base);
    }

    void whatCannotBeLaidOutIsRefused()
    {
        const auto refused = [](const std::vector<std::uint64_t>& bytes,
                                 const std::vector<double>& speeds) {
            const auto layout = layOutTiles(tilesOf(bytes), speeds);
            return !layout.ok() && layout.status().kind() == ErrorKind::InvalidArgument;
        };

        QVERIFY(refused({}, {1.0}));
        QVERIFY(refused({1}, {}));
        QVERIFY(refused({1}, {0.0}));
        QVERIFY(refused({1}, {-1.0}));
        QVERIFY(refused({1}, {std::numeric_limits<double>::infinity()}));
        QVERIFY(refused({1}, {std::numeric_limits<double>::quiet_NaN()}));
        QVERIFY(refused({5, 0}, {1.0}));
        QVERIFY(refused({~std::uint64_t{0}}, {1.0}));
        QVERIFY(refused({std::uint64_t{1} << 62, 4096, 4096}, {1.0}));
    }
};

MR_TEST(TestDiskLayout)

} // namespace mr::test::tst_disk_layout

#include "tst_disk_layout.moc"
