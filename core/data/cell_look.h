// The look of one cell: its shape as a list or object, and the kind of text it resembles.
//
// Threads  Pure.

#pragma once

#include "core/data/column_facts.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr {

// Marks of a text, as bits.
inline constexpr std::uint8_t kSpaced = 1;
inline constexpr std::uint8_t kNumber = 2;
inline constexpr std::uint8_t kLink = 4;
inline constexpr std::uint8_t kDate = 8;
inline constexpr std::uint8_t kIdentifier = 16;

// The bits with the shares that they are counted in.
inline constexpr std::array<std::pair<std::uint8_t, double ColumnFacts::*>, 5> kShares{
    {{kSpaced, &ColumnFacts::spaced}, {kNumber, &ColumnFacts::numbers},
        {kLink, &ColumnFacts::links}, {kDate, &ColumnFacts::dates},
        {kIdentifier, &ColumnFacts::identifiers}}};

std::uint8_t marksOf(std::string_view text);

struct FoundShape {
    CellShape shape = CellShape::None;
    std::vector<std::string> keys{}; // keys of the object, or of the first object of the list
    bool isEven = true;
};

// By the first element of a list, however long the list is.
FoundShape shapeOf(const Cell& cell);

// Null, an empty text, an empty list or object.
bool isBlank(const Cell& cell);

// A text or a list or object with something in it; "[]" has nothing in it.
bool isFilled(const Cell& cell);

// Whether a text begins as a JSON list of objects.
bool beginsAsList(std::string_view text);

// Whether the cell holds "false" or "False", as a text or without quotes.
bool isFalse(const Cell& cell);

// Adds the kind of this cell to the flags of `facts`.
void noteKinds(const Cell& cell, ColumnFacts& facts);

// The first bytes of the text.
std::string exampleOf(const Cell& cell);

// The text of the cell, or all texts within a list or object; empty where that is very long.
// White space around it is dropped.
std::string flatText(const Cell& cell);

} // namespace mr
