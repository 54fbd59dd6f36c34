// Filters of chat templates by the type of their input, and helpers for their arguments.
//
// Threads  That of the evaluator.
// Errors   Evaluator::fail(): the value returned then means nothing.

#pragma once

#include "core/template/evaluator.h"

#include <string_view>
#include <vector>

namespace mr::tpl {

// The arguments of a filter by its parameters; null: not given.
using Bound = std::vector<const Value*>;

inline bool on(const Value* value)
{
    return value != nullptr && value->truth();
}

inline Text textOr(const Value* value, std::string_view otherwise)
{
    return value != nullptr ? asText(*value) : Text(otherwise);
}

// The attribute that filters name: "function.name" goes down, "0" is an index.
Value reach(Evaluator& evaluator, const Value& item, const Value& path, const Value* otherwise);

// Lists and dicts
Value joinFilter(Evaluator& evaluator, const Value& input, const Bound& in);
Value first(Evaluator& evaluator, const Value& input, const Bound& in);
Value last(Evaluator& evaluator, const Value& input, const Bound& in);
Value list(Evaluator& evaluator, const Value& input, const Bound& in);
Value pairsOf(Evaluator& evaluator, const Value& input, const Bound& in);
Value sort(Evaluator& evaluator, const Value& input, const Bound& in);
Value dictSort(Evaluator& evaluator, const Value& input, const Bound& in);
Value unique(Evaluator& evaluator, const Value& input, const Bound& in);
Value reverse(Evaluator& evaluator, const Value& input, const Bound& in);
Value sum(Evaluator& evaluator, const Value& input, const Bound& in);
Value least(Evaluator& evaluator, const Value& input, const Bound& in);
Value greatest(Evaluator& evaluator, const Value& input, const Bound& in);
Value batch(Evaluator& evaluator, const Value& input, const Bound& in);

// Numbers
Value toInt(Evaluator& evaluator, const Value& input, const Bound& in);
Value toFloat(Evaluator& evaluator, const Value& input, const Bound& in);
Value absolute(Evaluator& evaluator, const Value& input, const Bound& in);
Value rounded(Evaluator& evaluator, const Value& input, const Bound& in);

// `text` % `values` and text.format(arguments) of Python, as far as templates go: other parts of a
// format are refused by name.
Value formatPercent(Evaluator& evaluator, const Value& text, const Value& values);
Value formatBraces(Evaluator& evaluator, const Value& text, const Arguments& arguments);

} // namespace mr::tpl
