// Readings of a file by the names of its columns, for layouts that no catalogue knows: a prompt
// with its response, a conversation, a text, two languages.
//
// Threads  Pure.

#pragma once

#include "core/data/layout_choice.h"

#include <vector>

namespace mr {

// Readings with `leftOut` filled in.
std::vector<LayoutReading> familyReadings(const std::vector<ColumnFacts>& facts);

// Readings that are possible where no name is known: two texts either way round, a text, a list of
// messages. None of them is certain.
std::vector<LayoutReading> possibleReadings(const std::vector<ColumnFacts>& facts);

} // namespace mr
