// AddedApart: weight gradients that are added to their sum by an operation of its own.
//
// A device's library may add the last product to a sum otherwise than in one F32 addition per
// element. A run finds such shapes when it opens; their products are formed in scratch.
//
// Threads    A value; constant while a run's body lives.
// Ownership  Borrows the scratch.

#pragma once

#include "core/device/tensor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr {

// Rows and columns of a weight gradient.
struct GradientShape {
    std::int64_t out = 0;
    std::int64_t in = 0;

    friend bool operator==(const GradientShape&, const GradientShape&) = default;
};

struct AddedApart {
    std::vector<GradientShape> shapes;
    std::byte* scratch = nullptr; // F32 of the largest of them; device memory

    // (out, in), F32: LinearBackwardWeightArgs::product of this sum; data null unless it is listed.
    TensorView productFor(const TensorView& gradWeight) const noexcept
    {
        const GradientShape shape{gradWeight.dims[0], gradWeight.dims[1]};
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
            return {};
        return matrixView(scratch, DType::F32, shape.out, shape.in);
    }
};

} // namespace mr
