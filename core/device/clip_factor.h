// The factor that brings a gradient of some norm down to `clipNorm`; 1 where that is 0, which does
// not clip. PyTorch's clip_grad_norm_ rule, as StepScalars has it; gpu/ops/reductions.cu computes
// the same on a card.
//
// Threads  Pure.

#pragma once

#include <algorithm>

namespace mr {

inline float clipFactorOf(double norm, double clipNorm) noexcept
{
    return clipNorm > 0.0 ? static_cast<float>(std::min(1.0, clipNorm / (norm + 1e-6))) : 1.0F;
}

} // namespace mr
