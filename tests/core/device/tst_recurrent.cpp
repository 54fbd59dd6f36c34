// Recurrent ops beyond the table of conformance.h: threads, generation, refusals.

#include "core/device/cpu/cpu_device.h"
#include "core/device/op_checks.h"
#include "core/prove/conformance_case.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <memory>
#include <string>

namespace mr::test::tst_recurrent {

using conformance::CaseRun;
using conformance::Input;
using conformance::Table;
using conformance::Values;

namespace {

std::unique_ptr<Device> device(int threads)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{1} << 28;
    options.threads = threads;
    return std::move(makeCpuDevice(options).value());
}

// Empty unless the case passes.
std::string bitsOf(Device& cpu, const conformance::Case& line)
{
    CaseRun run(cpu, conformance::kCaseSeed);
    line.run(run);
    return run.status().ok() && run.error() <= 1.0 ? run.digest() : std::string();
}

constexpr DeltaShape kShape{2, 4, 20, 36};
constexpr std::int64_t kRows = 150;

struct Generation {
    Input mixed, gates, logDecay, timeBias;
    TensorView state;
};

Generation generation(CaseRun& run, DType type)
{
    return {run.random(type, {kRows, kShape.columns()}), run.random(type, {kRows, 8}),
        run.random(type, {4}), run.random(type, {4}), run.blank(DType::F32, {4, 20, 36})};
}

// Rows of `in`, `perCall` a call, to `out`.
void generate(CaseRun& run, const Generation& in, const TensorView& out, std::int64_t perCall)
{
    const TensorView from =
        run.given(DType::I32, {kRows}, Values(static_cast<std::size_t>(kRows), 0.0)).view;
    for (std::int64_t t = 0; t < kRows; t += perCall)
        run.call(
            run.ops().gatedDelta({in.mixed.view.rows(t, perCall), in.gates.view.rows(t, perCall),
                                     in.logDecay.view, in.timeBias.view, from.rows(0, perCall),
                                     out.rows(t, perCall), in.state, {}, kShape, 0, t > 0},
                run.stream()));
}

} // namespace

class TestRecurrent : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void bitsDoNotDependOnThreads()
    {
        Table table;
        conformance::addConvCases(table);
        conformance::addDeltaCases(table);
        conformance::addGatedCases(table);
        const auto one = device(1);
        const auto two = device(2);
        const auto three = device(3);

        std::string others;
        for (const conformance::Case& line : table) {
            const std::string bits = bitsOf(*one, line);
            if (bits.empty() || bitsOf(*two, line) != bits || bitsOf(*three, line) != bits)
                others += line.name + "\n";
        }

        QVERIFY(!table.empty());
        QVERIFY2(others.empty(), others.c_str());
    }

    void generationTokenByTokenEqualsTheWhole_data()
    {
        QTest::addColumn<DType>("type");
        QTest::addRow("f32") << DType::F32;
        QTest::addRow("bf16") << DType::BF16;
    }

    void generationTokenByTokenEqualsTheWhole()
    {
        QFETCH(const DType, type);
        const auto cpu = device(2);
        CaseRun run(*cpu, 3);
        const Generation whole = generation(run, type);
        const TensorView want = run.blank(type, {kRows, kShape.valueColumns()});
        generate(run, whole, want, kRows);
        Generation tokens = whole;
        tokens.state = run.blank(DType::F32, {4, 20, 36});
        const TensorView out = run.blank(type, {kRows, kShape.valueColumns()});

        generate(run, tokens, out, 1);
        run.expectSame("out", out, want);
        run.expectSame("state", tokens.state, whole.state);

        QVERIFY2(run.status().ok(), run.status().message().c_str());
        QVERIFY2(run.error() == 0.0, run.worst().c_str());
    }

    void refusesWhatDoesNotFit()
    {
        const auto cpu = device(1);
        CaseRun run(*cpu, 1);
        CausalConvArgs conv{run.blank(DType::F32, {4, 9}), run.blank(DType::F32, {8, 4}),
            run.blank(DType::I32, {4}), run.blank(DType::F32, {4, 8}), {}, 2};
        GatedDeltaArgs delta{run.blank(DType::F32, {4, 24}), run.blank(DType::F32, {4, 4}),
            run.blank(DType::F32, {2}), run.blank(DType::F32, {2}), run.blank(DType::I32, {4}),
            run.blank(DType::F32, {4, 8}), {}, {}, {2, 2, 4, 4}};

        QCOMPARE(checkCausalConv(conv).message(),
            std::string("causalConv: want its columns within the rows"));
        conv.firstColumn = 1;
        QVERIFY(checkCausalConv(conv).ok());
        conv.continues = true;
        QCOMPARE(checkCausalConv(conv).message(),
            std::string("causalConv: cannot continue without what the call before left"));
        QVERIFY(checkGatedDelta(delta).ok());
        delta.scratch = run.blank(DType::F32, {deltaForwardScratch(4, delta.shape) - 1});
        QVERIFY(!checkGatedDelta(delta).ok());
        delta.scratch = run.blank(DType::F32, {deltaForwardScratch(4, delta.shape)});
        QVERIFY(checkGatedDelta(delta).ok());
        delta.continues = true;
        QVERIFY(!checkGatedDelta(delta).ok());
        delta.continues = false;
        delta.firstGate = 1;
        QCOMPARE(checkGatedDelta(delta).message(),
            std::string("gatedDelta: want its columns within the rows"));
        delta.shape = {2, 3, 4, 4};
        QVERIFY(checkGatedDelta(delta).message().ends_with("a multiple of keyHeads"));
    }
};

MR_TEST(TestRecurrent)

} // namespace mr::test::tst_recurrent

#include "tst_recurrent.moc"
