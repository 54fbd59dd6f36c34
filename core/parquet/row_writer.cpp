#include "core/parquet/row_writer.h"

#include "core/base/shown_text.h"
#include "core/base/utf8.h"
#include "core/parquet/value_json.h"

#include <algorithm>
#include <cstring>

namespace mr {
namespace {

Status badLeaf(const ParquetLeaf& leaf, ErrorKind kind, const std::string& message)
{
    return Status::error(kind, "column " + shownName(leaf.path) + ": " + message);
}

// Most text is ASCII, of which eight bytes at a time are looked at.
bool isUtf8(std::string_view text)
{
    constexpr std::uint64_t kHighBits = 0x8080808080808080U;
    std::size_t at = 0;
    for (std::uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
        std::memcpy(&eight, text.data() + at, sizeof(eight));
        if ((eight & kHighBits) != 0)
            break;
    }
    return validBytes(text, at) == text.size() - at;
}

} // namespace

Status ParquetRowWriter::contradiction(std::size_t leaf) const
{
    return badLeaf(m_schema.leaves[leaf], ErrorKind::InvalidArgument,
        "has other rows or items than the columns beside it; the file is damaged, write it again");
}

bool ParquetRowWriter::atEnd() const
{
    return std::all_of(m_cursors.begin(), m_cursors.end(), [](const auto& c) { return c.atEnd(); });
}

Status ParquetRowWriter::next(std::string& json)
{
    json.clear();
    m_notText.clear();
    for (std::size_t i = 0; i < m_cursors.size(); ++i)
        if (m_cursors[i].atEnd() || m_cursors[i].rep() != 0)
            return contradiction(i);
    return writeStruct(m_schema.root, json);
}

// Whether the node is there from the level `def` on: all its leaves must agree.
Result<bool> ParquetRowWriter::isThere(const ParquetNode& node, std::uint32_t def) const
{
    const bool first = m_cursors[node.firstLeaf].def() >= def;
    for (std::size_t i = node.firstLeaf; i < node.endLeaf; ++i)
        if (m_cursors[i].atEnd() || (m_cursors[i].def() >= def) != first)
            return contradiction(i);
    return first;
}

// Whether another item of the list follows.
Result<bool> ParquetRowWriter::goesOn(const ParquetNode& node) const
{
    const auto repeats = [&](std::size_t leaf) {
        return !m_cursors[leaf].atEnd() && m_cursors[leaf].rep() >= node.itemRep;
    };
    const bool first = repeats(node.firstLeaf);
    for (std::size_t i = node.firstLeaf; i < node.endLeaf; ++i)
        if (repeats(i) != first || (first && m_cursors[i].rep() != node.itemRep))
            return contradiction(i);
    return first;
}

Status ParquetRowWriter::advance(std::size_t leaf)
{
    const Status status = m_cursors[leaf].advance();
    return status.ok() ? status : badLeaf(m_schema.leaves[leaf], status.kind(), status.message());
}

Status ParquetRowWriter::advanceAll(const ParquetNode& node)
{
    for (std::size_t i = node.firstLeaf; i < node.endLeaf; ++i)
        MR_TRY(advance(i));
    return {};
}

Status ParquetRowWriter::write(const ParquetNode& node, std::string& out)
{
    if (out.size() > kMostRowBytes)
        return badLeaf(m_schema.leaves[node.firstLeaf], ErrorKind::InvalidArgument,
            "the row is longer than 256 MiB; leave the column out");
    if (node.isOptional) {
        MR_ASSIGN(const bool there, isThere(node, node.def));
        if (!there) {
            out += "null";
            return advanceAll(node);
        }
    }
    switch (node.shape) {
    case ParquetShape::Struct:
        return writeStruct(node, out);
    case ParquetShape::List:
    case ParquetShape::Map:
        return writeItems(node, out);
    default:
        return writeValue(node, out);
    }
}

Status ParquetRowWriter::writeStruct(const ParquetNode& node, std::string& out)
{
    char separator = '{';
    for (const ParquetNode& child : node.children) {
        out += separator;
        out += child.key;
        MR_TRY(write(child, out));
        separator = ',';
    }
    out += '}';
    return {};
}

// A map with keys of text is an object, any other a list of objects with key and value.
Status ParquetRowWriter::writeItems(const ParquetNode& node, std::string& out)
{
    const ParquetNode& first = node.children.front();
    const bool hasTextKeys = node.shape == ParquetShape::Map &&
                             first.shape == ParquetShape::Value && !first.isOptional &&
                             holdsText(m_schema.leaves[first.firstLeaf]);
    MR_ASSIGN(bool more, isThere(node, node.itemDef));
    out += hasTextKeys ? '{' : '[';
    if (!more)
        MR_TRY(advanceAll(node));
    bool isFirst = true;
    while (more) {
        if (!isFirst)
            out += ',';
        isFirst = false;
        MR_TRY(writeItem(node, hasTextKeys, out));
        MR_ASSIGN(more, goesOn(node));
    }
    out += hasTextKeys ? '}' : ']';
    return {};
}

Status ParquetRowWriter::writeItem(const ParquetNode& node, bool hasTextKeys, std::string& out)
{
    if (node.shape == ParquetShape::List)
        return write(node.children.front(), out);
    if (!hasTextKeys)
        return writeStruct(node, out);
    MR_TRY(write(node.children.front(), out));
    out += ':';
    return write(node.children.back(), out);
}

Status ParquetRowWriter::writeValue(const ParquetNode& node, std::string& out)
{
    const std::size_t at = node.firstLeaf;
    const ParquetLeaf& leaf = m_schema.leaves[at];
    if (m_cursors[at].atEnd() || m_cursors[at].def() != leaf.shape.mostDef)
        return contradiction(at);
    const ParquetValue& value = m_cursors[at].value();
    if (holdsText(leaf) && !isUtf8(value.bytes)) {
        m_notText = m_notText.empty() ? leaf.path : m_notText;
        out += "null";
        return advance(at);
    }
    if (const Status status = appendJsonValue(leaf, value, out); !status.ok())
        return badLeaf(leaf, status.kind(), status.message());
    return advance(at);
}

} // namespace mr
