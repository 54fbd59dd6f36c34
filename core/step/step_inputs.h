// StepInputs: the numbers that a plan does not hold. refuse(): the error for a task that cannot be
// carried out.

#pragma once

#include "core/data/batch_stream.h"
#include "core/device/ops.h"
#include "core/optim/light_factors.h"
#include "core/plan/plan.h"

#include <millrace/status.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mr {

struct StepInputs {
    std::span<const MicroBatchData> micros;
    float lossScale = 1.0F;  // 1 / trained tokens of the step
    double clipNorm = 0.0;   // 0: off
    double lastNorm = 0.0;   // of the gradient of the last step that had one; 0: none has
    std::uint64_t seed = 0;  // of dropout and of rounding at random
    std::int64_t update = 0; // number of this update, from 1
    AdamwFactors factors;    // for the version of the plan's step
    AdamwFactors before;     // for the version before it: late updates
    LightFactors light;      // in place of them, with a light optimizer
    // For the matrices B of adapters, where their learning rate is another one (LoRA+).
    std::optional<AdamwFactors> ofAdapterB = {};
    // For the host's columns: the window in flight, and the one that ends with this step.
    AdamwFactors job;
    AdamwFactors closing;
};

inline Status refuse(const Task& task)
{
    return Status::error(ErrorKind::Internal,
        "step executor: task kind " + std::to_string(static_cast<int>(task.kind)) +
            " cannot be carried out on lane " + std::to_string(static_cast<int>(task.lane)));
}

} // namespace mr
