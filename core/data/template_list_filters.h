// Filters of chat templates whose input is a list or a dict, and what all filters ask of theirs.
//
// Threads  That of the evaluator.
// Errors   Evaluator::fail(): the value that is returned then means nothing.

#pragma once

#include "core/data/template_evaluator.h"

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

} // namespace mr::tpl
