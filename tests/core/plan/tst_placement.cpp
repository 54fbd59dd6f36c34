// Shares of groups and where they are cut; the share at which both sides are done at once.

#include "core/plan/placement.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mr::test::tst_placement {

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

ModelShape shapeOf(const std::vector<std::int64_t>& elements)
{
    ModelShape shape;
    for (const std::int64_t count : elements)
        shape.groups.push_back({"group", count, 0.0, 0.0});
    return shape;
}

// Groups of many sizes: of one element, below a cut, at a cut, one beside it, and large.
const std::vector<std::int64_t>& mixedSizes()
{
    static const std::vector<std::int64_t> sizes = {
        1, 700, 1024, 1025, 4096, 4607, 4608, 5119, 1048576, 999999, 3000, 2048, 512, 511, 7777777};
    return sizes;
}

std::vector<std::int64_t> cutsOf(
    const Placement& placement, const ModelShape& shape, const Feedback& known = {})
{
    std::vector<std::int64_t> cuts;
    const std::vector<GroupPlacement> placed = placement.place(shape, endless(), known);
    for (std::size_t g = 0; g < placed.size(); ++g)
        cuts.push_back(firstHostElement(placed[g].deviceShare, shape.groups[g].elements));
    return cuts;
}

// Seconds of the host and of the device for one element of a group, at a device share.
double hostSeconds(const Feedback& known, double share)
{
    return (1.0 - share) / known.hostAdamwElementsPerSecond;
}
double deviceSeconds(const Feedback& known, double share)
{
    // Visiting: 2 + 4 + 4 bytes in, 2 + 2 + 4 + 4 out. Updated by the host: 2 bytes in.
    const double in = (share * (2 + 4 + 4) + (1.0 - share) * 2) / known.hostToDeviceBytesPerSecond;
    const double out = share * (2 + 2 + 4 + 4) / known.deviceToHostBytesPerSecond;
    return std::max(std::max(in, out), share / known.deviceAdamwElementsPerSecond);
}

} // namespace

class TestPlacement : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void uniformPlacementGivesEveryGroupTheSame()
    {
        const auto placement =
            makeUniformPlacement({Tier::Device, Tier::PinnedHost, Tier::Device, 0.0});

        const auto placed = placement->place(shapeOf({1, 2, 3}), endless(), {});

        QCOMPARE(placed.size(), std::size_t{3});
        for (const GroupPlacement& group : placed)
            QVERIFY(group.state == Tier::PinnedHost && group.deviceShare == 0.0);
    }

    void stateVisitsFromTheHostAndWeightsStay()
    {
        for (const GroupPlacement& group :
            makeSharePlacement(0.3)->place(shapeOf(mixedSizes()), endless(), {})) {
            QVERIFY(group.weights == Tier::Device);
            QVERIFY(group.state == Tier::PinnedHost);
            QVERIFY(group.boundary == Tier::Device);
        }
    }

    // Sums of cuts up to any group, and so of all, miss the share by at most half a cut, and what
    // rounding to an element adds.
    void cutsAddUpToTheShareWithinOneCut()
    {
        const ModelShape shape = shapeOf(mixedSizes());
        for (int percent = 0; percent <= 100; ++percent) {
            const double share = percent / 100.0;
            const std::vector<std::int64_t> cuts = cutsOf(*makeSharePlacement(share), shape);
            double wanted = 0.0;
            std::int64_t taken = 0;
            for (std::size_t g = 0; g < cuts.size(); ++g) {
                wanted += share * static_cast<double>(shape.groups[g].elements);
                taken += cuts[g];
                QVERIFY2(std::abs(static_cast<double>(taken) - wanted) <= kCutElements / 2 + 1,
                    qPrintable(QStringLiteral("share %1 group %2").arg(share).arg(g)));
            }
        }
    }

    // A group as small as a cut would always be on one side if it were rounded alone.
    void smallGroupsTakeTurns()
    {
        const ModelShape shape = shapeOf({1024, 1024, 1024, 1024});

        const std::vector<std::int64_t> cuts = cutsOf(*makeSharePlacement(0.25), shape);

        QCOMPARE(std::count(cuts.begin(), cuts.end(), std::int64_t{1024}), std::ptrdiff_t{1});
        QCOMPARE(std::count(cuts.begin(), cuts.end(), std::int64_t{0}), std::ptrdiff_t{3});
    }

    void groupsAreCutAtMultiplesOrAtTheirEnd()
    {
        const ModelShape shape = shapeOf(mixedSizes());
        for (int percent = 0; percent <= 100; ++percent) {
            const std::vector<std::int64_t> cuts =
                cutsOf(*makeSharePlacement(percent / 100.0), shape);
            for (std::size_t g = 0; g < cuts.size(); ++g) {
                QVERIFY(cuts[g] >= 0 && cuts[g] <= shape.groups[g].elements);
                QVERIFY(cuts[g] % kCutElements == 0 || cuts[g] == shape.groups[g].elements);
            }
        }
    }

    void noShareLeavesAllToTheHostAndAWholeOneNothing()
    {
        const std::vector<std::int64_t> sizes = {4096, 6656, 1048576, 1024, 5632};
        const ModelShape shape = shapeOf(sizes);

        QVERIFY(cutsOf(*makeSharePlacement(0.0), shape) == std::vector<std::int64_t>(5, 0));
        QVERIFY(cutsOf(*makeSharePlacement(1.0), shape) == sizes);
        QVERIFY(cutsOf(*makeSharePlacement(-2.0), shape) == std::vector<std::int64_t>(5, 0));
        QVERIFY(cutsOf(*makeSharePlacement(7.0), shape) == sizes);
    }

    void firstHostElementIsCutDown()
    {
        QCOMPARE(firstHostElement(0.0, 5000), std::int64_t{0});
        QCOMPARE(firstHostElement(0.5, 5000), std::int64_t{2048});
        QCOMPARE(firstHostElement(0.999, 5000), std::int64_t{4096});
        QCOMPARE(firstHostElement(1.0, 5000), std::int64_t{5000});
    }

    void bothSidesTakeEqualTimeAtTheBalancedShare()
    {
        const std::vector<Feedback> machines = {
            rates(25e9, 25e9, 1.5e9, 60e9), // the link decides
            rates(12e9, 24e9, 1.0e9, 60e9), // host to device
            rates(50e9, 12e9, 1.0e9, 60e9), // device to host
            rates(1e12, 1e12, 2.0e9, 3e9),  // the device's update
            rates(25e9, 25e9, 0.1e9, 60e9), // a weak host
        };
        for (const Feedback& known : machines) {
            const double share = balancedDeviceShare(known);

            QVERIFY(share > 0.0 && share < 1.0);
            const double host = hostSeconds(known, share);
            const double device = deviceSeconds(known, share);
            // Forty halvings leave 1e-12 of the share.
            QVERIFY(std::abs(host - device) <= 1e-9 * std::max(host, device));
        }
    }

    // Half and half by hand: out 12 / 24e9 = 1 / 2e9 for an element that visits, and for one that
    // does not as much on the host.
    void balancedShareOfARoundMachineIsAHalf()
    {
        QVERIFY(std::abs(balancedDeviceShare(rates(1e12, 24e9, 2e9, 1e12)) - 0.5) < 1e-9);
    }

    void sidesWithoutLimitTakeAll()
    {
        QCOMPARE(balancedDeviceShare(rates(25e9, 25e9, kEndless, 60e9)), 0.0);
        QVERIFY(balancedDeviceShare(rates(kEndless, kEndless, 1e9, kEndless)) > 1.0 - 1e-9);
        // The link cannot even carry the weights that the host updates.
        QCOMPARE(balancedDeviceShare(rates(1e9, 25e9, 1e9, 60e9)), 0.0);
    }

    void aRateThatIsNotKnownGivesAQuarter()
    {
        const Feedback known = rates(25e9, 25e9, 1e9, 60e9);
        for (double Feedback::*missing :
            {&Feedback::hostToDeviceBytesPerSecond, &Feedback::deviceToHostBytesPerSecond,
                &Feedback::hostAdamwElementsPerSecond, &Feedback::deviceAdamwElementsPerSecond}) {
            Feedback lacking = known;
            lacking.*missing = 0.0;
            QCOMPARE(balancedDeviceShare(lacking), 0.25);
        }
        QVERIFY(balancedDeviceShare(known) != 0.25);
    }

    // By hand: 14 / 28e9 in for an element that visits = 1 / 2e9 on the host for one that does not.
    void gradientsAndWeightsThatStreamCountAsWell()
    {
        const Feedback known = rates(28e9, 1e12, 2e9, 1e12);

        QVERIFY(std::abs(balancedDeviceShare(known, kStreamedVisits) - 0.5) < 1e-9);
        // Bytes in: 10 for a visitor, 2 where the host updates: 10 s + 2 (1 - s) = 14 (1 - s).
        QVERIFY(std::abs(balancedDeviceShare(known) - 12.0 / 22.0) < 1e-9);

        const auto made = makeStreamedPlacement({0.0, 0.0, Tier::PinnedHost, kBalanced});
        const ModelShape shape = shapeOf({1048576, 1048576, 1048576});
        for (const GroupPlacement& group : made->place(shape, endless(), known))
            QVERIFY(
                std::abs(firstHostElement(group.deviceShare, 1048576) - 524288) <= kCutElements);
    }

    // The groups whose state is on the host are cut as they would be without the others.
    void streamedGroupsAreCutAlongTheSameLine()
    {
        const ModelShape shape = shapeOf(mixedSizes());
        for (const double share : {0.0, 0.1, 0.25, 0.5, 0.9, 1.0}) {
            const auto all =
                cutsOf(*makeStreamedPlacement({0.0, 0.0, Tier::PinnedHost, share}), shape);
            QVERIFY(all == cutsOf(*makeSharePlacement(share), shape));
        }
    }

    void balancedPlacementCutsAtTheBalancedShare()
    {
        const Feedback known = rates(1e12, 24e9, 2e9, 1e12);
        const ModelShape shape = shapeOf({1048576, 1048576});

        const std::vector<std::int64_t> cuts = cutsOf(*makeBalancedPlacement(), shape, known);

        // The share may be a hair below a half.
        QVERIFY(std::abs(cuts[0] - 524288) <= kCutElements);
        QVERIFY(cutsOf(*makeBalancedPlacement(), shape) == std::vector<std::int64_t>(2, 262144));
    }
};

MR_TEST(TestPlacement)

} // namespace mr::test::tst_placement

#include "tst_placement.moc"
