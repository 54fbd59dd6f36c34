// SwiGLU and its backward pass: elementwise on [gate | up] rows.
//
// A block covers kRowBlockThreads packs' worth of rows and columns (rowShape()), a thread two packs
// of a row and their partners half a row on: 64 bytes of loads in flight, 96 backward. The exact
// expf and division cost about 25 instructions an element, expected to take less time than its
// memory traffic, so none is approximated.

#include "gpu/ops/launchers.h"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kPacks = 2; // per thread

__device__ float sigmoid(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

// u(x) of GateActivation, and x times its derivative.
__device__ float innerOf(float x, bool gelu)
{
    return gelu ? x * __fmaf_rn(kGeluCubic, x * x, kGeluLinear) : x;
}

__device__ float steepnessOf(float x, bool gelu)
{
    return gelu ? x * __fmaf_rn(3.0F * kGeluCubic, x * x, kGeluLinear) : x;
}

template <typename T, int kPack>
__device__ Pack<T, kPack> product(const Pack<T, kPack>& gate, const Pack<T, kPack>& up, bool gelu)
{
    float out[kPack];
    for (int i = 0; i < kPack; ++i) {
        const float g = toFloat(gate.at[i]);
        out[i] = g * sigmoid(innerOf(g, gelu)) * toFloat(up.at[i]);
    }
    return roundPack<T>(out);
}

// gateUp (rows, 2 cols), out (rows, cols). rowShape(rows, cols / kPack, kPacks).
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads, 4) swigluKernel(const T* __restrict__ gateUp,
    T* __restrict__ out, std::int64_t rows, std::int64_t cols, bool gelu)
{
    const std::int64_t row = rowOfThread();
    if (row >= rows)
        return;
    Pack<T, kPack> gate[kPacks];
    Pack<T, kPack> up[kPacks];
#pragma unroll
    for (int u = 0; u < kPacks; ++u) {
        const std::int64_t c = itemOfThread(kPacks, u) * kPack;
        if (c < cols) {
            gate[u] = loadPack<kPack>(gateUp + row * 2 * cols + c);
            up[u] = loadPack<kPack>(gateUp + row * 2 * cols + cols + c);
        }
    }
#pragma unroll
    for (int u = 0; u < kPacks; ++u) {
        const std::int64_t c = itemOfThread(kPacks, u) * kPack;
        if (c < cols)
            storePack(out + row * cols + c, product(gate[u], up[u], gelu));
    }
}

// With s = sigmoid(u(gate)): gradUp = grad gate s; gradGate = grad up s (1 + gate u' (1 - s)).
template <typename T, int kPack>
struct Gradients {
    Pack<T, kPack> gate, up;
};

template <typename T, int kPack>
__device__ Gradients<T, kPack> gradients(
    const Pack<T, kPack>& gate, const Pack<T, kPack>& up, const Pack<T, kPack>& gradOut, bool gelu)
{
    float gradGate[kPack];
    float gradUp[kPack];
    for (int i = 0; i < kPack; ++i) {
        const float g = toFloat(gate.at[i]);
        const float grad = toFloat(gradOut.at[i]);
        const float s = sigmoid(innerOf(g, gelu));
        const float steepness = steepnessOf(g, gelu);
        gradGate[i] = grad * toFloat(up.at[i]) * (s * (1.0F + steepness * (1.0F - s)));
        gradUp[i] = grad * (g * s);
    }
    return {roundPack<T>(gradGate), roundPack<T>(gradUp)};
}

// gateUp, gradGateUp (rows, 2 cols), which may be the same; gradOut (rows, cols).
// rowShape(rows, cols / kPack, kPacks).
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowBlockThreads) swigluBackwardKernel(const T* gateUp,
    const T* __restrict__ gradOut, T* gradGateUp, std::int64_t rows, std::int64_t cols, bool gelu)
{
    const std::int64_t row = rowOfThread();
    if (row >= rows)
        return;
    Pack<T, kPack> gate[kPacks];
    Pack<T, kPack> up[kPacks];
    Pack<T, kPack> grad[kPacks];
#pragma unroll
    for (int u = 0; u < kPacks; ++u) {
        const std::int64_t c = itemOfThread(kPacks, u) * kPack;
        if (c < cols) {
            gate[u] = loadPack<kPack>(gateUp + row * 2 * cols + c);
            up[u] = loadPack<kPack>(gateUp + row * 2 * cols + cols + c);
            grad[u] = loadPack<kPack>(gradOut + row * cols + c);
        }
    }
#pragma unroll
    for (int u = 0; u < kPacks; ++u) {
        const std::int64_t c = itemOfThread(kPacks, u) * kPack;
        if (c < cols) {
            const auto result = gradients(gate[u], up[u], grad[u], gelu);
            storePack(gradGateUp + row * 2 * cols + c, result.gate);
            storePack(gradGateUp + row * 2 * cols + cols + c, result.up);
        }
    }
}

template <typename T, int kPack>
Status forward(const SwigluArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.out.dims[0];
    const std::int64_t cols = args.out.dims[1];
    return launchKernel("swiglu", listed<swigluKernel<T, kPack>>(),
        rowShape(rows, cols / kPack, kPacks), stream, args.gateUp.as<const T>(), args.out.as<T>(),
        rows, cols, args.activation == GateActivation::GeluTanh);
}

template <typename T, int kPack>
Status backward(const SwigluBackwardArgs& args, cudaStream_t stream)
{
    const std::int64_t rows = args.gradOut.dims[0];
    const std::int64_t cols = args.gradOut.dims[1];
    return launchKernel("swigluBackward", listed<swigluBackwardKernel<T, kPack>>(),
        rowShape(rows, cols / kPack, kPacks), stream, args.gateUp.as<const T>(),
        args.gradOut.as<const T>(), args.gradGateUp.as<T>(), rows, cols,
        args.activation == GateActivation::GeluTanh);
}

template <typename T>
Status choose(const SwigluArgs& args, cudaStream_t stream)
{
    const bool packed =
        args.out.dims[1] % kPackOf<T> == 0 && fitsPacks(kPackOf<T>, args.gateUp, args.out);
    return packed ? forward<T, kPackOf<T>>(args, stream) : forward<T, 1>(args, stream);
}

template <typename T>
Status choose(const SwigluBackwardArgs& args, cudaStream_t stream)
{
    const bool packed = args.gradOut.dims[1] % kPackOf<T> == 0 &&
                        fitsPacks(kPackOf<T>, args.gateUp, args.gradOut, args.gradGateUp);
    return packed ? backward<T, kPackOf<T>>(args, stream) : backward<T, 1>(args, stream);
}

} // namespace

Status launchSwiglu(const SwigluArgs& args, cudaStream_t stream)
{
    if (args.out.count() == 0)
        return {};
    return args.out.dtype == DType::BF16 ? choose<Bf16>(args, stream) : choose<float>(args, stream);
}

Status launchSwigluBackward(const SwigluBackwardArgs& args, cudaStream_t stream)
{
    if (args.gradOut.count() == 0)
        return {};
    return args.gradOut.dtype == DType::BF16 ? choose<Bf16>(args, stream)
                                             : choose<float>(args, stream);
}

} // namespace mr::gpu
