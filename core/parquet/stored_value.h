// Values of a Parquet column as they are stored, and the dictionary that pages number them by.
//
// Threads    Functions of their arguments; a dictionary may be read by several.
// Ownership  Values and dictionaries borrow the bytes.
// Errors     InvalidArgument without the name of the file: the bytes end early.
// Source     github.com/apache/parquet-format, Encodings.md.

#pragma once

#include "core/parquet/schema_element.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace mr {

struct ParquetValue {
    std::int64_t whole = 0;   // Boolean, Int32, Int64
    double real = 0;          // Float, Double
    std::string_view bytes{}; // ByteArray, FixedBytes; until the next value is asked for
};

// How the values of a column are stored.
struct ParquetStorage {
    ParquetType type = ParquetType::Boolean;
    std::size_t bytes = 0; // of a value, where all have as many; else 0
};

// The values that the pages of a column number. Places are stored, not values.
class ParquetDictionary
{
public:
    Status read(const ParquetStorage& storage, std::string_view bytes, std::int32_t count);
    bool at(std::uint32_t index, ParquetValue& out) const;
    std::size_t count() const noexcept { return m_count; }
    std::size_t bytesUsed() const noexcept { return m_begins.capacity() * sizeof(m_begins[0]); }

private:
    ParquetStorage m_storage;
    std::string_view m_bytes;
    std::vector<std::uint32_t> m_begins; // ByteArray
    std::size_t m_count = 0;
};

// Takes a 4-byte length and so many bytes from the front.
bool takeCounted(std::string_view& bytes, std::string_view& out);

// The value at `at` of a type that has storage.bytes, all of which are there.
ParquetValue fixedAt(const ParquetStorage& storage, std::string_view bytes, std::size_t at);

} // namespace mr
