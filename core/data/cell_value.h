// The text that a role takes from a row: a column, or an expression of columns.
//
//     question               the column of that name, of any characters
//     answers.text[0]        a value within an object and a list (first element: 0)
//     choices[*]             the elements of a list on lines "A. ...", "B. ..."
//     choices[answer]        the element that another column points at
//     sol1+sol2[label]       the same of several columns
//     option1+option2[answer-1]   where that column counts from 1
//     article&question       several texts, each on lines of its own
//
// The pointing column holds a number, a letter, the element's label ({"text": [...], "label":
// [...]}) or the element itself.
//
// Threads  Pure.
// Errors   InvalidArgument says what the row has in place of the expression's value; the caller
//          adds file and line.

#pragma once

#include "core/data/record_reader.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// The columns that `expression` names. A name for which `isColumn` holds stands for itself.
std::vector<std::string> columnsOf(
    std::string_view expression, const std::function<bool(std::string_view)>& isColumn);

// The columns with the first key that is taken from each; the key is empty where the whole column
// is taken.
struct NamedPart {
    std::string column;
    std::string key{};
};
std::vector<NamedPart> partsOf(std::string_view expression);

struct CellText {
    bool isThere = false; // false: the cell, or the part asked for, is missing or null
    std::string text{};
};

Result<CellText> cellValue(const Record& record, std::string_view expression);

} // namespace mr
