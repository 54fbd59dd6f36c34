#include "core/tokenizer/unigram_model.h"

#include "core/tokenizer/tokenizer_config.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace mr {
namespace {

// Below the lowest score of a piece. Source: unigram_model.cc of SentencePiece.
constexpr double kUnknownPenalty = 10.0;

// A score as the tokenizers package reads it: its JSON parser divides all digits, taken as one
// number, by a power of ten, so the last bit can differ from the nearest double. Sums of the same
// pieces in another order are ties, and that bit decides them ("!!!!!!!").
double scoreAsUpstream(double exact)
{
    std::array<char, 32> text{};
    const auto written = std::to_chars(
        text.data(), text.data() + text.size(), std::abs(exact), std::chars_format::scientific);
    const std::string_view all(text.data(), static_cast<std::size_t>(written.ptr - text.data()));
    const std::size_t mark = std::min(all.find('e'), all.size());
    std::uint64_t digits = 0; // 17 at most
    int exponent = 0;
    for (const char c : all.substr(0, mark))
        digits = c == '.' ? digits : digits * 10 + static_cast<std::uint64_t>(c - '0');
    const std::size_t sign = mark + 1;
    const std::size_t number = sign + (sign < all.size() && all[sign] == '+' ? 1 : 0);
    if (number < all.size())
        (void)std::from_chars(all.data() + number, all.data() + all.size(), exponent);
    exponent -= mark > 1 ? static_cast<int>(mark) - 2 : 0; // digits behind the point
    if (std::abs(exponent) > std::numeric_limits<double>::max_exponent10)
        return exact;
    double power = 1;
    const std::string name = fmt::format("1e{}", std::abs(exponent));
    (void)std::from_chars(name.data(), name.data() + name.size(), power);
    const double size = static_cast<double>(digits);
    return std::copysign(exponent < 0 ? size / power : size * power, exact);
}

} // namespace

struct UnigramModel::Paths final : public WordModel::Scratch {
    std::vector<Best> best; // by position in the word
};

std::unique_ptr<WordModel::Scratch> UnigramModel::makeScratch() const
{
    return std::make_unique<Paths>();
}

Status UnigramModel::loadVocabulary(const JsonNode& node)
{
    if (!node.has("vocab") || !node.at("vocab").value().is_array())
        return node.fail("vocab must be a list of pieces with their scores");
    const JsonNode vocab = node.at("vocab");
    const auto count = vocab.value().size();
    if (count == 0 || count > static_cast<std::size_t>(kMaxTokenId))
        return vocab.fail(fmt::format("has {} pieces", count));
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < count; ++i) {
        const auto& item = vocab.value()[i];
        if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number())
            return vocab.at(i).fail("must be a text and its score");
        m_ids.insert_or_assign(item[0].get<std::string>(), static_cast<TokenId>(i));
        m_scores.push_back(scoreAsUpstream(item[1].get<double>()));
        lowest = std::min(lowest, m_scores.back());
    }
    m_unknownScore = lowest - kUnknownPenalty;
    std::vector<std::pair<std::string_view, std::int32_t>> texts;
    for (const auto& [text, id] : m_ids)
        if (!text.empty())
            texts.emplace_back(text, id);
    m_tree.build(std::move(texts));
    return {};
}

Status UnigramModel::loadUnknown(const JsonNode& node)
{
    if (!node.has("unk_id"))
        return {};
    const auto& value = node.at("unk_id").value();
    const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id >= static_cast<std::int64_t>(m_scores.size()))
        return node.at("unk_id").fail("must be the id of a piece, not " + value.dump());
    m_unknown = static_cast<TokenId>(id);
    return {};
}

Status UnigramModel::load(const JsonNode& node)
{
    MR_TRY(loadVocabulary(node));
    MR_TRY(loadUnknown(node));
    MR_TRY(node.read("byte_fallback", m_byteFallback));
    m_byteIds = byteTokens();
    return {};
}

Status UnigramModel::findPaths(std::string_view word, std::vector<Best>& best) const
{
    best.assign(word.size() + 1, {});
    const auto offer = [&](std::size_t end, double score, std::size_t begin, TokenId id) {
        if (best[end].begin == kNowhere || score > best[end].score)
            best[end] = {score, static_cast<std::uint32_t>(begin), id};
    };
    for (std::size_t at = 0; at < word.size();) {
        const double before = best[at].score;
        const std::size_t character = characterAt(word, at).bytes;
        bool covered = false;
        PrefixTree::Node node = PrefixTree::kRoot;
        for (std::size_t end = at; end < word.size();) {
            node = m_tree.step(node, word[end++]);
            if (node == PrefixTree::kRoot)
                break;
            const TokenId id = m_tree.value(node);
            if (id < 0)
                continue;
            offer(end, m_scores[static_cast<std::size_t>(id)] + before, at, id);
            covered |= end == at + character;
        }
        if (!covered && m_unknown < 0)
            return Status::error(ErrorKind::InvalidArgument,
                "no piece of the tokenizer covers " + inQuotes(word.substr(at, character)) +
                    ", and it has no unknown token (unk_id)");
        if (!covered)
            offer(at + character, m_unknownScore + before, at, m_unknown);
        at += character;
    }
    return {};
}

// Unknown characters side by side: a piece that spells them all, their bytes, or one token.
void UnigramModel::putUnknown(std::string_view text, std::vector<Symbol>& out) const
{
    const TokenId whole = m_tree.find(text);
    const auto idOf = [this](char c) { return m_byteIds[static_cast<unsigned char>(c)]; };
    const bool bytes = whole < 0 && m_byteFallback &&
                       std::all_of(text.begin(), text.end(), [&](char c) { return idOf(c) >= 0; });
    if (!bytes)
        out.push_back({whole < 0 ? m_unknown : whole, static_cast<std::uint32_t>(text.size())});
    for (std::size_t i = text.size(); bytes && i > 0; --i)
        out.push_back({idOf(text[i - 1]), 1});
}

// From the end, as the paths lead; then turned round.
void UnigramModel::readBack(
    std::string_view word, const std::vector<Best>& best, std::vector<Symbol>& out) const
{
    std::size_t unknownEnd = 0; // end of the unknown characters that wait
    for (std::size_t end = word.size(); end > 0;) {
        const Best& last = best[end];
        const bool unknown = last.id == m_unknown;
        if (unknown && unknownEnd == 0)
            unknownEnd = end;
        if (!unknown && unknownEnd > 0) {
            putUnknown(word.substr(end, unknownEnd - end), out);
            unknownEnd = 0;
        }
        if (!unknown)
            out.push_back({last.id, static_cast<std::uint32_t>(end - last.begin)});
        end = last.begin;
    }
    if (unknownEnd > 0)
        putUnknown(word.substr(0, unknownEnd), out);
    std::reverse(out.begin(), out.end());
}

Status UnigramModel::tokenize(std::string_view word, WordModel::Scratch& scratch) const
{
    std::vector<Best>& best = static_cast<Paths&>(scratch).best;
    MR_TRY(findPaths(word, best));
    scratch.word.clear();
    readBack(word, best, scratch.word);
    return {};
}

} // namespace mr
