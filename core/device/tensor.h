// TensorView: a typed, shaped window on memory somebody else owns.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mr {

// E4M3 and E5M2 are the codes of core/device/fp8.h.
enum class DType : std::uint8_t { F32, BF16, U8, I8, U16, I16, I32, F64, E4M3, E5M2 };

constexpr std::size_t sizeOf(DType t) noexcept
{
    switch (t) { // no default: the compiler then names the type that is missing here
    case DType::U8:
    case DType::I8:
    case DType::E4M3:
    case DType::E5M2:
        return 1;
    case DType::BF16:
    case DType::U16:
    case DType::I16:
        return 2;
    case DType::F32:
    case DType::I32:
        return 4;
    case DType::F64: // sums of losses and norms only
        return 8;
    }
    return 0; // only for a value that is no DType
}

// Row-major and dense: the last dimension is contiguous, there are no strides.
struct TensorView {
    std::byte* data = nullptr; // not owned; device or pinned memory
    DType dtype = DType::F32;
    int rank = 0;
    std::array<std::int64_t, 4> dims{}; // elements; entries at and past `rank` are 0

    constexpr std::int64_t count() const noexcept
    {
        std::int64_t n = 1;
        for (int i = 0; i < rank; ++i)
            n *= dims[static_cast<std::size_t>(i)];
        return n;
    }

    constexpr std::size_t bytes() const noexcept
    {
        return static_cast<std::size_t>(count()) * sizeOf(dtype);
    }

    // Rows [first, first + rowCount) of the outermost dimension. Precondition: rank >= 1 and
    // the rows exist.
    constexpr TensorView rows(std::int64_t first, std::int64_t rowCount) const noexcept
    {
        TensorView part = *this;
        const std::int64_t perRow = dims[0] == 0 ? 0 : count() / dims[0];
        part.data = data + static_cast<std::size_t>(first * perRow) * sizeOf(dtype);
        part.dims[0] = rowCount;
        return part;
    }

    template <typename T>
    T* as() const noexcept
    {
        return reinterpret_cast<T*>(data);
    }
};

constexpr TensorView vectorView(std::byte* data, DType dtype, std::int64_t n) noexcept
{
    return {data, dtype, 1, {n}};
}

constexpr TensorView matrixView(
    std::byte* data, DType dtype, std::int64_t rows, std::int64_t cols) noexcept
{
    return {data, dtype, 2, {rows, cols}};
}

} // namespace mr
