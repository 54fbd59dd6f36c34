#include "core/parquet/parquet_schema.h"

#include "core/base/shown_text.h"
#include "core/base/utf8.h"
#include "core/parquet/value_json.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace mr {
namespace {

constexpr int kDeepestNode = 32;
constexpr std::int32_t kMostValueBytes = 1 << 20; // of values that are equally long

Status badSchema(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

struct Levels {
    std::uint32_t def = 0;
    std::uint32_t rep = 0;
    int depth = 0;
    std::string path{};
};

std::size_t storedBytes(const SchemaElement& element)
{
    switch (*element.type) {
    case ParquetType::Int32:
    case ParquetType::Float:
        return 4;
    case ParquetType::Int64:
    case ParquetType::Double:
        return 8;
    case ParquetType::FixedBytes:
        return static_cast<std::size_t>(element.typeBytes);
    default:
        return 0;
    }
}

// Whether the meaning is one that values of the type may have.
bool isMeaningOf(ParquetMeaning meaning, ParquetType type)
{
    const bool isShort = type == ParquetType::Int32;
    const bool isLong = type == ParquetType::Int64;
    switch (meaning) {
    case ParquetMeaning::Plain:
        return true;
    case ParquetMeaning::Text:
        return type == ParquetType::ByteArray || type == ParquetType::FixedBytes;
    case ParquetMeaning::Signed:
    case ParquetMeaning::Unsigned:
        return isShort || isLong;
    case ParquetMeaning::Date:
        return isShort;
    case ParquetMeaning::Millis:
    case ParquetMeaning::Micros:
    case ParquetMeaning::Nanos:
        return isLong;
    default:
        return false;
    }
}

class SchemaBuilder
{
public:
    SchemaBuilder(const std::vector<SchemaElement>& elements, std::vector<ParquetLeaf>& leaves)
        : m_elements(elements)
        , m_leaves(leaves)
    {
    }

    Status root(ParquetNode& out)
    {
        MR_ASSIGN(const SchemaElement* element, take());
        MR_TRY(members(*element, {}, out));
        return m_at == m_elements.size() ? Status() : badSchema("a column belongs to no group");
    }

private:
    Result<const SchemaElement*> take()
    {
        if (m_at == m_elements.size())
            return badSchema("a group has fewer columns than it says");
        return &m_elements[m_at++];
    }

    Status node(Levels levels, ParquetNode& out)
    {
        MR_ASSIGN(const SchemaElement* element, take());
        if (validBytes(element->name, 0) != element->name.size())
            return badSchema("a column has a name that is not UTF-8");
        out.key = jsonText(element->name) + ":";
        if (++levels.depth > kDeepestNode)
            return badSchema("columns lie too deep");
        levels.path += (levels.path.empty() ? "" : ".") + element->name;
        out.firstLeaf = m_leaves.size();
        if (element->repeat == ParquetRepeat::Repeated) {
            MR_TRY(bareList(*element, levels, out));
        } else {
            out.isOptional = element->repeat == ParquetRepeat::Optional;
            levels.def += out.isOptional ? 1 : 0;
            MR_TRY(body(*element, levels, out));
        }
        out.endLeaf = m_leaves.size();
        return {};
    }

    // A value that may be there several times is a list without being called so.
    Status bareList(const SchemaElement& element, Levels levels, ParquetNode& out)
    {
        beginItems(levels, ParquetShape::List, out);
        return item(element, levels, out);
    }

    static void beginItems(Levels& levels, ParquetShape shape, ParquetNode& out)
    {
        out.shape = shape;
        out.def = levels.def;
        out.itemDef = ++levels.def;
        out.itemRep = ++levels.rep;
    }

    // `element` itself is the item of the list.
    Status item(const SchemaElement& element, const Levels& levels, ParquetNode& out)
    {
        ParquetNode& child = out.children.emplace_back();
        child.firstLeaf = m_leaves.size();
        MR_TRY(body(element, levels, child));
        child.endLeaf = m_leaves.size();
        return {};
    }

    Status body(const SchemaElement& element, const Levels& levels, ParquetNode& out)
    {
        out.def = levels.def;
        if (element.type)
            return leaf(element, levels);
        if (element.meaning == ParquetMeaning::List)
            return list(element, levels, out);
        if (element.meaning == ParquetMeaning::Map)
            return map(levels, out);
        return members(element, levels, out);
    }

    Status members(const SchemaElement& element, const Levels& levels, ParquetNode& out)
    {
        out.shape = ParquetShape::Struct;
        out.firstLeaf = m_leaves.size();
        if (element.type || element.children < 1)
            return badSchema("a group has no columns");
        std::set<std::string> names;
        for (std::int32_t i = 0; i < element.children; ++i) {
            ParquetNode& child = out.children.emplace_back();
            MR_TRY(node(levels, child));
            if (!names.insert(child.key).second)
                return badSchema("two columns are called " + child.key.substr(0, 80) +
                                 " in one group; give each a name of its own");
        }
        out.endLeaf = m_leaves.size();
        return {};
    }

    Status list(const SchemaElement& element, Levels levels, ParquetNode& out)
    {
        MR_ASSIGN(const SchemaElement* repeated, take());
        if (element.children != 1 || repeated->repeat != ParquetRepeat::Repeated)
            return badSchema("a list has no items that repeat");
        beginItems(levels, ParquetShape::List, out);
        ++levels.depth;
        const bool isItem =
            repeated->type || repeated->children != 1 || repeated->name == "array" ||
            repeated->name == element.name + "_tuple" ||
            (m_at < m_elements.size() && m_elements[m_at].repeat == ParquetRepeat::Repeated);
        if (isItem)
            return item(*repeated, levels, out);
        return node(levels, out.children.emplace_back());
    }

    Status map(Levels levels, ParquetNode& out)
    {
        MR_ASSIGN(const SchemaElement* repeated, take());
        if (repeated->repeat != ParquetRepeat::Repeated || repeated->children != 2)
            return badSchema("a map has no keys and values that repeat");
        beginItems(levels, ParquetShape::Map, out);
        ++levels.depth;
        out.children.resize(2);
        MR_TRY(node(levels, out.children[0]));
        return node(levels, out.children[1]);
    }

    Status leaf(const SchemaElement& element, const Levels& levels)
    {
        const std::string what = "column " + shownName(levels.path);
        if (element.meaning == ParquetMeaning::Other || *element.type == ParquetType::Int96)
            return badSchema(what + " is " +
                             (*element.type == ParquetType::Int96 ? "INT96" : element.otherName) +
                             ", which is not read; write the file without it, or as text");
        if (!isMeaningOf(element.meaning, *element.type) ||
            (*element.type == ParquetType::FixedBytes &&
                (element.typeBytes < 1 || element.typeBytes > kMostValueBytes)))
            return badSchema(what + " has a type that makes no sense; write the file again");
        m_leaves.push_back({levels.path,
            {{*element.type, storedBytes(element)}, levels.def, levels.rep}, element.meaning});
        return {};
    }

    const std::vector<SchemaElement>& m_elements;
    std::vector<ParquetLeaf>& m_leaves;
    std::size_t m_at = 0;
};

} // namespace

Result<ParquetSchema> makeParquetSchema(const std::vector<SchemaElement>& elements)
{
    ParquetSchema out;
    MR_TRY(SchemaBuilder(elements, out.leaves).root(out.root));
    return out;
}

} // namespace mr
