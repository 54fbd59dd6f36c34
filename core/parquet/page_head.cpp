#include "core/parquet/page_head.h"

#include "core/parquet/compact_reader.h"

#include <string>

namespace mr {
namespace {

Status badPageHead(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

void readDataHead(CompactReader& reader, PageHead& out)
{
    for (CompactField field; reader.nextField(field);)
        switch (field.id) {
        case 1:
            out.values = reader.i32(field);
            break;
        case 2:
            out.encoding = reader.i32(field);
            break;
        case 3:
            out.defEncoding = reader.i32(field);
            break;
        case 4:
            out.repEncoding = reader.i32(field);
            break;
        default:
            reader.skip(field);
        }
}

void readDictionaryHead(CompactReader& reader, PageHead& out)
{
    for (CompactField field; reader.nextField(field);)
        if (field.id == 1)
            out.values = reader.i32(field);
        else if (field.id == 2)
            out.encoding = reader.i32(field);
        else
            reader.skip(field);
}

void readDataV2Head(CompactReader& reader, PageHead& out)
{
    for (CompactField field; reader.nextField(field);)
        switch (field.id) {
        case 1:
            out.values = reader.i32(field);
            break;
        case 4:
            out.encoding = reader.i32(field);
            break;
        case 5:
            out.defBytes = reader.i32(field);
            break;
        case 6:
            out.repBytes = reader.i32(field);
            break;
        case 7:
            out.isPacked = reader.boolean(field);
            break;
        default:
            reader.skip(field);
        }
}

void readHead(CompactReader& reader, PageHead& out, std::int32_t& kind)
{
    for (CompactField field; reader.nextField(field);)
        if (field.id == 1)
            kind = reader.i32(field);
        else if (field.id == 2)
            out.bytes = reader.i32(field);
        else if (field.id == 3)
            out.packedBytes = reader.i32(field);
        else if (field.id == 4)
            out.crc = static_cast<std::uint32_t>(reader.i32(field));
        else if (field.id == 5 && reader.isStruct(field))
            readDataHead(reader, out);
        else if (field.id == 7 && reader.isStruct(field))
            readDictionaryHead(reader, out);
        else if (field.id == 8 && reader.isStruct(field))
            readDataV2Head(reader, out);
        else
            reader.skip(field);
}

bool isSound(const PageHead& head)
{
    return head.bytes >= 0 && head.packedBytes >= 0 && head.values >= 0 && head.defBytes >= 0 &&
           head.repBytes >= 0;
}

} // namespace

Result<std::optional<PageHead>> readPageHead(std::string_view bytes)
{
    CompactReader reader(bytes);
    PageHead out;
    std::int32_t kind = -1;
    readHead(reader, out, kind);
    if (reader.endsEarly())
        return std::optional<PageHead>();
    if (!reader.ok())
        return badPageHead("the head of a page cannot be read: " + reader.status().message());
    if (kind < 0 || kind > static_cast<std::int32_t>(PageKind::DataV2) || !isSound(out))
        return badPageHead("a page has a head that makes no sense");
    out.kind = static_cast<PageKind>(kind);
    out.headBytes = reader.taken();
    return std::optional<PageHead>(out);
}

} // namespace mr
