// A JSON file that is one object: which of its members are rows, if any.
//
// Published forms: {"version": ..., "data": [{...}, ...]}, one row over several lines, and columns
// as lists, which are refused by name.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument: not JSON; several lists of rows; columns in place of rows. Io.

#pragma once

#include "core/data/json_scanner.h"

#include <string>

namespace mr {

struct JsonMember {
    std::string key;
    char begins = '\0'; // the first byte of the value: { [ " or that of a number or word
};

// Goes through the members of an object. Whoever is given a member takes its value, or skips it.
class JsonMembers
{
public:
    explicit JsonMembers(ByteSource& source)
        : m_source(source)
        , m_scanner(source)
    {
    }

    // The next key, with the source before its value; false behind the closing bracket.
    Result<bool> next(JsonMember& out);
    Status skip();

private:
    Status error(const std::string& message) const;

    ByteSource& m_source;
    JsonScanner m_scanner;
    bool m_begun = false;
};

struct JsonObjectFile {
    std::string rows; // the key of the list of rows; empty: the object is a row itself
};

Result<JsonObjectFile> lookAtJsonObject(const std::filesystem::path& path);

} // namespace mr
