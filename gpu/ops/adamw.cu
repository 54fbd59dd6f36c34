// AdamW on the share of the parameters the device updates: 26 bytes moved an element with a BF16
// gradient, about 20 flops: bound by memory bandwidth, expected.
//
// A thread takes kAdamwUnroll packs of 4 elements, and reads all five tensors of both before it
// computes the first: 112 bytes (BF16 gradient) in flight a thread, expected to cover a card's
// latency with a third of its threads. The scalars come from device memory, because the host does
// not know the norm when it enqueues this; with finite == 0 no thread touches anything.
//
// Bits equal those of the host: the order of operations is the one of core/device/adamw.h, with its
// fma written out, IEEE division and square root, and no flush to zero.

#include "gpu/ops/adamw_ratio.cuh"
#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/master_halves.cuh"

namespace mr::gpu {
namespace {

constexpr int kAdamwUnroll = 2;
constexpr int kAdamwPack = kPackOf<float>;

// high, low, m, v, grad: (n); scalars: one
template <typename T>
struct AdamwOp {
    std::uint16_t* high;
    std::int16_t* low;
    float* m;
    float* v;
    const T* grad;
    const StepScalars* scalars;
    AdamwFactors factors;
    bool decayed;

    template <int kCount>
    struct Held {
        Pack<std::uint16_t, kCount> high;
        Pack<std::int16_t, kCount> low;
        Pack<float, kCount> m, v;
        Pack<T, kCount> grad;
        float clipFactor;
    };

    __device__ bool skips() const { return scalars->finite == 0; }

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return {loadPack<kCount>(high + at), loadPack<kCount>(low + at), loadPack<kCount>(m + at),
            loadPack<kCount>(v + at), loadPack<kCount>(grad + at), scalars->clipFactor};
    }

    // The order of core/device/adamw.h.
    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        const AdamwFactors& f = factors;
        Pack<std::uint16_t, kCount> nextHigh;
        Pack<std::int16_t, kCount> nextLow;
        Pack<float, kCount> nextM = held.m;
        Pack<float, kCount> nextV = held.v;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const float g = toFloat(held.grad.at[i]) * held.clipFactor;
            float p = joinMaster(held.high.at[i], held.low.at[i]);
            p = decayed ? p * f.decay : p;
            p = __fmaf_rn(-f.stepSize, adamwRatio(g, nextM.at[i], nextV.at[i], f), p);
            splitMaster(p, nextHigh.at[i], nextLow.at[i]);
        }
        storePack(high + at, nextHigh);
        storePack(low + at, nextLow);
        storePack(m + at, nextM);
        storePack(v + at, nextV);
    }
};

template <typename T>
Status launch(const AdamwArgs& args, cudaStream_t stream)
{
    const AdamwOp<T> op{args.high.as<std::uint16_t>(), args.low.as<std::int16_t>(),
        args.m.as<float>(), args.v.as<float>(), args.grad.as<const T>(),
        args.scalars.as<const StepScalars>(), args.factors, args.decayed};
    const bool packed = fitsPacks(kAdamwPack, args.high, args.low, args.m, args.v, args.grad);
    return launchElements<kAdamwPack, kAdamwUnroll>("adamw", op, args.grad.count(), packed, stream);
}

} // namespace

Status launchAdamw(const AdamwArgs& args, cudaStream_t stream)
{
    return args.grad.dtype == DType::BF16 ? launch<Bf16>(args, stream)
                                          : launch<float>(args, stream);
}

} // namespace mr::gpu
