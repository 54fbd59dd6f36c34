#include "core/parquet/schema_element.h"

namespace mr {
namespace {

// The unit of a time stamp: a union of three empty structures.
ParquetMeaning readUnit(CompactReader& reader)
{
    ParquetMeaning out = ParquetMeaning::Other;
    for (CompactField field; reader.nextField(field); reader.skip(field))
        out = field.id == 1   ? ParquetMeaning::Millis
              : field.id == 2 ? ParquetMeaning::Micros
              : field.id == 3 ? ParquetMeaning::Nanos
                              : out;
    return out;
}

ParquetMeaning readTimestamp(CompactReader& reader)
{
    ParquetMeaning out = ParquetMeaning::Other;
    for (CompactField field; reader.nextField(field);)
        if (field.id == 2 && reader.isStruct(field))
            out = readUnit(reader);
        else
            reader.skip(field);
    return out;
}

ParquetMeaning readInteger(CompactReader& reader)
{
    bool isSigned = true;
    for (CompactField field; reader.nextField(field);)
        if (field.id == 2)
            isSigned = reader.boolean(field);
        else
            reader.skip(field);
    return isSigned ? ParquetMeaning::Signed : ParquetMeaning::Unsigned;
}

void setOther(SchemaElement& out, const char* name)
{
    out.meaning = ParquetMeaning::Other;
    out.otherName = name;
}

// One alternative of the union LogicalType, whose structure follows.
void readAlternative(CompactReader& reader, const CompactField& field, SchemaElement& out)
{
    switch (field.id) {
    case 1:  // STRING
    case 4:  // ENUM
    case 12: // JSON
        out.meaning = ParquetMeaning::Text;
        return reader.skip(field);
    case 2:
        out.meaning = ParquetMeaning::Map;
        return reader.skip(field);
    case 3:
        out.meaning = ParquetMeaning::List;
        return reader.skip(field);
    case 6:
        out.meaning = ParquetMeaning::Date;
        return reader.skip(field);
    case 8:
        out.meaning = readTimestamp(reader);
        out.otherName = "TIMESTAMP of an unknown unit";
        return;
    case 10:
        out.meaning = readInteger(reader);
        return;
    case 11: // UNKNOWN: always null
        out.meaning = ParquetMeaning::Plain;
        return reader.skip(field);
    case 5:
        setOther(out, "DECIMAL");
        return reader.skip(field);
    case 7:
        setOther(out, "TIME");
        return reader.skip(field);
    case 13:
        setOther(out, "BSON");
        return reader.skip(field);
    case 14:
        setOther(out, "UUID");
        return reader.skip(field);
    case 15:
        setOther(out, "FLOAT16");
        return reader.skip(field);
    default:
        setOther(out, "a logical type that is not known");
        return reader.skip(field);
    }
}

void readLogicalType(CompactReader& reader, SchemaElement& out)
{
    for (CompactField field; reader.nextField(field);)
        if (reader.isStruct(field))
            readAlternative(reader, field, out);
}

// The older annotation, which counts where there is no logical type.
void takeConvertedType(std::int32_t type, SchemaElement& out)
{
    constexpr ParquetMeaning kSigned = ParquetMeaning::Signed;
    constexpr ParquetMeaning kUnsigned = ParquetMeaning::Unsigned;
    constexpr ParquetMeaning kOther = ParquetMeaning::Other;
    struct Row {
        ParquetMeaning meaning;
        const char* name = "";
    };
    static constexpr Row kRows[] = {{ParquetMeaning::Text}, {ParquetMeaning::Map},
        {ParquetMeaning::Map}, {ParquetMeaning::List}, {ParquetMeaning::Text}, {kOther, "DECIMAL"},
        {ParquetMeaning::Date}, {kOther, "TIME"}, {kOther, "TIME"}, {ParquetMeaning::Millis},
        {ParquetMeaning::Micros}, {kUnsigned}, {kUnsigned}, {kUnsigned}, {kUnsigned}, {kSigned},
        {kSigned}, {kSigned}, {kSigned}, {ParquetMeaning::Text}, {kOther, "BSON"},
        {kOther, "INTERVAL"}};
    if (type < 0 || static_cast<std::size_t>(type) >= std::size(kRows))
        return setOther(out, "a converted type that is not known");
    out.meaning = kRows[type].meaning;
    out.otherName = kRows[type].name;
}

} // namespace

SchemaElement readSchemaElement(CompactReader& reader)
{
    SchemaElement out;
    std::optional<std::int32_t> converted;
    bool isLogical = false;
    for (CompactField field; reader.nextField(field);) {
        if (field.id == 1) {
            out.type = readParquetType(reader, field);
        } else if (field.id == 2) {
            out.typeBytes = reader.i32(field);
        } else if (field.id == 3) {
            const std::int32_t repeat = reader.i32(field);
            if (repeat < 0 || repeat > 2)
                reader.fail("a column is neither required, optional nor repeated");
            else
                out.repeat = static_cast<ParquetRepeat>(repeat);
        } else if (field.id == 4) {
            out.name = reader.binary(field);
        } else if (field.id == 5) {
            out.children = reader.i32(field);
        } else if (field.id == 6) {
            converted = reader.i32(field);
        } else if (field.id == 10 && reader.isStruct(field)) {
            isLogical = true;
            readLogicalType(reader, out);
        } else {
            reader.skip(field);
        }
    }
    if (converted && !isLogical)
        takeConvertedType(*converted, out);
    return out;
}

std::optional<ParquetType> readParquetType(CompactReader& reader, const CompactField& field)
{
    const std::int32_t type = reader.i32(field);
    if (type >= 0 && type <= static_cast<std::int32_t>(ParquetType::FixedBytes))
        return static_cast<ParquetType>(type);
    reader.fail("a column has no known type");
    return std::nullopt;
}

} // namespace mr
