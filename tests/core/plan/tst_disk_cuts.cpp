// Where state on disk is cut into tiles, and where the planes of a tile lie.

#include "core/plan/disk_cuts.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace mr::test::tst_disk_cuts {

namespace {

constexpr double kShares[] = {0.0, 0.1, 0.25, 0.3, 0.5, 0.999, 1.0};
constexpr std::size_t kMiB = std::size_t{1} << 20;

GroupPlacement homeOf(double deviceShare, double diskShare, Tier state = Tier::PinnedHost)
{
    GroupPlacement home;
    home.state = state;
    home.deviceShare = deviceShare;
    home.diskShare = diskShare;
    return home;
}

// `home` with shares of weights and gradients on disk, too.
GroupPlacement allOf(GroupPlacement home, double weights, double gradients)
{
    home.weightsOnDisk = weights;
    home.gradientsOnDisk = gradients;
    return home;
}

DiskCuts cut(const std::vector<HostCuts>& groups, std::int64_t tileElements)
{
    return diskCuts(groups, tileElements);
}

// The tiles of one group, as text where something is wrong with them.
std::string wrongTiles(const DiskCuts& cuts, const HostCuts& group, std::int64_t largest)
{
    std::int64_t at = group.diskFirst;
    for (const DiskRange& tile : cuts.tiles) {
        const std::int64_t end = tile.first + tile.count;
        const bool isInOrder = tile.group == GroupId{0} && tile.first == at && tile.count > 0;
        const bool isCut =
            tile.first % kCutElements == 0 && (end % kCutElements == 0 || end == group.end);
        const bool isOnOneSide = end <= group.lateFirst || tile.first >= group.lateFirst;
        if (!isInOrder || !isCut || !isOnOneSide || tile.count > largest)
            return "[" + std::to_string(tile.first) + "," + std::to_string(end) + ")";
        at = end;
    }
    return at == group.end ? std::string() : "they end at " + std::to_string(at);
}

// Cuts the host's elements of one side, early or late, into tiles as the builder does.
void walk(const HostCuts& cuts, std::int64_t first, std::int64_t end, std::int64_t tile,
    std::vector<DiskRange>& onDisk)
{
    while (first < end) {
        const std::int64_t count = hostTileElements(cuts, first, end, tile);
        QVERIFY(count > 0 && count <= std::max(tile, kCutElements) && first + count <= end);
        QVERIFY(first >= cuts.diskFirst || first + count <= cuts.diskFirst);
        if (first >= cuts.diskFirst)
            onDisk.push_back({GroupId{0}, first, count, -1, -1});
        first += count;
    }
}

bool isSame(const DiskRange& a, const DiskRange& b)
{
    return a.group == b.group && a.first == b.first && a.count == b.count;
}

struct Parts {
    const char* name;
    DiskParts parts;
    std::size_t bytesPer32; // in a tile's planes
};

constexpr Parts kParts[] = {
    {"plain, bf16", {StateCodec::Plain, true}, 320},
    {"plain, fp32", {StateCodec::Plain, false}, 256},
    {"compact, bf16", {StateCodec::Compact, true}, 104},
    {"compact, without its low half", {StateCodec::Compact, false}, 72},
};

} // namespace

class TestDiskCuts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void tilesCoverWhatIsOnDiskAndNothingElse_data()
    {
        QTest::addColumn<qint64>("elements");
        for (const qint64 elements : {1, 31, 1000, 1023, 1024, 1025, 4096, 10000, 65537, 100'000})
            QTest::addRow("%lld elements", static_cast<long long>(elements)) << elements;
    }

    void tilesCoverWhatIsOnDiskAndNothingElse()
    {
        QFETCH(const qint64, elements);
        for (const double device : kShares)
            for (const double late : kShares)
                for (const double disk : kShares)
                    for (const std::int64_t tile : {1024, 4096, 20'000, 65'536}) {
                        const HostCuts group = hostCuts(homeOf(device, disk), late, elements);
                        const DiskCuts cuts = cut({group}, tile);
                        const std::int64_t largest =
                            std::max<std::int64_t>(1024, tile / 4 / 1024 * 1024);

                        const std::string wrong = wrongTiles(cuts, group, largest);
                        QVERIFY2(wrong.empty(), wrong.c_str());
                        std::vector<DiskRange> walked;
                        walk(group, group.hostFirst, group.lateFirst, tile, walked);
                        walk(group, group.lateFirst, group.end, tile, walked);
                        QVERIFY(std::ranges::equal(walked, cuts.tiles, isSame));
                    }
    }

    void sharesAreOfWhatTheHostUpdates()
    {
        const HostCuts cuts = hostCuts(homeOf(0.25, 0.5), 0.75, 40 * 1024);
        QCOMPARE(cuts.hostFirst, std::int64_t{10 * 1024});
        QCOMPARE(cuts.diskFirst, std::int64_t{25 * 1024});
        QCOMPARE(cuts.lateFirst, std::int64_t{18 * 1024}); // 7.5 wait no more than asked
        QCOMPARE(cuts.end, std::int64_t{40 * 1024});

        QCOMPARE(hostCuts(homeOf(0.0, 1.0), 0.0, 5000).diskFirst, std::int64_t{0});
        QCOMPARE(hostCuts(homeOf(0.0, 0.0), 0.0, 5000).diskFirst, std::int64_t{5000});
        QCOMPARE(hostCuts(homeOf(1.0, 1.0), 0.0, 5000).diskFirst, std::int64_t{5000});
        // State that is on the device is nowhere else.
        QCOMPARE(hostCuts(homeOf(0.0, 1.0, Tier::Device), 1.0, 5000).diskFirst, std::int64_t{5000});
    }

    void aTileIsAQuarterOfAnUploadAndSlotsAreFew()
    {
        const HostCuts group = hostCuts(homeOf(0.0, 1.0), 0.0, 100 * 1024);
        const DiskCuts many = cut({group, group}, 40 * 1024);
        QCOMPARE(many.tileElements, std::int64_t{10 * 1024});
        QCOMPARE(many.tiles.size(), std::size_t{20});
        QCOMPARE(slotsOf(many), kDiskSlots);

        const HostCuts small = hostCuts(homeOf(0.0, 1.0), 0.0, 700);
        const DiskCuts few = cut({small, small, small}, 40 * 1024);
        QCOMPARE(few.tileElements, std::int64_t{700});
        QCOMPARE(slotsOf(few), 3);

        const DiskCuts none = cut({hostCuts(homeOf(0.0, 0.0), 1.0, 700)}, 40 * 1024);
        QVERIFY(!none.isActive());
        QCOMPARE(slotsOf(none), 0);
        QCOMPARE(none.tileElements, std::int64_t{0});
    }

    void everyElementFindsItsTile()
    {
        const std::vector<HostCuts> groups = {hostCuts(homeOf(0.0, 0.5), 0.3, 9'000),
            hostCuts(homeOf(0.0, 0.0), 0.0, 5'000), hostCuts(homeOf(0.5, 1.0), 1.0, 3'000),
            hostCuts(homeOf(0.0, 1.0), 0.1, 700)};
        const DiskCuts cuts = diskCuts(groups, 4096);
        QCOMPARE(cuts.tiles.size(), std::size_t{4 + 2 + 1});

        for (std::size_t i = 0; i < cuts.tiles.size(); ++i) {
            const DiskRange& tile = cuts.tiles[i];
            const auto index = static_cast<std::int32_t>(i);
            const std::int64_t last = tile.first + tile.count - 1;
            QCOMPARE(cuts.tileOf(tile.group, tile.first), index);
            QCOMPARE(cuts.tileOf(tile.group, last), index);
            const bool isLast = i + 1 == cuts.tiles.size() || cuts.tiles[i + 1].group != tile.group;
            QCOMPARE(cuts.tileOf(tile.group, last + 1), isLast ? -1 : index + 1);
            const bool isFirst = i == 0 || cuts.tiles[i - 1].group != tile.group;
            QCOMPARE(cuts.tileOf(tile.group, tile.first - 1), isFirst ? -1 : index - 1);
        }
        for (const std::int64_t element : {0, 2500, 4999})
            QCOMPARE(cuts.tileOf(GroupId{1}, element), -1);
        QCOMPARE(cuts.tileOf(GroupId{4}, 0), -1);
        QCOMPARE(cuts.tileOf(GroupId{-1}, 0), -1);
    }

    void ofAModelAndAPolicyTheyAreThoseOfItsGroups()
    {
        ModelShape shape = smallShape(2);
        shape.groups[1].elements = 5000;
        const OffloadPolicy policy =
            policyWith("ssd-vertical", {{"tile", "8KiB"}, {"late", "0.5"}, {"disk-share", "0.5"}});
        const auto homes = policy.placement->place(shape, endless(), {});

        const DiskCuts cuts = diskCuts(shape, homes, policy, {});

        std::vector<HostCuts> groups;
        for (std::size_t g = 0; g < shape.groups.size(); ++g)
            groups.push_back(hostCuts(homes[g], 0.5, shape.groups[g].elements));
        QVERIFY(std::ranges::equal(cuts.tiles, diskCuts(groups, 4096).tiles, isSame));
        QVERIFY(cuts.isActive());
        QVERIFY(!diskCuts(shape, {}, policy, {}).isActive()); // the caller refuses it
    }

    void planesOfATileLieApartAndAligned_data()
    {
        QTest::addColumn<int>("index");
        for (int i = 0; i < static_cast<int>(std::size(kParts)); ++i)
            QTest::newRow(kParts[i].name) << i;
    }

    void planesOfATileLieApartAndAligned()
    {
        QFETCH(const int, index);
        const Parts& row = kParts[index];
        // Groups are whole multiples of 64 elements.
        for (const std::int64_t count : {64, 1024, 1088, 131'072, 262'144, 1 << 20, 3'000'000}) {
            std::size_t end = 0;
            std::size_t gaps = 0;
            for (const StatePart part : kPartsOfTile) {
                if (!row.parts.has(part))
                    continue;
                if (row.parts.regionOf(part) != DiskRegion::State)
                    continue;
                const StatePlane& plane = planeOf(row.parts.codec, part);
                const std::size_t offset = diskPlaneOffset(row.parts, part, count);
                QCOMPARE(offset % plane.valueBytes, std::size_t{0});
                QCOMPARE(offset, end + gaps);
                end = offset + plane.bytes(count);
                gaps = plane.bytes(count) >= kMiB ? kDiskAlign : 0;
            }
            QCOMPARE(diskRegionBytes(row.parts, DiskRegion::State, count), end + gaps);
        }
        QCOMPARE(diskRegionBytes(row.parts, DiskRegion::State, 1024), 32 * row.bytesPer32);
    }

    void planesAreSkewedFromAMiB()
    {
        const DiskParts plain{StateCodec::Plain, true};
        const auto low = [&](std::int64_t count) {
            return diskPlaneOffset(plain, StatePart::Low, count);
        };
        QCOMPARE(low(262'143), std::size_t{8} * 262'143);
        QCOMPARE(low(262'144), std::size_t{8} * 262'144 + 2 * 4096);
        QCOMPARE(diskRegionBytes(plain, DiskRegion::State, 524'287),
            std::size_t{10} * 524'287 + 2 * 4096);
        QCOMPARE(diskRegionBytes(plain, DiskRegion::State, 524'288),
            std::size_t{10} * 524'288 + 3 * 4096);
    }

    void whatWeightsAreFetchedFromIsARegionOfItsOwn()
    {
        const DiskParts bf16{StateCodec::Plain, true};
        const DiskParts fp32{StateCodec::Plain, false};
        const DiskParts compact{StateCodec::Compact, true};
        for (const DiskParts& parts : {bf16, fp32, compact}) {
            QCOMPARE(parts.regionOf(StatePart::High), DiskRegion::Weights);
            QCOMPARE(parts.regionOf(StatePart::FirstMoment), DiskRegion::State);
            QCOMPARE(parts.regionOf(StatePart::SecondScale), DiskRegion::State);
        }
        QCOMPARE(bf16.regionOf(StatePart::Low), DiskRegion::State);
        QCOMPARE(compact.regionOf(StatePart::Low), DiskRegion::State);
        QCOMPARE(fp32.regionOf(StatePart::Low), DiskRegion::Weights);
        QCOMPARE(diskPlaneOffset(fp32, StatePart::High, 1024), std::size_t{2 * 1024}); // behind low
        QCOMPARE(diskPlaneOffset(bf16, StatePart::High, 1024), std::size_t{0});
        QVERIFY(!bf16.has(StatePart::FirstScale));
        QVERIFY(compact.has(StatePart::SecondScale));
    }

    void regionsOfASlotLieBehindEachOtherInWholePages()
    {
        const DiskParts bf16{StateCodec::Plain, true};
        const DiskParts fp32{StateCodec::Plain, false};
        const DiskRange all{GroupId{0}, 0, 1000, 0, 0};
        const DiskRange noWeights{GroupId{0}, 0, 1000, -1, 0};
        const DiskRange stateOnly{GroupId{0}, 0, 1000, -1, -1};
        // 10 and 2 and 2 bytes an element; in F32 8 and 4 and 4.
        QCOMPARE(diskRegionOffset(bf16, all, DiskRegion::Weights), std::size_t{3 * 4096});
        QCOMPARE(diskRegionOffset(bf16, all, DiskRegion::Gradient), std::size_t{4 * 4096});
        QCOMPARE(diskSlotBytes(bf16, all), std::size_t{5 * 4096});
        QCOMPARE(diskRegionOffset(bf16, noWeights, DiskRegion::Gradient), std::size_t{3 * 4096});
        QCOMPARE(diskSlotBytes(bf16, noWeights), std::size_t{4 * 4096});
        QCOMPARE(diskSlotBytes(bf16, stateOnly), std::size_t{3 * 4096});
        QCOMPARE(diskSlotBytes(fp32, all), std::size_t{4 * 4096});
        QCOMPARE(diskRegionBytes(bf16, DiskRegion::Gradient, 1000), std::size_t{2000});
        QCOMPARE(diskRegionBytes(fp32, DiskRegion::Gradient, 1000), std::size_t{4000});
        QCOMPARE(diskRegionBytes(fp32, DiskRegion::Weights, 1000), std::size_t{4000});
    }

    // Tiles with weights and gradients on disk end where those begin, and are numbered on.
    void weightsAndGradientsCutAsWell()
    {
        for (const double weights : kShares)
            for (const double gradients : kShares) {
                const HostCuts group =
                    hostCuts(allOf(homeOf(0.0, 0.5), weights, gradients), 0.25, 40'000);
                QVERIFY(group.weightsFirst >= group.diskFirst);
                QVERIFY(group.gradientsFirst >= group.diskFirst);
                const DiskCuts cuts = cut({group}, 16 * 1024);
                const std::string wrong = wrongTiles(cuts, group, 4 * 1024);
                QVERIFY2(wrong.empty(), wrong.c_str());
                std::int32_t withWeights = 0;
                std::int32_t withGradient = 0;
                for (std::size_t i = 0; i < cuts.tiles.size(); ++i) {
                    const DiskRange& tile = cuts.tiles[i];
                    const auto index = static_cast<std::int32_t>(i);
                    QCOMPARE(tile.weights, tile.first >= group.weightsFirst ? withWeights++ : -1);
                    QCOMPARE(
                        tile.gradient, tile.first >= group.gradientsFirst ? withGradient++ : -1);
                    QVERIFY(tile.first >= group.weightsFirst ||
                            tile.first + tile.count <= group.weightsFirst);
                    QVERIFY(tile.first >= group.gradientsFirst ||
                            tile.first + tile.count <= group.gradientsFirst);
                    QCOMPARE(cuts.stored(index, DiskRegion::State), index);
                }
                QCOMPARE(cuts.weightTiles, withWeights);
                QCOMPARE(cuts.gradientTiles, withGradient);
                QCOMPARE(cuts.weightStages, std::min(kDiskStages, withWeights));
                QCOMPARE(cuts.gradientStages, std::min(kDiskStages, withGradient));
                const auto all = static_cast<std::int32_t>(cuts.tiles.size());
                const std::int32_t last = all - 1;
                if (withWeights > 0)
                    QCOMPARE(cuts.stored(last, DiskRegion::Weights), all + withWeights - 1);
                if (withGradient > 0)
                    QCOMPARE(cuts.stored(last, DiskRegion::Gradient),
                        all + withWeights + withGradient - 1);
            }
    }

    void pagesAreWhole()
    {
        QCOMPARE(diskPages(0), std::size_t{0});
        QCOMPARE(diskPages(1), std::size_t{4096});
        QCOMPARE(diskPages(4096), std::size_t{4096});
        QCOMPARE(diskPages(4097), std::size_t{8192});
    }
};

MR_TEST(TestDiskCuts)

} // namespace mr::test::tst_disk_cuts

#include "tst_disk_cuts.moc"
