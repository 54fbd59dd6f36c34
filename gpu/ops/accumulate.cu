// accumulate: a running sum of gradients, or one that fades.
//
// 10 bytes moved an element with a BF16 x, one fma: bound by memory bandwidth, expected. A thread
// has 96 bytes of loads in flight. Where keep is 0 another kernel runs, which has no loads of the
// sum: loads under a condition made nvcc keep the packs on the stack.
//
// Bits equal those of the CPU device: one fma an element.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

constexpr int kSumPack = kPackOf<float>;
constexpr int kSumUnroll = 4;

// sum, x: (n); scalars: one, or null. kKeeps: keep is not 0.
template <typename T, bool kKeeps>
struct AccumulateOp {
    float* sum;
    const T* x;
    const StepScalars* scalars;
    float keep;

    template <int kCount>
    struct Held {
        Pack<float, kCount> sum;
        Pack<T, kCount> x;
    };

    __device__ bool finite() const { return !scalars || scalars->finite != 0; }

    __device__ bool skips() const { return kKeeps && !finite(); }

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        Held<kCount> held;
        if constexpr (kKeeps)
            held.sum = loadPack<kCount>(sum + at);
        held.x = loadPack<kCount>(x + at);
        return held;
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        const bool adds = kKeeps || finite();
        Pack<float, kCount> next;
        for (int i = 0; i < kCount; ++i) {
            const float value = toFloat(held.x.at[i]);
            if constexpr (kKeeps)
                next.at[i] = __fmaf_rn(keep, held.sum.at[i], value);
            else
                next.at[i] = adds ? value : 0.0F;
        }
        storePack(sum + at, next);
    }
};

template <typename T, bool kKeeps>
Status launch(const AccumulateArgs& args, cudaStream_t stream)
{
    const AccumulateOp<T, kKeeps> op{args.sum.as<float>(), args.x.as<const T>(),
        args.scalars.as<const StepScalars>(), args.keep};
    const bool packed = fitsPacks(kSumPack, args.sum, args.x);
    return launchElements<kSumPack, kSumUnroll>("accumulate", op, args.sum.count(), packed, stream);
}

template <typename T>
Status launch(const AccumulateArgs& args, cudaStream_t stream)
{
    return args.keep != 0.0F ? launch<T, true>(args, stream) : launch<T, false>(args, stream);
}

} // namespace

Status launchAccumulate(const AccumulateArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
