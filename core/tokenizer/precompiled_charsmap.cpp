#include "core/tokenizer/precompiled_charsmap.h"

#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

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

// No byte, of a leaf.
std::uint32_t labelOf(std::uint32_t unit) noexcept
{
    return unit & (kLeafBit | 0xFFU);
}

bool hasLeaf(std::uint32_t unit) noexcept
{
    return ((unit >> 8) & 1U) != 0;
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
        if (characterBytes(static_cast<unsigned char>(first)) == 0)
            return bad("its normalisation table points into the middle of a character");
    }
    return out;
}

// The leaf of a node with a value is its child of label 0.
std::string_view PrecompiledCharsmap::textOf(std::uint64_t base) const noexcept
{
    const std::string_view rest = std::string_view(m_texts).substr(
        std::min<std::size_t>(m_units[base] & ~kLeafBit, m_texts.size()));
    return rest.substr(0, rest.find('\0'));
}

template <typename Found>
void PrecompiledCharsmap::eachBeginning(std::string_view text, const Found& found) const noexcept
{
    std::uint64_t at = offsetOf(m_units[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte == 0)
            return;
        const std::uint64_t next = at ^ byte;
        const std::uint32_t unit = m_units[next];
        if (labelOf(unit) != byte)
            return;
        at = next ^ offsetOf(unit);
        if (hasLeaf(unit) && !found(Entry{i + 1, textOf(at)}))
            return;
    }
}

std::optional<std::string_view> PrecompiledCharsmap::find(std::string_view text) const noexcept
{
    std::optional<std::string_view> out;
    eachBeginning(text, [&](const Entry& entry) {
        out = entry.becomes;
        return false;
    });
    return out;
}

std::optional<PrecompiledCharsmap::Entry> PrecompiledCharsmap::findLongest(
    std::string_view text) const noexcept
{
    std::optional<Entry> out;
    eachBeginning(text, [&](const Entry& entry) {
        out = entry;
        return true;
    });
    return out;
}

namespace {

// The entries of a trie character by character. Its nodes are shared by entries that end alike, so
// each is looked at once.
class EntryWalk
{
public:
    explicit EntryWalk(const std::vector<std::uint32_t>& units)
        : m_units(units)
    {
    }

    // The bytes of the longest way on from a node between two characters; none: the trie has a
    // cycle, or an entry is no UTF-8.
    std::optional<std::size_t> longestFrom(std::uint64_t base, int depth)
    {
        constexpr int kMostCharacters = 64;
        const auto [known, isNew] = m_longest.try_emplace(base, std::nullopt);
        if (!isNew)
            return known->second; // a node on the way here has no length yet: a cycle
        if (depth == kMostCharacters)
            return std::nullopt;
        std::size_t longest = 0;
        for (unsigned lead = 1; lead < 256; ++lead)
            if (!addCharacters(base, lead, 1, std::string(), depth, longest))
                return std::nullopt;
        return m_longest[base] = longest;
    }

    std::vector<std::int32_t> joining; // characters behind the first

private:
    // Steps over `byte`, and on to the end of the character that begins with `begun`.
    bool addCharacters(std::uint64_t base, unsigned byte, std::size_t missing, std::string begun,
        int depth, std::size_t& longest)
    {
        const std::uint64_t next = base ^ byte;
        const std::uint32_t unit = m_units[next];
        if (labelOf(unit) != byte)
            return true;
        begun += static_cast<char>(byte);
        if (begun.size() == 1)
            missing = characterBytes(static_cast<unsigned char>(byte));
        if (missing == 0)
            return false; // no character begins so
        --missing;
        if ((missing > 0 && hasLeaf(unit)))
            return false;
        const std::uint64_t after = next ^ offsetOf(unit);
        if (missing > 0) {
            for (unsigned more = 0x80; more < 0xC0; ++more)
                if (!addCharacters(after, more, missing, begun, depth, longest))
                    return false;
            return true;
        }
        if (!isUtf8(begun))
            return false;
        if (depth > 0)
            joining.push_back(characterAt(begun, 0).code);
        const std::optional<std::size_t> rest = longestFrom(after, depth + 1);
        if (rest)
            longest = std::max(longest, begun.size() + *rest);
        return rest.has_value();
    }

    const std::vector<std::uint32_t>& m_units;
    std::map<std::uint64_t, std::optional<std::size_t>> m_longest; // by node
};

} // namespace

std::optional<PrecompiledCharsmap::Extent> PrecompiledCharsmap::extent() const
{
    EntryWalk walk(m_units);
    const std::optional<std::size_t> longest = walk.longestFrom(offsetOf(m_units[0]), 0);
    if (!longest)
        return std::nullopt;
    std::sort(walk.joining.begin(), walk.joining.end());
    walk.joining.erase(std::unique(walk.joining.begin(), walk.joining.end()), walk.joining.end());
    return Extent{std::move(walk.joining), *longest};
}

} // namespace mr
