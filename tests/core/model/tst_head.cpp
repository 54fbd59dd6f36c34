// The head's gradients: one product, or several that are summed in order, whatever a chunk of
// logits has.

#include "core/device/cpu/cpu_device.h"
#include "core/model/block.h"
#include "core/model/model_folder.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace mr::test::tst_head {

using conformance::CaseRun;
using conformance::Dims;
using conformance::Input;

namespace {

constexpr std::int64_t kTokens = 70;
constexpr float kScale = 0.125F;                    // of the loss
constexpr float kLargest = 4.0F * kTokens * kScale; // a sum of rows: normed values are below 4

// A head with random numbers, the same in every bench of one type.
class HeadBench
{
public:
    // Rows of a chunk of logits, and of a product.
    HeadBench(Device& device, DType type, std::int64_t chunk, std::int64_t product)
        : run(device, 7)
        , m_config(test::config(test::tinyConfig()))
        , m_type(type)
    {
        const std::int64_t hidden = m_config.hidden;
        const std::int64_t vocab = m_config.vocab;
        m_x = run.random(type, {kTokens, hidden});
        m_weights = {run.random(type, {hidden}).view, run.random(type, {vocab, hidden}).view};
        conformance::Values targets;
        for (std::int64_t t = 0; t < kTokens; ++t)
            targets.push_back(static_cast<double>(t % 5 == 0 ? -1 : t % vocab));
        m_batch.targets = run.given(DType::I32, {kTokens}, targets).view;
        before = run.random(DType::F32, {vocab, hidden});
        scratch.parts = {vocab, vocab};
        scratch.rows.normed = run.blank(type, {kTokens, hidden});
        scratch.rows.rstd = run.blank(DType::F32, {kTokens});
        scratch.gradNormed = run.blank(type, {kTokens, hidden});
        scratch.rows.losses = run.blank(DType::F32, {kTokens});
        scratch.logits = run.blank(DType::F32, {chunk, vocab});
        scratch.gradLogits = run.blank(type, {product, vocab});
        scratch.normPartial = run.blank(DType::F32, {2, hidden});
        backward.gradients = {run.blank(DType::F32, {hidden}), blankMatrix()};
        backward.losses = run.blank(DType::F64, {1});
        backward.gradX = run.blank(type, {kTokens, hidden});
        backward.lossScale = kScale;
    }

    TensorView blankMatrix() { return run.blank(DType::F32, {m_config.vocab, m_config.hidden}); }

    // The vocabulary in parts of so many rows, which keep their logits or make them again.
    void divide(std::int64_t rows, bool keepsLogits)
    {
        scratch.parts = {m_config.vocab, rows};
        scratch.chunk = 16;
        scratch.keepsLogits = keepsLogits;
        const std::int64_t parts = scratch.parts.count();
        const std::int64_t columns = keepsLogits ? m_config.vocab : rows;
        for (TensorView* view : {&scratch.rows.tops, &scratch.rows.sums})
            *view = run.blank(DType::F32, {kTokens, parts});
        for (TensorView* view :
            {&scratch.rows.targetLogits, &scratch.rows.top, &scratch.rows.total})
            *view = run.blank(DType::F32, {kTokens});
        scratch.rows.gradSum = run.blank(DType::F32, {kTokens, m_config.hidden});
        scratch.logits = run.blank(DType::F32, {std::max(16 * columns, m_config.vocab)});
        scratch.gradLogits = run.blank(m_type, {kTokens, columns});
    }

    void runBackward() { run.call(backwardHead(context(), m_weights, input(), scratch, backward)); }

    // Tiles of so many parts of the matrix.
    void runTiles(std::int64_t partsOfTile)
    {
        const std::int64_t rows = partsOfTile * scratch.parts.rows;
        std::vector<HeadTile> tiles;
        for (std::int64_t first = 0; first < m_config.vocab; first += rows)
            tiles.push_back(
                {m_weights.matrix.rows(first, std::min(rows, m_config.vocab - first)), first});
        const LayerContext c = context();
        run.call(beginHead(c, m_weights.norm, input(), scratch));
        for (const HeadTile& tile : tiles)
            run.call(softmaxOfTile(c, tile, scratch));
        run.call(joinHead(c, scratch, backward.losses, 0));
        for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile)
            run.call(gradientsOfTile(c, *tile, scratch, backward));
        run.call(endHead(c, m_weights.norm, input(), scratch, backward));
    }

    LayerContext context()
    {
        LayerContext context;
        context.ops = &run.ops();
        context.stream = &run.stream();
        context.config = &m_config;
        context.batch = m_batch;
        return context;
    }

    LayerInput input() const { return {m_x.view, {}, {}}; }

    CaseRun run;
    HeadScratch scratch;
    HeadBackward backward;
    Input before; // (V, H), F32

private:
    const ModelConfig m_config;
    const DType m_type;
    Input m_x;
    HeadTensors m_weights;
    BatchViews m_batch;
};

std::vector<float> floats(const TensorView& view)
{
    const auto* data = view.as<const float>(); // an inline CPU device's memory is host memory
    return {data, data + view.count()};
}

std::unique_ptr<Device> device()
{
    return makeCpuDevice(std::size_t{64} << 20);
}

} // namespace

class TestHead : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theMatrixHasOneProductWhateverAChunkHas()
    {
        const auto cpu = device();
        for (const DType type : {DType::F32, DType::BF16}) {
            HeadBench whole(*cpu, type, kTokens, kTokens);
            whole.runBackward();
            const std::vector<float> want = floats(whole.backward.gradients.matrix);
            for (const std::int64_t chunk : {std::int64_t{16}, std::int64_t{33}, kTokens}) {
                HeadBench bench(*cpu, type, chunk, kTokens);
                bench.runBackward();
                const TensorView product = bench.blankMatrix();
                bench.run.call(bench.run.ops().linearBackwardWeight(
                    {bench.scratch.gradLogits, bench.scratch.rows.normed, product, {}, {}},
                    bench.run.stream()));
                bench.run.expectSame("matrix", bench.backward.gradients.matrix, product);
                QVERIFY2(bench.run.status().ok(), bench.run.status().message().c_str());
                // Logits of other rows may be rounded otherwise, and then their gradient.
                const float unit = type == DType::F32 ? kTokens * 0x1p-24F : 0x1p-8F;
                const std::vector<float> got = floats(bench.backward.gradients.matrix);
                for (std::size_t i = 0; i < want.size(); ++i)
                    QVERIFY(std::abs(got[i] - want[i]) < kLargest * unit);
            }
        }
    }

    void severalProductsAreNearOneAndGiveTheSameLosses()
    {
        const auto cpu = device();
        for (const DType type : {DType::F32, DType::BF16}) {
            HeadBench whole(*cpu, type, 16, kTokens);
            HeadBench parts(*cpu, type, 16, 32);
            whole.runBackward();
            parts.runBackward();
            QVERIFY(whole.run.status().ok() && parts.run.status().ok());
            QCOMPARE(floats(parts.scratch.rows.losses), floats(whole.scratch.rows.losses));
            const std::vector<float> want = floats(whole.backward.gradients.matrix);
            const std::vector<float> got = floats(parts.backward.gradients.matrix);
            for (std::size_t i = 0; i < want.size(); ++i)
                QVERIFY(std::abs(got[i] - want[i]) < kLargest * kTokens * 0x1p-24F);
        }
    }

    void aVocabularyInPartsHasOneResultHoweverItIsHeld()
    {
        const auto cpu = device();
        for (const DType type : {DType::F32, DType::BF16}) {
            HeadBench one(*cpu, type, 16, kTokens);
            one.runBackward();
            HeadBench kept(*cpu, type, 16, kTokens);
            kept.divide(16, true);
            kept.runBackward();
            const auto compare = [&](HeadBench& other) {
                QVERIFY2(other.run.status().ok(), other.run.status().message().c_str());
                const HeadBackward& a = kept.backward;
                const HeadBackward& b = other.backward;
                kept.run.expectSame("matrix", b.gradients.matrix, a.gradients.matrix);
                kept.run.expectSame("norm", b.gradients.norm, a.gradients.norm);
                kept.run.expectSame("gradX", b.gradX, a.gradX);
                kept.run.expectSame("losses", b.losses, a.losses);
                QVERIFY2(kept.run.status().ok(), kept.run.status().message().c_str());
            };
            HeadBench again(*cpu, type, 16, kTokens);
            again.divide(16, false);
            again.runBackward();
            compare(again);
            for (const std::int64_t parts : {1, 2, 3, 100}) {
                HeadBench tiles(*cpu, type, 16, kTokens);
                tiles.divide(16, false);
                tiles.runTiles(parts);
                compare(tiles);
            }
            // Sums of other order, and gradients of logits that round otherwise.
            const float unit = type == DType::F32 ? kTokens * 0x1p-24F : 0x1p-8F;
            const std::vector<float> want = floats(one.backward.gradients.matrix);
            const std::vector<float> got = floats(kept.backward.gradients.matrix);
            for (std::size_t i = 0; i < want.size(); ++i)
                QVERIFY(std::abs(got[i] - want[i]) < kLargest * unit);
            const double loss = *one.backward.losses.as<const double>();
            QVERIFY(std::abs(*kept.backward.losses.as<const double>() - loss) < 1e-5 * loss);
        }
    }

    // So a policy that adds micro-batches elsewhere gives the same bits.
    void theSumOfTheStepGetsTheSumOfTheProductsInOneAddition()
    {
        const auto cpu = device();
        for (const std::int64_t product : {std::int64_t{32}, kTokens}) {
            HeadBench alone(*cpu, DType::BF16, 16, product);
            HeadBench added(*cpu, DType::BF16, 16, product);
            added.backward.accumulateMatrix = true;
            added.backward.gradients.matrix = added.before.view;
            if (product < kTokens)
                added.backward.product = added.blankMatrix();
            const std::vector<float> before = floats(added.before.view);
            alone.runBackward();
            added.runBackward();
            QVERIFY(alone.run.status().ok() && added.run.status().ok());
            std::vector<float> want = floats(alone.backward.gradients.matrix);
            for (std::size_t i = 0; i < want.size(); ++i)
                want[i] = before[i] + want[i];
            QCOMPARE(floats(added.backward.gradients.matrix), want);
        }
    }
};

MR_TEST(TestHead)

} // namespace mr::test::tst_head

#include "tst_head.moc"
