#include "core/tokenizer/subword_model.h"

#include "core/base/shown_text.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/unigram_model.h"

#include <algorithm>
#include <cstring>

namespace mr {

std::string inQuotes(std::string_view text)
{
    return shownName(text);
}

WordModel::Scratch::Scratch()
    : m_cache(kEntries)
{
}

Result<std::unique_ptr<WordModel>> WordModel::read(const JsonNode& node, bool byteLevel)
{
    // Older files do not say: there a list of pieces with scores is Unigram's.
    const bool listed = node.has("vocab") && node.at("vocab").value().is_array();
    std::string type = listed ? "Unigram" : "BPE";
    MR_TRY(node.read("type", type));
    if (type == "BPE") {
        auto model = std::make_unique<BpeModel>();
        MR_TRY(model->load(node, byteLevel));
        return std::unique_ptr<WordModel>(std::move(model));
    }
    if (type != "Unigram")
        return node.fail("type " + inQuotes(type) + " is not supported; supported: BPE, Unigram");
    if (byteLevel)
        return node.fail("type \"Unigram\" after ByteLevel is not supported");
    auto model = std::make_unique<UnigramModel>();
    MR_TRY(model->load(node));
    return std::unique_ptr<WordModel>(std::move(model));
}

Status WordModel::encode(
    std::string_view word, Scratch& scratch, std::span<const Symbol>& out) const
{
    const bool cached = !word.empty() && word.size() <= Scratch::kCachedBytes;
    Scratch::Entry* const entry =
        cached ? &scratch.m_cache[Hash()(word) % Scratch::kEntries] : nullptr;
    if (cached && entry->bytes == word.size() &&
        std::memcmp(entry->text.data(), word.data(), word.size()) == 0) {
        out = {entry->symbols.data(), entry->count};
        return {};
    }
    MR_TRY(tokenize(word, scratch));
    out = scratch.word;
    if (cached && out.size() <= Scratch::kCachedSymbols) {
        entry->bytes = static_cast<std::uint8_t>(word.size());
        entry->count = static_cast<std::uint8_t>(out.size());
        std::copy(word.begin(), word.end(), entry->text.begin());
        std::copy(out.begin(), out.end(), entry->symbols.begin());
    }
    return {};
}

TokenId WordModel::find(std::string_view piece) const
{
    const auto found = m_ids.find(piece);
    return found == m_ids.end() ? -1 : found->second;
}

std::array<TokenId, 256> WordModel::byteTokens() const
{
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::array<TokenId, 256> out{};
    for (std::size_t byte = 0; byte < 256; ++byte)
        out[byte] = find(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
    return out;
}

} // namespace mr
