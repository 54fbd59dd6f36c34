// A bare run of a policy with windows: steps of the same batch, and the rows of the host.

#pragma once

#include "core/base/philox.h"
#include "core/device/cpu/cpu_device.h"
#include "core/plan/cost_model.h"
#include "core/prove/exact_check.h"
#include "core/prove/plain_run.h"
#include "core/prove/plain_run_inputs.h"
#include "core/step/run_master.h"
#include "support/master_buffers.h"

#include <QtTest>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mr::test {

using Options = std::map<std::string, std::string>;

inline PlainRunSpec specOf(
    const std::string& policy, const Options& options, DType compute = DType::BF16)
{
    PlainRunSpec spec;
    spec.config = tinyConfig(true);
    spec.micro = {16, 2, 1, compute};
    spec.policy = policy;
    spec.options = options;
    spec.clipNorm = 0.01; // every window is clipped
    spec.adamw = {0.9, 0.99, 1e-8, 0.1};
    spec.learningRate = 1e-6;
    return spec;
}

// A run on a device of its own.
struct Rig {
    std::unique_ptr<Device> device;
    std::unique_ptr<PlainRun> run;
    StepIndex steps = 0;
    std::int64_t gradientBytes = 0; // in all steps, without batches and scalars
    std::int64_t unplannedBytes = 0;
    std::vector<int> staleness;

    explicit Rig(const PlainRunSpec& spec)
    {
        CpuDeviceOptions options;
        options.memoryBytes = std::size_t{64} << 20;
        options.mode = CpuDeviceOptions::Mode::Threaded;
        options.threads = 2;
        device = std::move(makeCpuDevice(options)).value();
        auto created = PlainRun::create(*device, spec);
        if (!created.ok())
            qFatal("%s", created.status().message().c_str());
        run = std::move(created).value();
    }

    StepResult step(float lossScale = 1.0F / 32.0F)
    {
        const auto micros = randomBatch(run->spec().config.vocab, run->spec().micro);
        StepInputs inputs;
        inputs.micros = micros;
        inputs.lossScale = lossScale;
        inputs.clipNorm = run->spec().clipNorm;
        const std::int64_t count = run->executor().window()->updates().state.deviceUpdates + 1;
        inputs.factors = adamwFactors(run->spec().adamw, run->spec().learningRate, count);
        ++steps;
        auto result = run->step(inputs);
        if (!result.ok())
            qFatal("step %d: %s", int(steps), result.status().message().c_str());
        const std::int64_t crossed = result.value().h2dBytes + result.value().d2hBytes;
        const LinkTraffic planned = linkTraffic(run->stepPlan(), run->shape(), run->precision());
        gradientBytes += crossed;
        unplannedBytes += crossed - planned.hostToDeviceBytes - planned.deviceToHostBytes;
        for (const Task& task : run->stepPlan().tasks)
            if (task.kind == TaskKind::FetchBatch || task.kind == TaskKind::SendScalars)
                gradientBytes -= copyBytes(run->stepPlan(), task, run->shape(), run->precision());
        staleness.push_back(run->stepPlan().staleness);
        return std::move(result).value();
    }
};

// Weights of which none is so near to another BF16 number that a few small steps reach it: forward
// then reads the same weights for many steps and gradients stay the same, while masters move.
inline void installCoarseWeights(PlainRun& run)
{
    std::uint64_t n = 0;
    test::MasterBuffers master(run.table());
    for (std::vector<std::uint16_t>& group : master.high)
        for (std::uint16_t& high : group) {
            const auto random = philox(11, n++);
            const float size = 0.0625F * (1.0F + static_cast<float>(random[0] % 128) / 128.0F);
            high = highHalf(random[1] % 2 == 0 ? size : -size);
        }
    QVERIFY(installMaster(run.executor(), run.memory(), master).ok());
}

// All of a weight, as the host keeps it.
inline ComplementRows hostRows(PlainRun& run, GroupId id, const WeightCut& weight)
{
    const GroupMemory& group = run.memory().group(id);
    const auto part = [&](StatePart p) { return group.state[static_cast<std::size_t>(p)]; };
    ComplementRows rows;
    rows.rows = static_cast<std::size_t>(weight.rows);
    rows.cols = static_cast<std::size_t>(weight.cols);
    rows.high = reinterpret_cast<std::uint16_t*>(part(StatePart::High)) + weight.first;
    if (run.memory().stateCodec() == StateCodec::Compact) {
        rows.compact = compactRange(group, weight.first, weight.rows * weight.cols);
        return rows;
    }
    rows.low = reinterpret_cast<std::int16_t*>(part(StatePart::Low)) + weight.first;
    rows.m = reinterpret_cast<float*>(part(StatePart::FirstMoment)) + weight.first;
    rows.v = reinterpret_cast<float*>(part(StatePart::SecondMoment)) + weight.first;
    return rows;
}

// Gives the last columns of the group's one weight to the device.
inline void selectLastColumns(Rig& rig, GroupId id, const WeightCut& weight)
{
    RunMemory& memory = const_cast<RunMemory&>(rig.run->memory());
    RunWindow& window = *rig.run->executor().window();
    if (id.value != 0)
        qFatal("energies begin with the first group's");
    for (std::int64_t c = 0; c < weight.cols; ++c) // the last columns win
        memory.window->hostEnergies[static_cast<std::size_t>(c)] = static_cast<float>(c);
    const AdamwFactors betas = adamwFactors(rig.run->spec().adamw, 1e-6, 1);
    if (!window.ownership().select(betas, window.updates().state).ok())
        qFatal("columns could not be selected");
}

} // namespace mr::test
