// PageHead: the description in front of each page of a Parquet file.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument without the name of the file: damaged.
// Source   github.com/apache/parquet-format, src/main/thrift/parquet.thrift.

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mr {

enum class PageKind : std::uint8_t { Data, Index, Dictionary, DataV2 };

struct PageHead {
    PageKind kind = PageKind::Data;
    std::int32_t bytes = 0;       // unpacked
    std::int32_t packedBytes = 0; // behind the head
    std::optional<std::uint32_t> crc;
    std::int32_t values = 0; // nulls included
    std::int32_t encoding = 0;
    std::int32_t defEncoding = 0; // Data only: of the levels
    std::int32_t repEncoding = 0;
    std::int32_t defBytes = 0; // DataV2 only: of the levels, which are not packed
    std::int32_t repBytes = 0;
    bool isPacked = true;
    std::size_t headBytes = 0;
};

// Reads the head at the front of `bytes`. Nothing: it ends behind them.
Result<std::optional<PageHead>> readPageHead(std::string_view bytes);

} // namespace mr
