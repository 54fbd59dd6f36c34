#include "core/checks/row_examiner.h"

#include "core/checks/lost_characters.h"
#include "core/checks/row_turns.h"

#include <numeric>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mr {
namespace {

// Sequences are counted here and not used.
constexpr std::uint64_t kMostKeptTokens = 65'536;

std::uint64_t unwrittenRows(const TokenSet& set)
{
    return std::accumulate(set.unwritten.rows.begin(), set.unwritten.rows.end(), std::uint64_t{0});
}

std::string_view& whyOf(RowFacts& facts, RowCheck check)
{
    return facts.why[static_cast<std::size_t>(check)];
}

// Keeps what an earlier part of the text said.
void note(RowFacts& facts, RowCheck check, std::string_view why)
{
    std::string_view& kept = whyOf(facts, check);
    kept = kept.empty() ? why : kept;
}

} // namespace

RowExaminer::RowExaminer(const Tokenizer* tokenizer, const TokenSetOptions& options)
    : m_seqLen(options.seqLen)
{
    if (tokenizer != nullptr)
        m_builder.emplace(*tokenizer, options);
}

// The parts of a text are hashed one by one, each with the hash of those before it.
RowHash RowExaminer::hashOf(const Document& document)
{
    m_content.clear();
    const auto add = [this](std::string_view part) {
        m_content += part;
        m_content.push_back('\0');
    };
    for (const std::string* part : {&document.chat, &document.text, &document.system})
        add(*part);
    for (const ChatTurn& turn : document.history) {
        add(turn.question);
        add(turn.answer);
    }
    add(document.prompt);
    add(document.response);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(
        m_content.data(), m_content.size(), m_open ? m_open->hash.low ^ m_open->hash.high : 0);
    return {hash.low64, hash.high64};
}

void RowExaminer::noteTokens(
    const TokenCounts& before, std::uint64_t unwrittenBefore, RowFacts& facts) const
{
    const TokenSet& set = m_builder->set();
    facts.tokens = static_cast<std::int64_t>(m_builder->uncutTokens());
    if (unwrittenRows(set) > unwrittenBefore)
        note(facts, RowCheck::LeftOut, "the chat template leaves out a part of it");
    else if (set.trainedTokens == before.trainedTokens && set.emptyRows > before.emptyRows)
        note(facts, RowCheck::Untrained,
            facts.tokens > m_seqLen + 1 ? "what comes before the answer fills the sequence"
                                        : "no token of it is trained");
    if (set.cutRows > before.cutRows)
        note(facts, RowCheck::Cut, "longer than the sequence");
}

Status RowExaminer::countTokens(const Document& document, RowFacts& facts)
{
    if (!m_builder)
        return {};
    const TokenCounts before = m_builder->set();
    const std::uint64_t unwritten = unwrittenRows(m_builder->set());
    const Status added = m_builder->add(document);
    if (!added.ok() && added.kind() != ErrorKind::InvalidArgument)
        return added;
    if (!added.ok())
        note(facts, RowCheck::Unreadable, "the chat template cannot write it");
    else
        noteTokens(before, unwritten, facts);
    if (m_builder->set().sequences.tokens() > kMostKeptTokens)
        m_builder->takeSet();
    return {};
}

Result<std::optional<RowFacts>> RowExaminer::examine(const Document& document)
{
    RowFacts facts = m_open.value_or(RowFacts());
    const bool isPart = document.goesOn || m_open.has_value();
    facts.hash = hashOf(document);
    facts.row = document.row;
    facts.line = isPart && m_open ? facts.line : document.line;
    const std::vector<RowTurn> turns = turnsOf(document);
    for (const RowTurn& turn : turns)
        note(facts, RowCheck::Encoding, lostCharacters(turn.text));
    if (!isPart) {
        note(facts, RowCheck::EmptyTurn, emptyTurn(turns));
        note(facts, RowCheck::RoleOrder, wrongOrder(turns));
        facts.signature = signatureOf(turns);
    }
    MR_TRY(countTokens(document, facts));
    m_open.reset();
    if (!document.goesOn)
        return std::optional(std::move(facts));
    m_open = std::move(facts);
    return std::optional<RowFacts>();
}

} // namespace mr
