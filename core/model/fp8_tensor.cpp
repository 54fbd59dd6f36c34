#include "core/model/fp8_tensor.h"

#include "core/base/shown_text.h"
#include "core/device/fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace mr {
namespace {

constexpr std::int64_t kBlock = 128;

std::int64_t blocks(std::int64_t length)
{
    return (length + kBlock - 1) / kBlock;
}

std::int64_t countOf(const std::vector<std::int64_t>& shape)
{
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// A code of E4M3; two of them are no numbers.
float valueOf(std::byte code)
{
    const auto bits = std::to_integer<std::uint8_t>(code);
    return (bits & 0x7FU) == 0x7FU ? std::numeric_limits<float>::quiet_NaN() : toFloat(E4m3{bits});
}

} // namespace

Result<Fp8Tensor> Fp8Tensor::open(const std::string& name, const std::vector<std::int64_t>& shape,
    const SafetensorsReader& codes, const SafetensorsReader& scales)
{
    const std::string scaleName = name + std::string(kFp8Scale);
    const auto refuse = [&](const std::string& why) {
        return Status::error(ErrorKind::InvalidArgument,
            scales.path().string() + ": tensor " + shownName(scaleName) + " " + why);
    };
    const SafetensorEntry& entry = scales.entries().at(scaleName);
    const bool isWhole = countOf(entry.shape) == 1;
    const std::vector<std::int64_t> cut{blocks(shape[0]), blocks(shape[1])};
    if (!isWhole && entry.shape != cut)
        return refuse(
            fmt::format("must have one factor, or one of each block of {} x {}", kBlock, kBlock));
    Fp8Tensor tensor;
    tensor.m_codes = &codes;
    tensor.m_name = name;
    tensor.m_cols = shape[1];
    tensor.m_blockCols = isWhole ? 0 : cut[1];
    tensor.m_factors.resize(static_cast<std::size_t>(countOf(entry.shape)));
    MR_TRY(scales.readFloats(scaleName, 0, tensor.m_factors));
    for (const float factor : tensor.m_factors)
        if (!std::isfinite(factor))
            return refuse("holds a number that is not finite; fetch the file again");
    return tensor;
}

float Fp8Tensor::factorOf(std::int64_t row, std::int64_t col) const noexcept
{
    if (m_blockCols == 0)
        return m_factors.front();
    return m_factors[static_cast<std::size_t>(row / kBlock * m_blockCols + col / kBlock)];
}

Status Fp8Tensor::read(std::int64_t first, std::span<float> out)
{
    m_bytes.resize(out.size());
    MR_TRY(m_codes->readBytes(m_name, static_cast<std::uint64_t>(first), m_bytes));
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int64_t at = first + static_cast<std::int64_t>(i);
        out[i] = valueOf(m_bytes[i]) * factorOf(at / m_cols, at % m_cols);
    }
    return {};
}

} // namespace mr
