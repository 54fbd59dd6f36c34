// The ops of DoRA: norms of adapted rows, scaled columns, and the gradient of magnitudes.

#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"

#include <array>
#include <cmath>

namespace mr::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kColumns = 64; // of a row at a time; a multiple of kLanes

template <typename T>
const T* startOf(const ColumnWindow& window)
{
    return window.matrix.as<const T>() + window.first;
}

// || weight[row] + scale b[row] a ||: lane l sums columns l, l + 16, ... in order, then the lanes
// in order.
template <typename T>
float normOf(const AdapterNormsArgs& args, std::int64_t row)
{
    const std::int64_t cols = args.weight.dims[1];
    const std::int64_t rank = args.a.dims[0];
    const T* weight = args.weight.as<const T>() + row * cols;
    const T* b = args.b.as<const T>() + row * rank;
    std::array<float, kLanes> lanes{};
    for (std::int64_t first = 0; first < cols; first += kColumns) {
        const std::int64_t count = std::min(kColumns, cols - first);
        std::array<float, kColumns> delta{};
        for (std::int64_t k = 0; k < rank; ++k) {
            const float factor = toFloat(b[k]);
            const T* a = args.a.as<const T>() + k * cols + first;
            for (std::int64_t c = 0; c < count; ++c) {
                float& sum = delta[static_cast<std::size_t>(c)];
                sum = std::fma(factor, toFloat(a[c]), sum);
            }
        }
        for (std::int64_t c = 0; c < count; ++c) {
            const float value = std::fma(
                args.scale, delta[static_cast<std::size_t>(c)], toFloat(weight[first + c]));
            float& lane = lanes[static_cast<std::size_t>(c % kLanes)];
            lane = std::fma(value, value, lane);
        }
    }
    float total = 0.0F;
    for (const float lane : lanes)
        total += lane;
    return std::sqrt(total);
}

template <typename T>
void scaleRow(const ScaleColumnsArgs& args, std::int64_t row)
{
    const T* x = startOf<T>(args.x) + row * args.x.matrix.dims[1];
    T* out = args.out.matrix.as<T>() + args.out.first + row * args.out.matrix.dims[1];
    const float* factors = args.factors.as<const float>();
    const T* bias = args.bias.as<const T>();
    for (std::int64_t c = 0; c < args.x.count; ++c) {
        const float b = bias ? toFloat(bias[c]) : 0.0F;
        out[c] = fromFloat<T>(
            bias ? std::fma(factors[c], toFloat(x[c]) - b, b) : factors[c] * toFloat(x[c]));
    }
}

// The columns of one item, rows ascending.
template <typename T, typename Out>
void dotColumns(const ColumnDotsArgs& args, std::int64_t first, std::int64_t end)
{
    std::array<float, kColumns> sums{};
    for (std::int64_t row = 0; row < args.a.matrix.dims[0]; ++row) {
        const T* a = startOf<T>(args.a) + row * args.a.matrix.dims[1] + first;
        const T* b = startOf<T>(args.b) + row * args.b.matrix.dims[1] + first;
        for (std::int64_t c = 0; c < end - first; ++c) {
            float& sum = sums[static_cast<std::size_t>(c)];
            sum = std::fma(toFloat(a[c]), toFloat(b[c]), sum);
        }
    }
    Out* out = args.out.as<Out>();
    for (std::int64_t c = first; c < end; ++c) {
        const float divisor = args.divisors.as<const float>()[c];
        const float dot =
            divisor > 0.0F ? sums[static_cast<std::size_t>(c - first)] / divisor : 0.0F;
        out[c] = fromFloat<Out>(args.accumulate ? toFloat(out[c]) + dot : dot);
    }
}

} // namespace

void adapterNorms(const AdapterNormsArgs& args, ThreadPool& pool)
{
    const std::int64_t perItem = rowsPerItem(args.weight.dims[1] * (args.a.dims[0] + 1));
    withType(args.weight.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.weight.dims[0], perItem, [&](std::int64_t row, std::int64_t end) {
            for (; row < end; ++row) {
                const float norm = normOf<T>(args, row);
                const float magnitude = toFloat(args.magnitude.as<const T>()[row]);
                args.norms.as<float>()[row] = norm;
                args.factors.as<float>()[row] = norm > 0.0F ? magnitude / norm : 0.0F;
            }
        });
    });
}

void scaleColumns(const ScaleColumnsArgs& args, ThreadPool& pool)
{
    withType(args.x.matrix.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const std::int64_t perItem = rowsPerItem(args.x.count);
        forBlocks(pool, args.x.matrix.dims[0], perItem, [&](std::int64_t row, std::int64_t end) {
            for (; row < end; ++row)
                scaleRow<T>(args, row);
        });
    });
}

void columnDots(const ColumnDotsArgs& args, ThreadPool& pool)
{
    withTypes(args.a.matrix.dtype, args.out.dtype, [&](auto* in, auto* to) {
        using T = std::remove_pointer_t<decltype(in)>;
        using Out = std::remove_pointer_t<decltype(to)>;
        forBlocks(pool, args.a.count, kColumns, [&](std::int64_t first, std::int64_t end) {
            for (; first < end; first += kColumns)
                dotColumns<T, Out>(args, first, std::min(end, first + kColumns));
        });
    });
}

} // namespace mr::cpu
