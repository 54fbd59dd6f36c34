#include "core/parquet/compact_reader.h"

#include <limits>
#include <string>

namespace mr {
namespace {

constexpr int kDeepest = 32;
constexpr std::uint8_t kLastType = static_cast<std::uint8_t>(CompactType::Struct);

std::int64_t unzigzag(std::uint64_t value)
{
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

bool isWhole(CompactType type)
{
    return type == CompactType::I16 || type == CompactType::I32 || type == CompactType::I64;
}

} // namespace

Status CompactReader::status() const
{
    return ok() ? Status()
                : Status::error(ErrorKind::InvalidArgument,
                      std::string(m_why) + " at byte " + std::to_string(m_at));
}

void CompactReader::fail(const char* why)
{
    if (m_why == nullptr)
        m_why = why;
}

bool CompactReader::expect(bool holds)
{
    if (!holds)
        fail("a field is of another type than the format says");
    return ok();
}

std::uint8_t CompactReader::byte()
{
    if (!ok())
        return 0;
    if (m_at == m_bytes.size()) {
        m_endsEarly = true;
        fail("the structure ends early");
        return 0;
    }
    return static_cast<std::uint8_t>(m_bytes[m_at++]);
}

std::uint64_t CompactReader::varint()
{
    constexpr unsigned kMostShift = 63;
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift <= kMostShift; shift += 7) {
        const std::uint8_t next = byte();
        out |= static_cast<std::uint64_t>(next & 0x7FU) << shift;
        if (next < 0x80)
            return out;
    }
    fail("a number is too long");
    return 0;
}

std::int64_t CompactReader::zigzag()
{
    return unzigzag(varint());
}

bool CompactReader::nextField(CompactField& field)
{
    const std::uint8_t head = byte();
    const std::uint8_t type = head & 0x0FU;
    if (!ok() || head == 0)
        return false;
    if (type == 0 || type > kLastType) {
        fail("a field has no known type");
        return false;
    }
    field.type = static_cast<CompactType>(type);
    const std::int64_t id = head >> 4U != 0 ? field.id + (head >> 4U) : zigzag();
    if (id < 0 || id > std::numeric_limits<std::int16_t>::max())
        fail("a field has no number of one");
    field.id = ok() ? static_cast<std::int16_t>(id) : std::int16_t{0};
    return ok();
}

bool CompactReader::boolean(const CompactField& field)
{
    return expect(field.type == CompactType::True || field.type == CompactType::False) &&
           field.type == CompactType::True;
}

std::int32_t CompactReader::i32(const CompactField& field)
{
    const std::int64_t value = i64(field);
    if (value < std::numeric_limits<std::int32_t>::min() ||
        value > std::numeric_limits<std::int32_t>::max()) {
        fail("a number is larger than its type");
        return 0;
    }
    return static_cast<std::int32_t>(value);
}

std::int64_t CompactReader::i64(const CompactField& field)
{
    if (field.type == CompactType::Byte)
        return static_cast<std::int8_t>(byte());
    return expect(isWhole(field.type)) ? zigzag() : 0;
}

std::string_view CompactReader::binary(const CompactField& field)
{
    return expect(field.type == CompactType::Binary) ? text() : std::string_view();
}

std::string_view CompactReader::text()
{
    const std::uint64_t count = varint();
    if (ok() && count > m_bytes.size() - m_at) {
        m_endsEarly = true;
        fail("a text ends early");
    }
    if (!ok())
        return {};
    m_at += static_cast<std::size_t>(count);
    return m_bytes.substr(m_at - static_cast<std::size_t>(count), static_cast<std::size_t>(count));
}

CompactList CompactReader::list(const CompactField& field)
{
    if (!expect(field.type == CompactType::List || field.type == CompactType::Set))
        return {};
    constexpr std::uint8_t kLong = 15;
    const std::uint8_t head = byte();
    const std::uint64_t count = head >> 4U == kLong ? varint() : head >> 4U;
    const std::uint8_t type = head & 0x0FU;
    if (ok() && count > m_bytes.size() - m_at) {
        m_endsEarly = true;
        fail("a list ends early");
    }
    if (count > 0 && (type == 0 || type > kLastType)) // empty ones of some writers have none
        fail("a list has no known type");
    return ok() ? CompactList{static_cast<std::uint32_t>(count), static_cast<CompactType>(type)}
                : CompactList{};
}

bool CompactReader::isStruct(const CompactField& field)
{
    return expect(field.type == CompactType::Struct);
}

std::string_view CompactReader::element(const CompactList& list)
{
    return expect(list.type == CompactType::Binary) ? text() : std::string_view();
}

void CompactReader::skipElements(CompactType type, std::uint64_t count, int depth)
{
    const bool isBoolean = type == CompactType::True || type == CompactType::False;
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
        if (isBoolean) // a byte each in a list, none in a field
            (void)byte();
        else
            skip(type, depth + 1);
    }
}

void CompactReader::skipMap(int depth)
{
    const std::uint64_t count = varint();
    if (count == 0)
        return;
    const std::uint8_t types = byte();
    const unsigned key = types >> 4U;
    const unsigned value = types & 0x0FU;
    if (key == 0 || key > kLastType || value == 0 || value > kLastType)
        fail("a map has no known type");
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
        skipElements(static_cast<CompactType>(key), 1, depth);
        skipElements(static_cast<CompactType>(value), 1, depth);
    }
}

void CompactReader::skip(CompactType type, int depth)
{
    if (depth > kDeepest)
        fail("structures lie too deep");
    switch (ok() ? type : CompactType::True) {
    case CompactType::Byte:
        (void)byte();
        return;
    case CompactType::I16:
    case CompactType::I32:
    case CompactType::I64:
        (void)varint();
        return;
    case CompactType::Double:
        for (int i = 0; i < 8; ++i)
            (void)byte();
        return;
    case CompactType::Binary:
        (void)text();
        return;
    case CompactType::List:
    case CompactType::Set: {
        const CompactList head = list({0, type});
        return skipElements(head.type, head.count, depth);
    }
    case CompactType::Map:
        return skipMap(depth);
    case CompactType::Struct: {
        CompactField field;
        while (nextField(field))
            skip(field.type, depth + 1);
        return;
    }
    default:
        return;
    }
}

} // namespace mr
