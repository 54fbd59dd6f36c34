// JsonScanner: values cut out of a JSON file by their brackets and quotes, without reading them.
//
// The parser of a value finds out whether it is JSON; so a list may be larger than memory, and a
// damaged element leaves the others readable.
//
// Threads  Confined to its owner, which keeps the source alive.
// Errors   InvalidArgument: the file ends inside the value, or it is longer than a source allows.

#pragma once

#include "core/data/record_formats.h"

#include <string>

namespace mr {

class JsonScanner
{
public:
    explicit JsonScanner(ByteSource& source)
        : m_source(source)
    {
    }

    // Up to the comma or `closer` that follows at depth 0, or of the object that begins here all of
    // it (closer 0). `out` null: skips it. False: the file ends
    // first, or the value is longer than the largest record (tooLong()).
    bool value(char closer, std::string* out);
    bool tooLong() const noexcept { return m_tooLong; }

    void skipWhite();

private:
    ByteSource& m_source;
    bool m_tooLong = false;
};

} // namespace mr
