// Trains with gradients that one micro-batch makes, or the same gradients as sums of two.

#pragma once

#include "core/prove/exact_check.h"
#include "core/prove/plain_run_inputs.h"
#include "tests/core/prove/state_of.h"

#include <QtTest>

#include <vector>

namespace mr::test {

struct TrainedMaster {
    MasterBuffers master;
    std::vector<double> norms; // by step
    std::size_t sumBytes = 0;  // of the device's gradient sums
};

// `summed`: with a second micro-batch in which nothing is trained. All its gradients are 0, so the
// sums, and what they are rounded to, are those of the first.
inline TrainedMaster trainOneMicroBatch(Device& device, const TinyRun& run, bool summed)
{
    PlainRunSpec spec = plainRunSpec(run);
    spec.micro.microBatches = summed ? 2 : 1;
    auto created = PlainRun::create(device, spec);
    if (!created.ok())
        qFatal("%s", created.status().message().c_str());
    PlainRun& plain = *created.value();
    if (!installCheapWeights(plain).ok())
        qFatal("weights");
    auto micros = randomBatch(spec.config.vocab, spec.micro);
    if (summed)
        std::fill(micros[1].targets.begin(), micros[1].targets.end(), -1);
    StepInputs inputs;
    inputs.micros = micros;
    inputs.lossScale = 1.0F / static_cast<float>(spec.micro.tokens());
    inputs.clipNorm = spec.clipNorm;
    std::vector<double> norms;
    for (int s = 1; s <= run.steps; ++s) {
        inputs.factors = adamwFactors(spec.adamw, spec.learningRate, s);
        auto step = plain.step(inputs);
        if (!step.ok())
            qFatal("%s", step.status().message().c_str());
        norms.push_back(step.value().scalars.gradNorm);
    }
    if (!plain.finishLateParts().ok())
        qFatal("late parts");
    return {stateOf(plain), norms, plain.memoryPlan().bytes(Tier::Device, MemoryUse::Accumulators)};
}

} // namespace mr::test
