// Which column of a dataset is the prompt and which the response, or which is plain text.
//
// Threads  Pure.
// Errors   InvalidArgument lists the columns that are there and the --map that would help.

#pragma once

#include "core/data/record_reader.h"

#include <millrace/library.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// A column as the first rows show it.
struct ColumnFacts {
    std::string name;
    bool text = true;    // no row holds anything but text or null
    bool nested = false; // some row holds a list or an object
    bool listed = false; // some row holds a text that begins as a JSON list of objects
    bool filled = false; // some row holds a text, or a list or object with something in it
    bool truth = false;  // some row holds true or false, and none holds anything else
    bool other = false;  // some row holds anything else than true, false or null
    bool bad = false;    // some row holds false
};

// What is trained of a row whose model has a chat template.
enum class RowStyle : std::uint8_t {
    Auto,     // Template where the model has one
    Template, // pairs and ChatML texts are conversations, written as the model's template wants
    Plain,    // pairs are prompt and response as they stand, texts are texts
};

// The key of DataSource::columns that holds the style: "style" -> "template" or "plain". It goes
// the way of the columns, so run records and command lines carry it.
inline constexpr std::string_view kStyleKey = "style";

// The key that holds the chat template to write conversations with in place of the model's own
// (chat_templates.h).
inline constexpr std::string_view kTemplateKey = "chat_template";

// Prompt and response (and perhaps input, which is put between them), or text, or a conversation.
// Prompt and response may be lists of messages, which then are one conversation.
struct ColumnMap {
    std::string prompt;
    std::string input;
    std::string response;
    std::string text;
    std::string messages;
    std::string tools;   // of a conversation, where there is such a column
    std::string system;  // of a conversation or a pair, the same
    std::string history; // of a pair: the turns before it, [[question, answer], ...]
    RowStyle style = RowStyle::Auto;
    // Of pairs and conversations: what makes a row one that must not be trained.
    std::string verdict;            // the column that says whether the answer is good
    std::vector<std::string> media; // columns of pictures, sound and video

    bool isPairs() const noexcept { return !response.empty(); }
    bool isChat() const noexcept { return !messages.empty(); }
    std::map<std::string, std::string> asMap() const; // of the columns; without the style
};

// The columns of a source without its style and chat template.
std::map<std::string, std::string> columnsAsked(const DataSource& source);
// "template" or "plain" of a source that says nothing: `style` is what it gets.
void settleStyle(DataSource& source, RowStyle style);
// What `source` says of its chat template; empty: nothing.
std::string templateAsked(const DataSource& source);
// The name of a column as it should stand in a message: in quotes, and not longer than a line.
std::string shownName(std::string_view name);

// Adds what `record` shows to `facts`, in order of first appearance.
void noteColumns(const Record& record, std::vector<ColumnFacts>& facts);

// `source.columns` wins; then known names; then, with exactly two text columns, the first is the
// prompt and the second the response, and a single text column is plain text.
// InvalidArgument: unknown role or column, preferences, bad answers, media, nothing that fits;
// `refusal` (may be null) then says which of those that a person can do something about.
Result<ColumnMap> chooseColumns(const DataSource& source, const std::vector<ColumnFacts>& facts,
    DataRefusal* refusal = nullptr);

// Columns that `map` takes nothing from, in the order of the file.
std::vector<std::string> unusedColumns(const std::vector<ColumnFacts>& facts, const ColumnMap& map);

} // namespace mr
