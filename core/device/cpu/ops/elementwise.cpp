#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/device/compact_state.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"

#include <cstring>

namespace mr::cpu {

void scale(const ScaleArgs& args, ThreadPool& pool)
{
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const T* x = args.x.as<const T>();
        T* out = args.out.as<T>();
        forBlocks(pool, args.x.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
#pragma GCC ivdep // out may be x, element for element
            for (std::int64_t i = first; i < end; ++i)
                out[i] = fromFloat<T>(args.factor * toFloat(x[i]));
        });
    });
}

void add(const AddArgs& args, ThreadPool& pool)
{
    withType(args.a.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const T* a = args.a.as<const T>();
        const T* b = args.b.as<const T>();
        T* out = args.out.as<T>();
        forBlocks(pool, args.a.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
#pragma GCC ivdep // out may be a or b, element for element
            for (std::int64_t i = first; i < end; ++i)
                out[i] = fromFloat<T>(toFloat(a[i]) + toFloat(b[i]));
        });
    });
}

namespace {

// Four elements share a block of Philox; `first` is a multiple of 4.
template <typename T>
void dropoutRange(const DropoutArgs& args, std::int64_t first, std::int64_t end)
{
    const T* x = args.x.as<const T>();
    T* out = args.out.as<T>();
    const DropoutDraw& draw = args.draw;
    const std::uint32_t threshold = dropoutThreshold(draw.probability);
    const float scale = dropoutScale(draw.probability);
    for (std::int64_t block = first; block < end; block += 4) {
        const auto words = philox(draw.key, static_cast<std::uint64_t>(block / 4), draw.counter);
        for (std::int64_t i = block; i < std::min(end, block + 4); ++i) {
            const bool isKept = words[static_cast<std::size_t>(i - block)] >= threshold;
            if (args.accumulate && isKept)
                out[i] = fromFloat<T>(std::fma(toFloat(x[i]), scale, toFloat(out[i])));
            else if (!args.accumulate)
                out[i] = fromFloat<T>(isKept ? toFloat(x[i]) * scale : 0.0F);
        }
    }
}

} // namespace

void dropout(const DropoutArgs& args, ThreadPool& pool)
{
    static_assert(kElementBlock % 4 == 0);
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.x.count(), kElementBlock,
            [&](std::int64_t first, std::int64_t end) { dropoutRange<T>(args, first, end); });
    });
}

namespace {

template <typename T>
void accumulateRange(const AccumulateArgs& args, bool finite, std::int64_t first, std::int64_t end)
{
    auto* sum = args.sum.as<float>();
    const T* x = args.x.as<const T>();
    const float keep = args.keep;
    if (!finite) {
        if (keep == 0.0F)
            std::fill(sum + first, sum + end, 0.0F);
        return;
    }
    if (keep == 0.0F) {
#pragma GCC ivdep // x may be sum, element for element
        for (std::int64_t i = first; i < end; ++i)
            sum[i] = toFloat(x[i]);
        return;
    }
#pragma GCC ivdep // as above
    for (std::int64_t i = first; i < end; ++i)
        sum[i] = std::fma(keep, sum[i], toFloat(x[i]));
}

} // namespace

void accumulate(const AccumulateArgs& args, ThreadPool& pool)
{
    StepScalars scalars;
    if (args.scalars.data)
        std::memcpy(&scalars, args.scalars.data, sizeof scalars);
    const bool finite = scalars.finite != 0;
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.sum.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
            accumulateRange<T>(args, finite, first, end);
        });
    });
}

void finishGradient(const FinishGradientArgs& args, ThreadPool& pool)
{
    withTypes(args.sum.dtype, args.out.dtype, [&](auto* in, auto* to) {
        using From = std::remove_pointer_t<decltype(in)>;
        using T = std::remove_pointer_t<decltype(to)>;
        const auto* sum = args.sum.as<const From>();
        const auto* second = args.second.as<const float>();
        T* out = args.out.as<T>();
        forBlocks(pool, args.sum.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
            if (second) {
#pragma GCC ivdep // out may be sum, element for element
                for (std::int64_t i = first; i < end; ++i)
                    out[i] = fromFloat<T>(toFloat(sum[i]) + second[i]);
            } else {
#pragma GCC ivdep // as above
                for (std::int64_t i = first; i < end; ++i)
                    out[i] = fromFloat<T>(toFloat(sum[i]));
            }
        });
    });
}

void adamw(const AdamwArgs& args, ThreadPool& pool)
{
    StepScalars scalars;
    std::memcpy(&scalars, args.scalars.data, sizeof scalars);
    if (scalars.finite == 0)
        return;
    const std::size_t gradSize = sizeOf(args.grad.dtype);
    forBlocks(pool, args.grad.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        AdamwRange range;
        range.high = args.high.as<std::uint16_t>() + first;
        range.low = args.low.as<std::int16_t>() + first;
        range.m = args.m.as<float>() + first;
        range.v = args.v.as<float>() + first;
        range.grad = args.grad.data + static_cast<std::size_t>(first) * gradSize;
        range.gradType = args.grad.dtype;
        range.count = static_cast<std::size_t>(end - first);
        adamwUpdate(range, args.factors, scalars.clipFactor, args.decayed);
    });
}

void adamwCompact(const AdamwCompactArgs& args, ThreadPool& pool)
{
    static_assert(kElementBlock % static_cast<std::int64_t>(kCompactGroup) == 0);
    StepScalars scalars;
    std::memcpy(&scalars, args.scalars.data, sizeof scalars);
    if (scalars.finite == 0)
        return;
    const std::size_t gradSize = sizeOf(args.grad.dtype);
    forBlocks(pool, args.grad.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        const auto at = static_cast<std::size_t>(first);
        const std::size_t group = at / kCompactGroup;
        CompactRange range;
        range.weight = args.weight.as<std::uint16_t>() + at;
        range.remainder = args.remainder.as<std::int8_t>() + at;
        range.m = args.m.as<std::int8_t>() + at;
        range.v = args.v.as<std::uint8_t>() + at;
        range.mScale = args.mScale.as<float>() + group;
        range.vScale = args.vScale.as<float>() + group;
        range.count = static_cast<std::size_t>(end) - at;
        adamwCompactUpdate(range, args.grad.data + at * gradSize, args.grad.dtype, args.factors,
            scalars.clipFactor, args.decayed);
    });
}

void join(const JoinArgs& args, ThreadPool& pool)
{
    const auto* high = args.high.as<const std::uint16_t>();
    const auto* low = args.low.as<const std::int16_t>();
    auto* out = args.out.as<float>();
    forBlocks(pool, args.out.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i)
            out[i] = joinHalves(high[i], low[i]);
    });
}

void split(const SplitArgs& args, ThreadPool& pool)
{
    const auto* value = args.value.as<const float>();
    auto* high = args.high.as<std::uint16_t>();
    auto* low = args.low.as<std::int16_t>();
    forBlocks(pool, args.value.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
            high[i] = highHalf(value[i]);
            low[i] = lowHalf(value[i]);
        }
    });
}

void cast(const CastArgs& args, ThreadPool& pool)
{
    const auto convert = [&]<typename From, typename To>(const From* from, To* to) {
        forBlocks(
            pool, args.from.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
                for (std::int64_t i = first; i < end; ++i)
                    to[i] = fromFloat<To>(toFloat(from[i]));
            });
    };
    if (args.from.dtype == DType::F32)
        convert(args.from.as<const float>(), args.to.as<Bf16>());
    else
        convert(args.from.as<const Bf16>(), args.to.as<float>());
}

void fill(const FillArgs& args, ThreadPool& pool)
{
    withType(args.out.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        T* out = args.out.as<T>();
        const T value = fromFloat<T>(args.value);
        forBlocks(pool, args.out.count(), kElementBlock, [=](std::int64_t first, std::int64_t end) {
            std::fill(out + first, out + end, value);
        });
    });
}

} // namespace mr::cpu
