// checkDataset() of <millrace/data_checks.h>.

#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/checks/row_examiner.h"
#include "core/data/bad_rows.h"
#include "core/data/document_batch.h"

#include <millrace/data_checks.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

namespace mr {
namespace {

constexpr std::size_t kLongest = 20;

std::string_view words(RowFault fault) noexcept
{
    switch (fault) {
    case RowFault::Json:
        return "not JSON";
    case RowFault::Utf8:
        return "not UTF-8";
    case RowFault::Nul:
        return "holds a byte of value 0";
    case RowFault::Shape:
        return "not shaped as the rows before it";
    case RowFault::Cells:
        return "more or fewer cells than the first row";
    case RowFault::Columns:
        return "a column does not hold what it is used for";
    case RowFault::Template:
        return "the chat template cannot write it";
    case RowFault::Excluded:
        break;
    }
    return {};
}

// The rows of one file after another, examined by several threads and kept in their order.
class DatasetCheck
{
public:
    explicit DatasetCheck(const CheckRequest& request)
        : m_request(request)
    {
    }

    Result<DataChecks> run();

private:
    struct Place {
        std::int64_t row = 0;
        std::int64_t line = 0;
    };
    struct Piece {
        std::vector<RowFacts> rows;
        Status status;
    };

    Status openTokenizer(const DatasetShape& shape);
    void makeExaminers(const Tokenizer* tokenizer);
    Status readFile(const DataSource& source, const DatasetShape& shape, bool isEvaluation);
    Status take(const DataSource& source, const Document& document, bool isEvaluation);
    Status flush(bool isEvaluation);
    void examine(const DocumentBatch::Piece& documents, RowExaminer& examiner, Piece& out) const;
    Status keep(Piece& piece, bool isEvaluation);
    void keepRow(const RowFacts& facts);
    void keepLength(const RowFacts& facts);
    void add(RowCheck check, const Place& place, std::string_view why, std::int64_t other = 0);
    void keepRepeats();

    const CheckRequest& m_request;
    std::unique_ptr<Tokenizer> m_tokenizer;
    TokenSetOptions m_options;
    std::vector<RowExaminer> m_examiners; // one a thread
    std::unique_ptr<ThreadPool> m_pool;
    DocumentBatch m_batch;
    std::vector<Piece> m_pieces;
    RowRepeats m_repeats;
    std::deque<Place> m_places; // of the rows in m_repeats
    std::map<std::int64_t, std::int64_t> m_lengths;
    DataChecks m_out;
};

// A model whose tokens cannot be had is a problem, not the end: repeats are found without it.
Status DatasetCheck::openTokenizer(const DatasetShape& shape)
{
    if (m_request.modelDir.empty())
        return {};
    m_options.seqLen = m_request.seqLen;
    m_options.split = m_request.split;
    m_options.modelFolder = m_request.modelDir;
    m_options.chatTemplate = templateAsked(m_request.source);
    Status able = requireTemplate(m_request.source.path, shape, m_options);
    if (able.ok()) {
        Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(m_request.modelDir);
        if (tokenizer.ok())
            m_tokenizer = std::move(tokenizer).value();
        able = tokenizer.status();
    }
    if (!able.ok() && able.kind() != ErrorKind::InvalidArgument)
        return able;
    if (!able.ok())
        m_out.problems.push_back(able.message());
    else
        m_out.seqLen = m_request.seqLen;
    return {};
}

void DatasetCheck::examine(
    const DocumentBatch::Piece& documents, RowExaminer& examiner, Piece& out) const
{
    out.rows.clear();
    out.status = {};
    for (const Document& document : documents.documents) {
        Result<std::optional<RowFacts>> facts = examiner.examine(document);
        if (!facts.ok()) {
            out.status = facts.status();
            return;
        }
        if (facts.value().has_value())
            out.rows.push_back(std::move(*facts.value()));
    }
}

Status DatasetCheck::flush(bool isEvaluation)
{
    m_pieces.resize(std::max(m_pieces.size(), m_batch.pieces()));
    const std::size_t pieces = m_batch.pieces();
    m_pool->parallelFor(static_cast<std::int64_t>(pieces), [&](std::int64_t index, int worker) {
        const auto piece = static_cast<std::size_t>(index);
        examine(
            m_batch.piece(piece), m_examiners[static_cast<std::size_t>(worker)], m_pieces[piece]);
    });
    m_batch.clear();
    for (std::size_t i = 0; i < pieces; ++i)
        MR_TRY(keep(m_pieces[i], isEvaluation));
    if (m_request.onRows && !m_request.onRows(m_out.rows))
        return Status::error(ErrorKind::Cancelled, "the checks were stopped");
    return {};
}

Status DatasetCheck::take(const DataSource& source, const Document& document, bool isEvaluation)
{
    if (!m_batch.isAlone(document))
        return m_batch.add(source, document) ? flush(isEvaluation) : Status();
    MR_TRY(flush(isEvaluation)); // the rows before it, in their order
    const DataSource* const from = &source;
    Piece piece;
    examine({{&from, 1}, {&document, 1}}, m_examiners.front(), piece);
    return keep(piece, isEvaluation);
}

Status DatasetCheck::keep(Piece& piece, bool isEvaluation)
{
    for (const RowFacts& facts : piece.rows) {
        m_repeats.add(facts.hash, facts.signature, isEvaluation);
        m_places.push_back({facts.row, facts.line});
        if (!isEvaluation)
            keepRow(facts);
    }
    return piece.status;
}

void DatasetCheck::add(RowCheck check, const Place& place, std::string_view why, std::int64_t other)
{
    m_out.found[static_cast<std::size_t>(check)].push_back({place.row, place.line, other, why});
}

void DatasetCheck::keepRow(const RowFacts& facts)
{
    ++m_out.rows;
    for (std::size_t check = 0; check < kRowChecks; ++check)
        if (!facts.why[check].empty())
            add(static_cast<RowCheck>(check), {facts.row, facts.line}, facts.why[check]);
    if (facts.tokens > 0)
        keepLength(facts);
}

void DatasetCheck::keepLength(const RowFacts& facts)
{
    ++m_lengths[facts.tokens];
    std::vector<RowLength>& longest = m_out.longest;
    if (longest.size() == kLongest && longest.back().tokens >= facts.tokens)
        return;
    const auto at = std::find_if(longest.begin(), longest.end(),
        [&](const RowLength& one) { return one.tokens < facts.tokens; });
    longest.insert(at, {facts.row, facts.tokens});
    if (longest.size() > kLongest)
        longest.pop_back();
}

void DatasetCheck::keepRepeats()
{
    const RowRepeats::Found found = m_repeats.find();
    const auto rowOf = [this](std::uint32_t index) { return m_places[index].row; };
    for (std::size_t i = m_repeats.evaluationCount(); i < m_places.size(); ++i) {
        const Place& place = m_places[i];
        if (found.same[i] != RowRepeats::kNone)
            add(RowCheck::Duplicate, place, "repeats an earlier row", rowOf(found.same[i]));
        else if (found.alike[i] != RowRepeats::kNone)
            add(RowCheck::NearDuplicate, place, "nearly repeats an earlier row",
                rowOf(found.alike[i]));
        if (found.sameInEvaluation[i] != RowRepeats::kNone)
            add(RowCheck::InEvaluation, place, "stands in the evaluation data",
                rowOf(found.sameInEvaluation[i]));
        else if (found.alikeInEvaluation[i] != RowRepeats::kNone)
            add(RowCheck::InEvaluation, place, "nearly repeats a row of the evaluation data",
                rowOf(found.alikeInEvaluation[i]));
    }
}

Status DatasetCheck::readFile(
    const DataSource& source, const DatasetShape& shape, bool isEvaluation)
{
    const auto bad = [&](const BadRow& row) {
        if (!isEvaluation && row.fault != RowFault::Excluded) {
            ++m_out.rows;
            add(RowCheck::Unreadable, {row.row, row.line}, words(row.fault));
        }
        return Status();
    };
    MR_TRY(readDocuments(
        source, shape, {m_request.split},
        [&](const Document& document) { return take(source, document, isEvaluation); }, bad));
    return flush(isEvaluation);
}

void DatasetCheck::makeExaminers(const Tokenizer* tokenizer)
{
    m_examiners.clear();
    for (int i = 0; i < m_pool->threads(); ++i)
        m_examiners.emplace_back(tokenizer, m_options);
}

Result<DataChecks> DatasetCheck::run()
{
    DatasetShape shape;
    MR_TRY(findShape(m_request.source, shape));
    MR_TRY(openTokenizer(shape));
    const int threads =
        m_request.threads > 0 ? m_request.threads : static_cast<int>(physicalCores().size());
    m_pool = std::make_unique<ThreadPool>(threads, "checks");
    if (m_request.evaluation) {
        DatasetShape evaluation;
        MR_TRY(findShape(*m_request.evaluation, evaluation));
        makeExaminers(nullptr);
        MR_TRY(readFile(*m_request.evaluation, evaluation, true));
    }
    makeExaminers(m_tokenizer.get());
    MR_TRY(readFile(m_request.source, shape, false));
    keepRepeats();
    for (auto& rows : m_out.found)
        std::sort(rows.begin(), rows.end(),
            [](const CheckedRow& a, const CheckedRow& b) { return a.row < b.row; });
    for (const auto& [tokens, rows] : m_lengths)
        m_out.lengths.push_back({tokens, rows});
    return std::move(m_out);
}

} // namespace

Result<DataChecks> checkDataset(const CheckRequest& request)
{
    if (!request.modelDir.empty() && request.seqLen < 1)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the sequence length must be at least 1, not {}", request.seqLen));
    return DatasetCheck(request).run();
}

} // namespace mr
