// The table of task kinds; that it is complete and in order is checked where it is compiled.

#include "core/plan/plan_text.h"
#include "core/plan/task_traits.h"
#include "support/test_room.h"

#include <QTest>

#include <set>
#include <string_view>

namespace mr::test::tst_task_traits {

namespace {

// The names of those that `isMeant` names.
template <typename IsMeant>
std::set<std::string_view> namesOf(IsMeant isMeant)
{
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < kTaskKinds; ++i)
        if (const auto kind = static_cast<TaskKind>(i); isMeant(traitsOf(kind)))
            names.insert(name(kind));
    return names;
}

} // namespace

class TestTaskTraits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyKindHasANameOfItsOwn()
    {
        QCOMPARE(namesOf([](const TaskTraits&) { return true; }).size(), kTaskKinds);
    }

    void whatWritesToDiskIsKnownByWhatItWrites()
    {
        QVERIFY(namesOf([](const TaskTraits& traits) { return isDiskWrite(traits.kind); }) ==
                (std::set<std::string_view>{"WriteToDisk", "SpillGradient", "WriteBoundary"}));
    }

    void tasksOnDiskLanesReadOrWriteTheDisk()
    {
        for (std::size_t i = 0; i < kTaskKinds; ++i) {
            const TaskTraits& traits = traitsOf(static_cast<TaskKind>(i));
            bool onDisk = false;
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                onDisk = onDisk || (isDisk(Lane{static_cast<std::uint8_t>(lane)}) &&
                                       traits.runsOn(Lane{static_cast<std::uint8_t>(lane)}));
            QCOMPARE((traits.reads | traits.writes).has(Place::Disk), onDisk);
        }
    }

    void updatesChangeARunAndSumsOnlyThoseWithWindows()
    {
        QVERIFY(traitsOf(TaskKind::UpdateOnHost).mayChange(false));
        QVERIFY(traitsOf(TaskKind::StoreState).mayChange(false));
        QVERIFY(!traitsOf(TaskKind::Backward).mayChange(true));
        QVERIFY(namesOf([](const TaskTraits& traits) {
            return traits.mayChange(true) && !traits.mayChange(false);
        }) == (std::set<std::string_view>{"NormPart", "JoinNorm", "SendGradient"}));
    }
};

MR_TEST(TestTaskTraits)

} // namespace mr::test::tst_task_traits

#include "tst_task_traits.moc"
