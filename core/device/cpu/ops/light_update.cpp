#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/master_steps.h"
#include "core/device/cpu/ops/sum_tree.h"

#include <array>
#include <cmath>

namespace mr::cpu {

namespace {

float sumOf(const TensorView& values)
{
    const auto* x = values.as<const float>();
    return sumAsRow(values.dims[0], [x](float sum, std::int64_t j) { return sum + x[j]; });
}

void averageOf(float* averages, const float* sums, std::int64_t count, std::int64_t each,
    const AverageSquaresArgs& args)
{
    constexpr float kLeastSquare = 1e-30F;
    const auto elements = static_cast<float>(each);
    for (std::int64_t i = 0; i < count; ++i)
        averages[i] =
            std::fma(args.present, sums[i] / elements + kLeastSquare, args.past * averages[i]);
}

} // namespace

void averageSquares(const AverageSquaresArgs& args)
{
    if (readScalars(args.scalars).finite == 0)
        return;
    const std::int64_t rows = args.rows.dims[0];
    const std::int64_t cols = args.columns.dims[0];
    auto* r = args.rows.as<float>();
    auto* c = args.columns.as<float>();
    auto* rowRoots = args.rowSums.as<float>();
    auto* columnRoots = args.columnSums.as<float>();
    averageOf(r, rowRoots, rows, cols, args);
    averageOf(c, columnRoots, cols, rows, args);
    const float s = sumOf(args.rows) / static_cast<float>(rows);
    for (std::int64_t i = 0; i < rows; ++i)
        rowRoots[i] = std::sqrt(r[i] / s);
    for (std::int64_t j = 0; j < cols; ++j)
        columnRoots[j] = std::sqrt(c[j]);
}

void lightStepSize(const StepSizeArgs& args)
{
    constexpr float kLeastWeight = 1e-3F;
    const auto count = static_cast<float>(args.count);
    const float rms = std::sqrt(sumOf(args.updateSums) / count);
    const float over = rms / args.limit;
    float& size = *args.size.as<float>();
    if (args.rule == StepRule::Normalised) {
        size = rms > 0.0F ? args.rate / rms : 0.0F;
        return;
    }
    float rate = args.rate;
    if (args.rule == StepRule::Relative) {
        const float weight = std::sqrt(sumOf(args.weightSums) / count);
        rate = args.rate * (weight > kLeastWeight ? weight : kLeastWeight);
    }
    size = rate / (over > 1.0F ? over : 1.0F);
}

namespace {

// u of `count` elements of a weight from `first` on. They may lie in several rows.
void fillUpdate(
    const LightUpdateArgs& args, std::int64_t at, std::int64_t count, float clipFactor, float* u)
{
    const auto* g = args.grad.as<const float>() + at;
    if (!args.rowRoots.data) {
        for (std::int64_t i = 0; i < count; ++i)
            u[i] = g[i] * clipFactor;
        return;
    }
    for (std::int64_t i = 0; i < count;) {
        const std::int64_t element = args.first + at + i;
        const std::int64_t column = element % args.cols;
        const std::int64_t end = std::min(count, i + args.cols - column);
        const float root = args.rowRoots.as<const float>()[element / args.cols];
        const auto* roots = args.columnRoots.as<const float>() + column;
        for (const std::int64_t begin = i; i < end; ++i)
            u[i] = g[i] * clipFactor / (root * roots[i - begin]);
    }
}

} // namespace

void lightUpdate(const LightUpdateArgs& args, ThreadPool& pool)
{
    const StepScalars scalars = readScalars(args.scalars);
    if (scalars.finite == 0)
        return;
    const MasterRange range{args.high, args.low, args.first, args.key, args.counter};
    const MasterStep step{*args.size.as<const float>(), args.decayed ? args.decay : 1.0F};
    forBlocks(pool, args.grad.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        std::array<float, kMasterPiece> u;
        for (std::int64_t at = first; at < end; at += kMasterPiece) {
            const std::int64_t count = std::min(kMasterPiece, end - at);
            fillUpdate(args, at, count, scalars.clipFactor, u.data());
            stepMasters(range, at, count, u.data(), step);
        }
    });
}

} // namespace mr::cpu
