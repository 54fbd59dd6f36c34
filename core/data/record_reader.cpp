#include "core/data/record_reader.h"

#include "core/data/record_formats.h"

#include <simdjson.h>

#include <array>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSniffBytes = std::size_t{64} << 10;
constexpr std::string_view kWhite = " \t\r\n";

struct Magic {
    std::string_view bytes;
    std::string_view what;
};

constexpr std::array kMagics{
    Magic{"\x1F\x8B", "is compressed (gzip); unpack it first"},
    Magic{"\x28\xB5\x2F\xFD", "is compressed (zstd); unpack it first"},
    Magic{"PK\x03\x04", "is a zip or office file; unpack it, or export it as CSV"},
    Magic{"PAR1", "is a Parquet file, which is not supported; export it as JSON lines"},
    Magic{"\xFF\xFE", "is UTF-16 text; save it as UTF-8"},
    Magic{"\xFE\xFF", "is UTF-16 text; save it as UTF-8"},
    Magic{"version https://git-lfs",
        "is a git-lfs pointer, not the file itself; run \"git lfs pull\", or download it again"},
};

Status refuse(const fs::path& path, std::string_view message)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + std::string(message));
}

Status checkBeginning(const fs::path& path, std::string_view beginning)
{
    for (const Magic& magic : kMagics)
        if (beginning.starts_with(magic.bytes))
            return refuse(path, magic.what);
    if (beginning.find('\0') != std::string_view::npos)
        return refuse(path, "looks like a binary file; JSON lines, JSON, CSV or UTF-8 text is "
                            "needed");
    return {};
}

std::string lowerExtension(const fs::path& path)
{
    std::string out = path.extension().string();
    for (char& c : out)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

DataFormat guess(const std::string& extension, std::string_view beginning, bool isWhole)
{
    if (extension == ".jsonl" || extension == ".ndjson")
        return DataFormat::Jsonl;
    if (extension == ".csv" || extension == ".tsv")
        return DataFormat::Csv;
    if (extension == ".txt" || extension == ".md" || extension == ".text")
        return DataFormat::Text;
    switch (jsonShape(beginning, isWhole)) {
    case JsonShape::List:
        return DataFormat::Json;
    case JsonShape::Lines:
        return DataFormat::Jsonl;
    default:
        return extension == ".json" ? DataFormat::Json : DataFormat::Text;
    }
}

Result<std::string> readBeginning(const fs::path& path)
{
    Result<File> file = File::openRead(path);
    if (!file.ok())
        return file.status();
    Result<std::uint64_t> bytes = file.value().bytes();
    if (!bytes.ok())
        return bytes.status();
    if (bytes.value() == 0)
        return refuse(path, "is empty");
    std::string out(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.value(), kSniffBytes)), '\0');
    MR_TRY(file.value().readAt(0, std::as_writable_bytes(std::span(out.data(), out.size()))));
    return out;
}

Status badUtf8(const fs::path& path, std::string_view text, std::int64_t firstLine)
{
    const std::size_t at = firstBadUtf8(text);
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return dataError(path, firstLine + lines, "not valid UTF-8; save the file as UTF-8");
}

// Hands documents of a text file to the sink as records.
class TextSink
{
public:
    TextSink(const fs::path& path, const RecordSink& sink)
        : m_path(path)
        , m_sink(sink)
    {
        m_record.cells.resize(1);
        m_record.cells[0].name = "text";
    }

    Status put(std::string_view text, std::int64_t line)
    {
        if (!simdjson::validate_utf8(text.data(), text.size()))
            return badUtf8(m_path, text, line);
        ++m_record.row;
        m_record.line = line;
        m_record.cells[0].text = text;
        return m_sink(m_record);
    }

    Status putStripped(std::string_view text, std::int64_t line)
    {
        const std::size_t begin = text.find_first_not_of(kWhite);
        if (begin == std::string_view::npos)
            return {};
        const auto skipped =
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
        const std::size_t end = text.find_last_not_of(kWhite) + 1;
        return put(text.substr(begin, end - begin), line + skipped);
    }

private:
    const fs::path& m_path;
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

Status readTextWhole(ByteSource& source, TextSink& sink)
{
    std::string text;
    text.reserve(static_cast<std::size_t>(source.fileBytes()));
    for (int c = source.take(); c != ByteSource::kEnd; c = source.take())
        text.push_back(static_cast<char>(c));
    MR_TRY(source.status());
    return text.empty() ? Status() : sink.put(text, 1);
}

Status readTextSplit(ByteSource& source, const std::string& split, TextSink& sink)
{
    std::string text;
    std::int64_t line = 1;
    for (int c = source.take(); c != ByteSource::kEnd; c = source.take()) {
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
    TextSink textSink(source.path(), sink);
    if (options.perLine)
        return readTextLines(source, textSink);
    return options.split.empty() ? readTextWhole(source, textSink)
                                 : readTextSplit(source, options.split, textSink);
}

} // namespace

Status dataError(const fs::path& path, std::int64_t line, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument,
        path.string() + ", line " + std::to_string(line) + ": " + message);
}

// Character by character, only once a text is known to be bad.
std::size_t firstBadUtf8(std::string_view text) noexcept
{
    if (simdjson::validate_utf8(text.data(), text.size()))
        return std::string_view::npos;
    std::size_t at = 0;
    while (at < text.size()) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (at + length > text.size() || !simdjson::validate_utf8(text.data() + at, length))
            return at;
        at += length;
    }
    return at;
}

Result<DataFormat> findFormat(const fs::path& path, DataFormat asked)
{
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
        return refuse(path, "is a folder; name a file in it");
    Result<std::string> beginning = readBeginning(path);
    if (!beginning.ok())
        return beginning.status();
    MR_TRY(checkBeginning(path, beginning.value()));
    if (asked != DataFormat::Auto && asked != DataFormat::Json)
        return asked;
    const bool isWhole = beginning.value().size() < kSniffBytes;
    // JSON lines in a .json file are common enough to be read as what they are.
    if (asked == DataFormat::Json)
        return jsonShape(beginning.value(), isWhole) == JsonShape::Lines ? DataFormat::Jsonl
                                                                         : DataFormat::Json;
    return guess(lowerExtension(path), beginning.value(), isWhole);
}

Status readRecords(const fs::path& path, const RecordOptions& options, const RecordSink& sink)
{
    Result<DataFormat> format = findFormat(path, options.format);
    if (!format.ok())
        return format.status();
    Result<ByteSource> source = ByteSource::open(path);
    if (!source.ok())
        return source.status();
    switch (format.value()) {
    case DataFormat::Jsonl:
        return readJsonLines(source.value(), sink);
    case DataFormat::Json:
        return readJsonList(source.value(), sink);
    case DataFormat::Csv:
        return readCsv(source.value(), options, sink);
    default:
        return readText(source.value(), options, sink);
    }
}

} // namespace mr
