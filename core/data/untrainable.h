// Rows and files that training on them plainly would teach something wrong: answers to choose
// between, answers marked as bad, questions about pictures.
//
// Threads  Pure.
// Errors   A refusal names the column and the way out.

#pragma once

#include "core/data/columns.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct Refusal {
    DataRefusal kind = DataRefusal::None;
    std::string message;
};

// Finds two columns with names that begin with "chosen" and "rejected". `prompt` and `chat`: the
// column of the question or the conversation that they answer; empty: there is none.
std::optional<Refusal> preferencesIn(
    const std::vector<ColumnFacts>& facts, const std::string& prompt, const std::string& chat);

// Judges pairs and conversations by the facts of their columns; notes in `map` the columns that
// mark such a row.
std::optional<Refusal> untrainableIn(const std::vector<ColumnFacts>& facts, ColumnMap& map);

// Whether the column holds pictures, sound or video, or where they lie.
bool holdsMedia(const ColumnFacts& column);

// Judges one row of pairs or conversations, which the facts of its columns may not tell of.
Status refuseRow(const ColumnMap& map, const Record& record);

std::string lowerAscii(std::string_view text);

} // namespace mr
