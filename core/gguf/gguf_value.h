// GgufValue: one value of the metadata of a GGUF file.
//
// Threads  A value.
// Source   reference: export section 2.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mr {

// The numbers are those of the format.
enum class GgufValueType : std::uint32_t {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
};

// "u32", "string", ...
std::string_view ggufValueTypeName(GgufValueType type) noexcept;

struct GgufValue {
    using Data = std::variant<bool, std::int64_t, std::uint64_t, double, std::string,
        std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

    GgufValueType type = {};
    GgufValueType element = {}; // of an Array, else U8
    // Bool: bool. U8 to U64: uint64_t. I8 to I64: int64_t. F32, F64: double. String: its bytes.
    // An Array: int64_t of all whole numbers and Bool (U64 by its bits), double, string.
    Data data;

    static GgufValue u32(std::uint32_t value);
    static GgufValue i32(std::int32_t value);
    static GgufValue u64(std::uint64_t value);
    static GgufValue f32(float value);
    static GgufValue boolean(bool value);
    static GgufValue string(std::string value);
    static GgufValue strings(std::vector<std::string> values);
    static GgufValue f32s(const std::vector<float>& values);
    static GgufValue i32s(const std::vector<std::int32_t>& values);
    static GgufValue u32s(const std::vector<std::uint32_t>& values);
    static GgufValue bools(const std::vector<bool>& values);

    bool operator==(const GgufValue&) const = default;
};

// Keys in the order of the file.
using GgufValues = std::vector<std::pair<std::string, GgufValue>>;

} // namespace mr
