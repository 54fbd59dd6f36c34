// BpeModel from its JSON.

#include "core/data/bpe_model.h"
#include "core/data/tokenizer_habits.h"
#include "core/data/unicode_text.h"

namespace mr {
namespace {

std::string inQuotes(std::string_view text)
{
    return "\"" + std::string(text) + "\"";
}

// A "▁" somewhere behind another character.
bool hasMarkInside(std::string_view text)
{
    while (text.starts_with(kSpaceMark))
        text.remove_prefix(kSpaceMark.size());
    return text.find(kSpaceMark) != std::string_view::npos;
}

} // namespace

std::array<std::int32_t, 256> byteLetters()
{
    std::array<std::int32_t, 256> out{};
    std::int32_t next = 256;
    for (std::int32_t byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
        out[static_cast<std::size_t>(byte)] = printable ? byte : next++;
    }
    return out;
}

Status BpeModel::checkSettings(const JsonNode& node) const
{
    std::string type = "BPE"; // older files do not say
    MR_TRY(node.read("type", type));
    if (type != "BPE")
        return node.fail("type " + inQuotes(type) + " is not supported; supported: BPE");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        std::string text;
        MR_TRY(node.read(name, text));
        if (!text.empty())
            return node.at(name).fail(inQuotes(text) + " is not supported");
    }
    if (node.has("dropout") && node.at("dropout").value() != 0)
        return node.fail("dropout is not supported: the same text would have other ids each time");
    return {};
}

Status BpeModel::loadVocabulary(const JsonNode& node)
{
    if (!node.has("vocab") || !node.at("vocab").value().is_object())
        return node.fail("vocab must be an object of ids by text");
    const JsonNode vocab = node.at("vocab");
    std::unordered_map<TokenId, std::string_view> seen;
    for (const auto& [text, value] : vocab.value().items()) {
        const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
        if (id < 0 || id > kMaxTokenId)
            return vocab.fail(inQuotes(text) + " has the id " + value.dump());
        const auto [other, isNew] = seen.emplace(static_cast<TokenId>(id), text);
        if (!isNew)
            return vocab.fail(inQuotes(text) + " and " + inQuotes(other->second) +
                              " both have the id " + std::to_string(id));
        m_ids.emplace(text, static_cast<TokenId>(id));
    }
    return m_ids.empty() ? vocab.fail("is empty") : Status();
}

Status BpeModel::addMerge(
    const JsonNode& node, std::string_view left, std::string_view right, std::uint32_t rank)
{
    const std::string joined = std::string(left) + std::string(right);
    for (const std::string_view text : {left, right, std::string_view(joined)})
        if (find(text) < 0)
            return node.fail("merges " + inQuotes(left) + " and " + inQuotes(right) + ", but " +
                             inQuotes(text) + " is not in the vocabulary");
    m_merges.put(find(left), find(right), {rank, find(joined)});
    m_wordsAreApart &= !hasMarkInside(joined);
    return {};
}

Status BpeModel::loadMerges(const JsonNode& node)
{
    std::vector<JsonNode> merges;
    MR_TRY(node.elements("merges", merges));
    m_merges.reserve(merges.size());
    m_wordsAreApart = !m_byteLevel && !m_ignoreMerges && find(kSpaceMark) >= 0;
    for (std::size_t i = 0; i < merges.size(); ++i) {
        const auto& value = merges[i].value();
        const auto rank = static_cast<std::uint32_t>(i);
        if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
            MR_TRY(addMerge(merges[i], value[0].get_ref<const std::string&>(),
                value[1].get_ref<const std::string&>(), rank));
            continue;
        }
        const std::string_view text =
            value.is_string() ? std::string_view(value.get_ref<const std::string&>()) : "";
        const std::size_t space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
            return merges[i].fail("must be two texts with a space between them, or a pair");
        MR_TRY(addMerge(merges[i], text.substr(0, space), text.substr(space + 1), rank));
    }
    return {};
}

Status BpeModel::loadUnknown(const JsonNode& node)
{
    std::string text;
    MR_TRY(node.read("unk_token", text));
    if (!node.has("unk_token"))
        return {};
    m_unknown = find(text);
    return m_unknown < 0 ? node.at("unk_token").fail(inQuotes(text) + " is not in the vocabulary")
                         : Status();
}

void BpeModel::loadBytes()
{
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte)
        m_byteIds[byte] = find(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
    const auto letters = byteLetters();
    std::unordered_map<std::int32_t, char> byteOf;
    for (std::size_t byte = 0; byte < 256; ++byte) {
        std::string letter;
        appendCharacter(letters[byte], letter);
        byteOf[letters[byte]] = static_cast<char>(byte);
        m_ofByte[byte] = find(letter);
        m_rareBytes[byte] = initial(letter);
    }
    for (const auto& [text, id] : m_ids) {
        const Character first = characterAt(text, 0);
        if (!m_byteLevel && first.code >= 0 && first.bytes == text.size())
            m_byCharacter[first.code] = id;
        std::string raw;
        bool reachable = true;
        for (std::size_t at = 0; at < text.size() && m_ignoreMerges && m_byteLevel;) {
            const Character c = characterAt(text, at);
            const auto byte = byteOf.find(c.code);
            reachable &= byte != byteOf.end();
            raw += byte == byteOf.end() ? '\0' : byte->second;
            at += c.bytes;
        }
        if (m_ignoreMerges && reachable)
            m_whole.emplace(m_byteLevel ? raw : text, id);
    }
}

Status BpeModel::load(const JsonNode& node, bool byteLevel)
{
    m_byteLevel = byteLevel;
    MR_TRY(checkSettings(node));
    MR_TRY(node.read("ignore_merges", m_ignoreMerges));
    MR_TRY(node.read("byte_fallback", m_byteFallback));
    MR_TRY(node.read("fuse_unk", m_fuseUnknown));
    MR_TRY(loadVocabulary(node));
    MR_TRY(loadMerges(node));
    MR_TRY(loadUnknown(node));
    loadBytes();
    return {};
}

} // namespace mr
