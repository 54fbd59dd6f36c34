#include "core/base/philox.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/sum_tree.h"

#include <cmath>

namespace mr::cpu {

void projectionSigns(const ProjectionSignsArgs& args)
{
    constexpr std::int64_t kPerBlock = 128;
    auto* signs = args.signs.as<float>();
    const std::int64_t count = args.signs.dims[0];
    for (std::int64_t first = 0; first < count; first += kPerBlock) {
        const auto words =
            philox(args.key, static_cast<std::uint64_t>(first / kPerBlock), args.counter);
        for (std::int64_t e = first; e < std::min(count, first + kPerBlock); ++e) {
            const std::uint32_t word = words[static_cast<std::size_t>(e / 32 % 4)];
            signs[e] = (word >> (e % 32) & 1U) != 0 ? -1.0F : 1.0F;
        }
    }
}

namespace {

float lengthOf(const float* values, std::int64_t count)
{
    return std::sqrt(sumAsRow(
        count, [=](float sum, std::int64_t i) { return std::fma(values[i], values[i], sum); }));
}

} // namespace

void projectedStep(const ProjectedStepArgs& args)
{
    constexpr float kGrowth = 1.01F; // of the norm, in a step
    if (readScalars(args.scalars).finite == 0)
        return;
    const std::int64_t n = args.projected.dims[0];
    const auto* r = args.projected.as<const float>();
    auto* m = args.first.as<float>();
    auto* v = args.second.as<float>();
    for (std::int64_t i = 0; i < n; ++i) {
        m[i] = std::fma(0.1F, r[i], 0.9F * m[i]);
        v[i] = std::fma(0.001F * r[i], r[i], 0.999F * v[i]);
    }
    const float step = std::sqrt(sumAsRow(n, [=](float sum, std::int64_t i) {
        const float ratio = m[i] / (std::sqrt(v[i]) + 1e-6F);
        return std::fma(ratio, ratio, sum);
    }));
    float factor = step / (lengthOf(r, n) + 1e-8F);
    const auto* squares = args.squareSums.as<const float>();
    const float gradient = std::sqrt(sumAsRow(
        args.squareSums.dims[0], [=](float sum, std::int64_t i) { return sum + squares[i]; }));
    float& norm = *args.norm.as<float>();
    float now = factor * gradient;
    if (!args.isFirst) {
        const float grown = now / (norm + 1e-8F);
        const float over = (grown > kGrowth ? grown : kGrowth) / kGrowth;
        factor = factor / over;
        now = now / over;
    }
    norm = now;
    *args.size.as<float>() = args.rate * factor;
}

} // namespace mr::cpu
