// Which fields of a config.json change nothing in the mathematics, and which change nothing as
// long as they hold a certain value.
//
// Threads  Pure functions.
// Source   reference: model_semantics section 1.11; the configs of published Llama models.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mr {

// Ok if the model computes the same with and without this field. InvalidArgument names field and
// value: a known one with a value that is not neutral, or one nobody here understands.
Status checkOtherField(
    const std::string& key, const nlohmann::json& value, const std::string& source);

} // namespace mr
