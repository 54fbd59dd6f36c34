// Optimizer: the rules by which a run changes weights, as one small table, and what each keeps
// between steps.
//
// AdamW keeps two moments of every weight, so its state lives where a policy puts it. The others
// are light: they keep a number for each row and column of a weight, or nothing
// (core/device/light_update.h), and a group is updated on the device right behind its own backward.
// Then no gradient leaves the device, and none outlives its group.
//
// Threads  Pure.
// Units    Counts are of F32 values.

#pragma once

#include "core/plan/model_shape.h"
#include "core/plan/state_codec.h"

#include <millrace/run_spec.h>

#include <array>
#include <cstdint>

namespace mr {

struct OptimizerInfo {
    Optimizer id{};
    bool isLight = false;    // keeps little or nothing; updates behind backward
    bool averages = false;   // of squares, by row and column
    bool isRelative = false; // steps by the size of the weight, whose squares it sums
};

inline constexpr std::array<OptimizerInfo, 4> kOptimizers = {{
    {Optimizer::AdamW, false, false, false},
    {Optimizer::Factored, true, true, false},
    {Optimizer::AdaLomo, true, true, true},
    {Optimizer::SgdNormalised, true, false, false},
}};

constexpr const OptimizerInfo& infoOf(Optimizer optimizer) noexcept
{
    return kOptimizers[static_cast<std::size_t>(optimizer)];
}

// Where the planes of a light optimizer's weights are not chosen by name, F32 keeps them whole.
constexpr StateCodec lightCodec(WeightFormat format, bool isF32) noexcept
{
    switch (format) {
    case WeightFormat::F32:
        return StateCodec::Halves;
    case WeightFormat::Bits24:
        return StateCodec::Bits24;
    case WeightFormat::Random16:
        return StateCodec::Random16;
    case WeightFormat::Auto:
        break;
    }
    return isF32 ? StateCodec::Halves : StateCodec::Bits24;
}

constexpr bool isLight(Optimizer optimizer) noexcept
{
    return infoOf(optimizer).isLight;
}

// Values on the device that a light update of a group needs: averages, which the run keeps, and
// work that the update of the next group writes over. `work` begins with the roots of rows and
// columns and the step size of each weight, in the order of the group's weights; behind them lie
// sums of rows, twice, and parts of columns, of one weight at a time.
struct LightCounts {
    std::int64_t averages = 0;
    std::int64_t rowSums = 0; // where the sums of rows begin in `work`
    std::int64_t parts = 0;   // and the parts of columns
    std::int64_t work = 0;
};

// Rows of one node of the tree over a column (core/device/light_update.h), whose sums are stored on
// the way.
inline constexpr std::int64_t kPartRows = 1024;

LightCounts lightCounts(Optimizer optimizer, const GroupShape& group) noexcept;

} // namespace mr
