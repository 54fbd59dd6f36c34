// The head's gradients: one product, or several that are summed in order, whatever a chunk of
// logits has.

#include "core/device/cpu/cpu_device.h"
#include "core/model/block.h"
#include "core/model/model_folder.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QtTest>

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
        scratch.normed = run.blank(type, {kTokens, hidden});
        scratch.rstd = run.blank(DType::F32, {kTokens});
        scratch.gradNormed = run.blank(type, {kTokens, hidden});
        scratch.losses = run.blank(DType::F32, {kTokens});
        scratch.logits = run.blank(DType::F32, {chunk, vocab});
        scratch.gradLogits = run.blank(type, {product, vocab});
        scratch.normPartial = run.blank(DType::F32, {2, hidden});
        backward.gradients = {run.blank(DType::F32, {hidden}), blankMatrix()};
        backward.losses = run.blank(DType::F64, {1});
        backward.gradX = run.blank(type, {kTokens, hidden});
        backward.lossScale = kScale;
    }

    TensorView blankMatrix() { return run.blank(DType::F32, {m_config.vocab, m_config.hidden}); }

    void runBackward()
    {
        LayerContext context;
        context.ops = &run.ops();
        context.stream = &run.stream();
        context.config = &m_config;
        context.batch = m_batch;
        run.call(backwardHead(context, m_weights, {m_x.view, {}, {}}, scratch, backward));
    }

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
                    {bench.scratch.gradLogits, bench.scratch.normed, product, {}, {}},
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
            QCOMPARE(floats(parts.scratch.losses), floats(whole.scratch.losses));
            const std::vector<float> want = floats(whole.backward.gradients.matrix);
            const std::vector<float> got = floats(parts.backward.gradients.matrix);
            for (std::size_t i = 0; i < want.size(); ++i)
                QVERIFY(std::abs(got[i] - want[i]) < kLargest * kTokens * 0x1p-24F);
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
