// Finds the format of a dataset file by its content.
//
// JSON shows itself by its first words. A table under another name than .csv is one for certain
// where its first row can only be names of columns; where it may as well be a text, the person is
// asked, because a table read as text trains on separators without a word. Of a compressed file the
// contents decide, and the name without ".gz" or ".zst".

#include "core/base/shown_text.h"
#include "core/data/csv_layout.h"
#include "core/data/file_marks.h"
#include "core/data/white_space.h"
#include "core/tokenizer/unicode_text.h"

#include <algorithm>

namespace mr {
namespace {

namespace fs = std::filesystem;

Status refuse(const fs::path& path, std::string_view message)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + std::string(message));
}

Result<DataFormat> checkParquet(const fs::path& path, DataFormat asked, bool isOne)
{
    if (!isOne)
        return refuse(path, "is not a Parquet file; leave out --format, or say another one");
    if (asked != DataFormat::Auto && asked != DataFormat::Parquet)
        return refuse(path, "is a Parquet file; leave out --format, or say --format parquet");
    return DataFormat::Parquet;
}

// The line at the front of `text`, which is taken from it.
std::string_view takeLine(std::string_view& text)
{
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r'))
        line.remove_suffix(1);
    return line;
}

// "- name:" at the front, "name" of it.
std::string_view yamlItem(std::string_view line)
{
    if (!line.starts_with("- "))
        return {};
    line.remove_prefix(2);
    const std::size_t end = line.find(':');
    const std::string_view name = line.substr(0, std::min(end, line.size()));
    const bool ends = end + 1 == line.size() || line.substr(end + 1, 1) == " ";
    return end != std::string_view::npos && ends && name.find(' ') == std::string_view::npos
               ? name
               : std::string_view();
}

// A list of which every item begins with the same name, and nothing beside it.
bool looksLikeYaml(std::string_view text)
{
    std::string_view name;
    std::size_t items = 0;
    std::size_t within = 0;
    while (!text.empty()) {
        const std::string_view line = takeLine(text);
        if (line.empty() || line.starts_with('#') || line == "---")
            continue;
        const std::string_view item = yamlItem(line);
        if (items == 0)
            name = item;
        if (!item.empty() && item == name)
            ++items;
        else if (items > 0 && line.starts_with(' '))
            ++within;
        else
            return false;
    }
    return items > 0 && items + within > 1;
}

Status checkYaml(const fs::path& path, const std::string& extension, std::string_view beginning)
{
    if (extension != ".yaml" && extension != ".yml" && !looksLikeYaml(beginning))
        return {};
    return refuse(path, "is YAML, which is not supported; save it as JSON lines, or say "
                        "--format text if it is to be trained on as it stands");
}

bool isIdentifier(const std::string& name)
{
    if (name.empty() || name.front() == ' ' || name.back() == ' ')
        return false;
    for (std::size_t at = 0; at < name.size();) {
        const Character c = characterAt(name, at);
        if (!isWord(c.code) && c.code != '-' && c.code != '.' && (c.code != ' ' || at == 0))
            return false;
        at += c.bytes;
    }
    return !looksLikeNumber(name);
}

// Most commas of prose are followed by a space, those of a table are not.
bool readsLikeProse(const CsvLayout& layout)
{
    std::size_t cells = 0;
    std::size_t spaced = 0;
    for (const auto& row : layout.sample)
        for (std::size_t i = 1; i < row.size(); ++i) {
            ++cells;
            spaced += row[i].empty() || row[i].front() == ' ' ? 1 : 0;
        }
    return 2 * spaced > cells;
}

// Some column below the header holds cells that cannot be names: numbers, or words with spaces.
bool holdsValues(const CsvLayout& layout)
{
    const auto& rows = layout.sample;
    for (std::size_t at = 0; at < rows.front().size(); ++at) {
        const auto values = std::count_if(rows.begin() + 1, rows.end(), [&](const auto& row) {
            return row[at].find(' ') != std::string::npos || looksLikeNumber(row[at]);
        });
        if (2 * static_cast<std::size_t>(values) >= rows.size() - 1)
            return true;
    }
    return false;
}

// A chat's marks (<|im_start|>) stand in its lines as evenly as separators do.
bool holdsMarks(const CsvLayout& layout)
{
    return std::any_of(layout.sample.begin(), layout.sample.end(), [&](const auto& row) {
        return layout.delimiter == '|' &&
               std::any_of(row.begin(), row.end(), [](const auto& c) { return c.ends_with('<'); });
    });
}

enum class Table : std::uint8_t { None, Perhaps, Certain };

Table lookForTable(const CsvLayout& layout)
{
    constexpr std::size_t kManyRows = 10; // so many lines with equally many separators, by chance?
    const auto& rows = layout.sample;
    if (!layout.even || rows.size() < 2 || readsLikeProse(layout) || holdsMarks(layout))
        return Table::None;
    const bool named = layout.header && std::all_of(rows.front().begin(), rows.front().end(),
                                            [](const std::string& n) { return isIdentifier(n); });
    if (named)
        return rows.size() > 2 && holdsValues(layout) ? Table::Certain : Table::Perhaps;
    const bool few =
        (layout.delimiter == ',' || layout.delimiter == ';') && rows.front().size() < 3;
    return rows.size() >= kManyRows && !few ? Table::Perhaps : Table::None;
}

// Decides for a file that is no JSON and not called .csv.
Result<DataFormat> tableOrText(const fs::path& path)
{
    Result<CsvLayout> layout = findCsvLayout(path, {});
    if (!layout.ok() && layout.status().kind() != ErrorKind::InvalidArgument)
        return layout.status();
    const Table table = layout.ok() ? lookForTable(layout.value()) : Table::None;
    if (table != Table::Perhaps)
        return table == Table::Certain ? DataFormat::Csv : DataFormat::Text;
    std::string names;
    for (const std::string& cell : layout.value().sample.front())
        names += (names.empty() ? "" : ", ") + shownName(cell);
    constexpr std::size_t kShownBytes = 200;
    return refuse(path, "may be a table (the first row is " +
                            std::string(firstBytes(names, kShownBytes)) +
                            ") or a text; say --format csv to read it as rows, or --format text to "
                            "train on it as it stands");
}

Result<DataFormat> guess(const fs::path& path, std::string_view beginning, bool isWhole)
{
    const std::string extension = formatExtension(path);
    const bool lines = extension == ".jsonl" || extension == ".ndjson";
    const JsonShape shape = jsonShape(path, beginning, isWhole);
    if (shape == JsonShape::Lines || (lines && shape != JsonShape::List))
        return DataFormat::Jsonl;
    if (shape != JsonShape::Other || extension == ".json")
        return DataFormat::Json;
    if (extension == ".csv" || extension == ".tsv")
        return DataFormat::Csv;
    MR_TRY(checkYaml(path, extension, beginning));
    return tableOrText(path);
}

std::string describeFormat(const fs::path& path, const RecordOptions& options)
{
    Result<DataFormat> format = findFormat(path, options.format);
    switch (format.ok() ? format.value() : DataFormat::Auto) {
    case DataFormat::Csv: {
        Result<CsvLayout> layout = findCsvLayout(path, options.wanted);
        return layout.ok() ? describe(layout.value()) : std::string();
    }
    case DataFormat::Jsonl:
        return "JSON lines";
    case DataFormat::Json:
        return "JSON";
    case DataFormat::Text:
        return "plain text";
    case DataFormat::Parquet:
        return "Parquet";
    default:
        return {};
    }
}

} // namespace

Result<DataFormat> findFormat(const fs::path& path, DataFormat asked)
{
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
        return refuse(path, "is a folder; name a file in it");
    MR_ASSIGN(bool parquet, isParquet(path));
    if (parquet || asked == DataFormat::Parquet)
        return checkParquet(path, asked, parquet);
    MR_ASSIGN(std::string beginning, readBeginning(path));
    MR_TRY(checkBeginning(path, beginning));
    if (asked != DataFormat::Auto && asked != DataFormat::Json)
        return asked;
    const bool isWhole = beginning.size() < kSniffBytes;
    // JSON lines in a .json file are common enough to be read as JSON lines.
    if (asked == DataFormat::Json)
        return jsonShape(path, beginning, isWhole) == JsonShape::Lines ? DataFormat::Jsonl
                                                                       : DataFormat::Json;
    return guess(path, beginning, isWhole);
}

std::string describeReading(const fs::path& path, const RecordOptions& options)
{
    const std::string out = describeFormat(path, options);
    Result<DataFile> file = DataFile::open(path);
    if (out.empty() || !file.ok() || file.value().compression() == Compression::None)
        return out;
    return out + ", compressed with " + std::string(name(file.value().compression()));
}

} // namespace mr
