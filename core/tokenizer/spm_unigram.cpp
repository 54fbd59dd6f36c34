#include "core/tokenizer/spm_unigram.h"

#include "core/tokenizer/unicode_text.h"

#include <algorithm>
#include <limits>

namespace mr {

void SpmUnigram::load(
    const SpmModel& model, const std::array<TokenId, 256>& byteIds, TokenId unknown)
{
    m_byteIds = byteIds;
    m_unknown = unknown;
    m_byteFallback = model.byteFallback;
    m_lowest = std::numeric_limits<float>::max();
    m_highest = std::numeric_limits<float>::lowest();
    std::vector<std::pair<std::string_view, std::int32_t>> texts;
    for (const SpmModel::Piece& piece : model.vocabulary) {
        const bool isOwn = piece.type == SpmModel::Type::UserDefined;
        const bool isUnused = piece.type == SpmModel::Type::Unused;
        if (piece.type == SpmModel::Type::Normal) {
            m_lowest = std::min(m_lowest, piece.score);
            m_highest = std::max(m_highest, piece.score);
        }
        if (isOwn || isUnused || piece.type == SpmModel::Type::Normal)
            texts.emplace_back(piece.text, static_cast<std::int32_t>(m_pieces.size()));
        m_pieces.push_back({piece.score, isUnused, isOwn});
    }
    m_tree.build(std::move(texts));
}

// A candidate is compared in double precision, then kept as float, as in the library.
void SpmUnigram::findPaths(std::string_view text, std::vector<Best>& best) const
{
    constexpr float kUnknownPenalty = 10.0F;
    const auto offer = [&](std::size_t end, double score, std::size_t begin, TokenId id) {
        if (best[end].begin < 0 || score > static_cast<double>(best[end].score))
            best[end] = {static_cast<float>(score), static_cast<std::int32_t>(begin), id};
    };
    for (std::size_t at = 0; at < text.size();) {
        const float before = best[at].score;
        const std::size_t character = std::max<std::size_t>(characterAt(text, at).bytes, 1);
        bool covered = false;
        PrefixTree::Node node = PrefixTree::kRoot;
        for (std::size_t end = at; end < text.size();) {
            node = m_tree.step(node, text[end++]);
            if (node == PrefixTree::kRoot)
                break;
            const TokenId id = m_tree.value(node);
            if (id < 0 || m_pieces[static_cast<std::size_t>(id)].isUnused)
                continue;
            const Piece& piece = m_pieces[static_cast<std::size_t>(id)];
            const double score = piece.isOwn ? static_cast<float>(end - at) * m_highest - 0.1
                                             : static_cast<double>(piece.score);
            offer(end, score + static_cast<double>(before), at, id);
            covered |= end == at + character;
        }
        if (!covered) {
            const float unknown = m_lowest - kUnknownPenalty;
            offer(at + character, static_cast<double>(unknown + before), at, m_unknown);
        }
        at += character;
    }
}

void SpmUnigram::put(
    std::string_view piece, TokenId id, Part& part, std::vector<TokenId>& out) const
{
    const bool isUnknown = id == m_unknown;
    if (isUnknown && m_byteFallback)
        for (const char byte : piece)
            out.push_back(m_byteIds[static_cast<unsigned char>(byte)]);
    else if (!isUnknown || !part.endsUnknown)
        out.push_back(id);
    part.endsUnknown = isUnknown;
}

void SpmUnigram::encode(std::string_view normalized, Part& part, std::vector<TokenId>& out) const
{
    std::vector<Best> best(normalized.size() + 1);
    best[0].score = part.score;
    findPaths(normalized, best);
    std::vector<std::size_t> ends;
    for (std::size_t end = normalized.size(); end > 0;
         end = static_cast<std::size_t>(best[end].begin))
        ends.push_back(end);
    part.score = best[normalized.size()].score;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
        const auto begin = static_cast<std::size_t>(best[*end].begin);
        put(normalized.substr(begin, *end - begin), best[*end].id, part, out);
    }
}

} // namespace mr
