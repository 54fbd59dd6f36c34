// Which column of a dataset is the prompt and which the response, or which is plain text.
//
// Threads  Pure.
// Errors   InvalidArgument lists the columns that are there and the --map that would help.

#pragma once

#include "core/base/shown_text.h"
#include "core/data/column_facts.h"
#include "core/data/record_reader.h"

#include <millrace/library.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// Form in which a row is trained if the model has a chat template.
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

// The key that names parts of conversations to leave out, joined by "+" (chat_parts.h):
// "drop" -> "tools+tool-calls".
inline constexpr std::string_view kDropKey = "drop";

// Prompt and response (and perhaps input, which is put between them), or text, or a conversation.
// Prompt and response may be lists of messages, which then are one conversation. Each is a column
// or an expression of columns (cell_value.h).
struct ColumnMap {
    std::string prompt;
    std::string input;
    std::string response;
    std::string text;
    std::string messages;
    std::string tools;   // column of a conversation's tools, where there is one
    std::string system;  // column of a conversation's or a pair's system text, where there is one
    std::string history; // column of the turns before a pair, [[question, answer], ...]
    std::string layout;  // name of the columns' layout: "Alpaca", "as --map says", ...
    RowStyle style = RowStyle::Auto;
    // Columns that keep a row of pairs or conversations from training.
    std::string verdict;            // the column that says whether the answer is good
    std::vector<std::string> media; // columns of pictures, sound and video

    bool isPairs() const noexcept { return !response.empty(); }
    bool isChat() const noexcept { return !messages.empty(); }
    std::map<std::string, std::string> asMap() const; // the columns by role; without the style
};

// The columns of a source without its style, chat template and parts to drop.
std::map<std::string, std::string> columnsAsked(const DataSource& source);
// Gives a source that names no style `style`, as "template" or "plain".
void settleStyle(DataSource& source, RowStyle style);
// Chat template that `source` asks for; empty: none.
std::string templateAsked(const DataSource& source);

// Why columns were not chosen, and the readings that somebody may choose instead.
struct ColumnRefusal {
    DataRefusal kind = DataRefusal::None;
    std::vector<DataReading> readings{};
};

// `source.columns` wins; a prompt or a response that it leaves out is found by name where only one
// column may be meant. Without it the layout is chosen where it is certain (layout_choice.h).
// InvalidArgument: unknown role or column, preferences, bad answers, media, a layout that is not
// trained, several readings or none; `refusal` (may be null) then says which of those that a person
// can do something about.
Result<ColumnMap> chooseColumns(const DataSource& source, const std::vector<ColumnFacts>& facts,
    ColumnRefusal* refusal = nullptr);

// Columns that `map` takes nothing from, in the order of the file.
std::vector<std::string> unusedColumns(const std::vector<ColumnFacts>& facts, const ColumnMap& map);

} // namespace mr
