#include "core/data/column_facts.h"

#include "core/data/cell_look.h"
#include "core/data/untrainable.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kSampledCells = 32768;
constexpr std::int64_t kSampledRows = 512;
constexpr std::uint32_t kComparedColumns = 32;
constexpr std::uint32_t kAlwaysSampled = 256;
constexpr std::size_t kMostValues = 16;
constexpr std::size_t kLongestValue = 24;

void noteValue(const Cell& cell, ColumnFacts& facts)
{
    if (facts.hasManyValues)
        return;
    const bool isLong = cell.kind == CellKind::Nested || cell.text.size() > kLongestValue;
    const std::string value = isLong ? std::string() : lowerAscii(cell.text);
    const auto found = std::find(facts.values.begin(), facts.values.end(), value);
    if (!isLong && found != facts.values.end())
        return;
    facts.hasManyValues = isLong || facts.values.size() == kMostValues;
    if (facts.hasManyValues)
        facts.values.clear();
    else
        facts.values.push_back(value);
}

void noteShape(const Cell& cell, ColumnFacts& facts)
{
    const FoundShape found = shapeOf(cell);
    if (found.shape == CellShape::None)
        return;
    if (facts.shape == CellShape::None) {
        facts.shape = found.shape;
        facts.keys = found.keys;
    }
    const bool isOther = facts.shape != found.shape;
    facts.isMixed |= isOther && !(isConversation(facts.shape) && isConversation(found.shape));
    facts.isEven &= found.isEven;
}

void noteCell(const Cell& cell, std::int64_t row, ColumnFacts& facts)
{
    noteKinds(cell, facts);
    if (isBlank(cell))
        return;
    ++facts.rows;
    facts.nestedRows += cell.kind == CellKind::Nested ? 1 : 0;
    if (facts.nestedRows == 1 && facts.firstNestedRow == 0)
        facts.firstNestedRow = row;
    noteValue(cell, facts);
    if (facts.example.empty())
        facts.example = exampleOf(cell);
    if (facts.shape == CellShape::None)
        noteShape(cell, facts);
}

} // namespace

bool isConversation(CellShape shape) noexcept
{
    return shape >= CellShape::RoleContent && shape <= CellShape::HumanAssistant;
}

bool ColumnFacts::isWithin(std::string_view column) const noexcept
{
    return std::find(within.begin(), within.end(), column) != within.end();
}

// Rows of a file mostly have their cells in one order, so the place is tried first.
std::uint32_t FactsCollector::columnOf(const Cell& cell, std::size_t place)
{
    if (place < m_facts.size() && m_facts[place].name == cell.name)
        return static_cast<std::uint32_t>(place);
    const auto [found, isNew] =
        m_places.try_emplace(cell.name, static_cast<std::uint32_t>(m_facts.size()));
    if (isNew) {
        m_facts.push_back({cell.name});
        m_facts.back().firstRow = m_rows + 1;
    }
    return found->second;
}

void FactsCollector::add(const Record& record)
{
    for (std::size_t i = 0; i < record.cells.size(); ++i) {
        const std::uint32_t column = columnOf(record.cells[i], i);
        noteCell(record.cells[i], m_rows + 1, m_facts[column]);
        if (isFirst(record.cells[i], column))
            keep(record.cells[i], column, 0);
    }
    if (m_rows % m_stride == 0) {
        sample(record);
        compare(record);
    }
    ++m_rows;
}

// The first cell of a column that holds something stays in the sample, so none goes unmeasured.
bool FactsCollector::isFirst(const Cell& cell, std::uint32_t column) const
{
    return m_facts[column].rows == 1 && column < kAlwaysSampled && !isBlank(cell);
}

void FactsCollector::keep(const Cell& cell, std::uint32_t column, std::int64_t row)
{
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::size_t>(cell.text.size(), UINT32_MAX));
    const std::uint8_t marks = cell.kind == CellKind::Nested ? std::uint8_t{0} : marksOf(cell.text);
    m_sample.push_back({std::hash<std::string_view>()(cell.text), row, column, bytes, marks});
}

void FactsCollector::sample(const Record& record)
{
    for (std::size_t i = 0; i < record.cells.size() && i < kSampledCells / 2; ++i) {
        const Cell& cell = record.cells[i];
        const std::uint32_t column = columnOf(cell, i);
        if (isBlank(cell) || isFirst(cell, column))
            continue;
        noteShape(cell, m_facts[column]);
        keep(cell, column, m_rows);
    }
    while (m_sample.size() > kSampledCells || m_rows / m_stride >= kSampledRows)
        thinOut();
}

// Which columns' texts hold which others' in this row, too.
void FactsCollector::compare(const Record& record)
{
    const auto columns =
        static_cast<std::uint32_t>(std::min<std::size_t>(m_facts.size(), kComparedColumns));
    std::vector<std::string> texts(columns);
    for (std::size_t i = 0; i < record.cells.size(); ++i)
        if (const std::uint32_t column = columnOf(record.cells[i], i); column < columns)
            texts[column] = flatText(record.cells[i]);
    m_apart.resize(columns);
    for (std::uint32_t a = 0; a < columns; ++a)
        for (std::uint32_t b = 0; b < columns && !texts[a].empty(); ++b)
            if ((m_apart[a] >> b & 1U) == 0 && texts[b].find(texts[a]) == std::string::npos)
                m_apart[a] |= std::uint32_t{1} << b;
}

void FactsCollector::thinOut()
{
    m_stride *= 2;
    std::erase_if(m_sample, [this](const SampledCell& c) { return c.row % m_stride != 0; });
}

namespace {

void settleKind(ColumnFacts& facts)
{
    constexpr std::int64_t kTextsToOneList = 10;
    if (!facts.nested || facts.nestedRows == 0 || facts.nestedRows * kTextsToOneList > facts.rows)
        return;
    facts.nested = false;
    facts.text = facts.plain;
    if (!facts.listed)
        facts.shape = CellShape::None;
}

} // namespace

std::vector<ColumnFacts> FactsCollector::finish()
{
    std::sort(m_sample.begin(), m_sample.end(), [](const SampledCell& a, const SampledCell& b) {
        return std::tie(a.column, a.hash) < std::tie(b.column, b.hash);
    });
    for (std::size_t i = 0; i < m_sample.size(); ++i) {
        const SampledCell& cell = m_sample[i];
        ColumnFacts& facts = m_facts[cell.column];
        const bool isRepeated =
            i > 0 && m_sample[i - 1].column == cell.column && m_sample[i - 1].hash == cell.hash;
        ++facts.sampled;
        facts.distinct += isRepeated ? 0 : 1;
        facts.meanBytes += cell.bytes;
        for (const auto& [mark, share] : kShares)
            facts.*share += (cell.marks & mark) != 0 ? 1.0 : 0.0;
    }
    for (ColumnFacts& facts : m_facts) {
        settleKind(facts);
        const double cells = std::max(1.0, static_cast<double>(facts.sampled));
        facts.meanBytes /= cells;
        for (const auto& [mark, share] : kShares)
            facts.*share /= cells;
    }
    for (std::size_t a = 0; a < m_apart.size(); ++a)
        for (std::size_t b = 0; b < m_apart.size() && m_facts[a].sampled > 0; ++b)
            if (b != a && (m_apart[a] >> b & 1U) == 0)
                m_facts[a].within.push_back(m_facts[b].name);
    return std::move(m_facts);
}

} // namespace mr
