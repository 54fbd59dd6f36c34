// readRowTexts() of <millrace/data_checks.h>.

#include "core/base/utf8.h"
#include "core/data/documents.h"

#include <millrace/data_checks.h>

#include <algorithm>

namespace mr {
namespace {

constexpr std::string_view kEllipsis = "…";

// White space of any kind becomes one space.
std::string oneLine(const Record& record, std::size_t most)
{
    std::string out;
    for (const Cell& cell : record.cells) {
        if (out.size() > most)
            break;
        out += (out.empty() ? "" : " | ") + cell.name + ": ";
        out += firstBytes(cell.text, most);
    }
    std::replace_if(
        out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    if (out.size() <= most)
        return out;
    return std::string(firstBytes(out, most)).append(kEllipsis);
}

} // namespace

Result<std::vector<RowText>> readRowTexts(
    const DataSource& source, const RowList& rows, std::size_t bytes)
{
    std::vector<RowText> out;
    if (rows.empty())
        return out;
    MR_ASSIGN(const DataFormat format, findFormat(source.path, source.format));
    RecordOptions options = recordOptions(source, format);
    const auto stopBehind = [&](std::int64_t row) {
        return row < rows.last() ? Status() : Status::error(ErrorKind::Cancelled, "all are read");
    };
    options.onBadRow = [&](const BadRow& row) { return stopBehind(row.row); };
    const Status read = readRecords(source.path, options, [&](const Record& record) {
        const bool isFirst = out.empty() || out.back().row != record.row;
        if (rows.contains(record.row) && isFirst)
            out.push_back({record.row, oneLine(record, bytes)});
        return stopBehind(record.row);
    });
    if (!read.ok() && read.kind() != ErrorKind::Cancelled)
        return read;
    return out;
}

} // namespace mr
