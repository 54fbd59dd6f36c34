// An adapter's part of a product and its gradients, with dropout, against double precision; one
// linear layer with LoRA and DoRA against PEFT.

#include "core/base/philox.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/block.h"
#include "core/model/block_dora.h"
#include "core/prove/conformance_case.h"
#include "support/shared_data.h"
#include "support/test_room.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QObject>
#include <QTest>

#include <cmath>
#include <memory>
#include <set>
#include <utility>

namespace mr::test::tst_block_adapter {

using conformance::CaseRun;
using conformance::Input;
using conformance::Values;

namespace {

constexpr std::int64_t kTokens = 40;
constexpr std::int64_t kIn = 21;
constexpr std::int64_t kOut = 12;
constexpr double kShare = 0.3;

// Rows of the product that a module has, and its ranks.
struct ModulePlan {
    std::int64_t firstRow, rows, firstRank, rank;
    float scale;
};

constexpr ModulePlan kModules[] = {{0, 5, 0, 3, 1.5F}, {7, 4, 3, 2, 0.5F}}; // rows 5 and 6: none
constexpr std::int64_t kRanks = 5;

std::size_t at(std::int64_t row, std::int64_t cols, std::int64_t col)
{
    return static_cast<std::size_t>(row * cols + col);
}

AdapterDropout dropoutOf(double probability)
{
    return {probability, 11, 3, 2, 1};
}

// mask / (1 - p) of every element.
Values factorsOf(const AdapterDropout& dropout)
{
    Values factors(static_cast<std::size_t>(kTokens * kIn), 1.0);
    const DropoutDraw draw = dropout.drawFor(SlotKind::GateUp);
    for (std::size_t i = 0; i < factors.size() && draw.probability > 0.0; ++i) {
        const std::uint32_t word = philox(draw.key, i / 4, draw.counter)[i % 4];
        const bool isKept = static_cast<double>(word) >= draw.probability * 4294967296.0 - 1.0;
        factors[i] = isKept ? 1.0 / (1.0 - draw.probability) : 0.0;
    }
    return factors;
}

struct Tensors {
    Input x, a, y, gradOut, gradX;
    Input b[2];
    ProductAdapter adapter;
    AdapterScratch scratch;
};

Tensors tensorsOf(CaseRun& run)
{
    Tensors t;
    t.x = run.random(DType::F32, {kTokens, kIn});
    t.a = run.random(DType::F32, {kRanks, kIn});
    t.y = run.random(DType::F32, {kTokens, kOut});
    t.gradOut = run.random(DType::F32, {kTokens, kOut});
    t.gradX = run.random(DType::F32, {kTokens, kIn});
    t.adapter.product = SlotKind::GateUp;
    t.adapter.a = t.a.view;
    for (std::size_t m = 0; m < 2; ++m) {
        const ModulePlan& plan = kModules[m];
        t.b[m] = run.random(DType::F32, {plan.rows, plan.rank});
        t.adapter.modules[m] = {t.b[m].view, {}, plan.firstRow, plan.firstRank, plan.scale};
    }
    t.adapter.count = 2;
    t.scratch.hidden = run.blank(DType::F32, {kTokens, kRanks});
    t.scratch.gradHidden = run.blank(DType::F32, {kTokens, kRanks});
    t.scratch.dropped = run.blank(DType::F32, {kTokens, kIn + 3});
    return t;
}

// The formulas of block_adapter.h in double precision.
struct Reference {
    Values y, gradX, gradA, gradB[2];
};

Reference referenceOf(const Tensors& t, const Values& factors)
{
    Reference r{t.y.values, t.gradX.values, Values(at(kRanks, kIn, 0)), {}};
    for (std::size_t m = 0; m < 2; ++m) {
        const ModulePlan& plan = kModules[m];
        const double scale = static_cast<double>(plan.scale);
        r.gradB[m].resize(at(plan.rows, plan.rank, 0));
        for (std::int64_t token = 0; token < kTokens; ++token)
            for (std::int64_t k = 0; k < plan.rank; ++k) {
                const std::int64_t rank = plan.firstRank + k;
                double hidden = 0.0;
                for (std::int64_t i = 0; i < kIn; ++i)
                    hidden += t.x.values[at(token, kIn, i)] * factors[at(token, kIn, i)] *
                              t.a.values[at(rank, kIn, i)];
                double gradHidden = 0.0;
                for (std::int64_t row = 0; row < plan.rows; ++row) {
                    const std::size_t out = at(token, kOut, plan.firstRow + row);
                    const std::size_t b = at(row, plan.rank, k);
                    r.y[out] += scale * hidden * t.b[m].values[b];
                    gradHidden += scale * t.gradOut.values[out] * t.b[m].values[b];
                    r.gradB[m][b] += scale * t.gradOut.values[out] * hidden;
                }
                for (std::int64_t i = 0; i < kIn; ++i) {
                    const double factor = factors[at(token, kIn, i)];
                    r.gradA[at(rank, kIn, i)] +=
                        gradHidden * t.x.values[at(token, kIn, i)] * factor;
                    r.gradX[at(token, kIn, i)] +=
                        gradHidden * t.a.values[at(rank, kIn, i)] * factor;
                }
            }
    }
    return r;
}

// Sums of at most 1,000 terms of about 10, in F32.
Values near(const Values& values)
{
    return Values(values.size(), 1e-4);
}

// Numbers of a list, or of a list of lists.
Values numbersIn(const QJsonValue& json)
{
    if (!json.isArray())
        return {json.toDouble()};
    Values values;
    for (const auto& part : json.toArray())
        for (const double value : numbersIn(part))
            values.push_back(value);
    return values;
}

// One linear layer of linear.json, 5 x 8 to 6, and its adapter of rank 2.
class PeftLayer
{
public:
    PeftLayer(CaseRun& run, const QJsonObject& all, const QJsonObject& peft)
        : m_run(run)
        , m_all(all)
        , m_case(peft)
    {
        base.x = given("X", {5, 8});
        base.weight = given("W", {6, 8});
        if (peft["bias"].toBool())
            base.bias = given("b", {6});
        base.out = run.blank(DType::F32, {5, 6});
        gradOut = given("G", {5, 6});
        adapter.a = given("A", {2, 8});
        gradients.a = run.blank(DType::F32, {2, 8});
        gradients.modules[0].b = run.blank(DType::F32, {6, 2});
        adapter.modules[0].b = given("B", {6, 2});
        adapter.modules[0].scale = static_cast<float>(peft["scaling"].toDouble());
        gradients.count = adapter.count = 1;
        if (peft.contains("magnitude")) {
            adapter.modules[0].magnitude =
                run.given(DType::F32, {6}, numbersIn(peft["magnitude"])).view;
            gradients.modules[0].magnitude = run.blank(DType::F32, {6});
        }
        scratch.adapter.hidden = run.blank(DType::F32, {5, 2});
        scratch.adapter.gradHidden = run.blank(DType::F32, {5, 2});
        scratch.adapter.product = run.blank(DType::F32, {5, 6});
        scratch.adapter.norms = run.blank(DType::F32, {6});
        scratch.adapter.factors = run.blank(DType::F32, {6});
    }

    void expect(const char* key, const TensorView& got) const
    {
        const Values want = numbersIn(m_case[QLatin1String(key)]);
        m_run.expect(key, got, want, Values(want.size(), 1e-5));
    }

    LinearArgs base;
    TensorView gradOut;
    ProductAdapter adapter;
    ProductAdapter gradients;
    BlockScratch scratch;

private:
    TensorView given(const char* key, const conformance::Dims& dims)
    {
        return m_run.given(DType::F32, dims, numbersIn(m_all[QLatin1String(key)])).view;
    }

    CaseRun& m_run;
    const QJsonObject m_all;
    const QJsonObject m_case;
};

QJsonObject peftLayers()
{
    QFile file(QString::fromStdString((sharedData() / "adapters" / "linear.json").string()));
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object()
                                          : QJsonObject();
}

} // namespace

class TestBlockAdapter : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void productsAndGradientsAreThoseOfTheFormulas_data();
    void productsAndGradientsAreThoseOfTheFormulas();
    void aLinearLayerIsThatOfPeft_data();
    void aLinearLayerIsThatOfPeft();
    void aShareOfTheInputIsDropped();
    void everyPassHasAMaskOfItsOwn();
};

void TestBlockAdapter::productsAndGradientsAreThoseOfTheFormulas_data()
{
    QTest::addColumn<double>("probability");
    QTest::newRow("without dropout") << 0.0;
    QTest::newRow("with dropout") << kShare;
}

void TestBlockAdapter::productsAndGradientsAreThoseOfTheFormulas()
{
    QFETCH(const double, probability);
    const auto device = makeCpuDevice(std::size_t{1} << 24);
    CaseRun run(*device, 5);
    const Tensors t = tensorsOf(run);
    LayerContext context;
    context.ops = &run.ops();
    context.stream = &run.stream();
    context.dropout = dropoutOf(probability);
    const Reference want = referenceOf(t, factorsOf(context.dropout));
    ProductAdapter gradients = t.adapter;
    gradients.a = run.blank(DType::F32, {kRanks, kIn});
    for (std::size_t m = 0; m < 2; ++m)
        gradients.modules[m].b = run.blank(DType::F32, {kModules[m].rows, kModules[m].rank});

    TensorView input = t.x.view;
    run.call(dropInput(context, t.adapter, t.scratch, input));
    run.call(addAdapter(context, t.adapter, t.scratch, input, t.y.view));
    run.call(backwardAdapter(
        context, t.adapter, t.scratch, {gradients, t.gradOut.view, input, t.gradX.view, false}));

    run.expect("y", t.y.view, want.y, near(want.y));
    run.expect("dX", t.gradX.view, want.gradX, near(want.gradX));
    run.expect("dA", gradients.a, want.gradA, near(want.gradA));
    for (std::size_t m = 0; m < 2; ++m)
        run.expect("dB", gradients.modules[m].b, want.gradB[m], near(want.gradB[m]));
    run.expectExactly("x", t.x.view, t.x.values);
    QVERIFY2(run.status().ok(), run.status().message().c_str());
    QVERIFY2(run.error() <= 1.0, run.worst().c_str());
}

void TestBlockAdapter::aLinearLayerIsThatOfPeft_data()
{
    QTest::addColumn<int>("index");
    const QJsonArray cases = peftLayers()["cases"].toArray();
    for (int i = 0; i < cases.size(); ++i)
        QTest::addRow("%s", qPrintable(cases[i].toObject()["name"].toString())) << i;
    if (cases.isEmpty())
        QTest::newRow("no shared data") << -1;
}

void TestBlockAdapter::aLinearLayerIsThatOfPeft()
{
    QFETCH(const int, index);
    if (index < 0)
        QSKIP("no shared data (MILLRACE_SHARED)");
    const QJsonObject all = peftLayers();
    const auto device = makeCpuDevice(std::size_t{1} << 24);
    CaseRun run(*device, 5);
    PeftLayer layer(run, all, all["cases"].toArray()[index].toObject());
    LayerContext context;
    context.ops = &run.ops();
    context.stream = &run.stream();
    const ProductAdapter& adapter = layer.adapter;

    run.call(run.ops().linear(layer.base, run.stream()));
    const TensorView& x = layer.base.x;
    const TensorView& weight = layer.base.weight;
    const TensorView gradX = run.blank(DType::F32, {5, 8});
    if (adapter.hasMagnitudes()) {
        run.call(addDora(context, adapter, layer.scratch, layer.base));
        run.call(backwardDora(context, adapter, layer.scratch,
            {layer.gradients, x, weight, layer.gradOut, gradX, false}));
    } else {
        run.call(addAdapter(context, adapter, layer.scratch.adapter, x, layer.base.out));
        run.call(run.ops().linearBackwardInput({layer.gradOut, weight, gradX}, run.stream()));
        run.call(backwardAdapter(context, adapter, layer.scratch.adapter,
            {layer.gradients, layer.gradOut, x, gradX, false}));
    }

    layer.expect("y", layer.base.out);
    layer.expect("dX", gradX);
    layer.expect("dA", layer.gradients.a);
    layer.expect("dB", layer.gradients.modules[0].b);
    if (adapter.hasMagnitudes())
        layer.expect("dMagnitude", layer.gradients.modules[0].magnitude);
    QVERIFY2(run.status().ok(), run.status().message().c_str());
    QVERIFY2(run.error() <= 1.0, run.worst().c_str());
}

// 840 elements: four standard deviations are 0.063.
void TestBlockAdapter::aShareOfTheInputIsDropped()
{
    const Values factors = factorsOf(dropoutOf(kShare));
    double dropped = 0.0;
    double sum = 0.0;
    for (const double factor : factors) {
        dropped += factor == 0.0 ? 1.0 : 0.0;
        sum += factor;
    }

    const auto count = static_cast<double>(factors.size());

    QVERIFY(std::abs(dropped / count - kShare) < 0.063);
    QVERIFY(std::abs(sum / count - 1.0) < 0.063 / (1.0 - kShare)); // the mean stays
}

void TestBlockAdapter::everyPassHasAMaskOfItsOwn()
{
    std::set<std::pair<std::uint64_t, std::uint64_t>> draws;
    int count = 0;
    for (const std::uint64_t seed : {1U, 2U})
        for (std::int64_t step = 0; step < 3; ++step)
            for (std::int64_t micro = 0; micro < 3; ++micro)
                for (std::int64_t group = 1; group < 4; ++group)
                    for (const SlotKind product :
                        {SlotKind::Qkv, SlotKind::AttnOut, SlotKind::GateUp, SlotKind::Down}) {
                        const AdapterDropout dropout{0.5, seed, step, micro, group};

                        const DropoutDraw draw = dropout.drawFor(product);

                        draws.emplace(draw.key, draw.counter);
                        ++count;
                    }
    QCOMPARE(static_cast<int>(draws.size()), count);
}

MR_TEST(TestBlockAdapter)

} // namespace mr::test::tst_block_adapter

#include "tst_block_adapter.moc"
