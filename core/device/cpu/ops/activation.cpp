#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/cpu/ops/rotation.h"

#include <type_traits>

namespace mr::cpu {

namespace {

template <typename T>
void rotateRow(const RopeArgs& args, std::int64_t row) noexcept
{
    const HeadAngles angles = anglesOf(args, row, args.inverse);
    T* head = args.x.as<T>() + row * args.x.dims[1] + std::int64_t{args.firstHead} * args.headDim;
    const auto rotate = args.pairs == RopePairs::Halves ? rotateHead<T> : rotateNeighbours<T>;
    for (std::int64_t h = 0; h < args.heads; ++h)
        rotate(head + h * args.headDim, angles);
}

// u(x) of GateActivation, and x times its derivative.
template <GateActivation kActivation>
float innerOf(float x) noexcept
{
    if constexpr (kActivation == GateActivation::Silu)
        return x;
    else
        return x * std::fma(kGeluCubic, x * x, kGeluLinear);
}

template <GateActivation kActivation>
float steepnessOf(float x) noexcept
{
    if constexpr (kActivation == GateActivation::Silu)
        return x;
    else
        return x * std::fma(3.0F * kGeluCubic, x * x, kGeluLinear);
}

template <GateActivation kActivation, typename T>
void swigluRow(const T* gate, const T* up, T* out, std::int64_t cols) noexcept
{
    for (std::int64_t c = 0; c < cols; ++c) {
        const float g = toFloat(gate[c]);
        out[c] = fromFloat<T>(g * sigmoid(innerOf<kActivation>(g)) * toFloat(up[c]));
    }
}

// With s = sigmoid(u(gate)): gradUp = grad gate s; gradGate = grad up s (1 + gate u' (1 - s)).
template <GateActivation kActivation, typename T>
void swigluBackwardRow(const T* gateUp, const T* gradOut, T* gradGateUp, std::int64_t cols) noexcept
{
#pragma GCC ivdep // gradGateUp may be gateUp, element for element
    for (std::int64_t c = 0; c < cols; ++c) {
        const float g = toFloat(gateUp[c]);
        const float u = toFloat(gateUp[cols + c]);
        const float grad = toFloat(gradOut[c]);
        const float s = sigmoid(innerOf<kActivation>(g));
        const float steepness = steepnessOf<kActivation>(g);
        gradGateUp[c] = fromFloat<T>(grad * u * (s * (1.0F + steepness * (1.0F - s))));
        gradGateUp[cols + c] = fromFloat<T>(grad * (g * s));
    }
}

// Calls fn with the activation as a constant: f([](auto tag) ...).
template <typename F>
void withActivation(GateActivation activation, F&& fn)
{
    if (activation == GateActivation::GeluTanh)
        fn(std::integral_constant<GateActivation, GateActivation::GeluTanh>());
    else
        fn(std::integral_constant<GateActivation, GateActivation::Silu>());
}

template <GateActivation kActivation, typename T>
void swigluRows(const SwigluArgs& args, std::int64_t first, std::int64_t end) noexcept
{
    const std::int64_t cols = args.out.dims[1];
    for (std::int64_t r = first; r < end; ++r) {
        const T* gate = args.gateUp.as<const T>() + r * 2 * cols;
        swigluRow<kActivation>(gate, gate + cols, args.out.as<T>() + r * cols, cols);
    }
}

template <GateActivation kActivation, typename T>
void swigluBackwardRows(
    const SwigluBackwardArgs& args, std::int64_t first, std::int64_t end) noexcept
{
    const std::int64_t cols = args.gradOut.dims[1];
    for (std::int64_t r = first; r < end; ++r)
        swigluBackwardRow<kActivation>(args.gateUp.as<const T>() + r * 2 * cols,
            args.gradOut.as<const T>() + r * cols, args.gradGateUp.as<T>() + r * 2 * cols, cols);
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
    const std::int64_t perItem = rowsPerItem(args.out.dims[1]);
    withType(args.out.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withActivation(args.activation, [&](auto activation) {
            forBlocks(pool, args.out.dims[0], perItem, [&](std::int64_t first, std::int64_t end) {
                swigluRows<activation(), T>(args, first, end);
            });
        });
    });
}

void swigluBackward(const SwigluBackwardArgs& args, ThreadPool& pool)
{
    const std::int64_t perItem = rowsPerItem(args.gradOut.dims[1]);
    withType(args.gradOut.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        withActivation(args.activation, [&](auto activation) {
            forBlocks(
                pool, args.gradOut.dims[0], perItem, [&](std::int64_t first, std::int64_t end) {
                    swigluBackwardRows<activation(), T>(args, first, end);
                });
        });
    });
}

} // namespace mr::cpu
