// Tests beyond the table of conformance.h: refusals, accumulation, allocations, both products.

#include "core/base/parallel.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/ops/matmul.h"
#include "core/device/op_checks.h"
#include "core/prove/conformance_case.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>

namespace mr::test::tst_ops {

using conformance::CaseRun;
using conformance::Input;

namespace {

std::unique_ptr<Device> device(int threads)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{1} << 28;
    options.threads = threads;
    return std::move(makeCpuDevice(options).value());
}

std::vector<float> floats(const TensorView& view)
{
    // An inline CPU device's memory is host memory.
    const float* data = view.as<const float>();
    return {data, data + view.count()};
}

} // namespace

class TestOps : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void refusesShapesThatDoNotFitAndNamesTheOp()
    {
        const auto cpu = device(1);
        CaseRun run(*cpu, 1);
        auto stream = std::move(cpu->createStream("test").value());
        const TensorView x = run.blank(DType::F32, {4, 8});
        const TensorView weight = run.blank(DType::F32, {5, 7});
        const TensorView out = run.blank(DType::F32, {4, 5});

        const Status status = cpu->ops().linear({x, weight, {}, out}, *stream);

        QVERIFY(!status.ok());
        QCOMPARE(status.kind(), ErrorKind::InvalidArgument);
        QCOMPARE(status.message(), std::string("linear: weight is F32 (5, 7), want F32 (5, 8)"));
    }

    void refusesToAddToAGradientThatWasRounded()
    {
        const auto cpu = device(1);
        CaseRun run(*cpu, 1);
        const TensorView sum = run.blank(DType::BF16, {8});
        const TensorView out = run.blank(DType::BF16, {8});
        LinearBackwardWeightArgs args;
        args.gradOut = run.blank(DType::BF16, {4, 5});
        args.x = run.blank(DType::BF16, {4, 8});
        args.gradWeight = run.blank(DType::BF16, {5, 8});

        QVERIFY(checkLinearBackwardWeight(args).ok());
        args.accumulate = true;
        QCOMPARE(checkLinearBackwardWeight(args).message(),
            std::string("linearBackwardWeight: gradWeight is BF16 (5, 8), want F32 (5, 8)"));
        QVERIFY(checkFinishGradient({sum, {}, out}).ok());
        QVERIFY(!checkFinishGradient({sum, run.blank(DType::F32, {8}), out}).ok());
        QVERIFY(!checkFinishGradient({sum, {}, run.blank(DType::F32, {8})}).ok());
    }

    void refusesMixedTypesMissingMemoryAndWrongAliases()
    {
        const auto cpu = device(1);
        CaseRun run(*cpu, 1);
        const TensorView f32 = run.blank(DType::F32, {4, 8});
        const TensorView bf16 = run.blank(DType::BF16, {4, 8});
        const TensorView weight = run.blank(DType::F32, {8});
        const TensorView rstd = run.blank(DType::F32, {4});
        TensorView missing = f32;
        missing.data = nullptr;

        QVERIFY(!checkAdd({f32, bf16, f32}).ok());
        QVERIFY(!checkSwiglu({f32, missing}).ok());
        QVERIFY(!checkRmsNorm({f32, {}, weight, {}, f32, rstd, 1e-5F}).ok());
        QVERIFY(
            checkRmsNorm({f32, {}, weight, {}, run.blank(DType::F32, {4, 8}), rstd, 1e-5F}).ok());
        QVERIFY(!checkSum({weight, run.blank(DType::F64, {2}), 2}).ok());
        QVERIFY(!checkCast({f32, f32}).ok());
    }

    void refusesHeadsThatDoNotDivide()
    {
        AttentionArgs args;
        args.qkv = {nullptr, DType::F32, 2, {0, 56}};
        args.heads = 3;
        args.kvHeads = 2;
        args.headDim = 8;

        const Status status = checkAttention(args);

        QVERIFY(!status.ok());
        QVERIFY(status.message().starts_with("attention: "));
    }

    void refusesNormedHeadsThatDoNotFit()
    {
        const auto empty = [](std::initializer_list<std::int64_t> dims) {
            TensorView view{nullptr, DType::F32, static_cast<int>(dims.size()), {}};
            std::copy(dims.begin(), dims.end(), view.dims.begin());
            return view;
        };
        const TensorView row = empty({8});
        TensorView positions = empty({0});
        positions.dtype = DType::I32;
        HeadNormRopeBackwardArgs args{empty({0, 32}), {empty({0, 16}), empty({0, 2}), row},
            {empty({0, 8}), empty({0, 1}), row}, row, row, empty({0, 8}), positions, empty({0, 3}),
            empty({0, 3}), 2, 1, 8, 6};
        const auto refusal = [&] { return checkHeadNormRopeBackward(args).message(); };

        QCOMPARE(refusal(), std::string("headNormRopeBackward: queries.weight has no memory"));
        args.rotaryDim = 10;
        QCOMPARE(refusal(),
            std::string("headNormRopeBackward: want rotaryDim even, above 0 and at most headDim"));
        args.kvHeads = 2;
        QCOMPARE(refusal(),
            std::string("headNormRopeBackward: gradQkv is F32 (0, 32), want F32 (0, 48)"));
    }

    void anIdWithoutARowIsNeverLookedUp_data()
    {
        QTest::addColumn<int>("id");
        QTest::addRow("behind the last") << 5;
        QTest::addRow("far away") << 2'000'000'000;
        QTest::addRow("below the first") << -1;
    }

    void anIdWithoutARowIsNeverLookedUp()
    {
        QFETCH(const int, id);
        const auto cpu = device(2);
        CaseRun run(*cpu, 2);
        const Input table = run.random(DType::F32, {5, 8});
        const Input ids = run.given(DType::I32, {3}, {4.0, static_cast<double>(id), 0.0});

        run.call(run.ops().embed(
            {ids.view, table.view, run.blank(DType::F32, {3, 8}), 1.0F}, run.stream()));

        QVERIFY(!run.status().ok());
        const QString message = QString::fromStdString(run.status().message());
        QVERIFY2(
            message.contains(QStringLiteral("token 1 has the id %1").arg(id)), qPrintable(message));
    }

    void accumulatingEqualsAProductAndAnAddition_data()
    {
        QTest::addColumn<DType>("type");
        QTest::addRow("f32") << DType::F32;
        QTest::addRow("bf16") << DType::BF16;
    }

    void accumulatingEqualsAProductAndAnAddition()
    {
        QFETCH(const DType, type);
        const auto cpu = device(2);
        CaseRun run(*cpu, 3);
        const Input gradOut = run.random(type, {77, 130});
        const Input x = run.random(type, {77, 96});
        const Input sum = run.random(DType::F32, {130, 96});
        const TensorView product = run.blank(DType::F32, {130, 96});
        const TensorView added = run.blank(DType::F32, {130, 96});

        run.call(run.ops().linearBackwardWeight(
            {gradOut.view, x.view, product, {}, {}, false}, run.stream()));
        run.call(run.ops().add({sum.view, product, added}, run.stream()));
        run.call(run.ops().linearBackwardWeight(
            {gradOut.view, x.view, sum.view, {}, {}, true}, run.stream()));

        QVERIFY2(run.status().ok(), run.status().message().c_str());
        QVERIFY(floats(sum.view) == floats(added));
    }

    void ourOwnProductAgreesWithTheOneInUse()
    {
        ThreadPool pool(2, "test");
        cpu::Scratch scratch(2);
        cpu::Matmul matmul(pool, scratch);
        const auto cpu = device(1);
        CaseRun run(*cpu, 5);
        const Input a = run.random(DType::F32, {70, 600});
        const Input b = run.random(DType::F32, {90, 600});
        const TensorView first = run.blank(DType::F32, {70, 90});
        const TensorView second = run.blank(DType::F32, {70, 90});
        cpu::Product p;
        p.a = a.view.data;
        p.aRow = 600;
        p.b = b.view.data;
        p.bRow = 1;
        p.bCol = 600;
        p.rows = 70;
        p.cols = 90;
        p.depth = 600;

        p.c = first.data;
        QVERIFY(matmul.run(p).ok());
        p.c = second.data;
        QVERIFY(matmul.runOwn(p).ok());

        // Both within gamma(600) of the exact sum of 600 products of normal numbers.
        const double tolerance = 2.0 * 602.0 * conformance::kU * 600.0;
        const auto one = floats(first);
        const auto two = floats(second);
        for (std::size_t i = 0; i < one.size(); ++i)
            QVERIFY(
                std::abs(static_cast<double>(one[i]) - static_cast<double>(two[i])) <= tolerance);
    }

    void documentsDoNotSeeEachOther()
    {
        const auto cpu = device(2);
        CaseRun run(*cpu, 11);
        const std::int64_t columns = 4 * 16;
        Input qkv = run.random(DType::F32, {50, columns});
        conformance::Values from(50, 0.0);
        std::fill(from.begin() + 20, from.end(), 20.0);
        const Input visible = run.given(DType::I32, {50}, from);
        AttentionArgs args{qkv.view, visible.view, run.blank(DType::F32, {50, 32}),
            run.blank(DType::F32, {50, 2}), 2, 1, 16, 0.25F};
        run.call(run.ops().attention(args, run.stream()));
        const auto before = floats(args.out);

        std::fill(qkv.values.begin(), qkv.values.begin() + 20 * columns, 9.0);
        args.qkv = run.given(DType::F32, {50, columns}, qkv.values).view;
        run.call(run.ops().attention(args, run.stream()));

        const auto after = floats(args.out);
        QVERIFY(!std::equal(before.begin(), before.begin() + 20 * 32, after.begin()));
        QVERIFY(std::equal(before.begin() + 20 * 32, before.end(), after.begin() + 20 * 32));
    }

    void opsAllocateNothingOnceTheyKnowAShape()
    {
        const auto cpu = device(2);
        CaseRun run(*cpu, 2);
        const auto stream = std::move(cpu->createStream("test").value());
        const Input qkv = run.random(DType::F32, {150, 64});
        const Input out = run.random(DType::F32, {150, 32});
        const Input lse = run.random(DType::F32, {150, 2});
        const TensorView delta = run.blank(DType::F32, {150, 2});
        const TensorView gradQkv = run.blank(DType::F32, {150, 64});
        const Input oneDocument = run.given(DType::I32, {150}, conformance::Values(150, 0.0));
        conformance::Values own(150);
        for (std::size_t i = 0; i < own.size(); ++i)
            own[i] = static_cast<double>(i);
        const Input everyRowAlone = run.given(DType::I32, {150}, own);
        const auto step = [&](const TensorView& visible) {
            Status status = cpu->ops().attention(
                {qkv.view, visible, out.view, lse.view, 2, 1, 16, 0.25F}, *stream);
            if (status.ok())
                status =
                    cpu->ops().attentionBackward({qkv.view, visible, out.view, lse.view, out.view,
                                                     delta, gradQkv, 2, 1, 16, 0.25F},
                        *stream);
            return status.ok();
        };
        QVERIFY(step(oneDocument.view));

        constexpr int kSteps = 20;
        constexpr std::uint64_t kThreads = 2; // may start late, and take one allocation each
        bool ok = true;
        const auto before = test::heapCountsOfAllThreads().ours;
        for (int i = 0; i < kSteps; ++i)
            ok = step(everyRowAlone.view) && ok; // other segments, the same memory
        const auto after = test::heapCountsOfAllThreads().ours;

        QVERIFY(ok);
        QVERIFY2(after - before <= kThreads, qPrintable(QString::number(after - before)));
    }
};

MR_TEST(TestOps)

} // namespace mr::test::tst_ops

#include "tst_ops.moc"
