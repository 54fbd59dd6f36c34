// AdamwFactors: the constants of one AdamW update.
//
// Threads  A value.

#pragma once

namespace mr {

// Computed once per step in double, then rounded (core/device/adamw.h makes them).
struct AdamwFactors {
    float decay = 1.0F; // 1 - lr * weightDecay, for decayed ranges
    float beta1 = 0.9F;
    float oneMinusBeta1 = 0.1F;
    float beta2 = 0.999F;
    float oneMinusBeta2 = 0.001F;
    float stepSize = 0.0F;         // lr / (1 - beta1^count)
    float inverseSqrtBias2 = 1.0F; // 1 / sqrt(1 - beta2^count)
    float eps = 1e-8F;
};

} // namespace mr
