#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/norm_rows.h"

#include <algorithm>
#include <type_traits>

namespace mr::cpu {

namespace {

// Heads of a tensor (T, heads dim) with gates in a window of another.
struct GatedRows {
    std::int64_t heads;
    std::int64_t dim;
    std::int64_t gateColumns;
    std::int64_t firstColumn;

    template <typename Args>
    static GatedRows of(const Args& args) noexcept
    {
        const std::int64_t dim = args.weight.dims[0];
        return {args.x.dims[1] / dim, dim, args.gate.dims[1], args.firstColumn};
    }

    // First element of the gate of row `row`, which is a head.
    std::int64_t gateOf(std::int64_t row) const noexcept
    {
        return row / heads * gateColumns + firstColumn + row % heads * dim;
    }
};

// out = weight (x rstd) (z sigmoid(z)); returns rstd.
template <typename T>
float gatedNormRow(
    const T* x, const T* gate, const T* weight, T* out, std::int64_t dim, float eps) noexcept
{
    const float mean = sumSquares(x, dim) / static_cast<float>(dim);
    const float rstd = 1.0F / std::sqrt(mean + eps);
    for (std::int64_t c = 0; c < dim; ++c) {
        const float z = toFloat(gate[c]);
        const float normed = toFloat(x[c]) * rstd;
        out[c] = fromFloat<T>((toFloat(weight[c]) * normed) * (z * sigmoid(z)));
    }
    return rstd;
}

template <typename T>
struct GatedGradientRow {
    const T* grad;
    const T* x;
    const T* gate;
    const T* weight;
    T* gradX;
    T* gradGate; // may be gate
    std::int64_t dim;
    float rstd;
};

// sum of h x with h = grad weight s(z), in the order of lanes.h.
template <typename T>
float gatedTriples(const GatedGradientRow<T>& row) noexcept
{
    std::array<float, kLanes> lanes{};
    const auto term = [&row](std::int64_t c) {
        const float z = toFloat(row.gate[c]);
        return (toFloat(row.grad[c]) * toFloat(row.weight[c])) * (z * sigmoid(z));
    };
    std::int64_t c = 0;
    for (; c + kLanes <= row.dim; c += kLanes)
        for (std::int64_t l = 0; l < kLanes; ++l) {
            float& lane = lanes[static_cast<std::size_t>(l)];
            lane = std::fma(term(c + l), toFloat(row.x[c + l]), lane);
        }
    for (std::size_t l = 0; c < row.dim; ++c, ++l)
        lanes[l] = std::fma(term(c), toFloat(row.x[c]), lanes[l]);
    return joinLanes(lanes);
}

// With n = x rstd and s = z sigmoid(z): h = grad weight s, gradX = rstd (h - n mean(h n)),
// gradGate = grad weight n s'(z), partial += grad (n s).
template <typename T>
void gatedBackwardRow(const GatedGradientRow<T>& row, float* partial) noexcept
{
    const float mean = gatedTriples(row) * row.rstd / static_cast<float>(row.dim);
#pragma GCC ivdep // gradGate may be gate, element for element
    for (std::int64_t c = 0; c < row.dim; ++c) {
        const float grad = toFloat(row.grad[c]);
        const float weight = toFloat(row.weight[c]);
        const float normed = toFloat(row.x[c]) * row.rstd;
        const float z = toFloat(row.gate[c]);
        const float s = sigmoid(z);
        const float h = (grad * weight) * (z * s);
        partial[c] = std::fma(grad, normed * (z * s), partial[c]);
        row.gradX[c] = fromFloat<T>(row.rstd * std::fma(-normed, mean, h));
        row.gradGate[c] = fromFloat<T>(((grad * weight) * normed) * (s * (1.0F + z * (1.0F - s))));
    }
}

template <typename T>
void gatedBackwardBlock(const GatedNormBackwardArgs& args, std::int64_t block) noexcept
{
    const GatedRows rows = GatedRows::of(args);
    float* partial = args.partial.as<float>() + block * rows.dim;
    std::fill(partial, partial + rows.dim, 0.0F);
    const std::int64_t end = std::min(args.x.dims[0] * rows.heads, (block + 1) * kNormRowBlock);
    for (std::int64_t row = block * kNormRowBlock; row < end; ++row) {
        const std::int64_t at = row * rows.dim;
        const std::int64_t gate = rows.gateOf(row);
        gatedBackwardRow<T>(
            {args.gradOut.as<const T>() + at, args.x.as<const T>() + at,
                args.gate.as<const T>() + gate, args.weight.as<const T>(), args.gradX.as<T>() + at,
                args.gradGate.as<T>() + gate, rows.dim, args.rstd.as<const float>()[row]},
            partial);
    }
}

// Row `row` of SplitQueriesArgs. From is joined, To is qkv, or with `back` the other way round.
template <typename T>
void splitRow(const SplitQueriesArgs& args, std::int64_t row) noexcept
{
    const std::int64_t dim = args.headDim;
    T* joined = args.joined.as<T>() + row * args.joined.dims[1];
    T* packed = args.qkv.as<T>() + row * args.qkv.dims[1];
    const auto move = [&args](T* one, T* other, std::int64_t count) {
        if (args.back)
            std::copy(other, other + count, one);
        else
            std::copy(one, one + count, other);
    };
    for (std::int64_t h = 0; h < args.heads; ++h)
        move(joined + 2 * h * dim, packed + h * dim, dim);
    move(joined + 2 * args.heads * dim, packed + args.heads * dim, 2 * args.kvHeads * dim);
}

template <typename T>
void gateRow(const GateHeadsArgs& args, std::int64_t row) noexcept
{
    const std::int64_t dim = args.headDim;
    for (std::int64_t h = 0; h < args.heads; ++h) {
        const std::int64_t at = (row * args.heads + h) * dim;
        const T* x = args.x.as<const T>() + at;
        const T* gate = args.joined.as<const T>() + row * args.joined.dims[1] + (2 * h + 1) * dim;
        T* out = args.out.as<T>() + at;
#pragma GCC ivdep // out may be x, element for element
        for (std::int64_t c = 0; c < dim; ++c)
            out[c] = fromFloat<T>(toFloat(x[c]) * sigmoid(toFloat(gate[c])));
    }
}

template <typename T>
void gateBackwardRow(const GateHeadsBackwardArgs& args, std::int64_t row) noexcept
{
    const std::int64_t dim = args.headDim;
    for (std::int64_t h = 0; h < args.heads; ++h) {
        const std::int64_t at = (row * args.heads + h) * dim;
        const std::int64_t gateAt = row * args.joined.dims[1] + (2 * h + 1) * dim;
        const T* grad = args.gradOut.as<const T>() + at;
        const T* x = args.x.as<const T>() + at;
        const T* gate = args.joined.as<const T>() + gateAt;
        T* gradX = args.gradX.as<T>() + at;
        T* gradGate = args.gradJoined.as<T>() + gateAt;
#pragma GCC ivdep // gradX may be gradOut and gradGate may be gate, element for element
        for (std::int64_t c = 0; c < dim; ++c) {
            const float g = toFloat(grad[c]);
            const float s = sigmoid(toFloat(gate[c]));
            gradGate[c] = fromFloat<T>((g * toFloat(x[c])) * (s * (1.0F - s)));
            gradX[c] = fromFloat<T>(g * s);
        }
    }
}

// rowFn(tag, row) over all rows of `leading`, tag a null pointer of its type.
template <typename F>
void forTypedRows(const TensorView& leading, ThreadPool& pool, F&& rowFn)
{
    withType(leading.dtype, [&](auto* tag) {
        forBlocks(pool, leading.dims[0], rowsPerItem(leading.dims[1]),
            [&](std::int64_t row, std::int64_t end) {
                for (; row < end; ++row)
                    rowFn(tag, row);
            });
    });
}

} // namespace

void gatedNorm(const GatedNormArgs& args, ThreadPool& pool)
{
    const GatedRows rows = GatedRows::of(args);
    forTypedRows(args.x, pool, [&](auto* tag, std::int64_t token) {
        using T = std::remove_pointer_t<decltype(tag)>;
        for (std::int64_t row = token * rows.heads; row < (token + 1) * rows.heads; ++row)
            args.rstd.as<float>()[row] = gatedNormRow<T>(args.x.as<const T>() + row * rows.dim,
                args.gate.as<const T>() + rows.gateOf(row), args.weight.as<const T>(),
                args.out.as<T>() + row * rows.dim, rows.dim, args.eps);
    });
}

void gatedNormBackward(const GatedNormBackwardArgs& args, ThreadPool& pool)
{
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        pool.parallelFor(
            args.partial.dims[0], [&](std::int64_t block) { gatedBackwardBlock<T>(args, block); });
    });
    joinNormPartials(args.partial, args.gradWeight, args.accumulate, 0, args.weight.dims[0]);
}

void splitQueries(const SplitQueriesArgs& args, ThreadPool& pool)
{
    forTypedRows(args.joined, pool, [&](auto* tag, std::int64_t row) {
        splitRow<std::remove_pointer_t<decltype(tag)>>(args, row);
    });
}

void gateHeads(const GateHeadsArgs& args, ThreadPool& pool)
{
    forTypedRows(args.x, pool, [&](auto* tag, std::int64_t row) {
        gateRow<std::remove_pointer_t<decltype(tag)>>(args, row);
    });
}

void gateHeadsBackward(const GateHeadsBackwardArgs& args, ThreadPool& pool)
{
    forTypedRows(args.x, pool, [&](auto* tag, std::int64_t row) {
        gateBackwardRow<std::remove_pointer_t<decltype(tag)>>(args, row);
    });
}

} // namespace mr::cpu
