#include "core/data/parallel_token_set.h"

#include <limits>

namespace mr {
ParallelTokenSet::ParallelTokenSet(
    const Tokenizer& tokenizer, const TokenSetOptions& options, int threads, BadRows& bad)
    : m_bad(bad)
{
    for (int i = 0; i < threads; ++i)
        m_builders.emplace_back(tokenizer, options);
}

Status ParallelTokenSet::add(const DataSource& source, const Document& document)
{
    if (m_batch.isAlone(document) || m_builders.size() == 1) {
        MR_TRY(flush()); // and this one is not copied
        const DataSource* const from = &source;
        return keep(encode({{&from, 1}, {&document, 1}}, m_builders.front()));
    }
    return m_batch.add(source, document) ? flush() : Status();
}

ParallelTokenSet::Piece ParallelTokenSet::encode(
    const DocumentBatch::Piece& rows, TokenSetBuilder& builder)
{
    Piece piece;
    for (std::size_t i = 0; i < rows.documents.size() && piece.status.ok(); ++i) {
        const Document& row = rows.documents[i];
        const DataSource& source = *rows.sources[i];
        const bool isPiece = row.goesOn || builder.isInText();
        Status done = builder.add(row);
        builder.setPath(source.path);
        if (done.ok() || done.kind() != ErrorKind::InvalidArgument) {
            piece.status = std::move(done);
            continue;
        }
        Status why = dataError(source.path, {row.row, row.line}, done.message());
        if (isPiece) { // the pieces before it are in the set
            piece.status = std::move(why);
            continue;
        }
        piece.faults.push_back({&source, {row.row, row.line, RowFault::Template, why.message()}});
    }
    piece.set = builder.takeSet();
    return piece;
}

Status ParallelTokenSet::flush()
{
    if (m_batch.pieces() == 0)
        return {};
    if (!m_pool)
        m_pool = std::make_unique<ThreadPool>(static_cast<int>(m_builders.size()), "tokens");
    m_pieces.resize(m_batch.pieces());
    m_pool->parallelFor(
        static_cast<std::int64_t>(m_pieces.size()), [&](std::int64_t index, int worker) {
            const auto piece = static_cast<std::size_t>(index);
            m_pieces[piece] =
                encode(m_batch.piece(piece), m_builders[static_cast<std::size_t>(worker)]);
        });
    m_batch.clear();
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
