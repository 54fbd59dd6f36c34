// Epsilon and gain of every norm of a model, by its config.
//
// Threads  Pure.

#pragma once

#include "core/device/ops.h"
#include "core/model/model_config.h"

namespace mr {

inline float epsOf(const ModelConfig& config) noexcept
{
    return static_cast<float>(config.rmsNormEps);
}

inline NormGain gainOf(const ModelConfig& config) noexcept
{
    return config.onePlusNorms ? NormGain::OnePlusWeight : NormGain::Weight;
}

} // namespace mr
