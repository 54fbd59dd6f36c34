// Epsilon and gain of every norm of a model, by its config, and what a layer begins with: a norm,
// or the sum of the two parts of its input.
//
// Threads  Pure.

#pragma once

#include "core/device/ops.h"
#include "core/model/block.h"
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

inline RmsNormArgs inputNorm(const ModelConfig& config, const LayerInput& input,
    const TensorView& weight, const TensorView& out, const TensorView& rstd) noexcept
{
    if (input.branch.data == nullptr)
        return {input.x, {}, weight, {}, out, rstd, epsOf(config), gainOf(config)};
    return {input.branch, input.stream, weight, input.x, out, rstd, epsOf(config), gainOf(config)};
}

// Nothing where the sum is there already.
inline Status addParts(const LayerContext& context, const LayerInput& input)
{
    if (input.branch.data == nullptr)
        return {};
    return context.ops->add({input.branch, input.stream, input.x}, *context.stream);
}

} // namespace mr
