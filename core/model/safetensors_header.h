// The header of a safetensors file: JSON of strangers to checked entries, with no tree in between.
//
// Threads  Pure functions.
// Errors   DataCorrupt names file, tensor and rule.
// Source   reference: model_semantics section 2.

#pragma once

#include "core/model/safetensors.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mr {

// Bits of an element of a dtype of the format; 0 for a name the format does not know.
int safetensorBits(std::string_view dtype) noexcept;

// `begin` and `end` of the entries are relative to the data. Checks everything that can be
// known without the length of the file: keys, dtypes, shapes, sizes, spans that tile from 0.
Result<std::map<std::string, SafetensorEntry>> parseSafetensorsHeader(
    std::string_view json, const std::string& source);

// Likely kind of a file that is not safetensors, with the way out; `head` is its beginning.
std::string describeForeignFile(std::string_view head);

} // namespace mr
