// Shared by the readers of a tokenizer.json's normalizers, pre-tokenizers and decoders.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument names the field.

#pragma once

#include "core/tokenizer/json_node.h"
#include "core/tokenizer/text_regex.h"

#include <functional>
#include <string>

namespace mr {

// A step of type Replace.
struct Replacement {
    TextRegex regex;
    std::string with;
    bool isOneCharacter = false; // the expression matches one character, with any neighbours
    bool isRunOfSpaces = false;  // the expression matches all spaces of a run or none
};

// "pattern" of a Replace or Split as an expression: {"Regex": ...} or {"String": ...}.
Result<std::string> readPattern(const JsonNode& node);

Result<Replacement> readReplacement(const JsonNode& node);

// The parts of a Sequence in their order, which stand in `field`, each with the depth it is at. A
// Sequence may hold others, eight deep: published files use two.
Status readSequence(const JsonNode& node, const char* field, int depth,
    const std::function<Status(const JsonNode& part, int depth)>& read);

} // namespace mr
