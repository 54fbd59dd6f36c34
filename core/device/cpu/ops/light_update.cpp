#include "core/device/light_update.h"

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/number.h"
#include "core/device/master24.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace mr::cpu {

namespace {

constexpr std::size_t kMostLevels = 32;

// A sum of blocks in the tree of light_update.h: at most one node of each level waits for its
// neighbour.
class BlockTree
{
public:
    void add(float block) noexcept
    {
        for (std::uint64_t index = m_count++; (index & 1U) != 0; index >>= 1U)
            block = m_nodes[--m_waiting] + block;
        m_nodes[m_waiting++] = block;
    }

    float total() const noexcept
    {
        if (m_waiting == 0)
            return 0.0F;
        float sum = m_nodes[m_waiting - 1];
        for (std::size_t node = m_waiting - 1; node > 0; --node)
            sum = m_nodes[node - 1] + sum;
        return sum;
    }

private:
    std::array<float, kMostLevels> m_nodes{};
    std::size_t m_waiting = 0;
    std::uint64_t m_count = 0;
};

float joinSumLanes(const float (&lane)[kSumLanes]) noexcept
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// add(lane, j) adds element j to its lane.
template <typename Add>
float sumAsRow(std::int64_t count, Add add)
{
    BlockTree tree;
    for (std::int64_t first = 0; first < count; first += kColumnsOfBlock) {
        const std::int64_t end = std::min(count, first + kColumnsOfBlock);
        float lanes[kSumLanes] = {};
        std::int64_t j = first;
        for (; j + kSumLanes <= end; j += kSumLanes)
            for (std::int64_t lane = 0; lane < kSumLanes; ++lane)
                lanes[lane] = add(lanes[lane], j + lane);
        for (std::int64_t lane = 0; j < end; ++j, ++lane)
            lanes[lane] = add(lanes[lane], j);
        tree.add(joinSumLanes(lanes));
    }
    return tree.total();
}

float sumOf(const TensorView& values)
{
    const auto* x = values.as<const float>();
    return sumAsRow(values.dims[0], [x](float sum, std::int64_t j) { return sum + x[j]; });
}

StepScalars readScalars(const TensorView& view)
{
    StepScalars scalars;
    if (view.data)
        std::memcpy(&scalars, view.data, sizeof scalars);
    return scalars;
}

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
    // Rows [first, end), at most a block, of `count` columns.
    void addBlock(const float* x, std::int64_t first, std::int64_t end, std::int64_t cols,
        std::int64_t count, float clipFactor)
    {
        std::memset(m_lanes, 0, sizeof m_lanes);
        for (std::int64_t row = first; row < end; ++row) {
            const float* from = x + row * cols;
            float* lane = m_lanes[(row - first) % kSumLanes];
            for (std::int64_t c = 0; c < count; ++c) {
                const float g = from[c] * clipFactor;
                lane[c] = std::fma(g, g, lane[c]);
            }
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
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t cols = args.x.dims[1];
    const std::int64_t across = (cols + kColumnsOfBlock - 1) / kColumnsOfBlock;
    const std::int64_t parts = rowParts(rows);
    auto* partial = args.parts.as<float>();
    forBlocks(pool, parts * across, 1, [&](std::int64_t item, std::int64_t) {
        const std::int64_t part = item / across;
        const std::int64_t column = item % across * kColumnsOfBlock;
        const std::int64_t count = std::min(kColumnsOfBlock, cols - column);
        const std::int64_t end = std::min(rows, (part + 1) * kRowsOfPart);
        ColumnSums sums;
        for (std::int64_t row = part * kRowsOfPart; row < end; row += kRowsOfBlock)
            sums.addBlock(args.x.as<const float>() + column, row, std::min(end, row + kRowsOfBlock),
                cols, count, clipFactor);
        for (std::int64_t c = 0; c < count; ++c)
            partial[part * cols + column + c] = sums.total(c);
    });
    forBlocks(pool, cols, kElementBlock, [&](std::int64_t column, std::int64_t end) {
        for (; column < end; ++column) {
            BlockTree tree;
            for (std::int64_t part = 0; part < parts; ++part)
                tree.add(partial[part * cols + column]);
            args.sums.as<float>()[column] = tree.total();
        }
    });
}

namespace {

void averageOf(float* averages, const float* sums, std::int64_t count, std::int64_t each,
    const AverageSquaresArgs& args)
{
    constexpr float kLeastSquare = 1e-30F;
    const auto elements = static_cast<float>(each);
    for (std::int64_t i = 0; i < count; ++i)
        averages[i] =
            std::fma(args.present, sums[i] / elements + kLeastSquare, args.past * averages[i]);
}

} // namespace

void averageSquares(const AverageSquaresArgs& args)
{
    if (readScalars(args.scalars).finite == 0)
        return;
    const std::int64_t rows = args.rows.dims[0];
    const std::int64_t cols = args.columns.dims[0];
    auto* r = args.rows.as<float>();
    auto* c = args.columns.as<float>();
    auto* rowRoots = args.rowSums.as<float>();
    auto* columnRoots = args.columnSums.as<float>();
    averageOf(r, rowRoots, rows, cols, args);
    averageOf(c, columnRoots, cols, rows, args);
    const float s = sumOf(args.rows) / static_cast<float>(rows);
    for (std::int64_t i = 0; i < rows; ++i)
        rowRoots[i] = std::sqrt(r[i] / s);
    for (std::int64_t j = 0; j < cols; ++j)
        columnRoots[j] = std::sqrt(c[j]);
}

void lightStepSize(const StepSizeArgs& args)
{
    constexpr float kLeastWeight = 1e-3F;
    const auto count = static_cast<float>(args.count);
    const float rms = std::sqrt(sumOf(args.updateSums) / count);
    const float over = rms / args.limit;
    float& size = *args.size.as<float>();
    if (args.rule == StepRule::Normalised) {
        size = rms > 0.0F ? args.rate / rms : 0.0F;
        return;
    }
    float rate = args.rate;
    if (args.rule == StepRule::Relative) {
        const float weight = std::sqrt(sumOf(args.weightSums) / count);
        rate = args.rate * (weight > kLeastWeight ? weight : kLeastWeight);
    }
    size = rate / (over > 1.0F ? over : 1.0F);
}

namespace {

constexpr std::int64_t kPiece = 1024;

// u of `count` elements of a weight from `first` on. They may lie in several rows.
void fillUpdate(
    const LightUpdateArgs& args, std::int64_t at, std::int64_t count, float clipFactor, float* u)
{
    const auto* g = args.grad.as<const float>() + at;
    if (!args.rowRoots.data) {
        for (std::int64_t i = 0; i < count; ++i)
            u[i] = g[i] * clipFactor;
        return;
    }
    for (std::int64_t i = 0; i < count;) {
        const std::int64_t element = args.first + at + i;
        const std::int64_t column = element % args.cols;
        const std::int64_t end = std::min(count, i + args.cols - column);
        const float root = args.rowRoots.as<const float>()[element / args.cols];
        const auto* roots = args.columnRoots.as<const float>() + column;
        for (const std::int64_t begin = i; i < end; ++i)
            u[i] = g[i] * clipFactor / (root * roots[i - begin]);
    }
}

struct LightStep {
    float size = 0.0F;
    float decay = 1.0F;

    float operator()(float p, float u) const noexcept { return std::fma(-size, u, p * decay); }
};

// The 16 bits of each element of a weight from `element` on.
void fillRandom(
    const LightUpdateArgs& args, std::int64_t element, std::int64_t count, std::uint16_t* bits)
{
    constexpr std::int64_t kPerBlock = 8;
    for (std::int64_t i = 0; i < count;) {
        const std::int64_t block = (element + i) / kPerBlock;
        const auto words = philox(args.key, static_cast<std::uint64_t>(block), args.counter);
        std::int64_t k = element + i - block * kPerBlock;
        for (; k < kPerBlock && i < count; ++k, ++i)
            bits[i] = static_cast<std::uint16_t>(
                words[static_cast<std::size_t>(k / 2)] >> (k % 2 == 0 ? 0U : 16U));
    }
}

void stepHalves(const LightUpdateArgs& args, std::int64_t at, std::int64_t count, const float* u,
    LightStep step)
{
    auto* high = args.high.as<std::uint16_t>() + at;
    auto* low = args.low.as<std::int16_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const float p = step(joinHalves(high[i], low[i]), u[i]);
        high[i] = highHalf(p);
        low[i] = lowHalf(p);
    }
}

void stepBits24(const LightUpdateArgs& args, std::int64_t at, std::int64_t count, const float* u,
    LightStep step)
{
    auto* weight = args.high.as<std::uint16_t>() + at;
    auto* rest = args.low.as<std::int8_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const Master24 next = splitMaster24(step(joinMaster24({weight[i], rest[i]}), u[i]));
        weight[i] = next.weight;
        rest[i] = next.rest;
    }
}

void stepRandom16(const LightUpdateArgs& args, std::int64_t at, std::int64_t count, const float* u,
    LightStep step)
{
    std::array<std::uint16_t, kPiece> random;
    fillRandom(args, args.first + at, count, random.data());
    auto* weight = args.high.as<std::uint16_t>() + at;
    for (std::int64_t i = 0; i < count; ++i) {
        const float p = step(bf16Value(weight[i]), u[i]);
        weight[i] = static_cast<std::uint16_t>(
            (std::bit_cast<std::uint32_t>(p) + random[static_cast<std::size_t>(i)]) >> 16U);
    }
}

} // namespace

void lightUpdate(const LightUpdateArgs& args, ThreadPool& pool)
{
    const StepScalars scalars = readScalars(args.scalars);
    if (scalars.finite == 0)
        return;
    const LightStep step{*args.size.as<const float>(), args.decayed ? args.decay : 1.0F};
    auto* const stepPiece = !args.low.data                 ? stepRandom16
                            : args.low.dtype == DType::I16 ? stepHalves
                                                           : stepBits24;
    forBlocks(pool, args.grad.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        std::array<float, kPiece> u;
        for (std::int64_t at = first; at < end; at += kPiece) {
            const std::int64_t count = std::min(kPiece, end - at);
            fillUpdate(args, at, count, scalars.clipFactor, u.data());
            stepPiece(args, at, count, u.data(), step);
        }
    });
}

} // namespace mr::cpu
