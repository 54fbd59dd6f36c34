// Rig of the tests against goldens of PyTorch: a folder of them, a model or an adapter beside it
// with memory and executor as a run puts them together, and the comparison of every gradient.
//
// The goldens are made by tests/reference/make_goldens.py, make_packed_goldens.py and
// make_adapter_goldens.py; each carries the error that PyTorch itself makes in float32, and that is
// the yardstick: relative L2 per tensor at most max(1e-5, 3 times that error).

#pragma once

#include "core/answer/evaluator.h"
#include "core/choose/run_setup.h"
#include "core/device/adamw.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/peft_folder.h"
#include "core/model/safetensors.h"
#include "core/model/weights.h"
#include "core/plan/plan_builder.h"
#include "core/plan/traversal.h"
#include "core/step/run_master.h"

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mr::test {

inline constexpr double kLeastTolerance = 1e-5;
inline constexpr double kTinyShare =
    1e-6; // share of the global norm; the error of a tensor below it is judged absolutely

inline std::filesystem::path goldens()
{
    return std::filesystem::path(qEnvironmentVariable("MILLRACE_SOURCE").toStdString()) /
           "tests/core/run/goldens";
}

template <typename T>
T valueOf(Result<T> result)
{
    if (!result.ok())
        qFatal("%s", result.status().message().c_str());
    return std::move(result).value();
}

inline void require(const Status& status)
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
        if (shape.size() == 1)
            return; // a row that documents share
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
        std::vector<float> lengths(
            static_cast<std::size_t>(sequences), static_cast<float>(seqLen + 1));
        if (file.entries().count("lengths") != 0)
            lengths = read("lengths");
        std::vector<TokenSequence> set(lengths.size());
        std::size_t at = 0;
        for (std::size_t s = 0; s < set.size(); ++s) {
            for (auto left = static_cast<std::int64_t>(lengths[s]); left > 0; --left, ++at) {
                set[s].tokens.push_back(static_cast<TokenId>(ids[at]));
                set[s].trained.push_back(flags[at] != 0.0F);
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

// One step of a model in fp32.
inline RunSpec goldenSpec(const std::filesystem::path& model, const BatchShape& shape,
    RecomputeChoice recompute = RecomputeChoice::None)
{
    RunSpec spec;
    spec.modelDir = model.string();
    spec.seqLen = shape.seqLen;
    spec.microBatch = shape.microBatch;
    spec.accumulate = shape.accumulate;
    spec.precision = PrecisionChoice::F32;
    spec.recompute = recompute;
    spec.policy = "resident";
    spec.steps = 1;
    return spec;
}

// All sequences of a golden, in that many micro-batches.
inline BatchShape batchOf(const Golden& golden, std::int64_t microBatches)
{
    return {golden.seqLen, golden.sequences / microBatches, microBatches};
}

// A model, or an adapter beside it, with memory and executor as a run puts them together.
struct GoldenRig {
    GoldenRig(const Golden& golden, std::int64_t accumulate, RecomputeChoice recompute)
        : GoldenRig(goldenSpec(golden.folder, batchOf(golden, accumulate), recompute))
    {
    }

    GoldenRig(const std::filesystem::path& model, const BatchShape& batch)
        : GoldenRig(goldenSpec(model, batch))
    {
    }

    explicit GoldenRig(const RunSpec& spec)
        : shape{spec.seqLen, spec.microBatch, spec.accumulate}
    {
        setup = valueOf(setUpRun(spec, 1));
        const int layers = setup.shape.layers();
        const int micros = setup.step.microBatches;
        allocate(setup.memory, microBatchesInFlight(*setup.policy.traversal, layers, micros),
            batchBuffers(setup.policy, layers, micros), setup.step.recompute);
        load(spec.modelDir);
    }

    // For generation: weights and a cache.
    explicit GoldenRig(const Golden& golden)
        : GoldenRig(golden.folder, golden.seqLen)
    {
    }

    GoldenRig(const std::filesystem::path& model, std::int64_t seqLen)
        : shape{seqLen, 1, 1}
    {
        setup.config = valueOf(readModelConfig(model));
        setup.table = buildParamTable(setup.config);
        setup.micro = {seqLen, 1, 1, DType::F32};
        setup.shape = modelShape(setup.config, setup.table, setup.micro);
        setup.step.precision = Precision::F32;
        MemoryPlan plan = planInferenceMemory(setup.step, setup.shape);
        std::vector<BlockCache> cache;
        plan.items.push_back({Tier::Device, MemoryUse::KeyValueCache, {},
            layoutCache(setup.config, setup.micro, nullptr, cache)});
        allocate(plan, 1, 2, Recompute::Block);
        load(model);
    }

    void allocate(
        const MemoryPlan& plan, std::int64_t inFlight, std::int64_t buffers, Recompute recompute)
    {
        device = makeCpuDevice(plan.bytes(Tier::Device));
        tiers = valueOf(TierStore::create(*device, plan));
        memory = valueOf(RunMemory::create(
            *tiers, setup.config, setup.table, setup.micro, inFlight, buffers, recompute));
        executor =
            valueOf(StepExecutor::create(*device, *memory, setup.config, setup.table, nullptr));
        require(executor->prepareMemory());
    }

    void load(const std::filesystem::path& model)
    {
        const ParamTable& table = setup.table;
        const auto weights = valueOf(openWeights(model, setup.config, wholeModel(table)));
        const auto adapter =
            isAdapter(table) ? valueOf(openPeftWeights(setup.spec.adapterDir, table)) : nullptr;
        require(installMaster(*executor, *memory, adapter ? *adapter : *weights));
        require(installFrozen(*executor, table, *weights).status()); // nothing without an adapter
    }

    // One training step, a row for each sequence, at learning rate 0 if no other is given. Returns
    // the loss; the gradients stay in memory.
    double step(const std::vector<TokenSequence>& set,
        const AdamwFactors& factors = adamwFactors({}, 0.0, 1))
    {
        std::vector<MicroBatchData> micros(static_cast<std::size_t>(shape.accumulate));
        const auto each = static_cast<std::size_t>(shape.microBatch);
        for (std::size_t m = 0; m < micros.size(); ++m)
            fillMicroBatch(std::span(set).subspan(m * each, each), shape, micros[m]);
        return step(micros, factors);
    }

    double step(const std::vector<MicroBatchData>& micros,
        const AdamwFactors& factors = adamwFactors({}, 0.0, 1))
    {
        std::int64_t trained = 0;
        for (const MicroBatchData& micro : micros)
            trained += std::count_if(micro.targets.begin(), micro.targets.end(),
                [](std::int32_t target) { return target >= 0; });
        PlanBuilder builder(setup.shape, setup.budget, Feedback{}, setup.policy);
        BuiltStep built;
        setup.step.step = 1;
        setup.step.clipNorm = 0.0;
        require(builder.buildPlanInto(setup.step, Carry{}, Feedback{}, built));
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(trained));
        inputs.factors = factors;
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

// The gradient of a tensor of the file, from those of its parts.
inline std::vector<float> joined(const GoldenRig& rig, const std::vector<const NamedTensor*>& parts)
{
    const NamedTensor& first = *parts.front();
    if (!first.isPart())
        return {rig.gradient(first).begin(), rig.gradient(first).end()};
    std::vector<float> whole(static_cast<std::size_t>(first.shape[0] * first.fileColumns));
    for (const NamedTensor* part : parts) {
        const std::span<const float> own = rig.gradient(*part);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const auto width = static_cast<std::size_t>(part->shape[1]);
            whole[i / width * static_cast<std::size_t>(part->fileColumns) +
                  static_cast<std::size_t>(part->firstColumn) + i % width] = own[i];
        }
    }
    return whole;
}

inline double norm(std::span<const float> values)
{
    double sum = 0.0;
    for (const float v : values)
        sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum);
}

inline double distance(std::span<const float> a, std::span<const float> b)
{
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        sum += d * d;
    }
    return std::sqrt(sum);
}

// Empty, or the error. `about`: {"norm", "torch_float32_error"}.
inline QString complaint(const std::string& name, std::span<const float> ours,
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

// Empty, or the error.
inline QString compareLoss(const Golden& golden, double loss)
{
    const double expected = golden.report["loss"].toDouble();
    if (std::abs(loss - expected) <= kLeastTolerance * expected)
        return {};
    return QStringLiteral("loss %1, expected %2").arg(loss, 0, 'g', 9).arg(expected, 0, 'g', 9);
}

inline double globalNorm(const Golden& golden)
{
    double sum = 0.0;
    const QJsonObject gradients = golden.report["gradients"].toObject();
    for (const QJsonValue& about : gradients)
        sum += std::pow(about.toObject()["norm"].toDouble(), 2);
    return std::sqrt(sum);
}

inline QString compareGradients(const Golden& golden, const GoldenRig& rig)
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

} // namespace mr::test
