// GgufType: how the elements of a tensor are encoded in a GGUF file, in blocks of a fixed size.
//
// Threads  Pure functions.
// Source   reference: export sections 2 and 6; the names and numbers are those of ggml.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mr {

enum class GgufType : std::uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    BF16 = 30,
};

struct GgufTypeInfo {
    GgufType type;
    std::string_view name; // "Q4_K"
    std::int64_t elements; // of a block
    std::int64_t bytes;    // of a block
};

// Null: a type that is not read here.
const GgufTypeInfo* ggufTypeInfo(std::uint32_t type) noexcept;
const GgufTypeInfo& ggufTypeInfo(GgufType type) noexcept;

// "IQ4_XS (type 23)", also of types that are not read here; "type 77" of an unknown one.
std::string ggufTypeName(std::uint32_t type);

// "F32, F16, Q4_0, ...": all that are read here.
std::string ggufTypesRead();

} // namespace mr
