// GgufFile: reads a GGUF file as untrusted input.
//
// open() reads the header and checks every rule of the format; no length of it is believed before
// the file was found to hold so many bytes. Elements of tensors are read by position and decoded,
// so nothing larger than the header is ever held.
//
// Threads  The const functions from any number of threads.
// Errors   DataCorrupt or InvalidArgument with file, byte offset and rule, and the way out where
//          there is one.
// Source   reference: export section 2.

#pragma once

#include "core/base/file.h"
#include "core/gguf/gguf_type.h"
#include "core/gguf/gguf_value.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr {

struct GgufTensor {
    std::string name;
    std::vector<std::int64_t> ne; // 1 to 4, the fastest first: a matrix is {columns, rows}
    GgufType type = GgufType::F32;
    std::uint64_t offset = 0; // in the file
    std::uint64_t bytes = 0;

    std::int64_t count() const noexcept; // elements
};

// Tensors begin at multiples of it where the key general.alignment says nothing else.
inline constexpr std::uint32_t kGgufAlignment = 32;
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr std::string_view kGgufPartsKey = "split.count";

class GgufFile
{
public:
    static Result<GgufFile> open(const std::filesystem::path& file);

    const std::filesystem::path& path() const noexcept { return m_file.path(); }

    // In the order of the file.
    const GgufValues& values() const noexcept { return m_values; }
    const std::vector<GgufTensor>& tensors() const noexcept { return m_tensors; }

    // Null where the file has none.
    const GgufValue* find(std::string_view key) const;
    const GgufTensor* tensor(std::string_view name) const;

    // Elements [first, first + out.size()) of a tensor of this file, decoded.
    Status readFloats(const GgufTensor& tensor, std::int64_t first, std::span<float> out) const;
    // Bytes [offset, offset + out.size()) of it, as they are.
    Status readBytes(
        const GgufTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

private:
    File m_file;
    GgufValues m_values;
    std::vector<GgufTensor> m_tensors;
    std::map<std::string, std::size_t, std::less<>> m_keys;  // places in m_values
    std::map<std::string, std::size_t, std::less<>> m_names; // places in m_tensors
};

} // namespace mr
