#include "core/parquet/stored_value.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace mr {
namespace {

static_assert(std::endian::native == std::endian::little); // as the format stores numbers

template <typename T>
T loaded(std::string_view bytes, std::size_t at)
{
    T out{};
    std::memcpy(&out, bytes.data() + at, sizeof(T));
    return out;
}

} // namespace

ParquetValue fixedAt(const ParquetStorage& storage, std::string_view bytes, std::size_t at)
{
    switch (storage.type) {
    case ParquetType::Int32:
        return {loaded<std::int32_t>(bytes, at)};
    case ParquetType::Int64:
        return {loaded<std::int64_t>(bytes, at)};
    case ParquetType::Float:
        return {0, static_cast<double>(loaded<float>(bytes, at))};
    case ParquetType::Double:
        return {0, loaded<double>(bytes, at)};
    default:
        return {0, 0, bytes.substr(at, storage.bytes)};
    }
}

bool takeCounted(std::string_view& bytes, std::string_view& out)
{
    if (bytes.size() < sizeof(std::uint32_t))
        return false;
    const auto count = loaded<std::uint32_t>(bytes, 0);
    bytes.remove_prefix(sizeof(count));
    if (count > bytes.size())
        return false;
    out = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return true;
}

Status ParquetDictionary::read(
    const ParquetStorage& storage, std::string_view bytes, std::int32_t count)
{
    m_storage = storage;
    m_bytes = bytes;
    m_begins.clear();
    m_count = static_cast<std::size_t>(count);
    bool fits = storage.type != ParquetType::Boolean;
    if (storage.type == ParquetType::ByteArray) {
        std::string_view rest = bytes;
        for (std::size_t i = 0; i < m_count && fits; ++i) {
            m_begins.push_back(static_cast<std::uint32_t>(bytes.size() - rest.size()));
            std::string_view text;
            fits = takeCounted(rest, text);
        }
    } else {
        fits = fits && m_count <= bytes.size() / storage.bytes;
    }
    return fits ? Status()
                : Status::error(ErrorKind::InvalidArgument,
                      fmt::format("its dictionary is damaged: {} values do not fit in {} bytes",
                          count, bytes.size()));
}

bool ParquetDictionary::at(std::uint32_t index, ParquetValue& out) const
{
    if (index >= m_count)
        return false;
    if (m_storage.type != ParquetType::ByteArray) {
        out = fixedAt(m_storage, m_bytes, index * m_storage.bytes);
        return true;
    }
    std::string_view rest = m_bytes.substr(m_begins[index]);
    return takeCounted(rest, out.bytes);
}

} // namespace mr
