// Names and texts from files and arguments, as they may stand in a message and on a terminal.
//
// Threads  Pure functions.
// Units    Bytes of UTF-8.

#pragma once

#include <string>
#include <string_view>

namespace mr {

// In quotes, and not longer than a line: every name that a message takes from a file.
std::string shownName(std::string_view name);

// `text` without power over a terminal: one line, in which a control character (escape sequences
// begin with one), a byte that is not UTF-8 and a mark that turns the direction of writing stand
// as \n, \x1b or \u202e. Text of letters comes back as it is.
std::string terminalText(std::string_view text);

} // namespace mr
