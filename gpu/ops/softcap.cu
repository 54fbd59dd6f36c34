// softcap: x = cap tanh(x / cap), in place, F32; in the frame of elements.cuh. tanhf is the exact
// one: some 30 instructions an element, expected to take less time than its memory traffic.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

// x: (n)
struct SoftcapOp {
    float* x;
    float cap;

    template <int kCount>
    using Held = Pack<float, kCount>;

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return loadPack<kCount>(x + at);
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        Pack<float, kCount> pack;
        for (int i = 0; i < kCount; ++i)
            pack.at[i] = cap * tanhf(__fdiv_rn(held.at[i], cap));
        storePack(x + at, pack);
    }
};

} // namespace

Status launchSoftcap(const SoftcapArgs& args, cudaStream_t stream)
{
    const SoftcapOp op{args.x.as<float>(), args.cap};
    constexpr int kPack = kPackOf<float>;
    return launchElements<kPack, 2>(
        "softcap", op, args.x.count(), fitsPacks(kPack, args.x), stream);
}

} // namespace mr::gpu
