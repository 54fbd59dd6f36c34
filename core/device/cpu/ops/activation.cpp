#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"

namespace mr::cpu {

namespace {

template <typename T>
void rotateRow(const RopeArgs& args, std::int64_t row) noexcept
{
    const std::int64_t half = args.headDim / 2;
    const std::int64_t position = args.positions.as<const std::int32_t>()[row];
    const float* cosine = args.cosTable.as<const float>() + position * half;
    const float* sine = args.sinTable.as<const float>() + position * half;
    const float sign = args.inverse ? -1.0F : 1.0F;
    for (std::int64_t h = 0; h < args.heads; ++h) {
        T* low = args.x.as<T>() + row * args.x.dims[1] + h * args.headDim;
        T* high = low + half;
#pragma GCC ivdep // the halves of a head do not overlap
        for (std::int64_t i = 0; i < half; ++i) {
            const float a = toFloat(low[i]);
            const float b = toFloat(high[i]);
            const float s = sign * sine[i];
            low[i] = fromFloat<T>(a * cosine[i] - b * s);
            high[i] = fromFloat<T>(b * cosine[i] + a * s);
        }
    }
}

template <typename T>
void swigluRow(const T* gate, const T* up, T* out, std::int64_t cols) noexcept
{
    for (std::int64_t c = 0; c < cols; ++c) {
        const float g = toFloat(gate[c]);
        out[c] = fromFloat<T>(g * sigmoid(g) * toFloat(up[c]));
    }
}

// With s = sigmoid(gate): gradUp = grad gate s; gradGate = grad up s (1 + gate (1 - s)).
template <typename T>
void swigluBackwardRow(const T* gateUp, const T* gradOut, T* gradGateUp, std::int64_t cols) noexcept
{
#pragma GCC ivdep // gradGateUp may be gateUp, element for element
    for (std::int64_t c = 0; c < cols; ++c) {
        const float g = toFloat(gateUp[c]);
        const float u = toFloat(gateUp[cols + c]);
        const float grad = toFloat(gradOut[c]);
        const float s = sigmoid(g);
        gradGateUp[c] = fromFloat<T>(grad * u * (s * (1.0F + g * (1.0F - s))));
        gradGateUp[cols + c] = fromFloat<T>(grad * (g * s));
    }
}

} // namespace

void rope(const RopeArgs& args, ThreadPool& pool)
{
    const std::int64_t perRow = static_cast<std::int64_t>(args.heads) * args.headDim;
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.x.dims[0], rowsPerItem(perRow), [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r)
                rotateRow<T>(args, r);
        });
    });
}

void swiglu(const SwigluArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.out.dims[1];
    withType(args.out.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.out.dims[0], rowsPerItem(cols), [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r) {
                const T* gate = args.gateUp.as<const T>() + r * 2 * cols;
                swigluRow(gate, gate + cols, args.out.as<T>() + r * cols, cols);
            }
        });
    });
}

void swigluBackward(const SwigluBackwardArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.gradOut.dims[1];
    withType(args.gradOut.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(
            pool, args.gradOut.dims[0], rowsPerItem(cols), [&](std::int64_t r, std::int64_t end) {
                for (; r < end; ++r)
                    swigluBackwardRow(args.gateUp.as<const T>() + r * 2 * cols,
                        args.gradOut.as<const T>() + r * cols,
                        args.gradGateUp.as<T>() + r * 2 * cols, cols);
            });
    });
}

} // namespace mr::cpu
