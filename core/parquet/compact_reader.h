// CompactReader: structures in Thrift's compact protocol, as Parquet writes its footer and the
// heads of pages.
//
//     while (reader.nextField(field))
//         if (field.id == 3) rows = reader.i64(field); else reader.skip(field);
//     return reader.status();
//
// Threads  Confined to its owner, which keeps the bytes alive.
// Errors   Kept and reported by status(): the bytes end early, a value is of another type than
//          asked for, or structures lie too deep. Every read then gives zero, and no field is left.
// Source   github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string_view>

namespace mr {

enum class CompactType : std::uint8_t {
    Stop,
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
};

struct CompactField {
    std::int16_t id = 0;
    CompactType type = CompactType::Stop;
};

struct CompactList {
    std::uint32_t count = 0;
    CompactType type = CompactType::Stop;
};

class CompactReader
{
public:
    explicit CompactReader(std::string_view bytes)
        : m_bytes(bytes)
    {
    }

    bool ok() const noexcept { return m_why == nullptr; }
    bool endsEarly() const noexcept { return m_endsEarly; }
    Status status() const;
    std::size_t taken() const noexcept { return m_at; }

    // The next field of a structure; false at its end. `field` is the one before it, at first {}.
    bool nextField(CompactField& field);

    bool boolean(const CompactField& field);
    std::int32_t i32(const CompactField& field);
    std::int64_t i64(const CompactField& field);
    std::string_view binary(const CompactField& field);
    // The head of a list; its elements follow, each at least a byte.
    CompactList list(const CompactField& field);
    // Whether the field is a structure, whose fields then follow.
    bool isStruct(const CompactField& field);

    // An element of a list, where it has this type.
    std::string_view element(const CompactList& list);

    void skip(const CompactField& field) { skip(field.type, 0); }
    void fail(const char* why);

private:
    std::uint8_t byte();
    std::uint64_t varint();
    std::int64_t zigzag();
    std::string_view text();
    void skip(CompactType type, int depth);
    void skipElements(CompactType type, std::uint64_t count, int depth);
    void skipMap(int depth);
    bool expect(bool holds);

    std::string_view m_bytes;
    std::size_t m_at = 0;
    const char* m_why = nullptr;
    bool m_endsEarly = false;
};

} // namespace mr
