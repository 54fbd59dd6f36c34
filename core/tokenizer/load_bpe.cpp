// BpeModel from its JSON.

#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/tokenizer_config.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {
namespace {

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
    std::vector<std::string_view> seen; // by id; no piece has the null text
    m_ids.reserve(vocab.value().size());
    for (const auto& [text, value] : vocab.value().items()) {
        const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
        if (id < 0 || id > kMaxTokenId)
            return vocab.fail(inQuotes(text) + " has the id " + value.dump());
        const auto index = static_cast<std::size_t>(id);
        seen.resize(std::max(seen.size(), index + 1));
        if (seen[index].data() != nullptr)
            return vocab.fail(fmt::format(
                "{} and {} both have the id {}", inQuotes(text), inQuotes(seen[index]), id));
        seen[index] = text;
        m_ids.emplace(text, static_cast<TokenId>(id));
    }
    return m_ids.empty() ? vocab.fail("is empty") : Status();
}

Status BpeModel::addMerge(const JsonNode& list, std::size_t rank, TextPair texts)
{
    const std::string joined = std::string(texts.left) + std::string(texts.right);
    const std::array<std::string_view, 3> pieces{texts.left, texts.right, joined};
    std::array<TokenId, 3> ids{};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        ids.at(i) = find(pieces.at(i));
        if (ids.at(i) < 0)
            return list.at(rank).fail("merges " + inQuotes(texts.left) + " and " +
                                      inQuotes(texts.right) + ", but " + inQuotes(pieces.at(i)) +
                                      " is not in the vocabulary");
    }
    m_merges.put(ids[0], ids[1], {static_cast<std::uint32_t>(rank), ids[2]});
    m_wordsAreApart = m_wordsAreApart && !hasMarkInside(joined);
    return {};
}

// ["a", "b"], or in older files "a b".
bool BpeModel::readMerge(const nlohmann::json& value, TextPair& out)
{
    if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
        out = {value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>()};
        return true;
    }
    if (!value.is_string())
        return false;
    const std::string_view text = value.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        return false;
    out = {text.substr(0, space), text.substr(space + 1)};
    return true;
}

Status BpeModel::loadMerges(const JsonNode& node)
{
    if (!node.has("merges") || !node.at("merges").value().is_array())
        return node.fail("merges must be a list");
    const JsonNode merges = node.at("merges");
    m_merges.reserve(merges.value().size());
    m_wordsAreApart = !m_byteLevel && !m_ignoreMerges && find(kSpaceMark) >= 0;
    TextPair texts;
    for (std::size_t rank = 0; rank < merges.value().size(); ++rank) {
        if (!readMerge(merges.value()[rank], texts))
            return merges.at(rank).fail("must be two texts with a space between them, or a pair");
        MR_TRY(addMerge(merges, rank, texts));
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
    m_byteIds = byteTokens();
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

// All pairs of tokens that make a token, each with its rank: two ways to make one are equal.
void BpeModel::loadRankedPairs(std::span<const std::string> tokens)
{
    struct Pair {
        TokenId left;
        TokenId right;
        PairTable::Merge merge;
    };
    std::vector<Pair> pairs;
    for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
        const std::string_view token = tokens[rank];
        const TokenId id = m_whole.find(token)->second;
        for (std::size_t cut = 1; cut < token.size(); ++cut) {
            const auto left = m_whole.find(token.substr(0, cut));
            const auto right = m_whole.find(token.substr(cut));
            if (left != m_whole.end() && right != m_whole.end())
                pairs.push_back(
                    {left->second, right->second, {static_cast<std::uint32_t>(rank), id}});
        }
    }
    m_merges.reserve(pairs.size());
    for (const Pair& pair : pairs)
        m_merges.put(pair.left, pair.right, pair.merge);
}

Status BpeModel::loadRanks(std::span<const std::string> tokens, TokenId first)
{
    m_byteLevel = true;
    m_ignoreMerges = true;
    const auto letters = byteLetters();
    m_ids.reserve(tokens.size());
    m_whole.reserve(tokens.size());
    std::string spelled;
    for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
        const TokenId id = first + static_cast<TokenId>(rank);
        const auto [before, isNew] = m_whole.emplace(tokens[rank], id);
        if (!isNew)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("vocab[{}].token_bytes: rank {} has the same bytes", rank,
                    before->second - first));
        spelled.clear();
        for (const char byte : tokens[rank])
            appendCharacter(letters[static_cast<unsigned char>(byte)], spelled);
        m_ids.emplace(spelled, id);
    }
    for (std::size_t byte = 0; byte < m_ofByte.size(); ++byte)
        m_ofByte[byte] = m_whole.find(std::string(1, static_cast<char>(byte)))->second;
    loadRankedPairs(tokens);
    return {};
}

} // namespace mr
