// Carver: cuts a range of memory into aligned tensors. See layout.h.
//
// Threads  One at a time.

#pragma once

#include "core/device/ops.h"
#include "core/device/tensor.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace mr {

// Cuts a range into aligned tensors; with a null base it only counts.
class Carver
{
public:
    explicit Carver(std::byte* base)
        : m_base(base)
    {
    }

    TensorView matrix(DType dtype, std::int64_t rows, std::int64_t cols)
    {
        return place(matrixView(nullptr, dtype, rows, cols));
    }

    TensorView vector(DType dtype, std::int64_t count)
    {
        return place(vectorView(nullptr, dtype, count));
    }

    TensorView cube(DType dtype, std::int64_t planes, std::int64_t rows, std::int64_t cols)
    {
        TensorView view = matrixView(nullptr, dtype, planes, rows);
        view.rank = 3;
        view.dims[2] = cols;
        return place(view);
    }

    TensorView tensor(DType dtype, const std::array<std::int64_t, 4>& dims)
    {
        TensorView view = matrixView(nullptr, dtype, dims[0], dims[1]);
        view.rank = 4;
        view.dims = dims;
        return place(view);
    }

    std::size_t bytes() const { return m_offset; }

private:
    static constexpr std::size_t kAlign =
        256; // a CUDA vector load or a cache line, whichever is larger

    TensorView place(TensorView view)
    {
        view.data = m_base ? m_base + m_offset : nullptr;
        m_offset += (view.bytes() + kAlign - 1) / kAlign * kAlign;
        return view;
    }

    std::byte* m_base;
    std::size_t m_offset = 0;
};

// Blocks of rows that a norm's gradient is summed by.
inline std::int64_t normPartialRows(std::int64_t tokens)
{
    return (tokens + kNormRowBlock - 1) / kNormRowBlock;
}

} // namespace mr
