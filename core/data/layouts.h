// The catalogue of dataset layouts that people have, by the names they know.
//
// A layout is a set of columns with their kinds, and the columns that each role takes. It gives a
// file its meaning only where it leaves no column unexplained (layout_choice.h).
//
// Threads  Constant tables.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mr {

enum class DataKind : std::uint8_t {
    Pairs,
    Text,
    Conversation,
    Preference,      // answers to choose between
    LabelledAnswers, // answers marked good or bad
    Classification,
    MultipleChoice,
    Passage, // a question over a passage
    Summary,
    Translation,
    Other, // known, and nothing that this program trains
};

struct Layout {
    std::string_view name;   // as its users call it
    std::string_view source; // the page or file that shows it
    DataKind kind = DataKind::Pairs;
    // "question answer:scalar id?:short": a name is a text column unless a kind is given:
    //   text, number, truth, scalar (any of the three), short (a text of at most 80 bytes),
    //   chat (a list of messages in any form), turns (a list of texts, as many as answers and
    //   questions make), texts, objects (lists of them), list (any), object, any, letter (A, B,
    //   ...), place (a letter, or a number that somewhere is 0), upto2 and upto3 (numbers from 1 to
    //   that).
    // "?" marks a column that may be missing. A column that no role takes is known and not used.
    std::string_view columns;
    // "prompt=question,response=answer". A role is left out where its column may be missing and is.
    // Alternatives between " | " are all in use, so the choice is asked. Empty: the layout is
    // refused.
    std::string_view mapping;
    // For a layout that is refused or asked: why, and the way out.
    std::string_view advice{};
};

std::span<const Layout> pairLayouts() noexcept;         // pairs, summaries, translations
std::span<const Layout> questionLayouts() noexcept;     // multiple choice, passages, code
std::span<const Layout> conversationLayouts() noexcept; // conversations and plain text
std::span<const Layout> refusedLayouts() noexcept;      // refused or asked by name

std::string_view name(DataKind kind) noexcept; // "pairs", "multiple choice", ...

} // namespace mr
