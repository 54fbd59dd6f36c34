#include "core/data/parallel_token_set.h"

#include <algorithm>
#include <limits>

namespace mr {
namespace {

constexpr std::size_t kRowsOfAPiece = 32;
constexpr std::size_t kMostRows = 8192;
// A hundred milliseconds for a slow thread.
constexpr std::size_t kMostWaitingBytes = std::size_t{2} << 20;

std::size_t bytesOf(const Document& document)
{
    std::size_t bytes = document.prompt.size() + document.response.size() + document.chat.size() +
                        document.text.size() + document.system.size();
    for (const ChatTurn& turn : document.history)
        bytes += turn.question.size() + turn.answer.size();
    return bytes;
}

} // namespace

ParallelTokenSet::ParallelTokenSet(
    const Tokenizer& tokenizer, const TokenSetOptions& options, int threads, BadRows& bad)
    : m_bad(bad)
    , m_rows(kMostRows)
    , m_sources(kMostRows)
{
    for (int i = 0; i < threads; ++i)
        m_builders.emplace_back(tokenizer, options);
}

Status ParallelTokenSet::add(const DataSource& source, const Document& document)
{
    const std::size_t bytes = bytesOf(document);
    const bool isPiece = document.goesOn || m_isInText;
    m_isInText = document.goesOn;
    if (isPiece || bytes >= kMostWaitingBytes || m_builders.size() == 1) {
        // Work enough by itself, and not copied.
        MR_TRY(flush());
        const DataSource* const from = &source;
        return keep(encode({&from, 1}, {&document, 1}, m_builders.front()));
    }
    m_sources[m_waiting] = &source;
    m_rows[m_waiting++] = document;
    m_waitingBytes += bytes;
    return m_waiting == kMostRows || m_waitingBytes >= kMostWaitingBytes ? flush() : Status();
}

ParallelTokenSet::Piece ParallelTokenSet::encode(std::span<const DataSource* const> sources,
    std::span<const Document> rows, TokenSetBuilder& builder)
{
    Piece piece;
    for (std::size_t i = 0; i < rows.size() && piece.status.ok(); ++i) {
        const bool isPiece = rows[i].goesOn || builder.isInText();
        Status done = builder.add(rows[i]);
        builder.setPath(sources[i]->path);
        if (done.ok() || done.kind() != ErrorKind::InvalidArgument) {
            piece.status = std::move(done);
            continue;
        }
        Status why = dataError(sources[i]->path, rows[i].line, done.message());
        if (isPiece) { // the pieces before it are in the set
            piece.status = std::move(why);
            continue;
        }
        piece.faults.push_back(
            {sources[i], {rows[i].row, rows[i].line, RowFault::Template, why.message()}});
    }
    piece.set = builder.takeSet();
    return piece;
}

Status ParallelTokenSet::flush()
{
    if (m_waiting == 0)
        return {};
    if (!m_pool)
        m_pool = std::make_unique<ThreadPool>(static_cast<int>(m_builders.size()), "tokens");
    m_pieces.resize((m_waiting + kRowsOfAPiece - 1) / kRowsOfAPiece);
    const std::span rows = std::span<const Document>(m_rows).first(m_waiting);
    const std::span sources = std::span<const DataSource* const>(m_sources).first(m_waiting);
    m_pool->parallelFor(
        static_cast<std::int64_t>(m_pieces.size()), [&](std::int64_t index, int worker) {
            const auto piece = static_cast<std::size_t>(index);
            const std::size_t begin = piece * kRowsOfAPiece;
            const std::size_t count = std::min(kRowsOfAPiece, rows.size() - begin);
            m_pieces[piece] = encode(sources.subspan(begin, count), rows.subspan(begin, count),
                m_builders[static_cast<std::size_t>(worker)]);
        });
    m_waiting = m_waitingBytes = 0;
    for (const Piece& piece : m_pieces)
        MR_TRY(keep(piece));
    return {};
}

Status ParallelTokenSet::keep(const Piece& piece)
{
    m_failure = piece.status;
    for (const Fault& fault : piece.faults) {
        const Status taken = m_bad.add(*fault.source, fault.row);
        if (!taken.ok() && taken.kind() != ErrorKind::Cancelled)
            m_failure = taken;
        MR_TRY(taken);
    }
    if (m_failure.ok() && !m_bad.refuses())
        m_failure = append(piece.set);
    return m_failure.ok() ? Status() : Status::error(ErrorKind::Cancelled, m_failure.message());
}

Status ParallelTokenSet::append(const TokenSet& piece)
{
    m_set.rows += piece.rows;
    m_set.cutRows += piece.cutRows;
    m_set.emptyRows += piece.emptyRows;
    m_set.promptRows += piece.promptRows;
    m_set.trainedTokens += piece.trainedTokens;
    m_set.answers += piece.answers;
    m_set.emptyThoughts += piece.emptyThoughts;
    m_set.unreadSwitches += piece.unreadSwitches;
    m_set.unwritten.append(piece.unwritten);
    for (std::int64_t i = 0; i < piece.count(); ++i) {
        MR_TRY(piece.sequences.read(i, m_sequence));
        MR_TRY(m_set.sequences.add(m_sequence.tokens, m_sequence.trained));
    }
    if (m_set.count() >= std::numeric_limits<std::uint32_t>::max())
        return Status::error(ErrorKind::InvalidArgument,
            "the dataset makes more than 4,294,967,294 sequences; use a part of it");
    return {};
}

Result<TokenSet> ParallelTokenSet::finish()
{
    if (m_failure.ok())
        (void)flush().ok(); // kept in m_failure
    MR_TRY(m_failure);
    return std::move(m_set);
}

} // namespace mr
