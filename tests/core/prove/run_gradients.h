// The loss and the gradients of a run's first step.

#pragma once

#include "core/device/adamw.h"
#include "core/prove/plain_run.h"

#include <QtGlobal>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mr::test {

using Floats = std::vector<float>;

struct RunGradients {
    double loss = 0.0;      // mean over the trained tokens
    std::vector<Floats> of; // by group, of all that is trained
};

// After the first step AdamW's first moments are (1 - beta1) times the gradients. Preconditions: no
// clipping, precision fp32. Ends the program if the run fails.
inline RunGradients gradientsOf(PlainRun& run, const std::vector<MicroBatchData>& batch)
{
    std::int64_t trained = 0;
    for (const MicroBatchData& micro : batch)
        for (const std::int32_t target : micro.targets)
            trained += target >= 0 ? 1 : 0;
    StepInputs inputs;
    inputs.micros = batch;
    inputs.lossScale = static_cast<float>(1.0 / static_cast<double>(trained));
    inputs.factors = adamwFactors(run.spec().adamw, 1e-3, 1);
    auto step = run.step(inputs);
    if (!step.ok())
        qFatal("%s", step.status().message().c_str());
    RunGradients gradients;
    gradients.loss = step.value().lossSum / static_cast<double>(trained);
    for (std::size_t g = 0; g < run.table().groups.size(); ++g) {
        Floats moments(static_cast<std::size_t>(run.table().groups[g].elements));
        const Status read = run.executor().state().read(GroupId{static_cast<std::int32_t>(g)},
            StatePart::FirstMoment, 0, std::as_writable_bytes(std::span(moments)));
        if (!read.ok())
            qFatal("%s", read.message().c_str());
        for (float& moment : moments)
            moment /= static_cast<float>(1.0 - run.spec().adamw.beta1);
        gradients.of.push_back(std::move(moments));
    }
    return gradients;
}

} // namespace mr::test
