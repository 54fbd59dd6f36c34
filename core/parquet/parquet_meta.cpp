#include "core/parquet/parquet_meta.h"

#include "core/parquet/compact_reader.h"

#include <algorithm>

namespace mr {
namespace {

constexpr std::size_t kMostElements = 16384;

std::uint64_t offset(CompactReader& reader, const CompactField& field)
{
    const std::int64_t value = reader.i64(field);
    if (value < 0)
        reader.fail("a place in the file is negative");
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

void readColumnMeta(CompactReader& reader, ColumnChunk& out)
{
    std::uint64_t dictionary = 0;
    for (CompactField field; reader.nextField(field);) {
        if (field.id == 1) {
            out.type = readParquetType(reader, field).value_or(ParquetType::Boolean);
        } else if (field.id == 4) {
            out.codec = reader.i32(field);
        } else if (field.id == 5) {
            out.values = static_cast<std::int64_t>(offset(reader, field));
        } else if (field.id == 7) {
            out.bytes = offset(reader, field);
        } else if (field.id == 9) {
            out.begin = offset(reader, field);
        } else if (field.id == 11) {
            dictionary = offset(reader, field);
        } else {
            reader.skip(field);
        }
    }
    if (dictionary > 0) // some writers say 0 for none
        out.begin = std::min(out.begin, dictionary);
}

ColumnChunk readChunk(CompactReader& reader)
{
    ColumnChunk out;
    bool isThere = false;
    for (CompactField field; reader.nextField(field);) {
        if (field.id == 1 && !reader.binary(field).empty()) {
            reader.fail("a column lies in another file");
        } else if (field.id == 3 && reader.isStruct(field)) {
            isThere = true;
            readColumnMeta(reader, out);
        } else if (field.id == 8 || field.id == 9) {
            reader.fail("a column is encrypted; write the file without encryption");
        } else if (field.id != 1) {
            reader.skip(field);
        }
    }
    if (!isThere)
        reader.fail("a column has no place in the file");
    return out;
}

RowGroup readGroup(CompactReader& reader)
{
    RowGroup out;
    for (CompactField field; reader.nextField(field);) {
        if (field.id == 1) {
            const CompactList list = reader.list(field);
            for (std::uint32_t i = 0; i < list.count && reader.ok(); ++i)
                out.columns.push_back(readChunk(reader));
        } else if (field.id == 3) {
            out.rows = static_cast<std::int64_t>(offset(reader, field));
        } else {
            reader.skip(field);
        }
    }
    if (out.columns.empty())
        reader.fail("a group of rows has no columns");
    return out;
}

void readSchema(CompactReader& reader, const CompactField& field, ParquetMeta& out)
{
    const CompactList list = reader.list(field);
    if (list.count > kMostElements)
        reader.fail("more than 16384 columns");
    for (std::uint32_t i = 0; i < list.count && reader.ok(); ++i)
        out.schema.push_back(readSchemaElement(reader));
}

void readGroups(CompactReader& reader, const CompactField& field, ParquetMeta& out)
{
    const CompactList list = reader.list(field);
    for (std::uint32_t i = 0; i < list.count && reader.ok(); ++i)
        out.groups.push_back(readGroup(reader));
}

} // namespace

Result<ParquetMeta> readParquetMeta(std::string_view footer)
{
    CompactReader reader(footer);
    ParquetMeta out;
    for (CompactField field; reader.nextField(field);) {
        if (field.id == 2)
            readSchema(reader, field, out);
        else if (field.id == 3)
            out.rows = static_cast<std::int64_t>(offset(reader, field));
        else if (field.id == 4)
            readGroups(reader, field, out);
        else if (field.id == 8)
            reader.fail("its columns are encrypted; write the file without encryption");
        else
            reader.skip(field);
    }
    if (!reader.ok())
        return Status::error(
            ErrorKind::InvalidArgument, "the footer cannot be read: " + reader.status().message());
    return out;
}

} // namespace mr
