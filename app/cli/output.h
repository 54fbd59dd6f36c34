// Output of the program to the terminal or a pipe. Every line goes through here.
//
// Names come from strangers (a model's config, a run's name, a path), so a line for people is
// written without control characters. JSON is written with bytes that are not UTF-8 replaced.
//
// Threads  Any; a line stays whole.
// Errors   A line that cannot be written is remembered, and finishOutput() reports it. A reader
//          that has gone (`| head`) is no error: the rest is not written, and the command goes on.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mr::app {

// Before anything else: descriptors 0 to 2 are open, so that no file of the run takes their place,
// and a write to a closed pipe or beyond a file size limit fails instead of ending the program.
void prepareOutput();

// One line to stdout as it is, flushed: CSV, or JSON that was made as text.
void printLine(std::string_view line);

// JSON of a value to stdout, as by printLine(); `indent` as of nlohmann's dump().
void printJson(const nlohmann::json& value, int indent = -1);

// Text as printf() would write it.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// As formatted(), one line for people to stdout; the format has no line end.
[[gnu::format(printf, 1, 2)]] void printText(const char* format, ...);

// Text to stdout as it comes, whole characters with their own line ends, as a model answers. On a
// terminal other control characters are spelled out.
void printPiece(std::string_view piece);

// Whether the reader has gone or a line could not be written: further output reaches nobody.
bool isOutputLost() noexcept;

// "millrace: TEXT" to stderr. Further lines of a message are set in by two spaces, so that no name
// can forge a line of its own.
void say(std::string_view text);

// The exit code of the program: `code`, or 4 where that is 0 and output is missing, which it says.
int finishOutput(int code);

} // namespace mr::app
