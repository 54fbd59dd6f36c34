// Optimizer: the rules by which a run changes weights, as one small table, and what each keeps
// between steps.
//
// AdamW keeps two moments of every weight, so its state lives where a policy puts it. The others
// are light: they keep a number for each row and column of a weight, AdamW's moments of some rows,
// or nothing (core/device/light_update.h), and a group is updated on the device right behind its
// own backward. Then no gradient leaves the device, and none outlives its group.
//
// Threads  Pure.
// Units    Counts are of F32 values.

#pragma once

#include "core/plan/model_shape.h"
#include "core/plan/state_codec.h"

#include <millrace/run_spec.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mr {

// How a light optimizer steps a weight.
enum class WeightRule : std::uint8_t {
    Own,       // by its averages, or by the gradient alone
    Projected, // by a projection of the gradient to one number for each place of the longer side
    Rows,      // AdamW of some rows
};

struct OptimizerInfo {
    Optimizer id{};
    bool isLight = false;       // keeps little or nothing; updates behind backward
    bool averages = false;      // of squares, by row and column
    bool isRelative = false;    // steps by the size of the weight, whose squares it sums
    WeightRule matrices{};      // of blocks; averages are of the other weights
    bool isForwardOnly = false; // no backward: the losses of two forward passes say how far to step
};

inline constexpr std::array<OptimizerInfo, 7> kOptimizers = {{
    {Optimizer::AdamW, false, false, false, WeightRule::Own},
    {Optimizer::Factored, true, true, false, WeightRule::Own},
    {Optimizer::AdaLomo, true, true, true, WeightRule::Own},
    {Optimizer::SgdNormalised, true, false, false, WeightRule::Own},
    {Optimizer::ApolloMini, true, true, false, WeightRule::Projected},
    {Optimizer::Grass, true, true, false, WeightRule::Rows},
    {Optimizer::Mezo, true, false, false, WeightRule::Own, true},
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

// Does a weight's step need no other weight? Then a matrix may be updated by tiles that come and
// go.
constexpr bool updatesByTiles(Optimizer optimizer) noexcept
{
    return isLight(optimizer) && !infoOf(optimizer).isRelative && !infoOf(optimizer).isForwardOnly;
}

constexpr bool isForwardOnly(Optimizer optimizer) noexcept
{
    return infoOf(optimizer).isForwardOnly;
}

// `inBlock`: the weight's group is no end of the model.
constexpr WeightRule ruleOf(Optimizer optimizer, const WeightShape& weight, bool inBlock) noexcept
{
    return inBlock && !weight.isVector ? infoOf(optimizer).matrices : WeightRule::Own;
}

// Rows that WeightRule::Rows steps of so many.
constexpr std::int64_t chosenRows(std::int64_t rows) noexcept
{
    return std::max(rows / 8, std::int64_t{1});
}

// Rows of one node of the tree over a column (core/device/light_update.h), whose sums are stored on
// the way.
inline constexpr std::int64_t kPartRows = 1024;

// Values on the device that light updates of a group need: averages, which the run keeps, and work
// that the update of the next group writes over. A weight has its rows and then its columns in
// either, and in `work` its step size. A projected one has its moments and their norm in the first,
// and signs and projection in the places of columns and rows. One with chosen rows has two moments
// of each of their elements in the first, from a multiple of kLightVector on, and then the numbers
// of the rows.
struct LightLayout {
    struct Place {
        std::int64_t averages = 0;
        // In `work`. Kernels read columns in vectors: a multiple of kLightVector.
        std::int64_t columns = 0;
        std::int64_t rows = 0;
        std::int64_t size = 0;
    };
    std::vector<Place> places; // by weight
    std::int64_t averages = 0; // in all
    // In `work`, before the places: StepScalars with a given clip factor. Behind them: sums of the
    // rows of one weight, twice, and parts of its columns.
    static constexpr std::int64_t kScalars = 0;
    std::int64_t rowSums = 0;
    std::int64_t parts = 0;
    std::int64_t work = 0; // in all
};
inline constexpr std::int64_t kLightVector = 8;

// Places in `work` of a run without backward, in values.
struct ProbeLayout {
    static constexpr std::int64_t kEach = 8;
    static constexpr std::int64_t kPlain = 0;          // StepScalars that scale by 1
    static constexpr std::int64_t kOfLosses = kEach;   // by the scale of losses over two steps
    static constexpr std::int64_t kOfRate = 2 * kEach; // by the learning rate
    static constexpr std::int64_t kZero = 3 * kEach;
    static constexpr std::int64_t kPair = 4 * kEach;  // 1 and -1
    static constexpr std::int64_t kSteps = 5 * kEach; // of the copies, as an update takes them
    static constexpr std::int64_t kSlope = 6 * kEach;
    static constexpr std::int64_t kNorm = 7 * kEach;
    static constexpr std::int64_t kSize = 8 * kEach; // of the update
    // Signs of a chunk of a weight; of the head's passes losses of tokens, and behind them a number
    // for each micro-batch.
    static constexpr std::int64_t kSigns = 9 * kEach;
    static constexpr std::int64_t kChunk = std::int64_t{1} << 20;
    static constexpr std::int64_t kMicros = std::int64_t{1} << 16;
    static constexpr std::int64_t kSlopes = kSigns + kChunk - kMicros;
    static constexpr std::int64_t kTokens =
        (kChunk - kMicros) / 5 - kEach;                    // of a micro-batch at most
    static constexpr std::int64_t kHigh = kSigns + kChunk; // planes of a chunk
    static constexpr std::int64_t kLow = kHigh + kChunk / 2;
    static constexpr std::int64_t kWork = kLow + kChunk / 2;
};

// `inBlock`: the group is no end of the model.
LightLayout lightLayout(Optimizer optimizer, std::span<const WeightShape> weights, bool inBlock);

} // namespace mr
