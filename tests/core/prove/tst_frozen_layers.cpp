// Training of some layers, and of adapters on a frozen model.

#include "core/device/adamw.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/dora.h"
#include "core/model/frozen_model.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "core/prove/run_gradients.h"
#include "core/prove/tiny_device.h"
#include "core/prove/tiny_families.h"
#include "core/step/run_master.h"
#include "support/master_buffers.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace mr::test::tst_frozen_layers {

namespace {

constexpr auto kInline = CpuDeviceOptions::Mode::Inline;
constexpr auto kThreaded = CpuDeviceOptions::Mode::Threaded;
constexpr std::int64_t kSeqLen = 20;
constexpr const char* kFedByEmbedding = "gemma4_e"; // its rows reach every block twice

std::vector<GroupId> layersOf(std::initializer_list<int> groups)
{
    std::vector<GroupId> layers;
    for (const int group : groups)
        layers.push_back(GroupId{group});
    return layers;
}

AdapterSettings adapterOf(std::int64_t rank)
{
    AdapterSettings settings;
    settings.rank = rank;
    settings.alpha = 8.0;
    return settings;
}

Floats joined(const MasterBuffers& master, std::size_t group)
{
    Floats values(master.high[group].size());
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = joinHalves(master.high[group][i], master.low[group][i]);
    return values;
}

void split(const Floats& values, std::size_t group, MasterBuffers& master)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        master.high[group][i] = highHalf(values[i]);
        master.low[group][i] = lowHalf(values[i]);
    }
}

std::unique_ptr<Device> smallDevice()
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 1;
    return std::move(makeCpuDevice(options)).value();
}

PlainRunSpec specOf(const ModelConfig& config)
{
    PlainRunSpec spec;
    spec.config = config;
    spec.micro = {kSeqLen, 2, 2, DType::F32};
    spec.clipNorm = 0.0;
    return spec;
}

RunGradients firstStep(PlainRun& run)
{
    return gradientsOf(run, randomBatch(run.spec().config.vocab, run.spec().micro));
}

// Gradients of a run from initialWeights(), and a fresh adapter if it has one.
RunGradients gradientsFromFresh(Device& device, const PlainRunSpec& spec)
{
    auto run = std::move(PlainRun::create(device, spec)).value();
    if (const Status installed = installInitialWeights(*run, 5); !installed.ok())
        qFatal("%s", installed.message().c_str());
    return firstStep(*run);
}

// Where a module's rows lie in the model's group.
std::size_t placeOf(const FrozenModel& frozen, std::size_t group, const AdapterModule& module)
{
    const ParamSlot* slot =
        frozen.model.find(GroupId{static_cast<std::int32_t>(group)}, module.product);
    return static_cast<std::size_t>(slot->first + module.firstRow * slot->cols);
}

// model += scale B A of every module.
void merge(const FrozenModel& frozen, std::size_t group, const Floats& adapter, Floats& model)
{
    for (const AdapterModule& m : frozen.adapters[group]) {
        const std::size_t place = placeOf(frozen, group, m);
        for (std::int64_t row = 0; row < m.rows; ++row)
            for (std::int64_t col = 0; col < m.in; ++col) {
                double sum = 0.0;
                for (std::int64_t k = 0; k < m.rank; ++k)
                    sum += static_cast<double>(
                               adapter[static_cast<std::size_t>(m.b + row * m.rank + k)]) *
                           static_cast<double>(
                               adapter[static_cast<std::size_t>(m.a + k * m.in + col)]);
                float& weight = model[place + static_cast<std::size_t>(row * m.in + col)];
                weight = static_cast<float>(
                    static_cast<double>(weight) + static_cast<double>(m.scale) * sum);
            }
    }
}

// dA = scale B^T dW and dB = scale dW A^T, from the gradient of the merged weights.
Floats adapterGradient(
    const FrozenModel& frozen, std::size_t group, const Floats& adapter, const Floats& ofModel)
{
    Floats gradient(adapter.size());
    for (const AdapterModule& m : frozen.adapters[group]) {
        const std::size_t place = placeOf(frozen, group, m);
        for (std::int64_t row = 0; row < m.rows; ++row)
            for (std::int64_t col = 0; col < m.in; ++col)
                for (std::int64_t k = 0; k < m.rank; ++k) {
                    const auto a = static_cast<std::size_t>(m.a + k * m.in + col);
                    const auto b = static_cast<std::size_t>(m.b + row * m.rank + k);
                    const float w =
                        m.scale * ofModel[place + static_cast<std::size_t>(row * m.in + col)];
                    gradient[a] += adapter[b] * w;
                    gradient[b] += adapter[a] * w;
                }
    }
    return gradient;
}

float largest(const Floats& values)
{
    float most = 0.0F;
    for (const float value : values)
        most = std::max(most, std::abs(value));
    return most;
}

void fillRandom(MasterBuffers& master)
{
    std::mt19937 engine(7);
    std::normal_distribution<float> normal(0.0F, 0.2F);
    for (std::size_t g = 0; g < master.high.size(); ++g) {
        Floats values(master.high[g].size());
        std::ranges::generate(values, [&] { return normal(engine); });
        split(values, g, master);
    }
}

} // namespace

class TestFrozenLayers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void allLayersAreTheWholeModel();
    void theFirstStepOfSomeLayersIsThatOfAll_data();
    void theFirstStepOfSomeLayersIsThatOfAll();
    void memoryIsWhatWasPlanned();
    void bitsDependOnNeitherMicroBatchesNorThreadsNorRecomputation_data();
    void bitsDependOnNeitherMicroBatchesNorThreadsNorRecomputation();
    void anAdapterHasTheGradientsOfTheMergedModel_data();
    void anAdapterHasTheGradientsOfTheMergedModel();
    void aFreshAdapterChangesNothing();
    void magnitudesAreReadInAnyPieces();
    void modulesThatAreTrainedWholeLearnAsTheyDoInTheModel();
    void rowsOfTheEmbeddingLearnAsTheyDoInTheModel_data();
    void rowsOfTheEmbeddingLearnAsTheyDoInTheModel();
    void badSettingsAreRefused();
};

void TestFrozenLayers::allLayersAreTheWholeModel()
{
    TinyRun run;
    const TinyResult whole = resultOn(kInline, run);
    run.layers = layersOf({0, 1, 2, 3, 4});

    const TinyResult layers = resultOn(kInline, run);

    QCOMPARE(layers.weightsHash, whole.weightsHash);
    QCOMPARE(layers.losses, whole.losses);
}

void TestFrozenLayers::theFirstStepOfSomeLayersIsThatOfAll_data()
{
    QTest::addColumn<bool>("tied");
    QTest::addColumn<std::vector<GroupId>>("layers");
    for (const bool tied : {false, true}) {
        const char* which = tied ? "tied" : "untied";
        QTest::addRow("%s, the last block", which) << tied << layersOf({3});
        QTest::addRow("%s, the head", which) << tied << layersOf({4});
        QTest::addRow("%s, a block in the middle and the head", which) << tied << layersOf({2, 4});
        QTest::addRow("%s, the embedding", which) << tied << layersOf({0});
        QTest::addRow("%s, embedding and a block", which) << tied << layersOf({0, 2});
    }
}

// One step from the same weights: the gradients of what is trained are those of the whole model.
void TestFrozenLayers::theFirstStepOfSomeLayersIsThatOfAll()
{
    QFETCH(const bool, tied);
    QFETCH(const std::vector<GroupId>, layers);
    const auto device = smallDevice();
    PlainRunSpec spec = specOf(tinyConfig(tied));
    auto whole = std::move(PlainRun::create(*device, spec)).value();
    QVERIFY(installInitialWeights(*whole, 5).ok());
    const RunGradients all = firstStep(*whole);
    spec.layers = layers;
    auto some = std::move(PlainRun::create(*device, spec)).value();
    QVERIFY(installInitialWeights(*some, 5).ok());

    const RunGradients got = firstStep(*some);

    QCOMPARE(got.loss, all.loss);
    for (std::size_t g = 0; g < got.of.size(); ++g) {
        const bool isTrained =
            std::ranges::count(layers, GroupId{static_cast<std::int32_t>(g)}) > 0;
        QCOMPARE(got.of[g], isTrained ? all.of[g] : Floats{});
    }
}

void TestFrozenLayers::memoryIsWhatWasPlanned()
{
    TinyRun run;
    run.compute = DType::BF16;
    const TinyResult whole = resultOn(kInline, run);
    run.layers = layersOf({3, 4});
    const TinyResult layers = resultOn(kInline, run);
    run.layers.clear();
    run.adapter = adapterOf(4);
    const TinyResult adapter = resultOn(kInline, run);
    run.dropout = 0.1;
    const TinyResult dropout = resultOn(kInline, run);

    // One input of the widest product, in steps of 256 bytes.
    const std::int64_t input = 2 * run.seqLen * run.microBatch * run.config.block.intermediate;
    QCOMPARE(dropout.plannedDeviceBytes - adapter.plannedDeviceBytes,
        static_cast<std::size_t>((input + 255) / 256 * 256));
    run.dropout = 0.0;
    run.adapter->dora = true;
    const TinyResult dora = resultOn(kInline, run);
    for (const TinyResult* result : {&layers, &adapter, &dropout, &dora}) {
        QCOMPARE(result->peakDeviceBytes, result->plannedDeviceBytes);
        QCOMPARE(result->peakHostBytes, result->plannedHostBytes);
        QCOMPARE(result->allocationsInSteps, std::size_t{0});
        QVERIFY(result->plannedDeviceBytes < whole.plannedDeviceBytes);
        QVERIFY(result->losses.back() < result->losses.front());
    }
}

void TestFrozenLayers::bitsDependOnNeitherMicroBatchesNorThreadsNorRecomputation_data()
{
    QTest::addColumn<bool>("bf16");
    QTest::addColumn<bool>("adapter");
    QTest::addColumn<double>("clip");
    QTest::addColumn<double>("dropout");
    QTest::addColumn<bool>("dora");
    for (const bool bf16 : {false, true})
        for (const bool adapter : {false, true})
            for (const double clip : {0.0, 0.25}) {
                QTest::addRow(
                    "%s, %s, clip %g", bf16 ? "bf16" : "fp32", adapter ? "adapter" : "layers", clip)
                    << bf16 << adapter << clip << 0.0 << false;
                if (!adapter)
                    continue;
                QTest::addRow("%s, dropout, clip %g", bf16 ? "bf16" : "fp32", clip)
                    << bf16 << adapter << clip << 0.4 << false;
                QTest::addRow("%s, DoRA, clip %g", bf16 ? "bf16" : "fp32", clip)
                    << bf16 << adapter << clip << 0.0 << true;
                QTest::addRow("%s, DoRA, dropout, clip %g", bf16 ? "bf16" : "fp32", clip)
                    << bf16 << adapter << clip << 0.4 << true;
            }
}

void TestFrozenLayers::bitsDependOnNeitherMicroBatchesNorThreadsNorRecomputation()
{
    QFETCH(const bool, bf16);
    QFETCH(const bool, adapter);
    QFETCH(const double, clip);
    QFETCH(const double, dropout);
    QFETCH(const bool, dora);
    TinyRun run;
    run.dropout = dropout;
    run.compute = bf16 ? DType::BF16 : DType::F32;
    run.clipNorm = clip;
    if (adapter)
        run.adapter = adapterOf(3);
    else
        run.layers = layersOf({1, 3});
    if (dora)
        run.adapter->dora = true;
    const TinyResult plain = resultOn(kInline, run, 1);
    for (const Recompute how : {Recompute::None, Recompute::Cheap, Recompute::Block}) {
        run.recompute = how;

        const TinyResult other = resultOn(kThreaded, run);

        QCOMPARE(other.weightsHash, plain.weightsHash);
        QCOMPARE(other.losses, plain.losses);
        QCOMPARE(other.norms, plain.norms);
    }
    run.accumulate = 1;
    run.recompute = Recompute::None;
    const TinyResult one = resultOn(kInline, run, 1);
    QVERIFY(one.weightsHash != plain.weightsHash); // other batches
}

void TestFrozenLayers::anAdapterHasTheGradientsOfTheMergedModel_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<bool>("some");
    for (const char* family : kFamilies)
        for (const bool some : {false, true})
            QTest::addRow("%s, %s", family, some ? "some modules" : "all modules")
                << QString(family) << some;
}

void TestFrozenLayers::anAdapterHasTheGradientsOfTheMergedModel()
{
    QFETCH(const QString, family);
    QFETCH(const bool, some);
    const auto device = smallDevice();
    PlainRunSpec spec = specOf(familyConfig(family));
    const bool isFused = !spec.config.names.qkv.empty();
    AdapterSettings settings = adapterOf(3);
    settings.rankStabilised = true;
    if (some)
        settings.targets = isFused ? std::vector<std::string>{"qkv_proj", "down_proj"}
                                   : std::vector<std::string>{"k_proj", "v_proj", "mlp.down_proj"};
    spec.adapter = settings;
    auto adapted = std::move(PlainRun::create(*device, spec)).value();
    const FrozenModel& frozen = *adapted->table().frozen;
    MasterBuffers adapter(adapted->table());
    fillRandom(adapter);
    MasterBuffers model(frozen.model);
    QVERIFY(model.fill(*initialWeights(spec.config, frozen.model, 5)).ok());
    QVERIFY(installMaster(adapted->executor(), adapted->memory(), adapter).ok());
    QVERIFY(installFrozen(adapted->executor(), adapted->table(), model).ok());
    for (std::size_t g = 0; g < model.high.size(); ++g) {
        Floats weights = joined(model, g);
        merge(frozen, g, joined(adapter, g), weights);
        split(weights, g, model);
    }
    spec.adapter.reset();
    auto merged = std::move(PlainRun::create(*device, spec)).value();
    QVERIFY(installMaster(merged->executor(), merged->memory(), model).ok());
    const RunGradients want = firstStep(*merged);

    const RunGradients got = firstStep(*adapted);

    // Scores that are not scaled, and states that go from token to token, lose more digits; how
    // many depends on the processor's order of sums.
    const bool losesMore = family.startsWith("gemma4") || family.startsWith("qwen3_5");
    const float allowed = losesMore ? 3e-4F : 1e-4F;
    QVERIFY2(std::abs(got.loss - want.loss) < 1e-5 * want.loss,
        qPrintable(
            QStringLiteral("%1, want %2").arg(got.loss, 0, 'g', 9).arg(want.loss, 0, 'g', 9)));
    for (std::size_t g = 1; g + 1 < got.of.size(); ++g) {
        const Floats expected = adapterGradient(frozen, g, joined(adapter, g), want.of[g]);
        QCOMPARE(got.of[g].size(), expected.size());
        const float most = largest(expected);
        QVERIFY(most > 1e-3F);
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2(std::abs(got.of[g][i] - expected[i]) < allowed * most,
                qPrintable(QStringLiteral("group %1, element %2: %3, want %4")
                               .arg(g)
                               .arg(i)
                               .arg(static_cast<double>(got.of[g][i]))
                               .arg(static_cast<double>(expected[i]))));
    }
}

void TestFrozenLayers::aFreshAdapterChangesNothing()
{
    for (const DType compute : {DType::F32, DType::BF16}) {
        TinyRun run;
        run.compute = compute;
        run.steps = 1;
        const TinyResult whole = resultOn(kInline, run);
        run.adapter = adapterOf(4);

        const TinyResult adapter = resultOn(kInline, run);

        QCOMPARE(adapter.losses, whole.losses);
        run.adapter->dora = true;
        const TinyResult dora = resultOn(kInline, run);
        run.adapter = adapterOf(4);
        run.adapter->tokens = {7, 8, 20};
        QCOMPARE(resultOn(kInline, run).losses, whole.losses);
        run.adapter->tokens = {};
        run.adapter->saved = {"lm_head", "model.embed_tokens"};
        QCOMPARE(resultOn(kInline, run).losses, whole.losses);
        // Norms are summed in another order, and BF16 rounds a row's length and its scaled output.
        const double most = compute == DType::F32 ? 1e-6 : 1e-2;
        QVERIFY(std::abs(dora.losses.front() - whole.losses.front()) < most);
    }
}

void TestFrozenLayers::magnitudesAreReadInAnyPieces()
{
    const ModelConfig config = tinyConfig(false);
    AdapterSettings settings = adapterOf(3);
    settings.dora = true;
    const ParamTable table = std::move(adapterTable(buildParamTable(config), settings)).value();
    const auto model = initialWeights(config, wholeModel(table), 5);
    const auto fresh = freshAdapter(table, 5, *model, DType::F32);
    MasterBuffers whole(table);
    QVERIFY(whole.fill(*fresh).ok());
    for (std::size_t g = 1; g + 1 < table.groups.size(); ++g) {
        const std::int64_t elements = table.groups[g].elements;
        std::vector<std::uint16_t> high;
        MasterPiece piece;
        QVERIFY(forPieces(
            *fresh, {GroupId{static_cast<std::int32_t>(g)}, 0, elements}, piece,
            [&](std::int64_t, const MasterView& view) {
                high.insert(high.end(), view.high.begin(), view.high.end());
                return Status();
            },
            7)
                    .ok());

        QVERIFY(std::ranges::equal(high, whole.high[g]));
    }
}

// With a fresh adapter, whose B is zero, the gradients are those of full fine-tuning.
void TestFrozenLayers::modulesThatAreTrainedWholeLearnAsTheyDoInTheModel()
{
    const auto device = smallDevice();
    for (const ModelConfig& config :
        {tinyConfig(false), tinyConfig(true), familyConfig(kFedByEmbedding)}) {
        PlainRunSpec spec = specOf(config);
        const RunGradients want = gradientsFromFresh(*device, spec);
        spec.adapter = adapterOf(3);
        spec.adapter->saved = {"embed_tokens", "lm_head"};

        const RunGradients got = gradientsFromFresh(*device, spec);

        QCOMPARE(got.loss, want.loss);
        // Behind the rows lies what inputs of blocks are made of.
        const auto count = static_cast<std::size_t>(config.vocab * config.hidden);
        QVERIFY(std::ranges::equal(
            std::span(got.of.front()).first(count), std::span(want.of.front()).first(count)));
        const Floats& head = want.of.back(); // the norm and the matrix, which alone is trained
        QCOMPARE(got.of.back(),
            config.tiedEmbedding ? Floats() : Floats(head.begin() + kSlotAlign, head.end()));
    }
}

void TestFrozenLayers::rowsOfTheEmbeddingLearnAsTheyDoInTheModel_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("pad");
    for (const char* family : {"llama3", "qwen2", kFedByEmbedding})
        for (const int pad : {-1, 40})
            QTest::addRow("%s, padding %d", family, pad) << QString(family) << pad;
}

void TestFrozenLayers::rowsOfTheEmbeddingLearnAsTheyDoInTheModel()
{
    QFETCH(QString, family);
    QFETCH(int, pad);
    const auto device = smallDevice();
    PlainRunSpec spec = specOf(familyConfig(family));
    const bool tied = spec.config.tiedEmbedding;
    spec.config.padToken = pad;
    const RunGradients want = gradientsFromFresh(*device, spec);
    spec.adapter = adapterOf(3);
    spec.adapter->tokens = {40, 3, 4, 5, 60};

    const RunGradients got = gradientsFromFresh(*device, spec);

    QCOMPARE(got.loss, want.loss);
    const auto hidden = static_cast<std::size_t>(spec.config.hidden);
    QCOMPARE(got.of.front().size(), std::size_t{128}); // 5 x 24, to a multiple of 64
    QVERIFY(got.of.back().empty());
    std::size_t row = 0;
    int learning = 0;
    for (const std::int64_t token : spec.adapter->tokens) {
        const auto expected =
            std::span(want.of.front()).subspan(static_cast<std::size_t>(token) * hidden, hidden);
        const auto found = std::span(got.of.front()).subspan(row++ * hidden, hidden);
        for (std::size_t i = 0; i < hidden; ++i)
            // The head's part is another product than that of the whole matrix.
            QVERIFY2(tied ? std::abs(found[i] - expected[i]) < 1e-6F : found[i] == expected[i],
                qPrintable(QString::number(token)));
        if (std::ranges::any_of(found, [](float x) { return x != 0.0F; }))
            ++learning;
    }
    // Three of these tokens occur; what a lookup of the padding brings is left out.
    QCOMPARE(learning, tied ? 5 : pad == 40 ? 2 : 3);
}

void TestFrozenLayers::badSettingsAreRefused()
{
    const ParamTable model = buildParamTable(tinyConfig(false));
    const auto why = [&](const AdapterSettings& settings) {
        return QString::fromStdString(adapterTable(model, settings).status().message());
    };
    AdapterSettings settings;
    settings.rank = 0;
    QVERIFY(why(settings).contains(QStringLiteral("rank 0 does not fit")));
    settings.rank = 13; // k and v have 12 rows
    QVERIFY(why(settings).contains(QStringLiteral("k_proj")));
    settings.rank = 4;
    settings.alpha = 0.0;
    QVERIFY(why(settings).contains(QStringLiteral("alpha")));
    settings.alpha = 4.0;
    settings.targets = {"q_proj", "query"};
    QVERIFY(why(settings).contains(QStringLiteral("'query'; there are down_proj, gate_proj")));
    settings.targets = {};
    settings.saved = {"embed_tokens", "norm"};
    QVERIFY(why(settings).contains(QStringLiteral("'norm' cannot be trained whole")));
    settings.saved = {"embed_tokens"};
    QVERIFY(why(settings).isEmpty());
    QVERIFY(QString::fromStdString(
        adapterTable(buildParamTable(tinyConfig(true)), settings).status().message())
                .contains(QStringLiteral("the head of this model is its embedding")));
    settings.tokens = {1};
    QVERIFY(why(settings).contains(QStringLiteral("name no tokens beside it")));
    settings.saved = {};
    settings.tokens = {1, 7, 1};
    QVERIFY(why(settings).contains(QStringLiteral("token 1 is named twice")));
    settings.tokens = {61};
    QVERIFY(why(settings).contains(QStringLiteral("token 61 is none of this model, which has 0 to "
                                                  "60")));
    QVERIFY(!trainedLayers(model, {}).ok());
    QVERIFY(!trainedLayers(model, layersOf({5})).ok());
}

MR_TEST(TestFrozenLayers)

} // namespace mr::test::tst_frozen_layers

#include "tst_frozen_layers.moc"
