// AdamW on the compact state: 12.5 bytes moved an element with a BF16 gradient, with two divisions
// and a square root an element: bound by memory bandwidth on consumer cards, expected, and about
// even with arithmetic on cards with HBM. The quotients of the 256 codes of m lie in shared memory,
// because each would be a division more; those of a group's scale of v are formed once a pack.
//
// A thread takes packs of 4 elements, so 8 lanes hold a group of 32 and share its two scales by
// shuffles; without packs a warp is a group. It reads kUnroll packs, a block's width apart, before
// it computes the first: 72 bytes (BF16 gradient, two packs) in flight a thread. With finite == 0
// no thread touches anything.
//
// Bits equal those of the host: the order of operations is the one of core/device/compact_state.h.
// The maximum of a group is the only thing lanes join, and it has no order.

#include "gpu/ops/launchers.h"
#include "gpu/ops/master24.cuh"
#include "gpu/ops/packs.cuh"

namespace mr::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kCodes = 256;
constexpr int kUnroll = 2;
constexpr int kGroup = 32; // elements, as in core/device/compact_state.h
constexpr int kWide = 4;

// weight, remainder, m, v, grad: (n); mScale, vScale: (ceil(n / 32)); scalars: one
template <typename T>
struct CompactState {
    std::uint16_t* weight;
    std::int8_t* remainder;
    std::int8_t* m;
    std::uint8_t* v;
    float* mScale;
    float* vScale;
    const T* grad;
    const StepScalars* scalars;
    AdamwFactors factors;
    bool decayed;
};

template <typename T, int kPack>
struct Held {
    Pack<std::uint16_t, kPack> weight;
    Pack<std::int8_t, kPack> remainder, m;
    Pack<std::uint8_t, kPack> v;
    Pack<T, kPack> grad;
    float mScale, vScale;
};

// `kept`, or `x` where it is larger; a NaN is not.
__device__ inline float larger(float x, float kept)
{
    return x > kept ? x : kept;
}

// The largest of a group, in each of its kLanes lanes. All lanes of a warp.
template <int kLanes>
__device__ float groupMax(float x)
{
    for (int lane = kLanes / 2; lane > 0; lane /= 2)
        x = larger(__shfl_xor_sync(kAllLanes, x, lane), x);
    return x;
}

// Elements [at, at + kPack) below `count`; zeros past it, which change no maximum.
template <int kPack, typename T>
__device__ Pack<T, kPack> loadUpTo(const T* from, std::int64_t at, std::int64_t count)
{
    if (at + kPack <= count)
        return loadPack<kPack>(from + at);
    Pack<T, kPack> pack = {};
    for (int i = 0; i < kPack && at + i < count; ++i)
        pack.at[i] = from[at + i];
    return pack;
}

template <int kPack, typename T>
__device__ void storeUpTo(T* to, std::int64_t at, std::int64_t count, const Pack<T, kPack>& pack)
{
    if (at + kPack <= count) {
        storePack(to + at, pack);
        return;
    }
    for (int i = 0; i < kPack && at + i < count; ++i)
        to[at + i] = pack.at[i];
}

template <typename T, int kPack>
__device__ Held<T, kPack> loadState(const CompactState<T>& s, std::int64_t at, std::int64_t count)
{
    const bool exists = at < count;
    return {loadUpTo<kPack>(s.weight, at, count), loadUpTo<kPack>(s.remainder, at, count),
        loadUpTo<kPack>(s.m, at, count), loadUpTo<kPack>(s.v, at, count),
        loadUpTo<kPack>(s.grad, at, count), exists ? s.mScale[at / kGroup] : 0.0F,
        exists ? s.vScale[at / kGroup] : 0.0F};
}

// One parameter in F32; root: of v.
struct Value {
    float p, m, root;
};

// Quotients by the bytes of the codes of m: a thread of the block makes one.
__device__ inline void makeQuotients(float (&quotients)[kCodes])
{
    static_assert(kCodes == kThreads);
    const auto code = static_cast<float>(static_cast<std::int8_t>(threadIdx.x));
    quotients[threadIdx.x] = __fdiv_rn(code, 254.0F - fabsf(code));
    __syncthreads();
}

// rootStep: vScale / 255
template <typename T, int kPack>
__device__ Value decode(
    const Held<T, kPack>& held, int i, const float (&quotients)[kCodes], float rootStep)
{
    return {joinMaster(held.weight.at[i], held.remainder.at[i]),
        held.mScale * quotients[static_cast<std::uint8_t>(held.m.at[i])],
        static_cast<float>(held.v.at[i]) * rootStep};
}

__device__ inline Value update(Value x, float g, const AdamwFactors& f, bool decayed)
{
    const float p = decayed ? x.p * f.decay : x.p;
    const float m = __fmaf_rn(f.oneMinusBeta1, g, f.beta1 * x.m);
    const float v = __fmaf_rn(f.oneMinusBeta2 * g, g, f.beta2 * (x.root * x.root));
    const float root = __fsqrt_rn(v);
    const float d = __fmaf_rn(root, f.inverseSqrtBias2, f.eps);
    return {__fmaf_rn(-f.stepSize, __fdiv_rn(m, d), p), m, root};
}

// Everything but the scales, which `held` has. perRoot: 255 / vScale
template <typename T, int kPack>
__device__ void encode(const Value& x, Held<T, kPack>& held, int i, float perRoot)
{
    const float share = __fdiv_rn(x.m, held.mScale + fabsf(x.m)) * 254.0F;
    const float root = x.root * perRoot;
    const int code = x.root > 0.0F ? __float2int_rn(clampTo(root, 1.0F, 255.0F)) : 0;
    splitMaster(x.p, held.weight.at[i], held.remainder.at[i]);
    held.m.at[i] = static_cast<std::int8_t>(__float2int_rn(clampTo(share, -127.0F, 127.0F)));
    held.v.at[i] = static_cast<std::uint8_t>(code);
}

// All lanes of a warp: they share the scales.
template <typename T, int kPack>
__device__ void updatePack(const CompactState<T>& s, float clipFactor,
    const float (&quotients)[kCodes], Held<T, kPack>& held)
{
    Value values[kPack];
    const float rootStep = __fdiv_rn(held.vScale, 255.0F);
    float mScale = 1e-12F;
    float vScale = 0.0F;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        const float g = toFloat(held.grad.at[i]) * clipFactor;
        values[i] = update(decode(held, i, quotients, rootStep), g, s.factors, s.decayed);
        mScale = larger(fabsf(values[i].m), mScale);
        vScale = larger(values[i].root, vScale);
    }
    held.mScale = groupMax<kGroup / kPack>(mScale);
    held.vScale = groupMax<kGroup / kPack>(vScale);
    const float perRoot = __fdiv_rn(255.0F, held.vScale);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
        encode(values[i], held, i, perRoot);
}

template <typename T, int kPack>
__device__ void storeState(
    const CompactState<T>& s, std::int64_t at, std::int64_t count, const Held<T, kPack>& held)
{
    storeUpTo(s.weight, at, count, held.weight);
    storeUpTo(s.remainder, at, count, held.remainder);
    storeUpTo(s.m, at, count, held.m);
    storeUpTo(s.v, at, count, held.v);
    if (at < count && at % kGroup == 0) {
        s.mScale[at / kGroup] = held.mScale;
        s.vScale[at / kGroup] = held.vScale;
    }
}

// Grid.x covers `count` elements, kThreads * kUnroll * kPack a block: whole groups a warp.
template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    adamwCompactKernel(CompactState<T> state, std::int64_t count)
{
    constexpr std::int64_t kApart = std::int64_t{kThreads} * kPack;
    __shared__ float quotients[kCodes];
    if (state.scalars->finite == 0)
        return;
    const float clipFactor = state.scalars->clipFactor;
    const std::int64_t first = std::int64_t{blockIdx.x} * kUnroll * kApart +
                               static_cast<std::int64_t>(threadIdx.x) * kPack;
    Held<T, kPack> held[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
        held[u] = loadState<T, kPack>(state, first + u * kApart, count);
    makeQuotients(quotients);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
        updatePack(state, clipFactor, quotients, held[u]);
        storeState(state, first + u * kApart, count, held[u]);
    }
}

template <typename T>
Status launch(const AdamwCompactArgs& args, cudaStream_t stream)
{
    const CompactState<T> state{args.weight.as<std::uint16_t>(), args.remainder.as<std::int8_t>(),
        args.m.as<std::int8_t>(), args.v.as<std::uint8_t>(), args.mScale.as<float>(),
        args.vScale.as<float>(), args.grad.as<const T>(), args.scalars.as<const StepScalars>(),
        args.factors, args.decayed};
    const std::int64_t count = args.grad.count();
    const bool packed = fitsPacks(kWide, args.weight, args.remainder, args.m, args.v, args.grad);
    LaunchShape shape;
    shape.block = dim3(kThreads);
    shape.grid = dim3(blocksFor(count, std::int64_t{kThreads} * kUnroll * (packed ? kWide : 1)));
    return packed ? launchKernel("adamwCompact", listed<adamwCompactKernel<T, kWide>>(), shape,
                        stream, state, count)
                  : launchKernel("adamwCompact", listed<adamwCompactKernel<T, 1>>(), shape, stream,
                        state, count);
}

} // namespace

Status launchAdamwCompact(const AdamwCompactArgs& args, cudaStream_t stream)
{
    return args.grad.dtype == DType::BF16 ? launch<Bf16>(args, stream)
                                          : launch<float>(args, stream);
}

} // namespace mr::gpu
