#include "core/data/record_reader.h"

#include "core/base/shown_text.h"
#include "core/data/record_formats.h"
#include "core/data/white_space.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{2} << 20; // piece of a text that is one document

// The fault in the bytes of a text that begins on `firstLine`, if there is one.
std::optional<BadRow> badBytes(
    const fs::path& path, std::string_view text, std::int64_t firstLine, char lineEnd)
{
    const bool valid = simdjson::validate_utf8(text.data(), text.size());
    const std::size_t at = valid ? text.find('\0') : firstBadUtf8(text);
    if (at == std::string_view::npos)
        return std::nullopt;
    const std::int64_t line =
        firstLine +
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), lineEnd);
    const char* const message = valid ? "holds a byte of value 0, which no text has"
                                      : "not valid UTF-8; save the file as UTF-8";
    return BadRow{
        0, line, valid ? RowFault::Nul : RowFault::Utf8, dataError(path, line, message).message()};
}

// Hands documents of a text file to the sink as records.
class TextSink
{
public:
    TextSink(const ByteSource& source, const RecordOptions& options, const RecordSink& sink)
        : m_source(source)
        , m_options(options)
        , m_sink(sink)
    {
        m_record.cells.resize(1);
        m_record.cells[0].name = "text";
    }

    Status put(std::string_view text, std::int64_t line)
    {
        ++m_record.row;
        m_record.line = line;
        if (std::optional<BadRow> bad = badBytes(m_source.path(), text, line, m_source.lineEnd())) {
            bad->row = m_record.row;
            return putBadRow(m_options, std::move(*bad));
        }
        m_record.cells[0].text = text;
        return m_sink(m_record);
    }

    // Takes a piece of the one text of the file: damage in it is an error of the file, not of a
    // row.
    Status putPiece(std::string_view text, std::int64_t line, bool goesOn)
    {
        if (const auto bad = badBytes(m_source.path(), text, line, m_source.lineEnd()))
            return Status::error(ErrorKind::InvalidArgument, bad->message);
        m_record.row = m_record.line = 1;
        m_record.goesOn = goesOn;
        m_record.cells[0].text = text;
        return m_sink(m_record);
    }

    Status putStripped(std::string_view text, std::int64_t line)
    {
        const std::size_t begin = text.find_first_not_of(kWhite);
        if (begin == std::string_view::npos)
            return {};
        const auto skipped = std::count(
            text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), m_source.lineEnd());
        const std::size_t end = text.find_last_not_of(kWhite) + 1;
        return put(text.substr(begin, end - begin), line + skipped);
    }

private:
    const ByteSource& m_source;
    const RecordOptions& m_options;
    const RecordSink& m_sink;
    Record m_record;
};

Status tooLong(const ByteSource& source)
{
    return dataError(source.path(), source.line(), "longer than 256 MiB; is this a list of rows?");
}

Status readTextLines(ByteSource& source, TextSink& sink)
{
    std::string line;
    for (std::int64_t number = 1; source.takeLine(line); ++number)
        if (line.find_first_not_of(kWhite) != std::string::npos)
            MR_TRY(sink.put(line, number));
    return source.tooLong() ? tooLong(source) : source.status();
}

// In pieces that end with a character.
Status readTextWhole(ByteSource& source, TextSink& sink)
{
    std::string text;
    text.reserve(
        static_cast<std::size_t>(std::min<std::uint64_t>(source.bytesOnDisk(), kPieceBytes)));
    std::int64_t line = 1;
    for (int c = source.take(); c != ByteSource::kEnd; c = source.take()) {
        text.push_back(static_cast<char>(c));
        if (text.size() < kPieceBytes || source.peek() == ByteSource::kEnd)
            continue;
        const std::size_t rest = unfinishedBytes(text);
        MR_TRY(sink.putPiece(std::string_view(text).substr(0, text.size() - rest), line, true));
        text.erase(0, text.size() - rest);
        line = source.line();
    }
    MR_TRY(source.status());
    return text.empty() ? Status() : sink.putPiece(text, line, false);
}

Status readTextSplit(ByteSource& source, const std::string& split, TextSink& sink)
{
    std::string text;
    std::int64_t line = 1;
    for (int c = source.take(); c != ByteSource::kEnd; c = source.take()) {
        if (text.size() == ByteSource::kMaxRecordBytes)
            return dataError(source.path(), line,
                "a text longer than 256 MiB begins here; is " + shownName(split) +
                    " between texts?");
        text.push_back(static_cast<char>(c));
        if (text.back() != split.back() || !text.ends_with(split))
            continue;
        MR_TRY(
            sink.putStripped(std::string_view(text).substr(0, text.size() - split.size()), line));
        text.clear();
        line = source.line();
    }
    MR_TRY(source.status());
    return sink.putStripped(text, line);
}

Status readText(ByteSource& source, const RecordOptions& options, const RecordSink& sink)
{
    TextSink textSink(source, options, sink);
    if (options.perLine)
        return readTextLines(source, textSink);
    return options.split.empty() ? readTextWhole(source, textSink)
                                 : readTextSplit(source, options.split, textSink);
}

} // namespace

Status dataError(const fs::path& path, std::int64_t line, const std::string& message)
{
    return Status::error(
        ErrorKind::InvalidArgument, fmt::format("{}, line {}: {}", path.string(), line, message));
}

Status dataError(const fs::path& path, const RowPlace& place, const std::string& message)
{
    if (place.line > 0)
        return dataError(path, place.line, message);
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("{}, row {}: {}", path.string(), place.row, message));
}

std::string_view name(RowFault fault) noexcept
{
    constexpr std::array<std::string_view, 8> kNames{
        "json", "utf8", "nul", "shape", "cells", "columns", "template", "excluded"};
    return kNames.at(static_cast<std::size_t>(fault));
}

Status putBadRow(const RecordOptions& options, BadRow row)
{
    return options.onBadRow ? options.onBadRow(row)
                            : Status::error(ErrorKind::InvalidArgument, std::move(row.message));
}

std::size_t firstBadUtf8(std::string_view text) noexcept
{
    if (simdjson::validate_utf8(text.data(), text.size()))
        return std::string_view::npos;
    return validBytes(text, 0);
}

Status readRecords(const fs::path& path, const RecordOptions& options, const RecordSink& sink)
{
    MR_ASSIGN(DataFormat format, findFormat(path, options.format));
    if (format == DataFormat::Parquet)
        return readParquet(path, options, sink);
    MR_ASSIGN(ByteSource source, ByteSource::open(path));
    switch (format) {
    case DataFormat::Jsonl:
        return readJsonLines(source, options, sink);
    case DataFormat::Json:
        return readJson(source, options, sink);
    case DataFormat::Csv:
        return readCsv(source, options, sink);
    default:
        return readText(source, options, sink);
    }
}

} // namespace mr
