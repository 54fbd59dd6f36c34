#include "core/data/csv_layout.h"

#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace mr {
namespace {

using CsvRows = std::vector<std::vector<std::string>>;

constexpr std::size_t kSampleRows = 200;
constexpr std::size_t kSampleBytes = std::size_t{1} << 20;
constexpr std::size_t kFewOf = 10; // a value met once in more than ten rows is chance
constexpr std::string_view kIndexName = "index";

struct Delimiter {
    char character;
    const char* name;
};

// In order of preference where the first rows say nothing.
constexpr std::array kDelimiters{Delimiter{',', "commas"}, Delimiter{';', "semicolons"},
    Delimiter{'\t', "tabs"}, Delimiter{'|', "vertical bars"}};

// A quote that is damaged ends the sample early; reading the rows tells of it.
Result<CsvRows> takeSample(const std::filesystem::path& path, char delimiter, bool skipFirst)
{
    MR_ASSIGN(ByteSource source, ByteSource::open(path));
    CsvScanner scanner(source, delimiter);
    CsvRows rows;
    std::size_t bytes = 0;
    while (rows.size() < kSampleRows && bytes < kSampleBytes) {
        Result<bool> more = scanner.next();
        if (!more.ok() || !more.value())
            break;
        if (std::exchange(skipFirst, false))
            continue;
        for (const std::string& cell : scanner.cells())
            bytes += cell.size() + 1;
        rows.push_back(scanner.cells());
    }
    return rows;
}

// The separator of a first line "sep=;", or 0.
Result<char> toldSeparator(const std::filesystem::path& path)
{
    MR_ASSIGN(ByteSource source, ByteSource::open(path));
    std::string beginning;
    while (beginning.size() < 6) {
        const int c = source.take();
        if (c == ByteSource::kEnd || c == source.lineEnd())
            break;
        beginning.push_back(static_cast<char>(c));
    }
    if (beginning.ends_with('\r'))
        beginning.pop_back();
    return beginning.size() == 5 && beginning.starts_with("sep=") ? beginning.back() : '\0';
}

bool isEven(const CsvRows& rows)
{
    return std::all_of(rows.begin(), rows.end(),
        [&](const auto& row) { return row.size() == rows.front().size(); });
}

// Chooses the separator that cuts the first rows evenly into most cells; if none cuts them evenly,
// the most frequent one of the first row.
Status findDelimiter(const std::filesystem::path& path, CsvLayout& layout)
{
    for (const Delimiter& delimiter : kDelimiters) {
        MR_ASSIGN(CsvRows rows, takeSample(path, delimiter.character, false));
        if (rows.empty())
            continue;
        const bool even = rows.front().size() > 1 && isEven(rows);
        const std::size_t cells = rows.front().size();
        const bool better = layout.sample.empty() || even > layout.even ||
                            (even == layout.even && cells > layout.sample.front().size());
        if (!better)
            continue;
        layout.delimiter = delimiter.character;
        layout.even = even;
        layout.sample = std::move(rows);
    }
    return {};
}

bool looksLikeSentence(const std::string& cell)
{
    return cell.find_first_of("\n?!") != std::string::npos || cell.ends_with('.') ||
           std::count(cell.begin(), cell.end(), ' ') > 3;
}

// All cells of column `at` below the first row; missing ones are left out.
std::vector<const std::string*> valuesOf(const CsvRows& rows, std::size_t at)
{
    std::vector<const std::string*> out;
    for (std::size_t i = 1; i < rows.size(); ++i)
        if (at < rows[i].size())
            out.push_back(&rows[i][at]);
    return out;
}

// A name is short, on one line and no number. It may read as a sentence where no value below it
// does, and it is none of the few values of its column.
bool looksLikeName(const CsvRows& rows, std::size_t at)
{
    constexpr std::size_t kLongestName = 48;
    const std::string& cell = rows.front()[at];
    if (cell.empty() || cell.size() > kLongestName || looksLikeNumber(cell) ||
        cell.find('\n') != std::string::npos)
        return false;
    const auto values = valuesOf(rows, at);
    const auto readsAsSentence = [](const std::string* v) { return looksLikeSentence(*v); };
    if (looksLikeSentence(cell) &&
        (values.empty() || std::any_of(values.begin(), values.end(), readsAsSentence)))
        return false;
    std::size_t alike = 0; // a header that is repeated further down does not count
    for (std::size_t i = 1; i < rows.size(); ++i)
        alike += at < rows[i].size() && rows[i][at] == cell && rows[i] != rows.front() ? 1 : 0;
    return alike * kFewOf < std::max<std::size_t>(values.size(), 1);
}

// Row numbers or names of rows: all there, no two alike.
bool looksLikeIndex(const CsvRows& rows)
{
    std::set<std::string_view> seen;
    for (const std::string* value : valuesOf(rows, 0))
        if (value->empty() || !seen.insert(*value).second)
            return false;
    return rows.size() > 1;
}

bool isAlwaysEmpty(const CsvRows& rows, std::size_t at)
{
    const auto values = valuesOf(rows, at);
    return std::all_of(values.begin(), values.end(), [](const auto* v) { return v->empty(); });
}

bool isHeader(const CsvRows& rows, const std::vector<std::string>& wanted)
{
    const std::vector<std::string>& cells = rows.front();
    for (const std::string& name : wanted)
        if (std::find(cells.begin(), cells.end(), name) != cells.end())
            return true;
    std::size_t named = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const bool index = cells[i].empty() && i == 0 && looksLikeIndex(rows);
        const bool last = cells[i].empty() && i + 1 == cells.size() && isAlwaysEmpty(rows, i);
        if (!index && !last && !looksLikeName(rows, i))
            return false;
        named += cells[i].empty() ? 0 : 1;
    }
    return named > 0;
}

std::string newName(const std::vector<std::string>& names)
{
    std::string name(kIndexName);
    for (int i = 2; std::find(names.begin(), names.end(), name) != names.end(); ++i)
        name = std::string(kIndexName) + std::to_string(i);
    return name;
}

// Every row below the header has one cell more: the last one is empty, or the first is the name of
// the row, as in tables that R writes.
void lookForIndex(CsvLayout& layout)
{
    const CsvRows& rows = layout.sample;
    const std::size_t count = rows.front().size();
    const bool longer =
        rows.size() > 1 && std::all_of(rows.begin() + 1, rows.end(),
                               [&](const auto& row) { return row.size() == count + 1; });
    if (!longer)
        return;
    if (isAlwaysEmpty(rows, count))
        layout.endsInSeparator = true;
    else if (looksLikeIndex(rows))
        layout.names.insert(layout.names.begin(), newName(layout.names));
}

Status takeNames(const std::filesystem::path& path, CsvLayout& layout)
{
    layout.names = layout.sample.front();
    if (layout.names.size() > 1 && layout.names.back().empty()) {
        layout.names.pop_back();
        layout.endsInSeparator = true;
    }
    std::set<std::string_view> seen;
    for (const std::string& name : layout.names)
        if (!name.empty() && !seen.insert(name).second)
            return dataError(path, layout.tellsSeparator ? 2 : 1,
                "the first row has " + shownName(name) +
                    " twice; give every column a name of its own");
    if (layout.names.front().empty())
        layout.names.front() = newName(layout.names);
    else if (!layout.endsInSeparator)
        lookForIndex(layout);
    return {};
}

} // namespace

bool looksLikeNumber(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789.,-+% ") == std::string_view::npos;
}

Result<CsvLayout> findCsvLayout(
    const std::filesystem::path& path, const std::vector<std::string>& wanted)
{
    CsvLayout layout;
    MR_ASSIGN(char told, toldSeparator(path));
    if (told != '\0') {
        layout.delimiter = told;
        layout.tellsSeparator = true;
        MR_ASSIGN(layout.sample, takeSample(path, layout.delimiter, true));
        layout.even = !layout.sample.empty() && isEven(layout.sample);
    } else {
        MR_TRY(findDelimiter(path, layout));
    }
    if (layout.sample.empty())
        return layout;
    layout.header = isHeader(layout.sample, wanted);
    if (layout.header)
        MR_TRY(takeNames(path, layout));
    for (std::size_t i = 0; !layout.header && i < layout.sample.front().size(); ++i)
        layout.names.push_back(fmt::format("column{}", i + 1));
    return layout;
}

std::string describe(const CsvLayout& layout)
{
    const auto* known = std::find_if(kDelimiters.begin(), kDelimiters.end(),
        [&](const Delimiter& d) { return d.character == layout.delimiter; });
    std::string out = "CSV with ";
    out += known != kDelimiters.end() ? known->name : shownName({&layout.delimiter, 1});
    return out + (layout.header ? ", the first row is a header"
                                : ", without a header: the first row is like the others");
}

} // namespace mr
