// The turns of a row, whatever its layout, and what is wrong with them.
//
// Threads  Pure.
// Errors   None: a conversation that cannot be read has no turns; its reader reports it.

#pragma once

#include "core/data/documents.h"

#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class TurnRole : std::uint8_t { System, User, Assistant, Tool, Text };

struct RowTurn {
    TurnRole role = TurnRole::Text;
    std::string text;
    bool calls = false; // an answer that calls a tool
};

// A text that is no conversation is one turn of TurnRole::Text.
std::vector<RowTurn> turnsOf(const Document& document);

// The first turn without words that should have some, in words for a person; empty: there is none.
std::string_view emptyTurn(const std::vector<RowTurn>& turns) noexcept;
// The first turn that stands where no conversation has it; empty: there is none.
std::string_view wrongOrder(const std::vector<RowTurn>& turns) noexcept;

} // namespace mr
