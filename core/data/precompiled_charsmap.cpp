#include "core/data/precompiled_charsmap.h"

#include "core/data/unicode_text.h"

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

Status bad(const char* message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

constexpr std::uint32_t kLeafBit = std::uint32_t{1} << 31;

std::uint64_t offsetOf(std::uint32_t unit) noexcept
{
    return std::uint64_t{unit >> 10} << ((unit & (1U << 9)) >> 6);
}

} // namespace

Status checkCharsmap(std::string_view blob)
{
    if (blob.empty())
        return {};
    std::uint32_t trieBytes = 0;
    if (blob.size() > sizeof trieBytes)
        std::memcpy(&trieBytes, blob.data(), sizeof trieBytes);
    if (trieBytes == 0 || trieBytes % 4 != 0 || trieBytes >= blob.size() - sizeof trieBytes)
        return bad("its normalisation table is damaged");
    const char* trie = blob.data() + sizeof trieBytes;
    const std::uint64_t units = trieBytes / 4;
    const std::uint64_t textBytes = blob.size() - sizeof trieBytes - trieBytes;
    for (std::uint64_t i = 0; i < units; ++i) {
        std::uint32_t unit = 0;
        std::memcpy(&unit, trie + 4 * i, sizeof unit);
        const bool inside = (unit & kLeafBit) != 0 ? (unit & ~kLeafBit) < textBytes
                                                   : ((i ^ offsetOf(unit)) | 0xFFU) < units;
        if (!inside)
            return bad("its normalisation table points outside itself");
    }
    return {};
}

Result<PrecompiledCharsmap> PrecompiledCharsmap::read(std::string_view blob)
{
    if (blob.empty())
        return bad("its normalisation table is empty");
    MR_TRY(checkCharsmap(blob));
    std::uint32_t trieBytes = 0;
    std::memcpy(&trieBytes, blob.data(), sizeof trieBytes);
    PrecompiledCharsmap out;
    out.m_units.resize(trieBytes / 4);
    std::memcpy(out.m_units.data(), blob.data() + sizeof trieBytes, trieBytes);
    out.m_texts = std::string(blob.substr(sizeof trieBytes + trieBytes));
    if (!isUtf8(out.m_texts))
        return bad("its normalisation table holds texts that are no UTF-8");
    for (const std::uint32_t unit : out.m_units) {
        const bool leaf = (unit & kLeafBit) != 0;
        const auto first = leaf ? static_cast<unsigned char>(out.m_texts[unit & ~kLeafBit]) : 0U;
        if ((first & 0xC0U) == 0x80U)
            return bad("its normalisation table points into the middle of a character");
    }
    return out;
}

std::optional<std::string_view> PrecompiledCharsmap::find(std::string_view text) const noexcept
{
    std::uint64_t at = offsetOf(m_units[0]);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte == 0)
            break;
        const std::uint64_t next = at ^ byte;
        const std::uint32_t unit = m_units[next];
        if ((unit & (kLeafBit | 0xFFU)) != byte)
            break;
        at = next ^ offsetOf(unit);
        if (((unit >> 8) & 1U) == 0)
            continue;
        const std::string_view rest = std::string_view(m_texts).substr(
            std::min<std::size_t>(m_units[at] & ~kLeafBit, m_texts.size()));
        return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
}

} // namespace mr
