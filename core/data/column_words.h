// Common names of columns and the roles that they may stand for. A name alone is never a proof: the
// facts of the column have to fit (explained_columns.h, layout_choice.h).
//
// Threads  Pure.

#pragma once

#include <cstdint>
#include <string_view>

namespace mr {

enum class NameFamily : std::uint8_t {
    Prompt,
    Response,
    Input,
    System,
    History,
    Text,
    Chat,
    Tools,
    Identifier, // id, question_id, uuid
    About,      // source, title, language: the origin or the topic of a row
    Verdict,    // label, is_correct: whether the answer is good
    Weight,     // the weight of a row
    Split,      // train or test
    Class,      // a class that a text may be sorted into
};

// Ignores the capitals of `name`.
bool isNamed(std::string_view name, NameFamily family);

} // namespace mr
