#include "core/parquet/parquet_rows.h"

#include "core/base/shown_text.h"
#include "core/parquet/row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace mr {
namespace {

constexpr std::uint64_t kMarkBytes = 4;
constexpr std::uint64_t kTailBytes = 8; // the length of the footer, and the mark

Status badFile(const File& file, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, file.path().string() + ": " + message);
}

struct Footer {
    std::string bytes;
    std::uint64_t begin = 0; // in the file; pages lie before it
};

Result<Footer> readFooter(const File& file)
{
    constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
    MR_ASSIGN(const std::uint64_t bytes, file.bytes());
    if (bytes < kMarkBytes + kTailBytes)
        return badFile(file, "is a Parquet file that is cut off; download or copy it again");
    std::string tail(kTailBytes, '\0');
    MR_TRY(file.readAt(bytes - kTailBytes, std::as_writable_bytes(std::span(tail))));
    if (tail.ends_with("PARE"))
        return badFile(file, "is an encrypted Parquet file; write it without encryption");
    if (!tail.ends_with("PAR1"))
        return badFile(file, "is a Parquet file that is cut off; download or copy it again");
    std::uint32_t length = 0;
    std::memcpy(&length, tail.data(), sizeof(length));
    if (length > bytes - kMarkBytes - kTailBytes || length > kMostBytes)
        return badFile(file, fmt::format("its footer claims {} bytes, which is more than the file "
                                         "or the limit of 64 MiB; write the file again",
                                 length));
    Footer out{std::string(length, '\0'), bytes - kTailBytes - length};
    MR_TRY(file.readAt(out.begin, std::as_writable_bytes(std::span(out.bytes))));
    return out;
}

Status checkChunk(
    const File& file, const ParquetLeaf& leaf, const ColumnChunk& chunk, std::uint64_t end)
{
    if (chunk.values == 0) // no page has a place then
        return {};
    if (chunk.type == leaf.shape.storage.type && chunk.begin >= kMarkBytes && chunk.begin <= end &&
        chunk.bytes <= end - chunk.begin)
        return {};
    return badFile(file, fmt::format("the place of column {} lies outside the file, or its type "
                                     "differs; write the file again",
                             shownName(leaf.path)));
}

// Whether places and counts of the footer fit the file and each other.
Status checkMeta(
    const File& file, const ParquetMeta& meta, const ParquetSchema& schema, std::uint64_t end)
{
    std::int64_t rows = 0;
    for (const RowGroup& group : meta.groups) {
        if (group.rows > meta.rows - rows || group.columns.size() != schema.leaves.size())
            return badFile(file, "a group of rows does not fit the footer; write the file again");
        rows += group.rows;
        for (std::size_t i = 0; i < schema.leaves.size(); ++i)
            MR_TRY(checkChunk(file, schema.leaves[i], group.columns[i], end));
    }
    return rows == meta.rows ? Status()
                             : badFile(file, fmt::format("has {} rows where its footer says {}; "
                                                         "write the file again",
                                                 rows, meta.rows));
}

class GroupReader
{
public:
    GroupReader(const File& file, const ParquetSchema& schema, const ParquetRowSink& sink)
        : m_file(file)
        , m_schema(schema)
        , m_sink(sink)
    {
        m_cursors.reserve(schema.leaves.size());
        for (const ParquetLeaf& leaf : schema.leaves)
            m_cursors.emplace_back(file, m_budget, leaf.shape);
    }

    Status read(const RowGroup& group)
    {
        for (std::size_t i = 0; i < m_cursors.size(); ++i)
            if (const Status opened = m_cursors[i].open(group.columns[i]); !opened.ok())
                return failed(opened, "column " + shownName(m_schema.leaves[i].path) + ": ");
        ParquetRowWriter writer(m_schema, m_cursors);
        for (std::int64_t i = 0; i < group.rows; ++i) {
            ++m_row;
            if (const Status written = writer.next(m_json); !written.ok())
                return failed(written, "");
            MR_TRY(m_sink({m_row, m_json, writer.notText()}));
        }
        return writer.atEnd() ? Status()
                              : badFile(m_file, "a column has more values than the rows that the "
                                                "footer names; write the file again");
    }

private:
    Status failed(const Status& status, const std::string& where) const
    {
        if (status.kind() != ErrorKind::InvalidArgument)
            return status;
        return badFile(m_file,
            fmt::format("row {}: {}{}", std::max<std::int64_t>(m_row, 1), where, status.message()));
    }

    const File& m_file;
    const ParquetSchema& m_schema;
    const ParquetRowSink& m_sink;
    PageBudget m_budget;
    std::vector<ColumnCursor> m_cursors;
    std::string m_json;
    std::int64_t m_row = 0;
};

} // namespace

Status readParquetRows(const std::filesystem::path& path, const ParquetRowSink& sink)
{
    MR_ASSIGN(File file, File::openRead(path));
    MR_ASSIGN(Footer footer, readFooter(file));
    Result<ParquetMeta> meta = readParquetMeta(footer.bytes);
    if (!meta.ok())
        return badFile(file, meta.status().message());
    Result<ParquetSchema> schema = makeParquetSchema(meta.value().schema);
    if (!schema.ok())
        return badFile(file, schema.status().message());
    MR_TRY(checkMeta(file, meta.value(), schema.value(), footer.begin));
    GroupReader reader(file, schema.value(), sink);
    for (const RowGroup& group : meta.value().groups)
        MR_TRY(reader.read(group));
    return {};
}

} // namespace mr
