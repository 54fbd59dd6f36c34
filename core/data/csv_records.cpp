#include "core/data/csv_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {
namespace {

// The fault of the row the scanner stands behind, if it has one.
std::optional<BadRow> faultOf(
    const std::filesystem::path& path, const CsvScanner& scanner, const CsvLayout& layout)
{
    if (std::optional<BadRow> bad = scanner.badBytes())
        return bad;
    const std::vector<std::string>& cells = scanner.cells();
    const std::size_t count = layout.names.size();
    if (cells.size() == count)
        return std::nullopt;
    const bool over = layout.endsInSeparator && cells.size() == count + 1;
    if (over && cells.back().empty())
        return std::nullopt;
    std::string message = over ? std::string("has a text in the last column, which has no name")
                               : fmt::format("has {} cells where the first row has {}; a cell with "
                                             "a separator or a quote in it must be quoted",
                                     cells.size(), count);
    return BadRow{
        0, scanner.line(), RowFault::Cells, dataError(path, scanner.line(), message).message()};
}

} // namespace

Status readCsv(ByteSource& source, const RecordOptions& options, const RecordSink& sink)
{
    MR_ASSIGN(CsvLayout found, findCsvLayout(source.path(), options.wanted));
    const CsvLayout& layout = found;
    CsvScanner scanner(source, layout.delimiter);
    Record record;
    record.cells.resize(layout.names.size());
    for (std::size_t i = 0; i < layout.names.size(); ++i)
        record.cells[i].name = layout.names[i];
    int skip = (layout.tellsSeparator ? 1 : 0) + (layout.header ? 1 : 0);
    Result<bool> more = scanner.next();
    for (; more.ok() && more.value(); more = scanner.next()) {
        if (skip > 0) {
            --skip;
            continue;
        }
        ++record.row;
        record.line = scanner.line();
        if (std::optional<BadRow> bad = faultOf(source.path(), scanner, layout)) {
            bad->row = record.row;
            MR_TRY(putBadRow(options, std::move(*bad)));
            continue;
        }
        for (std::size_t i = 0; i < record.cells.size(); ++i)
            record.cells[i].text = scanner.cells()[i];
        MR_TRY(sink(record));
    }
    return more.status();
}

} // namespace mr
