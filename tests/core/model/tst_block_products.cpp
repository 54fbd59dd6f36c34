// Gradients of FP8 products that are added to their sum by an operation of their own.

#include "core/device/cpu/cpu_device.h"
#include "core/model/block.h"
#include "core/model/block_products.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <algorithm>
#include <memory>

namespace mr::test::tst_block_products {

using conformance::CaseRun;
using conformance::Input;

namespace {

constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kIn = 16;
constexpr std::int64_t kOut = 48;

} // namespace

class TestBlockProducts : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void sumsAreEqualInScratchAndOnTheFly()
    {
        const auto device = makeCpuDevice(std::size_t{1} << 24);
        CaseRun run(*device, 5);
        LayerContext context;
        context.ops = &run.ops();
        context.stream = &run.stream();
        context.trains = true;
        const std::int64_t codes = 2 * kTokens * kOut + std::max(kTokens, kOut) * kIn;
        const CodeScratch scratch{run.blank(DType::U8, {codes}),
            run.blank(DType::F32, {2 * kCodeBlock}), run.blank(DType::I32, {kQuantizePartials})};
        const Input gradOut = run.random(DType::BF16, {kTokens, kOut});
        const Input x = run.random(DType::BF16, {kTokens, kIn});
        const Input weight = run.random(DType::BF16, {kOut, kIn});
        const Input before = run.random(DType::F32, {kOut, kIn});
        const TensorView product = run.blank(DType::F32, {kOut, kIn});
        const LinearBackwardInputArgs input{
            gradOut.view, weight.view, run.blank(DType::BF16, {kTokens, kIn})};
        const auto sumWith = [&](const TensorView& sum, const TensorView& in, bool accumulate) {
            run.call(multiplyBack(
                context, scratch, {gradOut.view, x.view, sum, {}, in, accumulate}, input));
            return sum;
        };
        const auto copy = [&] { return run.given(DType::F32, {kOut, kIn}, before.values).view; };
        const TensorView alone = sumWith(run.blank(DType::F32, {kOut, kIn}), {}, false);
        const TensorView onTheFly = sumWith(copy(), {}, true);
        const TensorView inScratch = sumWith(copy(), product, true);
        run.expectSame("product", product, alone);
        run.expectSame("sum", inScratch, onTheFly);
        QVERIFY2(run.status().ok(), run.status().message().c_str());
        QVERIFY2(run.error() <= 1.0, run.worst().c_str());
    }
};

MR_TEST(TestBlockProducts)

} // namespace mr::test::tst_block_products

#include "tst_block_products.moc"
