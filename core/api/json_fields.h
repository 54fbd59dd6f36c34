// JsonFields: the fields of one JSON object, read with type and range checked, by name.
//
// The first error is kept and later reads give their fallback, so a list of fields is read as
// a list and looked at once.
//
// Threads    One thread.
// Ownership  Borrows the object, which must outlive it.
// Errors     InvalidArgument: "SOURCE: field "x" is 0; it must be from 1 to 10".

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

struct IntRange {
    std::int64_t least = 0;
    std::int64_t most = 0;
};

class JsonFields
{
public:
    // A value that is not an object is an error already.
    JsonFields(const nlohmann::json& object, std::string source);

    // Null if the field is missing or null. The field counts as known from now on.
    const nlohmann::json* find(std::string_view key);

    // Missing or null: `fallback`.
    std::int64_t integer(std::string_view key, IntRange range, std::int64_t fallback);
    std::uint64_t unsignedInteger(std::string_view key, std::uint64_t fallback);
    double number(std::string_view key, double fallback);
    bool boolean(std::string_view key, bool fallback);
    std::string text(std::string_view key, std::string fallback);

    // Missing or null is an error.
    std::int64_t requiredInteger(std::string_view key, IntRange range);
    double requiredNumber(std::string_view key);

    // Keeps the first: `why` follows "field "key" ".
    void fail(std::string_view key, const std::string& why);
    // Keeps the first.
    void take(const Status& status);

    Status status() const { return m_status; }

    // Fields that were never asked for, in name order.
    std::vector<std::string> unknown() const;

private:
    const nlohmann::json& m_object;
    std::string m_source;
    std::set<std::string, std::less<>> m_known;
    Status m_status;
};

// A value as it should stand in a message: JSON, cut to 60 bytes, safe for any depth and bytes.
std::string shown(const nlohmann::json& value);

} // namespace mr
