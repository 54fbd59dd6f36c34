// JsonNode: a value of a JSON file and where it stands, so that every refusal names the field.
//
// Ownership  Borrows the value.
// Errors     InvalidArgument: "pre_tokenizer.pattern: ...".
// Threads    A value.

#pragma once

#include <millrace/status.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mr {

class JsonNode
{
public:
    JsonNode(const nlohmann::json& value, std::string where)
        : m_value(&value)
        , m_where(std::move(where))
    {
    }

    const nlohmann::json& value() const noexcept { return *m_value; }
    Status fail(const std::string& message) const
    {
        return Status::error(
            ErrorKind::InvalidArgument, (m_where.empty() ? "" : m_where + ": ") + message);
    }

    // Present, and not null.
    bool has(const char* name) const
    {
        const auto found = m_value->is_object() ? m_value->find(name) : m_value->end();
        return m_value->is_object() && found != m_value->end() && !found->is_null();
    }
    // Precondition: has(name).
    JsonNode at(const char* name) const
    {
        return {(*m_value)[name], m_where.empty() ? std::string(name) : m_where + "." + name};
    }
    JsonNode at(std::size_t index) const
    {
        return {(*m_value)[index], m_where + "[" + std::to_string(index) + "]"};
    }

    // These leave `out` as it is where the field is absent or null.
    Status read(const char* name, bool& out) const
    {
        if (!has(name))
            return {};
        if (!at(name).value().is_boolean())
            return at(name).fail("must be true or false");
        out = at(name).value().get<bool>();
        return {};
    }
    Status read(const char* name, std::string& out) const
    {
        if (!has(name))
            return {};
        if (!at(name).value().is_string())
            return at(name).fail("must be a text");
        out = at(name).value().get<std::string>();
        return {};
    }
    Status require(const char* name, std::string& out) const
    {
        return has(name) ? read(name, out) : fail(std::string(name) + " is missing");
    }
    Status elements(const char* name, std::vector<JsonNode>& out) const
    {
        if (!has(name) || !at(name).value().is_array())
            return fail(std::string(name) + " must be a list");
        const JsonNode list = at(name);
        for (std::size_t i = 0; i < list.value().size(); ++i)
            out.push_back(list.at(i));
        return {};
    }

private:
    const nlohmann::json* m_value;
    std::string m_where;
};

} // namespace mr
