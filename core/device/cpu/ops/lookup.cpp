#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/op_checks.h"

#include <algorithm>

namespace mr::cpu {

namespace {

// Vocabulary rows per item of the backward pass.
constexpr std::int64_t kTableRows = 64;

template <typename T, typename Out>
void sumRows(const EmbedBackwardArgs& args, const std::int32_t* at, const std::int32_t* end,
    std::int64_t row, float* sum) noexcept
{
    const std::int64_t cols = args.gradOut.dims[1];
    std::fill(sum, sum + cols, 0.0F);
    for (; at != end; ++at) {
        const T* in = args.gradOut.as<const T>() + *at * cols;
        for (std::int64_t c = 0; c < cols; ++c)
            sum[c] += toFloat(in[c]);
    }
    Out* out = args.gradTable.as<Out>() + row * cols;
    const float scale = rounded<T>(args.scale);
    for (std::int64_t c = 0; c < cols; ++c) {
        const float scaled = scale * sum[c];
        out[c] = fromFloat<Out>(args.accumulate ? toFloat(out[c]) + scaled : scaled);
    }
}

template <typename T, typename Out>
void embedBackwardRows(
    const EmbedBackwardArgs& args, std::int64_t first, std::int64_t end, float* sum) noexcept
{
    const std::int64_t cols = args.gradOut.dims[1];
    const auto* ids = args.ids.as<const std::int32_t>();
    const auto* order = args.order.as<const std::int32_t>();
    const auto* orderEnd = order + args.order.dims[0];
    const auto before = [ids](std::int32_t token, std::int64_t id) { return ids[token] < id; };
    const std::int32_t* at = std::lower_bound(order, orderEnd, first, before);
    for (std::int64_t row = first; row < end; ++row) {
        const std::int32_t* next = at;
        while (next != orderEnd && ids[*next] == row)
            ++next;
        if (next != at && row != args.untrainedRow) {
            sumRows<T, Out>(args, at, next, row, sum);
        } else if (!args.accumulate) {
            Out* out = args.gradTable.as<Out>() + row * cols;
            std::fill(out, out + cols, fromFloat<Out>(0.0F));
        }
        at = next;
    }
}

template <typename T>
void copyRow(const T* from, T* to, std::int64_t cols, float scale) noexcept
{
    if (scale == 1.0F) {
        std::copy(from, from + cols, to);
        return;
    }
    for (std::int64_t c = 0; c < cols; ++c)
        to[c] = fromFloat<T>(toFloat(from[c]) * rounded<T>(scale));
}

} // namespace

Status embed(const EmbedArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.table.dims[1];
    const auto* ids = args.ids.as<const std::int32_t>();
    const auto count = static_cast<std::size_t>(args.ids.dims[0]);
    MR_TRY(checkIds("embed", {ids, count}, args.table.dims[0]));
    withType(args.table.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.ids.dims[0], rowsPerItem(cols), [&](std::int64_t t, std::int64_t end) {
            for (; t < end; ++t)
                copyRow(args.table.as<const T>() + ids[t] * cols, args.out.as<T>() + t * cols, cols,
                    args.scale);
        });
    });
    return {};
}

void embedBackward(const EmbedBackwardArgs& args, ThreadPool& pool, Scratch& scratch)
{
    const std::int64_t rows = args.gradTable.dims[0];
    const auto hold = scratch.hold(args.gradOut.dims[1]);
    withTypes(args.gradOut.dtype, args.gradTable.dtype, [&](auto* in, auto* out) {
        using T = std::remove_pointer_t<decltype(in)>;
        using Out = std::remove_pointer_t<decltype(out)>;
        pool.parallelFor((rows + kTableRows - 1) / kTableRows, [&](std::int64_t block, int worker) {
            const std::int64_t first = block * kTableRows;
            const std::int64_t end = std::min(rows, first + kTableRows);
            embedBackwardRows<T, Out>(args, first, end, scratch.of(worker));
        });
    });
}

void gatherColumns(const GatherColumnsArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.x.dims[1];
    const std::int64_t picked = args.columns.dims[0];
    const auto* column = args.columns.as<const std::int32_t>();
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.x.dims[0], rowsPerItem(picked), [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r)
                for (std::int64_t k = 0; k < picked; ++k)
                    args.out.as<T>()[r * picked + k] = args.x.as<const T>()[r * cols + column[k]];
        });
    });
}

void scatterColumns(const ScatterColumnsArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.out.dims[1];
    const std::int64_t picked = args.columns.dims[0];
    const auto* column = args.columns.as<const std::int32_t>();
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, args.x.dims[0], rowsPerItem(picked), [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r)
                for (std::int64_t k = 0; k < picked; ++k)
                    args.out.as<T>()[r * cols + column[k]] = args.x.as<const T>()[r * picked + k];
        });
    });
}

} // namespace mr::cpu
