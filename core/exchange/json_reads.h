// Fields of a JSON object that may be missing, null or of another type, which then count as
// missing: files of tokenizers were checked when they were opened.
//
// Threads  Pure functions.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mr {

inline nlohmann::json fieldOf(const nlohmann::json& object, const char* key)
{
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : nlohmann::json();
}

inline std::string textOf(const nlohmann::json& value, std::string missing = {})
{
    return value.is_string() ? value.get<std::string>() : missing;
}

inline std::string textOf(const nlohmann::json& object, const char* key, std::string missing = {})
{
    return textOf(fieldOf(object, key), std::move(missing));
}

inline bool flagOf(const nlohmann::json& object, const char* key, bool missing)
{
    const nlohmann::json value = fieldOf(object, key);
    return value.is_boolean() ? value.get<bool>() : missing;
}

} // namespace mr
