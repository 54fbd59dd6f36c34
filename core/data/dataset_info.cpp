// inspectDataset() of <millrace/library.h>: a dataset as the New run page and `inspect` show it.

#include "core/data/chat_templates.h"
#include "core/data/token_set_builder.h"

#include <millrace/library.h>

#include <fmt/format.h>

#include <system_error>

namespace mr {
namespace {

std::int64_t asCount(std::uint64_t n)
{
    return static_cast<std::int64_t>(n);
}

PreviewRow previewOf(const TokenSequence& sequence, const Tokenizer& tokenizer)
{
    PreviewRow out;
    for (std::size_t t = 0; t < sequence.tokens.size(); ++t) {
        const TokenId id = sequence.tokens[t];
        out.tokens.push_back({tokenizer.piece(id), id, sequence.trained[t] != 0});
    }
    return out;
}

Status readRows(const DataSource& source, const DatasetShape& shape, const TextCut& cut,
    const DocumentSink& take, BadRows& bad)
{
    const Status read = readDocuments(
        source, shape, cut, take, [&](const BadRow& row) { return bad.add(source, row); });
    MR_TRY(bad.refusal());
    return read;
}

void takeCounts(const TokenSet& set, const Tokenizer& tokenizer, DatasetInfo& info)
{
    info.rows = asCount(set.rows);
    info.sequences = set.count();
    info.tokens = asCount(set.sequences.tokens());
    info.trainedTokens = asCount(set.trainedTokens);
    info.cutRows = asCount(set.cutRows);
    info.emptyRows = asCount(set.emptyRows);
    info.answers = asCount(set.answers);
    info.emptyThoughts = asCount(set.emptyThoughts);
    info.unreadSwitches = asCount(set.unreadSwitches);
    if (!tokenizer.note().empty())
        info.notes.emplace_back(tokenizer.note());
}

void takeBadRows(const BadRows& bad, DatasetInfo& info)
{
    info.rowsSkipped = bad.skipped();
    info.rowsExcluded = bad.excluded();
    info.rowsRefused = bad.refused();
}

// Tokenises every row and keeps the first ones as they will be trained.
Status countTokens(const DataSource& source, const DatasetShape& shape, const Tokenizer& tokenizer,
    const TokenSetOptions& options, std::size_t previewRows, DatasetInfo& info)
{
    TokenSetBuilder builder(tokenizer, options);
    const TokenSet& set = builder.set();
    TokenSequence sequence;
    BadRows bad;
    const auto take = [&](const Document& document) {
        MR_TRY(bad.rowRead());
        const std::int64_t first = set.count();
        const std::uint64_t cutBefore = set.cutRows;
        MR_TRY(builder.add(document));
        builder.setPath(source.path);
        for (std::int64_t s = first; s < set.count() && info.preview.size() < previewRows; ++s) {
            MR_TRY(set.sequences.read(s, sequence));
            info.preview.push_back(previewOf(sequence, tokenizer));
            info.preview.back().row = document.row;
            info.preview.back().cut = set.cutRows > cutBefore;
        }
        return Status();
    };
    const Status read = readRows(source, shape, {options.split}, take, bad);
    takeBadRows(bad, info);
    takeCounts(set, tokenizer, info);
    info.seqLen = options.seqLen;
    info.packedRows = PackedRows::pack(set.sequences, options.seqLen).count();
    MR_TRY(read);
    MR_TRY(set.unwritten.check(set.rows));
    if (set.count() == 0)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("{}: no row has anything to train on ({} rows read; the response is empty, "
                        "or the prompt alone fills the sequence)",
                source.path, set.rows));
    return {};
}

Status countRows(const DataSource& source, const DatasetShape& shape,
    const TokenSetOptions& options, DatasetInfo& info)
{
    BadRows bad;
    const auto take = [&](const Document& document) {
        info.rows += document.goesOn ? 0 : 1;
        return bad.rowRead();
    };
    const Status read = readRows(source, shape, {options.split}, take, bad);
    takeBadRows(bad, info);
    return read;
}

Status look(const DataSource& source, const std::string& modelDir, const TokenSetOptions& options,
    std::size_t previewRows, DatasetInfo& info)
{
    DatasetShape shape;
    const Status found = findShape(source, shape);
    info.format = shape.format;
    info.refusal = shape.refusal.kind;
    info.readings = shape.refusal.readings;
    for (const ColumnFacts& column : shape.columns)
        info.columns.push_back(column.name);
    MR_TRY(found);
    info.layout = shape.map.layout;
    info.mapping = shape.map.asMap();
    info.reading = describeReading(source.path, recordOptions(source, shape.format));
    info.unusedColumns = unusedColumns(shape.columns, shape.map);
    info.chatTemplate = templateName(options.chatTemplate);
    if (modelDir.empty())
        return countRows(source, shape, options, info);
    const bool hasTemplate = !options.chatTemplate.empty() || ChatFormat::isIn(modelDir);
    if (hasTemplate && !shape.map.isChat())
        info.mapping[std::string(kStyleKey)] =
            shape.map.style == RowStyle::Plain ? "plain" : "template";
    if (const Status missing = requireTemplate(source.path, shape, options); !missing.ok()) {
        info.refusal = DataRefusal::NoTemplate;
        info.problems.push_back(missing.message());
        return countRows(source, shape, options, info);
    }
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::open(modelDir);
    if (!tokenizer.ok()) {
        info.problems.push_back(tokenizer.status().message());
        return countRows(source, shape, options, info);
    }
    return countTokens(source, shape, *tokenizer.value(), options, previewRows, info);
}

} // namespace

Result<DatasetInfo> inspectDataset(const DataSource& source, const std::string& modelDir,
    std::int64_t seqLen, int previewRows, const std::string& split)
{
    if (!modelDir.empty() && seqLen < 1)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the sequence length must be at least 1, not {}", seqLen));
    DatasetInfo info;
    info.path = source.path;
    TokenSetOptions options;
    options.seqLen = seqLen;
    options.split = split;
    options.modelFolder = modelDir;
    options.chatTemplate = templateAsked(source);
    const auto rows = static_cast<std::size_t>(previewRows > 0 ? previewRows : 0);
    std::error_code error;
    info.bytes = std::filesystem::file_size(source.path, error);
    if (std::error_code ignored; error && !std::filesystem::exists(source.path, ignored))
        return Status::error(ErrorKind::Io, source.path + ": cannot be read: " + error.message());
    if (error)
        info.bytes = 0;
    const Status looked = look(source, modelDir, options, rows, info);
    if (!looked.ok() && looked.kind() == ErrorKind::Io)
        return looked;
    if (!looked.ok())
        info.problems.push_back(looked.message());
    return info;
}

} // namespace mr
