// dequantizeNf4: weights of 4 bits back in the compute type; in the frame of elements.cuh. A pack
// lies in one block, so a thread looks up one absmax. The tables are small and stay in the L1
// cache.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"

namespace mr::gpu {
namespace {

// codes, absmax, tables: as in DequantizeNf4Args; out: (n)
template <typename T>
struct DequantizeNf4Op {
    const std::uint8_t* codes;
    const std::uint8_t* absmax;
    const float* tables;
    T* out;

    template <int kCount>
    struct Held {
        Pack<std::uint8_t, (kCount + 1) / 2> codes;
        float absmax;
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        const std::int64_t block = at / kNf4Block;
        const float scale = tables[kNf4Book + absmax[block]];
        const float nested = tables[kNf4Fixed + block / kNf4Nested];
        return {loadPack<(kCount + 1) / 2>(codes + at / 2), scale * nested + tables[kNf4Fixed - 1]};
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        float values[kCount];
        for (int i = 0; i < kCount; ++i) {
            const unsigned pair = held.codes.at[i / 2];
            const unsigned code = (at + i) % 2 == 0 ? pair >> 4 : pair & 0xfU;
            values[i] = toFloat(fromFloat<Bf16>(tables[code] * held.absmax));
        }
        storePack(out + at, roundPack<T>(values));
    }
};

template <typename T>
Status launchAs(const DequantizeNf4Args& args, cudaStream_t stream)
{
    constexpr int kPack = kPackOf<T>;
    const DequantizeNf4Op<T> op{args.codes.as<const std::uint8_t>(),
        args.absmax.as<const std::uint8_t>(), args.tables.as<const float>(), args.out.as<T>()};
    const bool packed = fitsPacks(kPack, args.out) && fitsPacks(kPack / 2, args.codes);
    return launchElements<kPack, 4>("dequantizeNf4", op, args.out.count(), packed, stream);
}

} // namespace

Status launchDequantizeNf4(const DequantizeNf4Args& args, cudaStream_t stream)
{
    return args.out.dtype == DType::BF16 ? launchAs<Bf16>(args, stream)
                                         : launchAs<float>(args, stream);
}

} // namespace mr::gpu
