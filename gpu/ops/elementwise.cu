// add, scale, finishGradient, join, split, cast, fill: ops that only move bytes and round.
//
// Each is a small struct in the frame of elements.cuh, cut so that a thread has 32 to 96 bytes
// of loads in flight. Where a 2-byte and a 4-byte tensor meet, a pack has 4 elements: 8 bytes a
// lane of the narrow one are still whole cache lines a warp, and no thread needs two packs of the
// wide one for one of the narrow.
//
// Bits equal those of the CPU device: one rounding an element, no order to choose.

#include "gpu/ops/elements.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/master_halves.cuh"

namespace mr::gpu {
namespace {

// Elements of a pack where F32 takes part.
constexpr int kMixed = kPackOf<float>;

// a, b, out: (n)
template <typename T>
struct AddOp {
    const T* a;
    const T* b;
    T* out;

    template <int kCount>
    struct Held {
        Pack<T, kCount> a, b;
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return {loadPack<kCount>(a + at), loadPack<kCount>(b + at)};
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        float sum[kCount];
        for (int i = 0; i < kCount; ++i)
            sum[i] = toFloat(held.a.at[i]) + toFloat(held.b.at[i]);
        storePack(out + at, roundPack<T>(sum));
    }
};

// x, out: (n)
template <typename T>
struct ScaleOp {
    const T* x;
    T* out;
    float factor;

    template <int kCount>
    using Held = Pack<T, kCount>;

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return loadPack<kCount>(x + at);
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        float scaled[kCount];
        for (int i = 0; i < kCount; ++i)
            scaled[i] = factor * toFloat(held.at[i]);
        storePack(out + at, roundPack<T>(scaled));
    }
};

// sum, second, out: (n); second null: none
template <typename From, typename T>
struct FinishGradientOp {
    const From* sum;
    const float* second;
    T* out;

    template <int kCount>
    struct Held {
        Pack<From, kCount> sum;
        Pack<float, kCount> second;
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        Held<kCount> held;
        held.sum = loadPack<kCount>(sum + at);
        if (second)
            held.second = loadPack<kCount>(second + at);
        return held;
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        float total[kCount];
        for (int i = 0; i < kCount; ++i) {
            const float first = toFloat(held.sum.at[i]);
            total[i] = second ? first + held.second.at[i] : first;
        }
        storePack(out + at, roundPack<T>(total));
    }
};

// high, low, out: (n)
struct JoinOp {
    const std::uint16_t* high;
    const std::int16_t* low;
    float* out;

    template <int kCount>
    struct Held {
        Pack<std::uint16_t, kCount> high;
        Pack<std::int16_t, kCount> low;
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return {loadPack<kCount>(high + at), loadPack<kCount>(low + at)};
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        Pack<float, kCount> value;
        for (int i = 0; i < kCount; ++i)
            value.at[i] = joinMaster(held.high.at[i], held.low.at[i]);
        storePack(out + at, value);
    }
};

// value, high, low: (n)
struct SplitOp {
    const float* value;
    std::uint16_t* high;
    std::int16_t* low;

    template <int kCount>
    using Held = Pack<float, kCount>;

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return loadPack<kCount>(value + at);
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        Pack<std::uint16_t, kCount> highs;
        Pack<std::int16_t, kCount> lows;
        for (int i = 0; i < kCount; ++i)
            splitMaster(held.at[i], highs.at[i], lows.at[i]);
        storePack(high + at, highs);
        storePack(low + at, lows);
    }
};

// from, to: (n)
template <typename From, typename To>
struct CastOp {
    const From* from;
    To* to;

    template <int kCount>
    using Held = Pack<From, kCount>;

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t at) const
    {
        return loadPack<kCount>(from + at);
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>& held) const
    {
        float value[kCount];
        for (int i = 0; i < kCount; ++i)
            value[i] = toFloat(held.at[i]);
        storePack(to + at, roundPack<To>(value));
    }
};

// out: (n)
template <typename T>
struct FillOp {
    T* out;
    float value;

    template <int kCount>
    struct Held {
    };

    template <int kCount>
    __device__ Held<kCount> load(std::int64_t) const
    {
        return {};
    }

    template <int kCount>
    __device__ void store(std::int64_t at, const Held<kCount>&) const
    {
        Pack<T, kCount> pack;
        for (int i = 0; i < kCount; ++i)
            pack.at[i] = fromFloat<T>(value);
        storePack(out + at, pack);
    }
};

template <typename T>
Status add(const AddArgs& args, cudaStream_t stream)
{
    const AddOp<T> op{args.a.as<const T>(), args.b.as<const T>(), args.out.as<T>()};
    const bool packed = fitsPacks(kPackOf<T>, args.a, args.b, args.out);
    return launchElements<kPackOf<T>, 2>("add", op, args.a.count(), packed, stream);
}

template <typename T>
Status scale(const ScaleArgs& args, cudaStream_t stream)
{
    const ScaleOp<T> op{args.x.as<const T>(), args.out.as<T>(), args.factor};
    const bool packed = fitsPacks(kPackOf<T>, args.x, args.out);
    return launchElements<kPackOf<T>, 2>("scale", op, args.x.count(), packed, stream);
}

template <typename From, typename T>
Status finishGradient(const FinishGradientArgs& args, cudaStream_t stream)
{
    const FinishGradientOp<From, T> op{
        args.sum.as<const From>(), args.second.as<const float>(), args.out.as<T>()};
    const bool packed = fitsPacks(kMixed, args.sum, args.second, args.out);
    return launchElements<kMixed, 2>("finishGradient", op, args.sum.count(), packed, stream);
}

template <typename T>
Status fill(const FillArgs& args, cudaStream_t stream)
{
    const FillOp<T> op{args.out.as<T>(), args.value};
    const bool packed = fitsPacks(kMixed, args.out);
    return launchElements<kMixed, 4>("fill", op, args.out.count(), packed, stream);
}

template <typename From, typename To>
Status cast(const CastArgs& args, cudaStream_t stream)
{
    const CastOp<From, To> op{args.from.as<const From>(), args.to.as<To>()};
    const bool packed = fitsPacks(kMixed, args.from, args.to);
    return launchElements<kMixed, 4>("cast", op, args.from.count(), packed, stream);
}

} // namespace

Status launchAdd(const AddArgs& args, cudaStream_t stream)
{
    return args.a.dtype == DType::BF16 ? add<Bf16>(args, stream) : add<float>(args, stream);
}

Status launchScale(const ScaleArgs& args, cudaStream_t stream)
{
    return args.x.dtype == DType::BF16 ? scale<Bf16>(args, stream) : scale<float>(args, stream);
}

Status launchFinishGradient(const FinishGradientArgs& args, cudaStream_t stream)
{
    if (args.sum.dtype == DType::BF16)
        return finishGradient<Bf16, Bf16>(args, stream);
    return args.out.dtype == DType::BF16 ? finishGradient<float, Bf16>(args, stream)
                                         : finishGradient<float, float>(args, stream);
}

Status launchJoin(const JoinArgs& args, cudaStream_t stream)
{
    const JoinOp op{args.high.as<const std::uint16_t>(), args.low.as<const std::int16_t>(),
        args.out.as<float>()};
    const bool packed = fitsPacks(kMixed, args.high, args.low, args.out);
    return launchElements<kMixed, 4>("join", op, args.out.count(), packed, stream);
}

Status launchSplit(const SplitArgs& args, cudaStream_t stream)
{
    const SplitOp op{
        args.value.as<const float>(), args.high.as<std::uint16_t>(), args.low.as<std::int16_t>()};
    const bool packed = fitsPacks(kMixed, args.value, args.high, args.low);
    return launchElements<kMixed, 4>("split", op, args.value.count(), packed, stream);
}

Status launchCast(const CastArgs& args, cudaStream_t stream)
{
    return args.from.dtype == DType::BF16 ? cast<Bf16, float>(args, stream)
                                          : cast<float, Bf16>(args, stream);
}

Status launchFill(const FillArgs& args, cudaStream_t stream)
{
    return args.out.dtype == DType::BF16 ? fill<Bf16>(args, stream) : fill<float>(args, stream);
}

} // namespace mr::gpu
