// TurnSchedule: every round visits each group once, in an order of its own.

#include "core/optim/turn_schedule.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <set>

namespace mr::test::tst_turn_schedule {

namespace {

TurnSchedule scheduleOf(int groups, std::uint64_t seed)
{
    TurnSchedule schedule{{}, 5, seed};
    for (int g = 1; g <= groups; ++g)
        schedule.groups.push_back(GroupId{g});
    return schedule;
}

std::vector<GroupId> roundOf(const TurnSchedule& schedule, std::int64_t round)
{
    const auto count = static_cast<std::int64_t>(schedule.groups.size());
    std::vector<GroupId> order;
    for (std::int64_t i = 0; i < count; ++i)
        order.push_back(schedule.groupOf(round * count + i));
    return order;
}

} // namespace

class TestTurnSchedule : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRoundVisitsEachGroupOnce()
    {
        for (const int groups : {1, 2, 7, 40})
            for (std::int64_t round = 0; round < 5; ++round) {
                std::vector<GroupId> order = roundOf(scheduleOf(groups, 3), round);
                std::ranges::sort(order);
                QVERIFY(order == scheduleOf(groups, 3).groups);
            }
    }

    void roundsAndSeedsHaveOrdersOfTheirOwn()
    {
        std::set<std::vector<GroupId>> orders;
        for (const std::uint64_t seed : {1U, 2U})
            for (std::int64_t round = 0; round < 10; ++round)
                orders.insert(roundOf(scheduleOf(20, seed), round));
        QCOMPARE(orders.size(), std::size_t{20});
        QVERIFY(roundOf(scheduleOf(20, 1), 3) == roundOf(scheduleOf(20, 1), 3));
    }

    // Each group is first in some round: no order is fixed.
    void everyGroupIsFirstNowAndThen()
    {
        std::set<GroupId> first;
        for (std::int64_t round = 0; round < 60; ++round)
            first.insert(roundOf(scheduleOf(4, 1), round).front());
        QCOMPARE(first.size(), std::size_t{4});
    }

    void stepsBelongToTurns()
    {
        const TurnSchedule schedule = scheduleOf(4, 1);
        QCOMPARE(schedule.turnOf(1), std::int64_t{0});
        QCOMPARE(schedule.turnOf(5), std::int64_t{0});
        QCOMPARE(schedule.turnOf(6), std::int64_t{1});
        QVERIFY(!TurnSchedule().isActive());
    }

    void aTurnIsHalfARoundsShareAndAtLeastTwentySteps()
    {
        QCOMPARE(defaultTurnSteps(4000, 40), std::int64_t{50});
        QCOMPARE(defaultTurnSteps(100, 40), std::int64_t{20});
        QCOMPARE(defaultTurnSteps(0, 40), std::int64_t{20});
    }
};

MR_TEST(TestTurnSchedule)

} // namespace mr::test::tst_turn_schedule

#include "tst_turn_schedule.moc"
