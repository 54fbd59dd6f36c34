// Whether a file's columns are those of a layout of the catalogue.
//
// Threads  Pure.

#pragma once

#include "core/data/explained_columns.h"
#include "core/data/layout_choice.h"
#include "core/data/layouts.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mr {

// Columns found by name, in any capitals. Borrows the facts.
class NamedFacts
{
public:
    explicit NamedFacts(const std::vector<ColumnFacts>& facts);

    const ColumnFacts* find(std::string_view name) const; // null: there is none
    const std::vector<ColumnFacts>& all() const noexcept { return m_facts; }

private:
    const std::vector<ColumnFacts>& m_facts;
    std::unordered_map<std::string, const ColumnFacts*> m_byName;
};

struct LayoutMatch {
    const Layout* layout = nullptr;
    std::vector<LayoutReading> readings{}; // one for each alternative of its mapping
    std::size_t named = 0;                 // columns of the file that the layout knows
    bool isComplete = false;               // and none is left that has to be explained
};

// Nothing: a column that the layout needs is missing or holds something else.
std::optional<LayoutMatch> matchLayout(const Layout& layout, const NamedFacts& facts);

// The columns that `mapping` takes something from.
std::vector<std::string> columnsUsed(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts);

// The kind of rows that the mapping makes, with the columns it uses.
ReadingUse useOf(
    const std::map<std::string, std::string>& mapping, const std::vector<ColumnFacts>& facts);

// The first column that `use` leaves out without reason, as a sentence; `known` may be left out.
std::string firstLeftOut(const std::vector<ColumnFacts>& facts, const ReadingUse& use,
    const std::vector<std::string>& known = {});

} // namespace mr
