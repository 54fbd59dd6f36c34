// Numbers of a conformance case as the bytes of a tensor, and back.
//
// Threads  Pure.

#pragma once

#include "core/prove/conformance_case.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mr::conformance {

// Each value converted to `type`, one after the other.
void encodeAs(DType type, const Values& values, std::span<std::byte> to);
std::vector<std::byte> encodedAs(DType type, const Values& values);
// The element that begins at `from`.
double decode(DType type, const std::byte* from);

} // namespace mr::conformance
