// Columns that a reading of a file does not use, and why it may leave them out: they are empty,
// hold identifiers, numbers, dates, addresses or few short values, or repeat text that the reading
// uses.
//
// Measured on the facts of the column, helped by its name, never by the name alone.
//
// Threads  Pure.

#pragma once

#include "core/data/column_facts.h"

#include <string>
#include <vector>

namespace mr {

// The kind of rows that a reading makes and the columns it uses: other columns are judged by them.
struct ReadingUse {
    enum class Kind : std::uint8_t { Pair, Text, Conversation };
    Kind kind = Kind::Pair;
    std::vector<const ColumnFacts*> columns{}; // that it takes something from; borrowed

    bool has(const ColumnFacts& column) const noexcept;
};

// Empty: `column` may be left out. Else its content, as the end of a sentence that begins with its
// name: "holds text", "may mark answers as good or bad".
std::string whyNotLeftOut(const ColumnFacts& column, const ReadingUse& use);

} // namespace mr
