// An optimizer that chooses rows: its first step is AdamW's in the rows with the most gradient, to
// the bit, and leaves the others as they were; the rows stay until the next choice, which begins
// with moments of 0.

#include "core/base/philox.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/layout.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "core/prove/run_gradients.h"
#include "core/prove/state_of.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace mr::test::tst_chosen_rows {

namespace {

constexpr double kRate = 1e-3; // that of gradientsOf()

PlainRunSpec specOf(const LightChoice& light, const std::string& policy)
{
    TinyRun tiny;
    tiny.policy = policy;
    tiny.light = light;
    if (policy != "resident")
        tiny.options = {{"tile", "2KiB"}};
    tiny.recompute = Recompute::Block;
    PlainRunSpec spec = plainRunSpec(tiny);
    spec.adamw = {0.9, 0.999, 1e-8, 0.2};
    spec.learningRate = kRate;
    spec.clipNorm = 0.0;
    return spec;
}

// The master before and after a first step, and its gradients.
struct FirstStep {
    std::unique_ptr<Device> device;
    std::unique_ptr<PlainRun> run;
    MasterBuffers before;
    MasterBuffers after;
    std::vector<Floats> gradients; // AdamW alone
};

FirstStep firstStep(const LightChoice& light, const std::string& policy)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    auto device = std::move(makeCpuDevice(options)).value();
    const PlainRunSpec spec = specOf(light, policy);
    auto run = std::move(PlainRun::create(*device, spec)).value();
    if (!installCheapWeights(*run).ok())
        qFatal("weights");
    MasterBuffers before = stateOf(*run);
    const auto batch = randomBatch(spec.config.vocab, spec.micro);
    std::vector<Floats> gradients;
    if (isLight(light.optimizer)) {
        StepInputs inputs;
        inputs.micros = batch;
        inputs.lossScale = 1.0F / static_cast<float>(spec.micro.microBatches * spec.micro.tokens());
        if (!run->step(inputs).ok())
            qFatal("step");
    } else {
        gradients = gradientsOf(*run, batch).of;
    }
    MasterBuffers after = stateOf(*run);
    return {std::move(device), std::move(run), std::move(before), std::move(after),
        std::move(gradients)};
}

// The rows of a matrix with the largest gradients, an eighth of them.
std::vector<bool> largestRows(const Floats& gradients, const WeightShape& shape)
{
    std::vector<double> squares;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        const auto from = gradients.begin() + shape.first + row * shape.cols;
        squares.push_back(std::inner_product(from, from + shape.cols, from, 0.0));
    }
    std::vector<std::size_t> order(squares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return squares[a] > squares[b]; });
    std::vector<bool> chosen(squares.size());
    for (std::size_t i = 0; i < std::max<std::size_t>(1, squares.size() / 8); ++i)
        chosen[order[i]] = true;
    return chosen;
}

bool sameRow(const MasterBuffers& a, const MasterBuffers& b, std::size_t group,
    const WeightShape& shape, std::size_t row)
{
    const auto first =
        static_cast<std::ptrdiff_t>(shape.first) + static_cast<std::ptrdiff_t>(row) * shape.cols;
    return std::equal(a.high[group].begin() + first, a.high[group].begin() + first + shape.cols,
               b.high[group].begin() + first) &&
           std::equal(a.low[group].begin() + first, a.low[group].begin() + first + shape.cols,
               b.low[group].begin() + first);
}

// Elements that a row moved, as one number for each, by the learning rate.
Floats movesOf(const MasterBuffers& a, const MasterBuffers& b, std::size_t group,
    const WeightShape& shape, std::size_t row)
{
    Floats moves;
    const std::size_t first =
        static_cast<std::size_t>(shape.first) + row * static_cast<std::size_t>(shape.cols);
    for (std::size_t i = first; i < first + static_cast<std::size_t>(shape.cols); ++i) {
        const float from = joinHalves(a.high[group][i], a.low[group][i]);
        const float to = joinHalves(b.high[group][i], b.low[group][i]);
        moves.push_back(std::abs(to - from) / static_cast<float>(kRate));
    }
    return moves;
}

// A row of a matrix of a block.
struct Row {
    std::size_t group;
    std::size_t weight;
    std::size_t row;

    friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> changedRows(
    const ParamTable& table, const MasterBuffers& before, const MasterBuffers& after)
{
    std::vector<Row> changed;
    for (std::size_t g = 1; g + 1 < table.groups.size(); ++g) {
        const std::vector<WeightShape> shapes = weightShapes(table.groups[g]);
        for (std::size_t w = 0; w < shapes.size(); ++w)
            for (std::size_t row = 0; row < static_cast<std::size_t>(shapes[w].rows); ++row)
                if (!shapes[w].isVector && !sameRow(after, before, g, shapes[w], row))
                    changed.push_back({g, w, row});
    }
    return changed;
}

constexpr std::uint64_t kSeed = 77;

// The master after a first step in BF16 from weights that are exact in it.
MasterBuffers steppedBf16(StateCodec codec, const MasterBuffers* start, MasterBuffers& before)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    PlainRunSpec spec = specOf({Optimizer::Grass, codec}, "resident");
    spec.micro.compute = DType::BF16;
    const auto run = std::move(PlainRun::create(*device, spec)).value();
    if (!installCheapWeights(*run).ok())
        qFatal("weights");
    const MasterBuffers given = start ? *start : stateOf(*run);
    for (std::size_t g = 0; g < given.high.size(); ++g) {
        const GroupId id{static_cast<std::int32_t>(g)};
        StateAccess& state = run->executor().state();
        const std::vector<std::int16_t> zeros(given.low[g].size());
        Status status =
            state.write(id, StatePart::High, 0, std::as_bytes(std::span(given.high[g])));
        if (status.ok() && codec == StateCodec::Halves)
            status = state.write(id, StatePart::Low, 0, std::as_bytes(std::span(zeros)));
        if (!status.ok())
            qFatal("%s", status.message().c_str());
    }
    before = stateOf(*run);
    const auto batch = randomBatch(spec.config.vocab, spec.micro);
    StepInputs inputs;
    inputs.micros = batch;
    inputs.lossScale = 1.0F / static_cast<float>(spec.micro.microBatches * spec.micro.tokens());
    inputs.seed = kSeed;
    if (!run->step(inputs).ok())
        qFatal("step");
    return stateOf(*run);
}

// 16 bits of an element of a weight in the first update.
std::uint32_t randomOf(std::uint64_t weight, std::size_t element)
{
    const auto words = philox(kSeed, element / 8, std::uint64_t{1} << 24 | weight);
    const std::uint32_t word = words[element % 8 / 2];
    return element % 2 == 0 ? word & 0xFFFFU : word >> 16;
}

} // namespace

class TestChosenRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theFirstStepIsAdamwsInTheRowsWithTheMostGradient_data();
    void theFirstStepIsAdamwsInTheRowsWithTheMostGradient();
    void rowsStayUntilTheNextChoice();
    void bf16IsRoundedByTheBitsOfUpdateAndWeight();
};

void TestChosenRows::theFirstStepIsAdamwsInTheRowsWithTheMostGradient_data()
{
    QTest::addColumn<QString>("policy");
    QTest::newRow("resident") << "resident";
    QTest::newRow("streamed, tiles") << "streamed";
}

void TestChosenRows::theFirstStepIsAdamwsInTheRowsWithTheMostGradient()
{
    QFETCH(QString, policy);
    const FirstStep adamw = firstStep({}, "resident");
    const FirstStep grass = firstStep({Optimizer::Grass, StateCodec::Halves}, policy.toStdString());
    const auto& groups = grass.run->table().groups;
    int matrices = 0;
    int decayed = 0;
    for (std::size_t g = 1; g + 1 < groups.size(); ++g) {
        const std::vector<WeightShape> shapes = weightShapes(groups[g]);
        for (std::size_t w = 0; w < shapes.size(); ++w) {
            if (shapes[w].isVector)
                continue;
            ++matrices;
            decayed += groups[g].paramSlots[w].decayed ? 1 : 0;
            const std::vector<bool> chosen = largestRows(adamw.gradients[g], shapes[w]);
            for (std::size_t row = 0; row < chosen.size(); ++row) {
                QVERIFY(!sameRow(adamw.after, adamw.before, g, shapes[w], row));
                QVERIFY(sameRow(
                    grass.after, chosen[row] ? adamw.after : adamw.before, g, shapes[w], row));
            }
        }
    }
    QVERIFY(matrices > 8);
    QCOMPARE(decayed, matrices);
}

// The first step of a choice moves every element by the learning rate, as AdamW's first one does.
void TestChosenRows::rowsStayUntilTheNextChoice()
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    const auto device = std::move(makeCpuDevice(options)).value();
    PlainRunSpec spec = specOf({Optimizer::Grass, StateCodec::Halves}, "resident");
    spec.adamw.weightDecay = 0.0;
    const auto run = std::move(PlainRun::create(*device, spec)).value();
    QVERIFY(installCheapWeights(*run).ok());
    const auto batch = randomBatch(spec.config.vocab, spec.micro);
    StepInputs inputs;
    inputs.micros = batch;
    inputs.lossScale = 1.0F / static_cast<float>(spec.micro.microBatches * spec.micro.tokens());
    std::vector<Row> first;
    std::vector<Row> second;
    MasterBuffers before = stateOf(*run);
    for (int step = 1; step <= 202; ++step) {
        QVERIFY(run->step(inputs).ok());
        MasterBuffers after = stateOf(*run);
        const std::vector<Row> changed = changedRows(run->table(), before, after);
        std::vector<Row>& chosen = step <= 200 ? first : second;
        if (step == 1 || step == 201) {
            chosen = changed;
            std::size_t whole = 0;
            std::size_t all = 0;
            for (const Row& row : changed) {
                const WeightShape shape = weightShapes(run->table().groups[row.group])[row.weight];
                for (const float move : movesOf(before, after, row.group, shape, row.row)) {
                    QVERIFY(move < 1.01F);
                    whole += move > 0.99F ? 1 : 0;
                    ++all;
                }
            }
            QVERIFY2(whole > all * 9 / 10, qPrintable(QString::number(whole)));
        }
        QVERIFY(changed == chosen);
        before = std::move(after);
    }
    QVERIFY(second != first);
}

void TestChosenRows::bf16IsRoundedByTheBitsOfUpdateAndWeight()
{
    const ParamTable table = PlainRun::tableOf(specOf({}, "resident")).value();
    MasterBuffers before(table);
    MasterBuffers start(table);
    const MasterBuffers exact = steppedBf16(StateCodec::Halves, nullptr, before);
    const MasterBuffers rounded = steppedBf16(StateCodec::Random16, &before, start);
    QVERIFY(start.high == before.high);
    std::uint64_t number = 0; // of a weight, among all
    std::size_t moved = 0;
    for (std::size_t g = 0; g < table.groups.size(); ++g)
        for (const WeightShape& shape : weightShapes(table.groups[g])) {
            const bool isChosen = g > 0 && g + 1 < table.groups.size() && !shape.isVector;
            const auto count = static_cast<std::size_t>(shape.rows * shape.cols);
            for (std::size_t element = 0; isChosen && element < count; ++element) {
                const std::size_t i = static_cast<std::size_t>(shape.first) + element;
                const std::size_t row = element / static_cast<std::size_t>(shape.cols);
                const bool steps = !sameRow(exact, before, g, shape, row);
                const auto bits =
                    std::bit_cast<std::uint32_t>(joinHalves(exact.high[g][i], exact.low[g][i]));
                const std::uint32_t want =
                    steps ? (bits + randomOf(number, element)) >> 16 : before.high[g][i];
                QCOMPARE(std::uint32_t{rounded.high[g][i]}, want);
                moved += want != before.high[g][i] ? 1 : 0;
            }
            ++number;
        }
    QVERIFY(moved > 100);
}

MR_TEST(TestChosenRows)

} // namespace mr::test::tst_chosen_rows

#include "tst_chosen_rows.moc"
