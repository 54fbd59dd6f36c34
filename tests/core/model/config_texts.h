// Texts of config.json that tests change by a field, and the refusals of the parser.

#pragma once

#include "model_folder.h"

#include <string>

namespace mr::test {

// tinyConfig with `from` replaced by `to`.
inline std::string changed(const std::string& from, const std::string& to)
{
    std::string text = tinyConfig();
    const std::size_t at = text.find(from);
    return at == std::string::npos ? "not found: " + from : text.replace(at, from.size(), to);
}

inline std::string added(const std::string& field)
{
    return changed("\"model_type\"", field + ",\n \"model_type\"");
}

inline std::string refusal(const std::string& text)
{
    return parseModelConfig(text, "/m/config.json").status().message();
}

// Two layers, two heads of four.
inline std::string familyConfig(const char* name, const char* type, const std::string& fields)
{
    return std::string(R"({"architectures":[")") + name + R"("],"model_type":")" + type +
           R"(","hidden_size":8,"intermediate_size":4,"num_hidden_layers":2,
            "num_attention_heads":2,"num_key_value_heads":2,"vocab_size":5,
            "max_position_embeddings":16,"rms_norm_eps":1e-6)" +
           (fields.empty() ? "" : "," + fields) + "}";
}

inline ModelConfig family(const char* name, const char* type, const std::string& fields = "")
{
    return config(familyConfig(name, type, fields));
}

} // namespace mr::test
