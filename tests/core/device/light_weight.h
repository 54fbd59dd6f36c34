// A weight whose optimizer keeps a number for each row and column, or none: its planes, its
// averages, and whole steps of it by the ops of a device.
//
// Threads  One. The device computes inline, on the memory of the host.

#pragma once

#include "core/device/adamw.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/master24.h"
#include "core/device/ops.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace mr::test {

template <typename T>
TensorView viewOf(std::vector<T>& values, DType type, std::int64_t first = 0)
{
    return vectorView(reinterpret_cast<std::byte*>(values.data() + first), type,
        static_cast<std::int64_t>(values.size()) - first);
}

struct LightSettings {
    StepRule rule = StepRule::Limited;
    float rate = 1e-2F;
    float decay = 1.0F;
    float limit = 1.0F;
    std::uint64_t counter = 7; // of the random bits
};

class LightWeight
{
public:
    LightWeight(std::int64_t rows, std::int64_t cols, const std::vector<float>& start,
        MasterPlanes weightFormat)
        : averageRows(static_cast<std::size_t>(rows))
        , averageColumns(static_cast<std::size_t>(cols))
        , high(start.size())
        , low16(weightFormat == MasterPlanes::Halves ? start.size() : 0)
        , low8(weightFormat == MasterPlanes::Bits24 ? start.size() : 0)
        , rowRoots(static_cast<std::size_t>(rows))
        , columnRoots(static_cast<std::size_t>(cols))
        , updateSums(static_cast<std::size_t>(rows))
        , size(1)
        , m_format(weightFormat)
        , m_rows(rows)
        , m_cols(cols)
    {
        for (std::size_t i = 0; i < start.size(); ++i)
            encode(i, start[i]);
    }

    // Step `time` of the optimizer, by one gradient (rows, cols).
    Status step(Device& device, const LightSettings& settings, int time, std::vector<float> grad)
    {
        auto stream = device.createStream("test");
        MR_TRY(stream.status());
        Ops& ops = device.ops();
        if (settings.rule != StepRule::Normalised)
            MR_TRY(average(ops, *stream.value(), time, grad));
        MR_TRY(setSize(ops, *stream.value(), settings, grad));
        return update(ops, *stream.value(), settings, grad, 0, m_rows * m_cols);
    }

    // Step `time` of apollo-mini on a matrix with fewer rows than columns: signs of philox(key).
    Status stepProjected(Device& device, const LightSettings& settings, int time,
        std::vector<float> grad, std::uint64_t key)
    {
        auto stream = device.createStream("test");
        MR_TRY(stream.status());
        Ops& ops = device.ops();
        std::vector<float> signs(static_cast<std::size_t>(m_rows));
        std::vector<float> projected(static_cast<std::size_t>(m_cols));
        std::vector<float> parts(static_cast<std::size_t>(rowParts(m_rows) * m_cols));
        MR_TRY(ops.projectionSigns({viewOf(signs, DType::F32), key, 0}, *stream.value()));
        MR_TRY(ops.projectGradient(
            {matrix(grad), viewOf(signs, DType::F32), scalarsView(),
                matrixView(viewOf(parts, DType::F32).data, DType::F32, rowParts(m_rows), m_cols),
                viewOf(projected, DType::F32), true},
            *stream.value()));
        RowSquaresArgs squares;
        squares.x = matrix(grad);
        squares.scalars = scalarsView();
        squares.sums = viewOf(updateSums, DType::F32);
        MR_TRY(ops.rowSquares(squares, *stream.value()));
        moments.resize(2 * projected.size() + 1);
        const TensorView all = viewOf(moments, DType::F32);
        MR_TRY(ops.projectedStep(
            {viewOf(projected, DType::F32), squares.sums, all.rows(0, m_cols),
                all.rows(m_cols, m_cols), all.rows(2 * m_cols, 1), viewOf(size, DType::F32),
                scalarsView(), settings.rate, time == 1},
            *stream.value()));
        LightSettings plain = settings;
        plain.rule = StepRule::Normalised; // no roots
        return update(ops, *stream.value(), plain, grad, 0, m_rows * m_cols);
    }

    // Chooses `count` rows by a gradient, with room for their moments.
    Status chooseRows(Device& device, std::vector<float> grad, std::int64_t count)
    {
        auto stream = device.createStream("test");
        MR_TRY(stream.status());
        Ops& ops = device.ops();
        RowSquaresArgs squares;
        squares.x = matrix(grad);
        squares.scalars = scalarsView();
        squares.sums = viewOf(updateSums, DType::F32);
        MR_TRY(ops.rowSquares(squares, *stream.value()));
        std::vector<float> ranked(static_cast<std::size_t>(count));
        numbers.resize(ranked.size());
        firstMoments.resize(ranked.size() * static_cast<std::size_t>(m_cols));
        secondMoments.resize(firstMoments.size());
        return ops.selectRows(
            {squares.sums, viewOf(ranked, DType::F32), viewOf(numbers, DType::F32), scalarsView()},
            *stream.value());
    }

    // AdamW of the chosen rows among elements [first, first + count).
    Status updateRows(Device& device, const AdamwFactors& factors, bool isFirst,
        std::vector<float> grad, std::int64_t first, std::int64_t count)
    {
        auto stream = device.createStream("test");
        MR_TRY(stream.status());
        const auto chosen = static_cast<std::int64_t>(numbers.size());
        const LightUpdateArgs range = rangeOf(grad, first, count);
        RowAdamwArgs args;
        args.high = range.high;
        args.low = range.low;
        args.grad = range.grad;
        args.numbers = viewOf(numbers, DType::F32);
        args.m = matrixView(viewOf(firstMoments, DType::F32).data, DType::F32, chosen, m_cols);
        args.v = matrixView(viewOf(secondMoments, DType::F32).data, DType::F32, chosen, m_cols);
        args.scalars = range.scalars;
        args.first = range.first;
        args.cols = range.cols;
        args.factors = factors;
        args.isFirst = isFirst;
        args.key = range.key;
        args.counter = LightSettings{}.counter;
        return device.ops().rowAdamw(args, *stream.value());
    }

    // The averages of step `time`, and the roots.
    Status average(Ops& ops, Stream& stream, int time, std::vector<float>& grad)
    {
        std::vector<float> parts(static_cast<std::size_t>(rowParts(m_rows) * m_cols));
        RowSquaresArgs ofRows;
        ofRows.x = matrix(grad);
        ofRows.scalars = scalarsView();
        ofRows.sums = viewOf(rowRoots, DType::F32);
        MR_TRY(ops.rowSquares(ofRows, stream));
        const TensorView partsView =
            matrixView(viewOf(parts, DType::F32).data, DType::F32, rowParts(m_rows), m_cols);
        MR_TRY(ops.columnSquares(
            {matrix(grad), scalarsView(), partsView, viewOf(columnRoots, DType::F32)}, stream));
        const double present = std::pow(time, -0.8);
        return ops.averageSquares(
            {viewOf(rowRoots, DType::F32), viewOf(columnRoots, DType::F32),
                viewOf(averageRows, DType::F32), viewOf(averageColumns, DType::F32), scalarsView(),
                static_cast<float>(1.0 - present), static_cast<float>(present)},
            stream);
    }

    Status setSize(
        Ops& ops, Stream& stream, const LightSettings& settings, std::vector<float>& grad)
    {
        RowSquaresArgs squares;
        squares.x = matrix(grad);
        squares.scalars = scalarsView();
        squares.sums = viewOf(updateSums, DType::F32);
        if (settings.rule != StepRule::Normalised) {
            squares.rowRoots = viewOf(rowRoots, DType::F32);
            squares.columnRoots = viewOf(columnRoots, DType::F32);
        }
        MR_TRY(ops.rowSquares(squares, stream));
        std::vector<float> weight = masters();
        std::vector<float> weightSums(updateSums.size());
        RowSquaresArgs ofWeight;
        ofWeight.x = matrix(weight);
        ofWeight.sums = viewOf(weightSums, DType::F32);
        MR_TRY(ops.rowSquares(ofWeight, stream));
        return ops.lightStepSize({viewOf(updateSums, DType::F32), viewOf(weightSums, DType::F32),
                                     viewOf(size, DType::F32), m_rows * m_cols, settings.rule,
                                     settings.rate, settings.limit},
            stream);
    }

    // Elements [first, first + count), by their part of the gradient.
    Status update(Ops& ops, Stream& stream, const LightSettings& settings, std::vector<float>& grad,
        std::int64_t first, std::int64_t count)
    {
        LightUpdateArgs args = rangeOf(grad, first, count);
        if (settings.rule != StepRule::Normalised) {
            args.rowRoots = viewOf(rowRoots, DType::F32);
            args.columnRoots = viewOf(columnRoots, DType::F32);
        }
        args.size = viewOf(size, DType::F32);
        args.decay = settings.decay;
        args.counter = settings.counter;
        return ops.lightUpdate(args, stream);
    }

    std::vector<float> masters() const
    {
        std::vector<float> values(high.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = m_format == MasterPlanes::Halves   ? joinHalves(high[i], low16[i])
                        : m_format == MasterPlanes::Bits24 ? joinMaster24({high[i], low8[i]})
                                                           : bf16Value(high[i]);
        return values;
    }

    // To the bit: planes, averages and moments.
    bool equals(const LightWeight& other) const
    {
        const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
            return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
        };
        return high == other.high && low16 == other.low16 && low8 == other.low8 &&
               same(averageRows, other.averageRows) && same(averageColumns, other.averageColumns) &&
               numbers == other.numbers && same(firstMoments, other.firstMoments) &&
               same(secondMoments, other.secondMoments);
    }

    StepScalars scalars;
    std::vector<float> averageRows, averageColumns;
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low16;
    std::vector<std::int8_t> low8;
    std::vector<float> rowRoots, columnRoots, updateSums, size;
    std::vector<float> moments;                     // of a projection, and its norm
    std::vector<float> numbers;                     // of chosen rows
    std::vector<float> firstMoments, secondMoments; // of their elements

private:
    void encode(std::size_t i, float value)
    {
        const Master24 split = splitMaster24(value);
        high[i] = m_format == MasterPlanes::Halves ? highHalf(value) : split.weight;
        if (m_format == MasterPlanes::Halves)
            low16[i] = lowHalf(value);
        if (m_format == MasterPlanes::Bits24)
            low8[i] = split.rest;
    }

    // Planes and gradient of a range, without roots.
    LightUpdateArgs rangeOf(std::vector<float>& grad, std::int64_t first, std::int64_t count)
    {
        LightUpdateArgs args;
        args.high = viewOf(high, DType::U16).rows(first, count);
        if (m_format == MasterPlanes::Halves)
            args.low = viewOf(low16, DType::I16).rows(first, count);
        if (m_format == MasterPlanes::Bits24)
            args.low = viewOf(low8, DType::I8).rows(first, count);
        args.grad = viewOf(grad, DType::F32).rows(first, count);
        args.scalars = scalarsView();
        args.first = first;
        args.cols = m_cols;
        args.key = 42;
        return args;
    }

    TensorView matrix(std::vector<float>& values) const
    {
        return matrixView(viewOf(values, DType::F32).data, DType::F32, m_rows, m_cols);
    }

    TensorView scalarsView()
    {
        return vectorView(reinterpret_cast<std::byte*>(&scalars), DType::U8, sizeof scalars);
    }

    MasterPlanes m_format;
    std::int64_t m_rows;
    std::int64_t m_cols;
};

} // namespace mr::test
