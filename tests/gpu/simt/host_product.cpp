#include "gpu/simt/host_product.h"

#include "core/prove/conformance_case.h"
#include "core/prove/conformance_fp8.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace mr::simt {

namespace {

float load(const HostMatrix& matrix, std::int64_t row, std::int64_t col)
{
    const std::int64_t i = row * matrix.rowStep + col * matrix.colStep;
    if (matrix.dtype == DType::F32)
        return reinterpret_cast<const float*>(matrix.data)[i];
    if (matrix.dtype == DType::BF16)
        return std::bit_cast<float>(
            std::uint32_t{reinterpret_cast<const std::uint16_t*>(matrix.data)[i]} << 16);
    return static_cast<float>(
        conformance::fp8Value(matrix.dtype, std::to_integer<std::uint8_t>(matrix.data[i])));
}

void store(const HostMatrix& matrix, std::int64_t row, std::int64_t col, float value)
{
    const std::int64_t i = row * matrix.rowStep + col * matrix.colStep;
    if (matrix.dtype == DType::F32)
        reinterpret_cast<float*>(matrix.data)[i] = value;
    else
        reinterpret_cast<std::uint16_t*>(matrix.data)[i] = static_cast<std::uint16_t>(
            std::bit_cast<std::uint32_t>(conformance::roundToBf16(value)) >> 16);
}

// The numbers of a matrix, with its rows next to each other.
std::vector<float> numbersOf(const HostMatrix& matrix)
{
    std::vector<float> numbers;
    numbers.reserve(static_cast<std::size_t>(matrix.rows * matrix.cols));
    for (std::int64_t r = 0; r < matrix.rows; ++r)
        for (std::int64_t c = 0; c < matrix.cols; ++c)
            numbers.push_back(load(matrix, r, c));
    return numbers;
}

void addRow(const float* row, float factor, std::vector<float>& sums)
{
    for (std::size_t c = 0; c < sums.size(); ++c)
        sums[c] = sums[c] + factor * row[c];
}

} // namespace

HostMatrix transposed(const HostMatrix& matrix) noexcept
{
    HostMatrix other = matrix;
    std::swap(other.rows, other.cols);
    std::swap(other.rowStep, other.colStep);
    return other;
}

void multiply(const HostProduct& product)
{
    const std::vector<float> a = numbersOf(product.a);
    const std::vector<float> b = numbersOf(product.b);
    const HostMatrix& out = product.out;
    std::vector<float> sums(static_cast<std::size_t>(out.cols));
    for (std::int64_t r = 0; r < out.rows; ++r) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (std::int64_t k = 0; k < product.a.cols; ++k)
            addRow(
                b.data() + k * out.cols, a[static_cast<std::size_t>(r * product.a.cols + k)], sums);
        for (std::int64_t c = 0; c < out.cols; ++c) {
            float value = product.scale * sums[static_cast<std::size_t>(c)];
            if (product.bias.data)
                value = value + load(product.bias, 0, c);
            store(out, r, c, product.accumulates ? load(out, r, c) + value : value);
        }
    }
}

} // namespace mr::simt
