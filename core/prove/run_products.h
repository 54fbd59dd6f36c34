// The matrix products of a run, each shape once.
//
// A library that chooses an algorithm by shape computes each of these in a way of its own, so what
// holds for one says nothing of the others (product_check.h).
//
// Threads  Pure.

#pragma once

#include "core/model/layout.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mr {

enum class ProductKind : std::uint8_t { Forward, InputGradient, WeightGradient, Adapter };

// A WindowProductArgs without memory: out (m, n), k products a sum.
struct WindowShape {
    struct Side {
        std::int64_t columns = 0; // of the matrix
        std::int64_t first = 0;   // that the window has

        auto operator<=>(const Side&) const = default;
    };
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    Side a;
    Side b;
    Side out;
    bool transposeA = false;
    bool transposeB = false;

    auto operator<=>(const WindowShape&) const = default;
};

struct RunProduct {
    std::string
        place; // "qkv", "attention out", "gate-up", "down", "head": the first with the shape
    ProductKind kind = ProductKind::Forward;
    std::int64_t tokens = 0;
    std::int64_t in = 0;
    std::int64_t out = 0;
    DType compute = DType::BF16;
    DType result = DType::BF16;
    bool isFp8 = false;    // of codes (core/model/block_products.h)
    bool hasBias = false;  // forward
    bool mayAddUp = false; // a weight gradient that is added to a sum in some micro-batch or chunk;
                           // of an adapter, any product that is added to what is there
    WindowShape window;    // of an adapter, in place of tokens, in and out

    // All operands, each rounded up to kProductAlign.
    std::size_t bytes() const noexcept;
    double flops() const noexcept; // 2 per multiply-add
    // "down, gradient of weights (2048 x 8960 x 1536)": tokens x in x out
    std::string text() const;
};

inline constexpr std::size_t kProductAlign = 256;

// a (m, k) and b (n, k) of the CodeProductArgs that an FP8 product is.
struct CodeShape {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
    DType a = DType::E4M3;
};
CodeShape codeShapeOf(const RunProduct& product) noexcept;

// In the order of a step: blocks, head; forward, backward. `trained` is the table of what is
// trained: a frozen weight has no gradient, and below the first group that is trained there is no
// backward.
std::vector<RunProduct> runProducts(
    const ModelConfig& config, const ParamTable& trained, const MicroShape& shape);

} // namespace mr
