// Waits of a task, by the places it uses.

#include "core/plan/place_book.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <vector>

namespace mr::test::tst_place_book {

namespace {

constexpr PlaceUse kRead = {Place::Boundary, 3, false};
constexpr PlaceUse kWrite = {Place::Boundary, 3, true};

std::vector<TaskIndex> before(const PlaceBook& book, const PlaceUse& use, Lane lane)
{
    std::vector<TaskIndex> tasks;
    book.visitBefore(use, lane, [&](TaskIndex task) { tasks.push_back(task); });
    return tasks;
}

Task taskOf(TaskKind kind, int group, int micro)
{
    Task task;
    task.kind = kind;
    task.group = GroupId{group};
    task.micro = MicroBatch{micro};
    return task;
}

// Three groups, boundaries on the host, two micro-batches in flight.
StepPlan smallPlan()
{
    StepPlan plan;
    plan.answers.resize(3);
    plan.inFlight = 2;
    plan.batchBuffers = 2;
    plan.savesBoundaries = true;
    return plan;
}

} // namespace

class TestPlaceBook : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void readerWaitsForTheWriterAlone()
    {
        PlaceBook book;
        book.note(kWrite, Lane::Compute, 4);
        book.note(kRead, Lane::CopyOut, 5);

        QVERIFY(before(book, kRead, Lane::CopyIn) == (std::vector<TaskIndex>{4}));
        QVERIFY(before(book, kRead, Lane::Compute).empty()); // its lane runs in order
        QVERIFY(before(book, {Place::Boundary, 2, false}, Lane::CopyIn).empty());
        QVERIFY(before(book, {Place::Batch, 3, false}, Lane::CopyIn).empty());
    }

    void writerWaitsForTheLastReaderOfEachLane()
    {
        PlaceBook book;
        book.note(kWrite, Lane::CopyIn, 1);
        book.note(kRead, Lane::CopyOut, 2);
        book.note(kRead, Lane::Compute, 3);
        book.note(kRead, Lane::CopyOut, 6);

        QVERIFY(before(book, kWrite, Lane::CopyIn) == (std::vector<TaskIndex>{6, 3}));
        QVERIFY(before(book, kWrite, Lane::Host) == (std::vector<TaskIndex>{1, 6, 3}));
    }

    void nextWriterEndsWhatWasReadBefore()
    {
        PlaceBook book;
        book.note(kRead, Lane::CopyOut, 2);
        book.note(kWrite, Lane::Compute, 3);

        QVERIFY(before(book, kWrite, Lane::CopyIn) == (std::vector<TaskIndex>{3}));
        book.begin();
        QVERIFY(before(book, kWrite, Lane::CopyIn).empty());
    }

    void layerReadsOneBoundaryAndInForwardWritesTheOther()
    {
        const StepPlan plan = smallPlan();

        const PlaceUses forward(plan, taskOf(TaskKind::Forward, 1, 3));
        const PlaceUses backward(plan, taskOf(TaskKind::Backward, 1, 3));

        // Batch, weights, the output of group 0, its own.
        QCOMPARE(forward.all().size(), std::size_t{4});
        QCOMPARE(forward.all()[0].index, 1);
        QCOMPARE(forward.all()[2].index, 2);
        QVERIFY(!forward.all()[2].writes);
        QCOMPARE(forward.all()[3].index, 3);
        QVERIFY(forward.all()[3].writes);
        QCOMPARE(backward.all().size(), std::size_t{3});
    }

    void boundaryGoesHomeOnceWhetherOnTheHostOrOnDisk()
    {
        const StepPlan plan = smallPlan();
        Task save = taskOf(TaskKind::SaveBoundary, 1, 1);
        save.lane = Lane::CopyOut;
        Task write = taskOf(TaskKind::WriteBoundary, 1, 1);
        write.lane = Lane::DiskBoundaries;

        QCOMPARE(PlaceUses(plan, save).all().size(), std::size_t{2}); // read from, home
        save.stage = write.stage = 0;
        QCOMPARE(PlaceUses(plan, save).all().size(), std::size_t{1});
        QCOMPARE(PlaceUses(plan, write).all().size(), std::size_t{1});
        QVERIFY(PlaceUses(plan, write).all()[0].place == Place::BoundaryHome);
        QCOMPARE(PlaceUses(plan, write).all()[0].index, 4);
    }

    void weightsThatStayHaveNoPlace()
    {
        StepPlan plan = smallPlan();
        QCOMPARE(
            PlaceUses(plan, taskOf(TaskKind::FetchWeights, 1, -1)).all().size(), std::size_t{1});

        plan.answers[1].weights = Tier::Device;

        QVERIFY(PlaceUses(plan, taskOf(TaskKind::FetchWeights, 1, -1)).all().empty());
    }
};

MR_TEST(TestPlaceBook)

} // namespace mr::test::tst_place_book

#include "tst_place_book.moc"
