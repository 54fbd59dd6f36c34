#include "core/data/documents.h"

#include "core/data/cell_value.h"
#include "core/data/pair_format.h"
#include "core/data/untrainable.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

// Whether the row has all columns that the role takes from.
bool isKnown(const Record& record, const std::string& name)
{
    const auto isColumn = [&](std::string_view one) { return record.find(one) != nullptr; };
    const std::vector<std::string> columns = columnsOf(name, isColumn);
    return std::all_of(columns.begin(), columns.end(), isColumn);
}

// The text that a role takes. A missing or null cell is an error unless `optional`.
Status cellText(const DataSource& source, const Record& record, const std::string& name,
    bool optional, std::string& out)
{
    out.clear();
    Result<CellText> value = cellValue(record, name);
    const std::string row = fmt::format("row {}", record.row);
    if (!value.ok())
        return dataError(
            source.path, {record.row, record.line}, row + ": " + value.status().message());
    if (!value.value().isThere && !optional && !isKnown(record, name))
        return dataError(
            source.path, {record.row, record.line}, row + " has no " + shownName(name));
    out = std::move(value).value().text; // empty for null
    return {};
}

std::string cellOr(const Record& record, const std::string& name)
{
    const Cell* const cell = record.find(name);
    return cell != nullptr ? cell->text : std::string();
}

Status toChat(
    const DataSource& source, const ColumnMap& map, const Record& record, std::string& out)
{
    std::string system;
    if (!map.system.empty())
        MR_TRY(cellText(source, record, map.system, true, system));
    Result<nlohmann::ordered_json> read =
        readConversation({cellOr(record, map.messages), cellOr(record, map.tools), system});
    if (!read.ok())
        return dataError(source.path, {record.row, record.line}, read.status().message());
    if (map.style == RowStyle::Plain)
        read.value().erase("untrained"); // runs recorded before weights counted
    out = read.value().dump();
    return {};
}

bool isList(const Record& record, const std::string& name)
{
    const Cell* const cell = record.find(name);
    return cell != nullptr && cell->kind == CellKind::Nested;
}

// Makes one conversation of a pair whose sides are lists of messages.
Status toChatOfSides(
    const DataSource& source, const ColumnMap& map, const Record& record, std::string& out)
{
    const auto side = [&](const std::string& name) {
        return PairSide{cellOr(record, name), isList(record, name)};
    };
    Result<nlohmann::ordered_json> read =
        joinSides(side(map.prompt), side(map.response), cellOr(record, map.tools));
    if (!read.ok())
        return dataError(source.path, {record.row, record.line}, read.status().message());
    out = read.value().dump();
    return {};
}

// System text and turns before a pair.
Status readCompany(
    const DataSource& source, const ColumnMap& map, const Record& record, Document& out)
{
    out.system.clear();
    out.history.clear();
    const bool isDropped = out.drop[static_cast<std::size_t>(ChatPart::System)];
    if (!map.system.empty() && !isDropped)
        MR_TRY(cellText(source, record, map.system, true, out.system));
    if (map.history.empty())
        return {};
    Result<std::vector<ChatTurn>> turns = readHistory(cellOr(record, map.history));
    if (!turns.ok())
        return dataError(source.path, {record.row, record.line},
            fmt::format(
                "{} of row {} {}", shownName(map.history), record.row, turns.status().message()));
    out.history = std::move(turns).value();
    return {};
}

Status toDocument(
    const DataSource& source, const ColumnMap& map, const Record& record, Document& out)
{
    out.row = record.row;
    out.line = record.line;
    out.goesOn = record.goesOn;
    out.isPair = map.isPairs();
    out.style = map.style;
    if (map.isChat() || map.isPairs())
        if (const Status refused = refuseRow(map, record); !refused.ok())
            return dataError(source.path, {record.row, record.line}, refused.message());
    if (map.isChat())
        return toChat(source, map, record, out.chat);
    if (!out.isPair)
        return cellText(source, record, map.text, false, out.text);
    out.chat.clear();
    if (isList(record, map.prompt) || isList(record, map.response))
        return toChatOfSides(source, map, record, out.chat);
    MR_TRY(readCompany(source, map, record, out));
    MR_TRY(cellText(source, record, map.prompt, false, out.prompt));
    MR_TRY(cellText(source, record, map.response, false, out.response));
    if (map.input.empty())
        return {};
    std::string input;
    MR_TRY(cellText(source, record, map.input, true, input));
    if (!input.empty()) {
        closePrompt(out.prompt);
        out.prompt += input;
    }
    return {};
}

} // namespace

RecordOptions recordOptions(const DataSource& source, DataFormat format)
{
    RecordOptions options;
    options.format = format;
    for (const auto& [role, column] : columnsAsked(source)) {
        options.wanted.push_back(column);
        for (const NamedPart& part : partsOf(column))
            options.wanted.push_back(part.column);
    }
    return options;
}

bool DatasetShape::isChat() const
{
    const auto isList = [this](const std::string& name) {
        return std::any_of(columns.begin(), columns.end(),
            [&](const ColumnFacts& c) { return c.name == name && c.nested; });
    };
    return map.isChat() || (map.isPairs() && (isList(map.prompt) || isList(map.response)));
}

Status findShape(const DataSource& source, DatasetShape& shape)
{
    Result<DataFormat> format = findFormat(source.path, source.format);
    if (!format.ok())
        return format.status();
    shape.format = format.value();
    if (shape.format == DataFormat::Text) {
        if (!columnsAsked(source).empty())
            return Status::error(ErrorKind::InvalidArgument,
                source.path + ": --map is for files with columns; this one is plain text");
        shape.columns = {{"text"}};
        Result<ColumnMap> map = chooseColumns(source, shape.columns);
        if (!map.ok())
            return map.status();
        shape.map = map.value();
        return {};
    }
    FactsCollector facts;
    std::optional<BadRow> bad;
    RecordOptions options = recordOptions(source, shape.format);
    options.onBadRow = [&bad](const BadRow& row) { // the reader of the rows reports it
        if (!bad)
            bad = row;
        return Status();
    };
    const Status read = readRecords(source.path, options, [&](const Record& record) {
        if (!source.excluded.contains(record.row))
            facts.add(record);
        return Status();
    });
    shape.columns = facts.finish();
    if (!read.ok() && (read.kind() != ErrorKind::InvalidArgument || shape.columns.empty()))
        return read;
    if (shape.columns.empty() && bad)
        return Status::error(ErrorKind::InvalidArgument, bad->message);
    if (shape.columns.empty())
        return Status::error(ErrorKind::InvalidArgument, source.path + ": holds no rows");
    Result<ColumnMap> map = chooseColumns(source, shape.columns, &shape.refusal);
    if (!map.ok())
        return read.ok() ? map.status() : read;
    shape.map = map.value();
    return {};
}

namespace {

// Rows that were chosen in another file are others.
Status checkExcluded(const DataSource& source)
{
    if (source.excluded.empty() || source.excludedOf == 0)
        return {};
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(source.path, error);
    if (error || bytes == source.excludedOf)
        return {}; // an error is the reader's to report
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format(
            "{}: has {} bytes, and had {} when rows of it were excluded; they may be others "
            "now: check the rows anew, or exclude none",
            source.path, bytes, source.excludedOf));
}

BadRow excludedRow(std::int64_t row, std::int64_t line)
{
    return {row, line, RowFault::Excluded, "excluded"};
}

} // namespace

Status readDocuments(const DataSource& source, const DatasetShape& shape, const TextCut& cut,
    const DocumentSink& sink, const BadRowSink& onBadRow)
{
    RecordOptions options = recordOptions(source, shape.format);
    options.split = cut.split;
    options.perLine = cut.perLine;
    const RowList& excluded = source.excluded;
    MR_TRY(checkExcluded(source));
    options.onBadRow = onBadRow;
    if (onBadRow && !excluded.empty())
        options.onBadRow = [&](const BadRow& row) {
            return onBadRow(excluded.contains(row.row) ? excludedRow(row.row, row.line) : row);
        };
    Result<ChatParts> drop = partsToDrop(source);
    MR_TRY(drop.status());
    Document document;
    document.drop = drop.value();
    return readRecords(source.path, options, [&](const Record& record) {
        if (excluded.contains(record.row))
            return onBadRow && !record.goesOn ? onBadRow(excludedRow(record.row, record.line))
                                              : Status();
        const auto bad = [&](RowFault fault, const Status& why) {
            return onBadRow ? onBadRow({record.row, record.line, fault, why.message()}) : why;
        };
        const Status made = toDocument(source, shape.map, record, document);
        if (!made.ok())
            return refuseRow(shape.map, record).ok() ? bad(RowFault::Columns, made) : made;
        const Status taken = sink(document);
        if (taken.ok() || taken.kind() != ErrorKind::InvalidArgument)
            return taken;
        return bad(
            RowFault::Template, dataError(source.path, {record.row, record.line}, taken.message()));
    });
}

} // namespace mr
