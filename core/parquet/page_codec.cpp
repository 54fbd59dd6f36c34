#include "core/parquet/page_codec.h"

#include <fmt/format.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace mr {
namespace {

enum class PageCodec : std::uint8_t { None, Snappy, Gzip, Lzo, Brotli, Lz4Frames, Zstd, Lz4 };

constexpr std::array<std::string_view, 8> kCodecNames{
    "none", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4 (the older form)", "ZSTD", "LZ4_RAW"};

bool unpackSnappy(std::string_view packed, std::span<char> out)
{
    std::size_t bytes = 0;
    return snappy::GetUncompressedLength(packed.data(), packed.size(), &bytes) &&
           bytes == out.size() && snappy::RawUncompress(packed.data(), packed.size(), out.data());
}

bool unpackGzip(std::string_view packed, std::span<char> out)
{
    constexpr int kGzipOrZlib = 32; // zlib: added to the window's bits
    z_stream stream{};
    if (inflateInit2(&stream, MAX_WBITS + kGzipOrZlib) != Z_OK)
        return false;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return code == Z_STREAM_END && stream.avail_out == 0;
}

bool unpackZstd(std::string_view packed, std::span<char> out)
{
    return ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size()) == out.size();
}

bool unpackLz4(std::string_view packed, std::span<char> out)
{
    const auto bytes = static_cast<int>(out.size()); // both at most a page's, which an int holds
    return LZ4_decompress_safe(packed.data(), out.data(), static_cast<int>(packed.size()), bytes) ==
           bytes;
}

bool copyPage(std::string_view packed, std::span<char> out)
{
    if (packed.size() != out.size())
        return false;
    std::copy(packed.begin(), packed.end(), out.begin());
    return true;
}

} // namespace

Status checkPageCodec(std::int32_t codec)
{
    const bool isKnown = codec >= 0 && static_cast<std::size_t>(codec) < kCodecNames.size();
    const auto which = static_cast<PageCodec>(isKnown ? codec : 0);
    if (isKnown && which != PageCodec::Lzo && which != PageCodec::Brotli &&
        which != PageCodec::Lz4Frames)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format(
            "its pages are compressed with {}, which is not read; write the file with zstd, "
            "snappy or gzip",
            isKnown ? std::string(kCodecNames.at(static_cast<std::size_t>(codec)))
                    : fmt::format("number {}", codec)));
}

Status unpackPage(std::int32_t codec, std::string_view packed, std::span<char> out)
{
    MR_TRY(checkPageCodec(codec));
    const auto which = static_cast<PageCodec>(codec);
    const bool done = which == PageCodec::Snappy ? unpackSnappy(packed, out)
                      : which == PageCodec::Gzip ? unpackGzip(packed, out)
                      : which == PageCodec::Zstd ? unpackZstd(packed, out)
                      : which == PageCodec::Lz4  ? unpackLz4(packed, out)
                                                 : copyPage(packed, out);
    if (done)
        return {};
    return Status::error(
        ErrorKind::InvalidArgument, fmt::format("a page of {} bytes is damaged ({})", packed.size(),
                                        kCodecNames.at(static_cast<std::size_t>(codec))));
}

} // namespace mr
