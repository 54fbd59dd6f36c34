#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"

#include <algorithm>
#include <type_traits>

namespace mr::cpu {

namespace {

template <typename From, typename To>
void copyRow(const From* from, To* to, std::int64_t count, bool accumulate) noexcept
{
    if (accumulate)
        for (std::int64_t c = 0; c < count; ++c)
            to[c] = fromFloat<To>(toFloat(to[c]) + toFloat(from[c]));
    else if constexpr (std::is_same_v<From, To>)
        std::copy(from, from + count, to);
    else
        for (std::int64_t c = 0; c < count; ++c)
            to[c] = fromFloat<To>(toFloat(from[c]));
}

} // namespace

void copyColumns(const CopyColumnsArgs& args, ThreadPool& pool)
{
    withTypes(args.from.dtype, args.to.dtype, [&](auto* one, auto* other) {
        using From = std::remove_pointer_t<decltype(one)>;
        using To = std::remove_pointer_t<decltype(other)>;
        forBlocks(pool, args.from.dims[0], rowsPerItem(args.columns),
            [&](std::int64_t row, std::int64_t end) {
                for (; row < end; ++row)
                    copyRow(args.from.as<const From>() + row * args.from.dims[1] + args.fromColumn,
                        args.to.as<To>() + row * args.to.dims[1] + args.toColumn, args.columns,
                        args.accumulate);
            });
    });
}

} // namespace mr::cpu
