#include "core/optim/complement_update.h"

#include "core/device/adamw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace mr {
namespace {

constexpr std::size_t kNormBlock = 1024;

float widen(std::uint16_t bf16) noexcept
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

template <typename Load>
void addLoop(float* sum, std::size_t count, bool isFirst, Load load) noexcept
{
    if (isFirst)
        for (std::size_t i = 0; i < count; ++i)
            sum[i] = load(i);
    else
        for (std::size_t i = 0; i < count; ++i)
            sum[i] += load(i);
}

// sum[b] of one block: 16 lanes by fma, then halves (NormBlocksArgs).
template <typename Load>
float squares(std::size_t count, Load load) noexcept
{
    constexpr std::size_t kLanes = 16;
    std::array<float, kLanes> lanes{};
    const auto add = [&](std::size_t i, std::size_t lane) {
        const float x = load(i);
        lanes[lane] = std::fma(x, x, lanes[lane]);
    };
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (std::size_t l = 0; l < kLanes; ++l)
            add(i + l, l);
    for (std::size_t l = 0; i < count; ++i, ++l)
        add(i, l);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

void expandRow(const ComplementRows& rows, std::size_t row, float* out) noexcept
{
    const std::size_t width = rows.columns.size();
    if (rows.sumType == DType::F32) {
        const auto* from = reinterpret_cast<const float*>(rows.sums) + row * width;
        for (std::size_t j = 0; j < width; ++j)
            out[rows.columns[j]] = from[j];
        return;
    }
    const auto* from = reinterpret_cast<const std::uint16_t*>(rows.sums) + row * width;
    for (std::size_t j = 0; j < width; ++j)
        out[rows.columns[j]] = widen(from[j]);
}

void packRow(const ComplementRows& rows, std::size_t row) noexcept
{
    const std::size_t width = rows.columns.size();
    const std::uint16_t* high = rows.high + row * rows.cols;
    if (rows.weightType == DType::BF16) {
        auto* to = reinterpret_cast<std::uint16_t*>(rows.sums) + row * width;
        for (std::size_t j = 0; j < width; ++j)
            to[j] = high[rows.columns[j]];
        return;
    }
    const std::int16_t* low = rows.low + row * rows.cols;
    auto* to = reinterpret_cast<float*>(rows.sums) + row * width;
    for (std::size_t j = 0; j < width; ++j)
        to[j] = joinHalves(high[rows.columns[j]], low[rows.columns[j]]);
}

void unpackRow(const ComplementRows& rows, std::size_t row) noexcept
{
    const std::size_t width = rows.columns.size();
    std::uint16_t* high = rows.high + row * rows.cols;
    if (rows.weightType == DType::BF16) {
        const auto* from = reinterpret_cast<const std::uint16_t*>(rows.sums) + row * width;
        for (std::size_t j = 0; j < width; ++j)
            high[rows.columns[j]] = from[j];
        return;
    }
    std::int16_t* low = rows.low + row * rows.cols;
    const auto* from = reinterpret_cast<const float*>(rows.sums) + row * width;
    for (std::size_t j = 0; j < width; ++j) {
        high[rows.columns[j]] = highHalf(from[j]);
        low[rows.columns[j]] = lowHalf(from[j]);
    }
}

// As many rows at a time as hold whole groups: where rows are no multiple of a group, groups lie in
// two of them.
void updateCompactRows(const ComplementRows& rows, const AdamwFactors& factors, float scale,
    std::span<float> scratch) noexcept
{
    const std::size_t atOnce = rowsOfWholeGroups(rows.cols);
    for (std::size_t first = 0; first < rows.rows; first += atOnce) {
        const std::size_t end = std::min(rows.rows, first + atOnce);
        for (std::size_t row = first; row < end; ++row)
            expandRow(rows, row, scratch.data() + (row - first) * rows.cols);
        adamwCompactUpdate(partOf(rows.compact, first * rows.cols, (end - first) * rows.cols),
            scratch.data(), DType::F32, factors, scale, rows.decayed);
        for (std::size_t row = first; row < end; ++row)
            packRow(rows, row);
    }
}

} // namespace

void addGradient(
    float* sum, const void* gradient, DType gradientType, std::size_t count, bool isFirst) noexcept
{
    if (gradientType == DType::F32) {
        const auto* from = static_cast<const float*>(gradient);
        return addLoop(sum, count, isFirst, [from](std::size_t i) { return from[i]; });
    }
    const auto* from = static_cast<const std::uint16_t*>(gradient);
    addLoop(sum, count, isFirst, [from](std::size_t i) { return widen(from[i]); });
}

void squareBlocks(const void* x, DType type, std::size_t count, float* blockSums) noexcept
{
    const auto* wide = static_cast<const float*>(x);
    const auto* half = static_cast<const std::uint16_t*>(x);
    for (std::size_t first = 0; first < count; first += kNormBlock) {
        const std::size_t n = std::min(kNormBlock, count - first);
        blockSums[first / kNormBlock] =
            type == DType::F32 ? squares(n, [&](std::size_t i) { return wide[first + i]; })
                               : squares(n, [&](std::size_t i) { return widen(half[first + i]); });
    }
}

double joinBlocks(std::span<const float> blockSums) noexcept
{
    constexpr std::size_t kChunk = 1024;
    constexpr std::size_t kLanes = 32;
    double sum = 0.0;
    for (std::size_t first = 0; first < blockSums.size(); first += kChunk) {
        const auto chunk = blockSums.subspan(first, std::min(kChunk, blockSums.size() - first));
        std::array<double, kLanes> lanes{};
        for (std::size_t i = 0; i < chunk.size(); ++i)
            lanes[i % kLanes] += static_cast<double>(chunk[i]);
        for (std::size_t half = kLanes / 2; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l)
                lanes[l] += lanes[l + half];
        sum += lanes[0];
    }
    return sum;
}

ComplementRows rowsFrom(const ComplementRows& all, std::size_t first, std::size_t count) noexcept
{
    ComplementRows rows = all;
    rows.rows = count;
    rows.sums += first * all.columns.size() * sizeOf(all.sumType);
    rows.high += first * all.cols;
    if (all.compact.weight) {
        assert(first * all.cols % kCompactGroup == 0);
        rows.compact = partOf(all.compact, first * all.cols, count * all.cols);
        return rows;
    }
    rows.low += first * all.cols;
    rows.m += first * all.cols;
    rows.v += first * all.cols;
    return rows;
}

std::size_t scratchCount(const ComplementRows& rows) noexcept
{
    return rows.cols * (rows.compact.weight ? rowsOfWholeGroups(rows.cols) : 1);
}

void updateComplement(const ComplementRows& rows, const AdamwFactors& factors, float scale,
    std::span<float> scratch) noexcept
{
    std::fill_n(scratch.begin(), scratchCount(rows), 0.0F); // columns of the device stay so
    if (rows.compact.weight)
        return updateCompactRows(rows, factors, scale, scratch);
    for (std::size_t row = 0; row < rows.rows; ++row) {
        expandRow(rows, row, scratch.data());
        AdamwRange range;
        range.high = rows.high + row * rows.cols;
        range.low = rows.low + row * rows.cols;
        range.m = rows.m + row * rows.cols;
        range.v = rows.v + row * rows.cols;
        range.grad = scratch.data();
        range.gradType = DType::F32;
        range.count = rows.cols;
        adamwUpdate(range, factors, scale, rows.decayed);
        packRow(rows, row);
    }
}

void packWeights(const ComplementRows& rows) noexcept
{
    for (std::size_t row = 0; row < rows.rows; ++row)
        packRow(rows, row);
}

void unpackWeights(const ComplementRows& rows) noexcept
{
    for (std::size_t row = 0; row < rows.rows; ++row)
        unpackRow(rows, row);
}

} // namespace mr
