// Answer to a wrong command line: the parser's message, and the word that was probably meant.
//
// Threads  The main thread.

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mr::app {

// The one of `known` that `typed` was probably meant to be: it begins with it, or differs by two
// letters at most. Empty: none.
std::string meantWord(std::string_view typed, const std::vector<std::string>& known);

// Prints help, version or the error; `first` is the first argument. Returns the exit code.
int reportParseError(CLI::App& app, const CLI::ParseError& error, std::string_view first);

} // namespace mr::app
