#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/cpu/ops/sum_tree.h"

#include <cmath>
#include <cstring>

namespace mr::cpu {

namespace {

template <typename T>
float rowSquare(const RowSquaresArgs& args, std::int64_t row, float clipFactor)
{
    const std::int64_t cols = args.x.dims[1];
    const T* x = args.x.as<const T>() + row * cols;
    if (!args.rowRoots.data)
        return sumAsRow(cols, [=](float sum, std::int64_t j) {
            const float g = toFloat(x[j]) * clipFactor;
            return std::fma(g, g, sum);
        });
    const float root = args.rowRoots.as<const float>()[row];
    const auto* roots = args.columnRoots.as<const float>();
    return sumAsRow(cols, [=](float sum, std::int64_t j) {
        const float u = toFloat(x[j]) * clipFactor / (root * roots[j]);
        return std::fma(u, u, sum);
    });
}

// Columns of one item, side by side; `rows` of them by blocks.
class ColumnSums
{
public:
    // Rows [first, end), at most a block, of `count` columns. add(lane, x, row) adds an element.
    template <typename Add>
    void addBlock(const float* x, std::int64_t first, std::int64_t end, std::int64_t cols,
        std::int64_t count, Add add)
    {
        std::memset(m_lanes, 0, sizeof m_lanes);
        for (std::int64_t row = first; row < end; ++row) {
            const float* from = x + row * cols;
            float* lane = m_lanes[(row - first) % kSumLanes];
            for (std::int64_t c = 0; c < count; ++c)
                lane[c] = add(lane[c], from[c], row);
        }
        for (std::int64_t c = 0; c < count; ++c) {
            const auto& l = m_lanes;
            m_trees[c].add(((l[0][c] + l[4][c]) + (l[2][c] + l[6][c])) +
                           ((l[1][c] + l[5][c]) + (l[3][c] + l[7][c])));
        }
    }

    float total(std::int64_t column) const { return m_trees[column].total(); }

private:
    float m_lanes[kSumLanes][kColumnsOfBlock];
    BlockTree m_trees[kColumnsOfBlock];
};

// Sums over the rows of x (rows, cols), by way of those of parts.
template <typename Add>
void sumColumns(
    const TensorView& x, const TensorView& parts, const TensorView& sums, ThreadPool& pool, Add add)
{
    const std::int64_t rows = x.dims[0];
    const std::int64_t cols = x.dims[1];
    const std::int64_t across = (cols + kColumnsOfBlock - 1) / kColumnsOfBlock;
    const std::int64_t count = rowParts(rows);
    auto* partial = parts.as<float>();
    forBlocks(pool, count * across, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t part = item / across;
        const std::int64_t column = item % across * kColumnsOfBlock;
        const std::int64_t width = std::min(kColumnsOfBlock, cols - column);
        const std::int64_t end = std::min(rows, (part + 1) * kRowsOfPart);
        ColumnSums block;
        for (std::int64_t row = part * kRowsOfPart; row < end; row += kRowsOfBlock)
            block.addBlock(x.as<const float>() + column, row, std::min(end, row + kRowsOfBlock),
                cols, width, add);
        for (std::int64_t c = 0; c < width; ++c)
            partial[part * cols + column + c] = block.total(c);
    });
    forBlocks(pool, cols, kElementBlock, [&](std::int64_t column, std::int64_t end) {
        for (; column < end; ++column) {
            BlockTree tree;
            for (std::int64_t part = 0; part < count; ++part)
                tree.add(partial[part * cols + column]);
            sums.as<float>()[column] = tree.total();
        }
    });
}

} // namespace

void rowSquares(const RowSquaresArgs& args, ThreadPool& pool)
{
    const float clipFactor = readScalars(args.scalars).clipFactor;
    withType(args.x.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        const std::int64_t rows = args.x.dims[0];
        forBlocks(pool, rows, rowsPerItem(args.x.dims[1]), [&](std::int64_t row, std::int64_t end) {
            for (; row < end; ++row)
                args.sums.as<float>()[row] = rowSquare<T>(args, row, clipFactor);
        });
    });
}

void columnSquares(const ColumnSquaresArgs& args, ThreadPool& pool)
{
    const float clipFactor = readScalars(args.scalars).clipFactor;
    sumColumns(args.x, args.parts, args.sums, pool, [=](float sum, float x, std::int64_t) {
        const float g = x * clipFactor;
        return std::fma(g, g, sum);
    });
}

void projectGradient(const ProjectGradientArgs& args, ThreadPool& pool)
{
    const float clipFactor = readScalars(args.scalars).clipFactor;
    const auto* signs = args.signs.as<const float>();
    if (args.overRows)
        return sumColumns(
            args.x, args.parts, args.sums, pool, [=](float sum, float x, std::int64_t row) {
                return std::fma(x * clipFactor, signs[row], sum);
            });
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t cols = args.x.dims[1];
    forBlocks(pool, rows, rowsPerItem(cols), [&](std::int64_t row, std::int64_t end) {
        for (; row < end; ++row) {
            const float* x = args.x.as<const float>() + row * cols;
            args.sums.as<float>()[row] = sumAsRow(cols, [=](float sum, std::int64_t j) {
                return std::fma(x[j] * clipFactor, signs[j], sum);
            });
        }
    });
}

} // namespace mr::cpu
