// Loss, logits and every gradient tensor of tiny random models of every family, against PyTorch in
// float64.
//
// The goldens are made by tests/reference/make_goldens.py; each carries the error that
// PyTorch itself makes in float32, and that is the yardstick: relative L2 per tensor at most
// max(1e-5, 3 times that error).

#include "core/device/cpu/cpu_device.h"
#include "core/engine/evaluator.h"
#include "core/engine/run_master.h"
#include "core/engine/run_setup.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/optim/adamw.h"
#include "core/plan/plan_builder.h"
#include "core/plan/traversal.h"

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <cmath>
#include <filesystem>
#include <map>

using namespace mr;

namespace {

constexpr double kLeastTolerance = 1e-5;
constexpr double kTinyShare = 1e-6; // of the global norm: below it a tensor is judged absolutely

std::filesystem::path goldens()
{
    return std::filesystem::path(qEnvironmentVariable("MILLRACE_SOURCE").toStdString()) /
           "tests/core/engine/goldens";
}

template <typename T>
T valueOf(Result<T> result)
{
    if (!result.ok())
        qFatal("%s", result.status().message().c_str());
    return std::move(result).value();
}

void require(const Status& status)
{
    if (!status.ok())
        qFatal("%s", status.message().c_str());
}

// One folder of goldens.
struct Golden {
    explicit Golden(const std::string& name)
        : folder(goldens() / name)
        , file(valueOf(SafetensorsReader::open(folder / "golden.safetensors")))
    {
        QFile text(QString::fromStdString((folder / "golden.json").string()));
        if (!text.open(QIODevice::ReadOnly))
            qFatal("%s cannot be read", qPrintable(text.fileName()));
        report = QJsonDocument::fromJson(text.readAll()).object();
        const auto& shape = file.entries().at("ids").shape;
        sequences = shape[0];
        seqLen = shape[1] - 1;
    }

    std::vector<float> read(const std::string& name) const
    {
        const SafetensorEntry& entry = file.entries().at(name);
        std::vector<float> values((entry.end - entry.begin) / sizeof(float));
        require(file.readFloats(name, 0, values));
        return values;
    }

    std::vector<TokenSequence> tokens() const
    {
        const std::vector<float> ids = read("ids");
        const std::vector<float> flags = read("trained");
        std::vector<TokenSequence> set(static_cast<std::size_t>(sequences));
        std::size_t at = 0;
        for (TokenSequence& sequence : set) {
            for (std::int64_t t = 0; t <= seqLen; ++t, ++at) {
                sequence.tokens.push_back(static_cast<TokenId>(ids[at]));
                sequence.trained.push_back(flags[at] != 0.0F);
            }
        }
        return set;
    }

    std::filesystem::path folder;
    SafetensorsReader file;
    QJsonObject report;
    std::int64_t sequences = 0;
    std::int64_t seqLen = 0;
};

// A model with its memory and executor, as a run puts them together.
struct Rig {
    Rig(const Golden& golden, std::int64_t accumulate, RecomputeChoice recompute,
        std::map<std::string, std::string> options = {})
        : shape{golden.seqLen, golden.sequences / accumulate, accumulate}
    {
        RunSpec spec;
        spec.modelDir = golden.folder.string();
        spec.seqLen = shape.seqLen;
        spec.microBatch = shape.microBatch;
        spec.accumulate = shape.accumulate;
        spec.precision = PrecisionChoice::F32;
        spec.recompute = recompute;
        spec.policy = "resident";
        spec.policyOptions = std::move(options);
        spec.steps = 1;
        setup = valueOf(setUpRun(spec, golden.sequences));
        const int layers = setup.shape.layers();
        const int micros = setup.step.microBatches;
        allocate(setup.memory, microBatchesInFlight(*setup.policy.traversal, layers, micros),
            batchBuffers(setup.policy, layers, micros), setup.step.recompute);
        load(golden);
    }

    // For generation: weights and a cache.
    explicit Rig(const Golden& golden)
        : shape{golden.seqLen, 1, 1}
    {
        setup.config = valueOf(readModelConfig(golden.folder));
        setup.table = buildParamTable(setup.config);
        setup.micro = {golden.seqLen, 1, 1, DType::F32};
        setup.shape = modelShape(setup.config, setup.table, setup.micro);
        setup.step.precision = Precision::F32;
        MemoryPlan plan = planInferenceMemory(setup.step, setup.shape);
        const TensorView cache = matrixView(
            nullptr, DType::F32, setup.config.layers * golden.seqLen, setup.config.qkvColumns());
        plan.items.push_back({Tier::Device, MemoryUse::KeyValueCache, {}, cache.bytes()});
        allocate(plan, 1, 2, true);
        load(golden);
    }

    void allocate(
        const MemoryPlan& plan, std::int64_t inFlight, std::int64_t buffers, bool recompute)
    {
        device = makeCpuDevice(plan.bytes(Tier::Device));
        tiers = valueOf(TierStore::create(*device, plan));
        memory = valueOf(RunMemory::create(
            *tiers, setup.config, setup.table, setup.micro, inFlight, buffers, recompute));
        executor =
            valueOf(StepExecutor::create(*device, *memory, setup.config, setup.table, nullptr));
        require(executor->prepareMemory());
    }

    void load(const Golden& golden)
    {
        const auto weights = valueOf(openWeights(golden.folder, setup.config, setup.table));
        require(installMaster(*executor, *memory, *weights));
    }

    // One training step at learning rate 0. Returns the loss; the gradients stay in memory.
    double step(const std::vector<TokenSequence>& set)
    {
        std::vector<MicroBatchData> micros(static_cast<std::size_t>(shape.accumulate));
        std::int64_t trained = 0;
        for (std::size_t m = 0; m < micros.size(); ++m) {
            const auto each = static_cast<std::size_t>(shape.microBatch);
            fillMicroBatch(std::span(set).subspan(m * each, each), shape, micros[m]);
            trained += std::count_if(micros[m].targets.begin(), micros[m].targets.end(),
                [](std::int32_t target) { return target >= 0; });
        }
        PlanBuilder builder(setup.shape, setup.budget, Feedback{}, setup.policy);
        BuiltStep built;
        setup.step.step = 1;
        setup.step.clipNorm = 0.0;
        require(builder.buildPlanInto(setup.step, Carry{}, Feedback{}, built));
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(trained));
        inputs.factors = adamwFactors({}, 0.0, 1);
        const StepResult result = valueOf(executor->run(built.plan, inputs));
        return result.lossSum / static_cast<double>(trained);
    }

    // In fp32 the accumulator is the finished gradient, the tied head's part added.
    std::span<const float> gradient(const NamedTensor& tensor) const
    {
        const auto* sums = reinterpret_cast<const float*>(memory->group(tensor.group).accumulator);
        return {sums + tensor.first, static_cast<std::size_t>(tensor.count())};
    }

    BatchShape shape;
    RunSetup setup;
    std::unique_ptr<Device> device;
    std::unique_ptr<TierStore> tiers;
    std::unique_ptr<RunMemory> memory;
    std::unique_ptr<StepExecutor> executor;
};

double norm(std::span<const float> values)
{
    double sum = 0.0;
    for (const float v : values)
        sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum);
}

double distance(std::span<const float> a, std::span<const float> b)
{
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        sum += d * d;
    }
    return std::sqrt(sum);
}

// Empty, or what is wrong. `about`: {"norm", "torch_float32_error"}.
QString complaint(const std::string& name, std::span<const float> ours,
    std::span<const float> expected, const QJsonObject& about, double globalNorm)
{
    if (ours.size() != expected.size())
        return QString::fromStdString(name) + " has another size";
    const double error = distance(ours, expected);
    const double size = norm(expected);
    const double allowed =
        std::max(kLeastTolerance, 3.0 * about["torch_float32_error"].toDouble(1.0));
    const double most = size < kTinyShare * globalNorm ? kTinyShare * globalNorm : allowed * size;
    if (error <= most)
        return {};
    return QStringLiteral("%1: relative error %2, allowed %3")
        .arg(QString::fromStdString(name))
        .arg(error / size)
        .arg(most / size);
}

double globalNorm(const Golden& golden)
{
    double sum = 0.0;
    const QJsonObject gradients = golden.report["gradients"].toObject();
    for (const QJsonValue& about : gradients)
        sum += std::pow(about.toObject()["norm"].toDouble(), 2);
    return std::sqrt(sum);
}

QString compareGradients(const Golden& golden, const Rig& rig)
{
    const QJsonObject gradients = golden.report["gradients"].toObject();
    if (gradients.size() != static_cast<qsizetype>(rig.setup.table.tensors.size()))
        return QStringLiteral("the golden has %1 tensors").arg(gradients.size());
    const double all = globalNorm(golden);
    for (const NamedTensor& tensor : rig.setup.table.tensors) {
        const QString wrong =
            complaint(tensor.name, rig.gradient(tensor), golden.read("grad." + tensor.name),
                gradients[QString::fromStdString(tensor.name)].toObject(), all);
        if (!wrong.isEmpty())
            return wrong;
    }
    return {};
}

void addModels()
{
    QTest::addColumn<QString>("model");
    for (const char* name : {"gqa_tied", "head_dim_untied", "mha_untied", "biases", "batch",
             "llama3_rope", "mistral_window", "qwen2", "qwen3", "phi3", "phi3_partial", "gemma",
             "gemma2", "gemma3", "gemma3_older", "padding", "dynamic_rope"})
        QTest::newRow(name) << QString(name);
}

} // namespace

class TestGoldenModels : public QObject
{
    Q_OBJECT

private slots:
    void lossAndEveryGradientAgreeWithFloat64_data() { addModels(); }

    void lossAndEveryGradientAgreeWithFloat64()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        Rig rig(golden, 1, RecomputeChoice::None);

        const double loss = rig.step(golden.tokens());

        const double expected = golden.report["loss"].toDouble();
        QVERIFY2(std::abs(loss - expected) <= kLeastTolerance * expected,
            qPrintable(QStringLiteral("loss %1, expected %2")
                           .arg(loss, 0, 'g', 9)
                           .arg(expected, 0, 'g', 9)));
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo_data() { addModels(); }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        Rig rig(golden, golden.sequences, RecomputeChoice::Block);

        rig.step(golden.tokens());

        QCOMPARE(compareGradients(golden, rig), QString());
    }

    // By layer, boundaries of every micro-batch are kept; the budget that nobody gave has room.
    void gradientsSummedInTheFlippedOrderAgreeToo()
    {
        const Golden golden("mha_untied");
        Rig rig(golden, golden.sequences, RecomputeChoice::None, {{"order", "by-layer-flip"}});

        rig.step(golden.tokens());

        QVERIFY(rig.setup.memory.bytes(Tier::Device) <= rig.setup.budget.deviceBytes);
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void logitsAtEveryPositionAgreeWithFloat64_data() { addModels(); }

    void logitsAtEveryPositionAgreeWithFloat64()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        Rig rig(golden);
        const std::vector<TokenSequence> set = golden.tokens();
        const auto vocab = static_cast<std::size_t>(rig.setup.config.vocab);
        const std::vector<float> expected = golden.read("logits");
        std::vector<float> logits(expected.size());

        // The first tokens at once, the others one by one: both ways generation takes.
        constexpr std::int64_t kPrompt = 3;
        for (std::int64_t s = 0; s < golden.sequences; ++s) {
            const auto* ids = set[static_cast<std::size_t>(s)].tokens.data();
            for (std::int64_t t = 0; t < golden.seqLen; ++t) {
                const std::int64_t first = t < kPrompt ? 0 : t;
                const auto at = static_cast<std::size_t>(s * golden.seqLen + t) * vocab;
                require(
                    rig.executor->advance({ids + first, static_cast<std::size_t>(t + 1 - first)},
                        first, std::span(logits).subspan(at, vocab)));
            }
        }

        QCOMPARE(complaint("logits", logits, expected, golden.report["logits"].toObject(), 0.0),
            QString());
    }
};

QTEST_APPLESS_MAIN(TestGoldenModels)
#include "tst_golden_models.moc"
