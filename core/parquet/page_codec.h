// The compressions of Parquet's pages.
//
// Threads  Functions of their arguments.
// Errors   InvalidArgument without the name of the file: a compression that is not read, damaged
//          data, or another size than the page says.
// Source   github.com/apache/parquet-format, Compression.md.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace mr {

// InvalidArgument names the compression if pages in it are not read.
Status checkPageCodec(std::int32_t codec);

// Fills `out`, whose size is the page's.
Status unpackPage(std::int32_t codec, std::string_view packed, std::span<char> out);

} // namespace mr
