// ParquetValueReader: the values of a page, one at a time, in the encoding that the page names.
//
// Threads  Confined to its owner, which keeps the bytes and the dictionary alive.
// Errors   create(): InvalidArgument without the name of the file, for an encoding that is not
//          read or bytes that make no sense. next() is false where the bytes end early or make no
//          sense.
// Source   github.com/apache/parquet-format, Encodings.md.

#pragma once

#include "core/parquet/stored_value.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace mr {

class ParquetValueReader
{
public:
    virtual ~ParquetValueReader() = default;
    virtual bool next(ParquetValue& out) = 0;

    // `dictionary` may be null.
    static Result<std::unique_ptr<ParquetValueReader>> create(std::int32_t encoding,
        const ParquetStorage& storage, std::string_view bytes, const ParquetDictionary* dictionary);
};

} // namespace mr
