// The opening check of a run's matrix products, for a device whose library picks the algorithms.
//
// Two things that exact runs rest on are tried for each shape, on fixed numbers:
//   - the same call gives the same bits again;
//   - a weight gradient that is added to a sum by its product has the bits of the product and one
//     F32 addition.
// Outputs of up to 4 MiB are compared whole, larger ones in 64 pieces of 64 KiB from end to end.
//
// Threads    The caller's, which is the engine thread of the device. The device must be idle.
// Memory     One allocation of at most `memoryBytes` for the operands of the largest shape that
//            fits, and 8 MiB of pinned memory; freed before it returns.
// Errors     Internal: other bits the second time; names the product, the device and the way out.
//            Those of the device. A shape that cannot be tried is no error (`unchecked`).

#pragma once

#include "core/device/device.h"
#include "core/model/added_apart.h"
#include "core/prove/run_products.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct ProductCheckLimits {
    std::size_t memoryBytes = 0;
    std::int64_t timeNs = 2'000'000'000; // no shape is begun after it
    std::function<std::int64_t()> clock; // nanoseconds; empty: nowNs()
};

struct ProductVerdict {
    int checked = 0;
    double seconds = 0.0;
    std::vector<GradientShape> apart;   // that the library does not add in one F32 addition
    std::vector<std::string> unchecked; // RunProduct::text(), and why

    bool wasMade() const noexcept { return checked > 0 || !unchecked.empty(); }
    bool isClean() const noexcept { return apart.empty() && unchecked.empty(); }
    bool isEmpty() const noexcept { return !wasMade() && apart.empty(); }
};

// The cheapest first, so that a limit of time leaves out few.
Result<ProductVerdict> checkProducts(
    Device& device, std::vector<RunProduct> products, const ProductCheckLimits& limits);

// F32 scratch of the largest that is added apart; 0: none is.
std::size_t scratchBytes(const ProductVerdict& verdict) noexcept;

// Sentences for the run's log.
std::string describe(const ProductVerdict& verdict);
// For the run's record. Empty text: nothing was checked.
std::string toJson(const ProductVerdict& verdict);
Result<ProductVerdict> productVerdictFromJson(std::string_view text);

} // namespace mr
