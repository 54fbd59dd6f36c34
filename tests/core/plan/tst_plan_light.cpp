// Updates behind backward: a group's gradient is used up on the device before the next one begins,
// state comes beside the weights of its layer, and the checker finds what is out of place.

#include "core/plan/memory_plan.h"
#include "core/plan/plan_text.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_bench.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <string>

namespace mr::test::tst_plan_light {

namespace {

using Options = std::map<std::string, std::string>;

// Four tiles of state fill a group.
Bench lightBench(const char* policy, Options options = {}, StateCodec state = StateCodec::Bits24,
    int blocks = 3, Optimizer optimizer = Optimizer::Factored)
{
    Bench bench;
    bench.shape = columnShape(blocks);
    // Three parts of a vocabulary, each more than a cut.
    const WeightShape& head = bench.shape.groups.back().weights.front();
    bench.shape.vocabulary = {head.rows, head.cols, 22, head.first};
    options.insert({"tile", "8KiB"});
    if (std::string(policy) == "resident")
        options.erase("tile");
    bench.policy = policyWith(policy, options, {optimizer, state});
    return bench;
}

// `from`: where the search begins.
TaskIndex firstOf(const Bench& bench, TaskKind kind, int group, TaskIndex from = 0)
{
    const auto& tasks = bench.built.plan.tasks;
    const auto found = std::find_if(tasks.begin() + from, tasks.end(),
        [&](const Task& task) { return task.kind == kind && task.group.value == group; });
    return static_cast<TaskIndex>(found - tasks.begin());
}

struct LightRow {
    const char* name;
    const char* policy;
    Options options;
    StateCodec state = StateCodec::Bits24;
    Optimizer optimizer = Optimizer::Factored;
};

const LightRow kLightRows[] = {
    {"resident", "resident", {}},
    {"zero-offload", "zero-offload", {}},
    {"streamed", "streamed", {}},
    {"streamed, one buffer", "streamed", {{"buffers", "1"}}},
    {"streamed, 16 bits", "streamed", {}, StateCodec::Random16},
    {"streamed, small tiles", "streamed", {{"tile", "2KiB"}}},
    {"streamed, head by three tiles", "streamed", {{"vocabulary", "host"}, {"tile", "2KiB"}}},
    {"streamed, head by three tiles, one buffer", "streamed",
        {{"vocabulary", "host"}, {"tile", "2KiB"}, {"buffers", "1"}}},
    {"streamed, head by one tile, 16 bits", "streamed", {{"vocabulary", "host"}},
        StateCodec::Random16},
    {"ssd-vertical", "ssd-vertical", {{"boundary", "device"}}},
    {"ssd-vertical, weights too", "ssd-vertical",
        {{"weights-on-disk", "1"}, {"boundary", "device"}}},
    {"resident, two passes", "resident", {{"clip-mode", "two-pass"}}},
    {"streamed, two passes", "streamed", {{"clip-mode", "two-pass"}, {"boundary", "host"}}},
    {"streamed, two passes, head by three tiles", "streamed",
        {{"clip-mode", "two-pass"}, {"vocabulary", "host"}, {"tile", "2KiB"}}},
    {"ssd-vertical, two passes, boundaries too", "ssd-vertical",
        {{"clip-mode", "two-pass"}, {"weights-on-disk", "1"}, {"boundaries-on-disk", "1"}}},
    {"ssd-vertical, 16 bits", "ssd-vertical", {{"weights-on-disk", "1"}, {"boundary", "device"}},
        StateCodec::Random16},
    {"resident, no backward", "resident", {}, StateCodec::Bits24, Optimizer::Mezo},
    {"streamed, no backward", "streamed", {}, StateCodec::Bits24, Optimizer::Mezo},
    {"streamed, no backward, 16 bits, one buffer", "streamed", {{"buffers", "1"}},
        StateCodec::Random16, Optimizer::Mezo},
    {"ssd-vertical, no backward", "ssd-vertical", {{"weights-on-disk", "1"}}, StateCodec::Bits24,
        Optimizer::Mezo},
};

} // namespace

class TestPlanLight : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aGradientIsUsedUpBeforeTheNextOne_data() { rows(); }
    void aGradientIsUsedUpBeforeTheNextOne();
    void everyWaitIsNeeded_data() { rows(); }
    void everyWaitIsNeeded();
    void bytesAreThoseOfTheFormula();
    void embeddingAndHeadNeedNoPlaceOfTheirOwnOnTheDevice();
    void aTileIsOnTheDeviceWhileItIsRead();
    void workOfAWeightLiesApartAndInVectors();
    void chosenRowsKeepMomentsAndTheirNumbers();
    void whatIsOutOfPlaceIsFound();
    void whatIsOutOfPlaceInTwoPassesIsFound();
    void withoutBackwardUpdatesComeBehindAllLosses();

private:
    static void rows()
    {
        QTest::addColumn<int>("row");
        for (int row = 0; row < int(std::size(kLightRows)); ++row)
            QTest::newRow(kLightRows[row].name) << row;
    }
    static Bench benchOf(int row)
    {
        const LightRow& how = kLightRows[row];
        return lightBench(how.policy, how.options, how.state, 3, how.optimizer);
    }
};

void TestPlanLight::aGradientIsUsedUpBeforeTheNextOne()
{
    QFETCH(int, row);
    Bench bench = benchOf(row);
    bench.build();
    QVERIFY2(bench.check().ok(), bench.check().message().c_str());

    if (bench.plan().probes)
        return; // it has none
    for (const Task& task : bench.plan().tasks)
        QVERIFY(task.kind != TaskKind::SendGradient && task.kind != TaskKind::UpdateOnHost);
    const int head = bench.shape.layers() - 1;
    const bool isTwice = bench.policy.clipMode == ClipMode::TwoPass;
    for (int group = head; group >= 0; --group) {
        const TaskIndex prepare = firstOf(bench, TaskKind::PrepareUpdate, group);
        const TaskIndex update = firstOf(bench, TaskKind::UpdateOnDevice, group);
        QVERIFY(
            firstOf(bench, TaskKind::JoinNorm, isTwice ? -1 : group) < prepare && prepare < update);
        if (group > 0)
            QVERIFY(
                update < firstOf(bench, TaskKind::Backward, group - 1, bench.plan().secondPass));
    }
    QCOMPARE(bench.plan().secondPass > 0, isTwice);
    QVERIFY(bench.built.out.pending.empty());
}

void TestPlanLight::everyWaitIsNeeded()
{
    QFETCH(int, row);
    Bench bench = benchOf(row);
    bench.build(2);
    QVERIFY2(bench.check().ok(), bench.check().message().c_str());

    const std::string needless = needlessWaits(bench, [](const Task&) { return true; });

    QVERIFY2(needless.empty(), needless.c_str());
}

void TestPlanLight::bytesAreThoseOfTheFormula()
{
    const Bench bench = lightBench("streamed");
    const MemoryPlan memory = memoryOf(bench);

    // One block's sum in F32, and one that embedding and head share.
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Accumulators), std::size_t{2 * 4 * 4096});
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Gradients), std::size_t{0});
    QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::Gradients), std::size_t{0});
    // Weights of embedding and head stay on the device and are their own high half.
    QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::HighPlane), std::size_t{3 * 2 * 4096});
    QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::LowPlane), std::size_t{5 * 4096});
    // A number for each row and column: 60 + 48; in a block 1 + 64 and 96 + 10 as well.
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Averages),
        std::size_t{4 * (5 * (60 + 48) + 3 * (65 + 106))});
    // All of a block.
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::StateSlots), std::size_t{4096});
    const MemoryPlan bare = memoryOf(lightBench("streamed", {}, StateCodec::Random16));
    QCOMPARE(bare.bytes(Tier::PinnedHost, MemoryUse::LowPlane), std::size_t{0});
    QCOMPARE(bare.bytes(Tier::Device, MemoryUse::StateSlots), std::size_t{0});
    const MemoryPlan resident = memoryOf(lightBench("resident"));
    QCOMPARE(resident.bytes(Tier::PinnedHost, MemoryUse::LowPlane), std::size_t{0});
    QCOMPARE(resident.bytes(Tier::Device, MemoryUse::LowPlane), std::size_t{5 * 4096});
}

void TestPlanLight::embeddingAndHeadNeedNoPlaceOfTheirOwnOnTheDevice()
{
    const Options byTiles = {{"vocabulary", "host"}, {"tile", "2KiB"}};
    Bench bench = lightBench("streamed", byTiles);
    bench.shape.headRowsBytes = 100;
    bench.shape.headTileBytes = 7;
    const MemoryPlan memory = memoryOf(bench);

    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Weights), std::size_t{0});
    QCOMPARE(memory.bytes(Tier::PinnedHost, MemoryUse::HighPlane), std::size_t{5 * 2 * 4096});
    QCOMPARE(memory.vocabulary.count(), 3);
    // Slots of a block hold a tile.
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::WeightSlots), std::size_t{2 * 2 * 4096});
    const auto flying = static_cast<std::size_t>(memory.boundaries.inFlight);
    QCOMPARE(memory.bytes(Tier::Device, MemoryUse::Head), 100 * flying + 7);
    // Elements of the group that hold rows of the matrix; the first tile brings the norm, too.
    const VocabularyTiles& tiles = memory.vocabulary;
    const std::int64_t first = tiles.shape.headFirst;
    QCOMPARE(tiles.at(0).first, std::int64_t{0});
    std::int64_t row = 0;
    for (int i = 0; i < tiles.count(); ++i) {
        const VocabularyTile tile = tiles.at(i);
        QCOMPARE(tile.firstRow, row);
        QVERIFY(tile.first <= first + row * 48);
        row += tile.rows;
        QVERIFY(tile.first + tile.count >= first + row * 48);
        QCOMPARE(tiles.indexOf(tile.first, tile.count), std::optional(i));
        QVERIFY(!tiles.indexOf(tile.first, tile.count + kCutElements));
    }
    QCOMPARE(row, tiles.shape.rows);
    QCOMPARE(tiles.at(2).first + tiles.at(2).count, std::int64_t{4096});
}

void TestPlanLight::aTileIsOnTheDeviceWhileItIsRead()
{
    const auto broken = [](auto change, const char* why) {
        Bench bench = lightBench("streamed", {{"vocabulary", "host"}, {"tile", "2KiB"}});
        bench.build();
        QVERIFY2(bench.check().ok(), bench.check().message().c_str());
        change(bench);
        const Status status = bench.check();
        QVERIFY(!status.ok());
        QVERIFY2(status.message().find(why) != std::string::npos, status.message().c_str());
    };
    const auto eraseFirst = [](Bench& bench, TaskKind kind, int group) {
        const auto& tasks = bench.built.plan.tasks;
        const auto end = tasks.begin() + firstOf(bench, kind, group);
        bench.erase(kind, static_cast<int>(std::count_if(tasks.begin(), end,
                              [&](const Task& task) { return task.kind == kind; })));
    };
    const auto lastOf = [](const Bench& bench, TaskKind kind, int group) {
        const auto& tasks = bench.built.plan.tasks;
        auto index = static_cast<TaskIndex>(tasks.size());
        while (tasks[--index].kind != kind || tasks[index].group.value != group)
            ;
        return index;
    };
    broken(
        [&](Bench& bench) { eraseFirst(bench, TaskKind::FetchRows, 0); }, "rows may not have come");
    broken([&](Bench& bench) { eraseFirst(bench, TaskKind::FetchWeights, 4); },
        "weights may not have come");
    broken([&](Bench& bench) { eraseFirst(bench, TaskKind::FetchWeights, 0); },
        "weights may not be on the device");
    broken([&](Bench& bench) { eraseFirst(bench, TaskKind::Forward, 4); }, "not this layer's turn");
    broken(
        [&](Bench& bench) { eraseFirst(bench, TaskKind::Backward, 4); }, "not this layer's turn");
    broken(
        [](Bench& bench) { ++bench.plan().tasks[firstOf(bench, TaskKind::Backward, 4)].slot; }, "");
    // A range of other rows.
    broken(
        [](Bench& bench) {
            bench.plan().tasks[firstOf(bench, TaskKind::Forward, 4)].elementCount += kCutElements;
        },
        "no tile of the matrix");
    // The embedding's sum takes the place of the head's.
    broken(
        [&](Bench& bench) {
            moveTask(bench.plan(), lastOf(bench, TaskKind::UpdateOnDevice, 4),
                lastOf(bench, TaskKind::Backward, 0) + 1);
        },
        "");
    broken(
        [](Bench& bench) {
            bench.plan().tasks[firstOf(bench, TaskKind::UpdateOnDevice, 0)].slot ^= 1U;
        },
        "");
}

// A kernel reads roots of columns one by one where they do not begin at a vector.
void TestPlanLight::workOfAWeightLiesApartAndInVectors()
{
    const WeightShape shapes[] = {{0, 7, 33}, {256, 1, 5, true}, {512, 1024, 3}, {4096, 2, 2}};
    for (const Optimizer optimizer : {Optimizer::Factored, Optimizer::SgdNormalised}) {
        const bool averages = optimizer == Optimizer::Factored;
        const LightLayout layout = lightLayout(optimizer, shapes, true);
        std::int64_t end = LightLayout::kScalars + 4; // 16 bytes
        for (std::size_t i = 0; i < std::size(shapes); ++i) {
            const LightLayout::Place& place = layout.places[i];
            QCOMPARE(place.columns % kLightVector, std::int64_t{0});
            QVERIFY(place.columns >= end);
            QCOMPARE(place.rows - place.columns, averages ? shapes[i].cols : 0);
            QCOMPARE(place.size - place.rows, averages ? shapes[i].rows : 0);
            end = place.size + 1;
        }
        QVERIFY(layout.rowSums >= end);
        QCOMPARE(layout.parts, layout.rowSums + 2 * 1024);
    }
}

// Moments begin at vectors. The ends of the model keep averages alone.
void TestPlanLight::chosenRowsKeepMomentsAndTheirNumbers()
{
    const WeightShape shapes[] = {
        {0, 7, 33}, {256, 1, 5, true}, {512, 1024, 3}, {4096, 16, 2}, {8192, 2, 2}};
    const LightLayout layout = lightLayout(Optimizer::Grass, shapes, true);
    const std::int64_t begins[] = {0, 67, 80, 976, 992};
    QCOMPARE(layout.places.size(), std::size(shapes));
    for (std::size_t i = 0; i < std::size(shapes); ++i)
        QCOMPARE(layout.places[i].averages, begins[i]);
    QCOMPARE(layout.averages, std::int64_t{992 + 5});
    QCOMPARE(layout.parts, layout.rowSums + 2 * 1024);     // squares, and the chosen rows by rank
    QCOMPARE(layout.work - layout.parts, std::int64_t{5}); // of the vector alone
    QCOMPARE(lightLayout(Optimizer::Grass, shapes, false).averages,
        lightLayout(Optimizer::Factored, shapes, false).averages);

    Bench bench = lightBench("streamed");
    bench.policy =
        policyWith("streamed", {{"tile", "8KiB"}}, {Optimizer::Grass, StateCodec::Bits24});
    // An eighth of 60 rows and of 96 in each block; 1 + 64 of a vector between them.
    QCOMPARE(memoryOf(bench).bytes(Tier::Device, MemoryUse::Averages),
        std::size_t{4 * (2 * (60 + 48) + 3 * (7 * 97 + 65 + 12 * 21))});
}

void TestPlanLight::whatIsOutOfPlaceIsFound()
{
    const auto broken = [](auto change, const char* rule) {
        Bench bench = lightBench("streamed");
        bench.build();
        change(bench);
        const Status status = bench.check();
        QVERIFY(!status.ok());
        QVERIFY2(status.message().find(rule) != std::string::npos, status.message().c_str());
    };
    broken([](Bench& bench) { bench.erase(TaskKind::PrepareUpdate, 1); }, "may not be prepared");
    broken(
        [](Bench& bench) {
            moveTask(bench.plan(), firstOf(bench, TaskKind::PrepareUpdate, 2),
                firstOf(bench, TaskKind::StoreState, 2));
        },
        "may not be prepared");
    broken([](Bench& bench) { bench.erase(TaskKind::UpdateOnDevice, 5); }, "gradient");
    broken([](Bench& bench) { bench.erase(TaskKind::StoreState, 5); }, "home");
    broken([](Bench& bench) { bench.erase(TaskKind::FetchState, 5); }, "state may not have come");
    // The other slot holds the weights of another block.
    broken(
        [](Bench& bench) {
            Task& update = bench.plan().tasks[firstOf(bench, TaskKind::UpdateOnDevice, 2)];
            VisitSlots slots = VisitSlots::of(update, bench.plan().stateSlots);
            slots.weights ^= 1U;
            update.slot = slots.packed(bench.plan().stateSlots);
        },
        "weights may not be on the device");
}

void TestPlanLight::whatIsOutOfPlaceInTwoPassesIsFound()
{
    const auto broken = [](auto change, const char* rule) {
        Bench bench = lightBench("streamed", {{"clip-mode", "two-pass"}, {"boundary", "host"}});
        bench.build();
        QVERIFY2(bench.check().ok(), bench.check().message().c_str());
        change(bench);
        const Status status = bench.check();
        QVERIFY(!status.ok());
        QVERIFY2(status.message().find(rule) != std::string::npos, status.message().c_str());
    };
    broken([](Bench& bench) { bench.plan().secondPass = 0; }, "not this layer's turn");
    broken([](Bench& bench) { bench.policy.clipMode = ClipMode::Own; }, "backward begins again");
    broken([](Bench& bench) { bench.erase(TaskKind::NormPart, 1); }, "missing in the norm");
    broken([](Bench& bench) { bench.erase(TaskKind::PrepareUpdate, 1); }, "may not be prepared");
    broken(
        [](Bench& bench) {
            ++bench.plan().secondPass;
            bench.erase(TaskKind::JoinNorm);
        },
        "backward begins again");
    // The update of the second pass would read the sums of the first.
    broken(
        [](Bench& bench) {
            StepPlan& plan = bench.plan();
            const TaskIndex at = firstOf(bench, TaskKind::FinishGradient, 2, plan.secondPass);
            plan.tasks[at] = plan.tasks[at - 1];
        },
        "");
    broken(
        [](Bench& bench) {
            StepPlan& plan = bench.plan();
            plan.secondPass = firstOf(bench, TaskKind::JoinNorm, -1);
        },
        "backward begins again");
}

void TestPlanLight::withoutBackwardUpdatesComeBehindAllLosses()
{
    Bench bench = lightBench("streamed", {}, StateCodec::Bits24, 3, Optimizer::Mezo);
    bench.build();
    QVERIFY2(bench.check().ok(), bench.check().message().c_str());
    const TaskIndex join = firstOf(bench, TaskKind::JoinNorm, -1);
    int forwards = 0;
    std::vector<std::int64_t> updated(static_cast<std::size_t>(bench.shape.layers()));
    for (TaskIndex i = 0; i < bench.plan().tasks.size(); ++i) {
        const Task& task = bench.plan().tasks[i];
        QVERIFY(task.kind != TaskKind::Backward && task.kind != TaskKind::NormPart &&
                task.kind != TaskKind::PrepareUpdate && task.kind != TaskKind::SaveBoundary);
        forwards += task.kind == TaskKind::Forward && i < join ? 1 : 0;
        if (task.kind != TaskKind::UpdateOnDevice)
            continue;
        QVERIFY(i > join);
        updated[static_cast<std::size_t>(task.group.value)] += task.elementCount;
    }
    QCOMPARE(forwards, 3 * bench.shape.layers());
    for (std::size_t g = 0; g < updated.size(); ++g)
        QCOMPARE(updated[g], bench.shape.groups[g].elements);

    moveTask(bench.plan(), join, firstOf(bench, TaskKind::Forward, bench.shape.layers() - 1));
    QVERIFY(!bench.check().ok());
    bench.build();
    bench.policy = policyWith("streamed", {}, {Optimizer::Factored, StateCodec::Bits24});
    QVERIFY(!bench.check().ok());
}

MR_TEST(TestPlanLight)

} // namespace mr::test::tst_plan_light

#include "tst_plan_light.moc"
