// dropout: zeros by Philox, the kept elements scaled; in the frame of elements.cuh.
//
// 4 bytes moved a BF16 element, 6 where it adds up; one block of Philox for four elements, some 60
// integer instructions: expected to be bound by memory bandwidth still.
//
// Bits equal those of the CPU device: integers decide, then one rounding an element.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/philox.cuh"

namespace mr::gpu {
namespace {

constexpr int kDropoutUnroll = 2;

// x, out: (n)
template <typename T, bool kAdds>
struct DropoutOp {
    const T* x;
    T* out;
    std::uint64_t key;
    std::uint64_t counter;
    std::uint32_t threshold;
    float scale;

    template <int kCount>
    struct Held {
        Pack<T, kCount> x;
        Pack<T, kCount> out;
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        Held<kCount> held;
        held.x = loadPack<kCount>(x + at);
        if constexpr (kAdds)
            held.out = loadPack<kCount>(out + at);
        return held;
    }

    // One element, kept or dropped.
    __device__ float next(std::uint32_t word, float value, float before) const
    {
        if (word < threshold)
            return before;
        return kAdds ? __fmaf_rn(value, scale, before) : value * scale;
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        static_assert(kCount == 1 || kCount % 4 == 0);
        float kept[kCount];
        for (int first = 0; first < kCount; first += 4) {
            const uint4 words =
                philoxWords(key, static_cast<std::uint64_t>(at + first) / 4, counter);
            if constexpr (kCount == 1) {
                const bool upper = (at & 2) != 0;
                const std::uint32_t even = upper ? words.z : words.x;
                const std::uint32_t odd = upper ? words.w : words.y;
                kept[0] = next((at & 1) != 0 ? odd : even, toFloat(held.x.at[0]), before(held, 0));
            } else {
                const std::uint32_t four[4] = {words.x, words.y, words.z, words.w};
                for (int i = 0; i < 4; ++i)
                    kept[first + i] =
                        next(four[i], toFloat(held.x.at[first + i]), before(held, first + i));
            }
        }
        storePack(out + at, roundPack<T>(kept));
    }

    template <int kCount>
    __device__ float before(const Held<kCount>& held, int i) const
    {
        return kAdds ? toFloat(held.out.at[i]) : 0.0F;
    }
};

template <typename T, bool kAdds>
Status launch(const DropoutArgs& args, cudaStream_t stream)
{
    const DropoutOp<T, kAdds> op{args.x.as<const T>(), args.out.as<T>(), args.draw.key,
        args.draw.counter, dropoutThreshold(args.draw.probability),
        dropoutScale(args.draw.probability)};
    constexpr int kPack = kPackOf<T>;
    return launchElements<kPack, kDropoutUnroll>(
        "dropout", op, args.x.count(), fitsPacks(kPack, args.x, args.out), stream);
}

template <typename T>
Status launch(const DropoutArgs& args, cudaStream_t stream)
{
    return args.accumulate ? launch<T, true>(args, stream) : launch<T, false>(args, stream);
}

} // namespace

Status launchDropout(const DropoutArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? launch<Bf16>(args, stream) : launch<float>(args, stream);
}

} // namespace mr::gpu
