#include "core/data/unpacker.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace mr {
namespace {

Status badPack(std::string_view message)
{
    return Status::error(ErrorKind::InvalidArgument, std::string(message));
}

Status damagedPack(Compression compression, std::string_view why)
{
    return badPack(fmt::format(
        "the {} data is damaged ({}); download or copy the file again", name(compression), why));
}

Status foreignTail(Compression compression)
{
    return badPack(fmt::format("other bytes follow the end of the {} data; download or copy the "
                               "file again, or unpack it and look at its end",
        name(compression)));
}

class GzipUnpacker final : public Unpacker
{
public:
    GzipUnpacker() = default;
    ~GzipUnpacker() override { inflateEnd(&m_stream); }
    GzipUnpacker(const GzipUnpacker&) = delete;
    GzipUnpacker& operator=(const GzipUnpacker&) = delete;

    bool begin()
    {
        constexpr int kGzipOnly = 16; // zlib: added to the window's bits
        return inflateInit2(&m_stream, MAX_WBITS + kGzipOnly) == Z_OK;
    }

    Result<Step> step(std::span<const char> in, std::span<char> out) override
    {
        // zlib takes its input as const where ZLIB_CONST is set, and does not write to it anyway.
        m_stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
        m_stream.next_out = reinterpret_cast<Bytef*>(out.data());
        const uInt inCount = m_stream.avail_in = count(in.size());
        const uInt outCount = m_stream.avail_out = count(out.size());
        const int code = inflate(&m_stream, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR)
            return Status::error(ErrorKind::OutOfMemory, "no memory to unpack gzip data");
        if (code == Z_DATA_ERROR && m_members > 0 && m_stream.total_out == 0 && isInHeader())
            return foreignTail(Compression::Gzip);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return damagedPack(Compression::Gzip, m_stream.msg != nullptr ? m_stream.msg : "zlib");
        const Step step{
            inCount - m_stream.avail_in, outCount - m_stream.avail_out, code == Z_STREAM_END};
        if (step.ended) {
            ++m_members;
            inflateReset(&m_stream);
        }
        return step;
    }

private:
    static uInt count(std::size_t bytes)
    {
        return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max()));
    }

    bool isInHeader() const
    {
        constexpr uLong kHeaderBytes = 10;
        return m_stream.total_in < kHeaderBytes;
    }

    z_stream m_stream{};
    std::uint64_t m_members = 0; // that ended
};

class ZstdUnpacker final : public Unpacker
{
public:
    ZstdUnpacker()
        : m_stream(ZSTD_createDStream())
    {
    }
    ~ZstdUnpacker() override { ZSTD_freeDStream(m_stream); }
    ZstdUnpacker(const ZstdUnpacker&) = delete;
    ZstdUnpacker& operator=(const ZstdUnpacker&) = delete;

    bool begin()
    {
        constexpr int kWindowBits = 27;
        return m_stream != nullptr && ZSTD_isError(ZSTD_DCtx_setParameter(
                                          m_stream, ZSTD_d_windowLogMax, kWindowBits)) == 0;
    }

    Result<Step> step(std::span<const char> in, std::span<char> out) override
    {
        ZSTD_inBuffer input{in.data(), in.size(), 0};
        ZSTD_outBuffer output{out.data(), out.size(), 0};
        const std::size_t code = ZSTD_decompressStream(m_stream, &output, &input);
        if (ZSTD_isError(code) != 0)
            return failed(code);
        m_frames += code == 0 ? 1 : 0;
        return Step{input.pos, output.pos, code == 0};
    }

private:
    Status failed(std::size_t code) const
    {
        switch (ZSTD_getErrorCode(code)) {
        case ZSTD_error_memory_allocation:
            return Status::error(ErrorKind::OutOfMemory, "no memory to unpack zstd data");
        case ZSTD_error_frameParameter_windowTooLarge:
            return badPack("the zstd data needs a window of more than 128 MiB (zstd --long); "
                           "unpack it, or pack it again without --long");
        case ZSTD_error_dictionary_wrong:
            return badPack("the zstd data needs a dictionary; unpack it with \"zstd -d -D "
                           "DICTIONARY\"");
        case ZSTD_error_prefix_unknown:
            if (m_frames > 0)
                return foreignTail(Compression::Zstd);
            [[fallthrough]];
        default:
            return damagedPack(Compression::Zstd, ZSTD_getErrorName(code));
        }
    }

    ZSTD_DStream* m_stream;
    std::uint64_t m_frames = 0; // that ended
};

template <typename T>
Result<std::unique_ptr<Unpacker>> begun()
{
    auto unpacker = std::make_unique<T>();
    if (!unpacker->begin())
        return Status::error(ErrorKind::OutOfMemory, "no memory to unpack a compressed file");
    return std::unique_ptr<Unpacker>(std::move(unpacker));
}

// Frames that hold no data may stand before the first that does (pzstd, seekable archives).
bool isSkippableFrame(std::string_view beginning)
{
    constexpr unsigned char kLowest = 0x50;
    constexpr unsigned char kHighest = 0x5F;
    return beginning.size() >= 4 && beginning.substr(1, 3) == "\x2A\x4D\x18" &&
           static_cast<unsigned char>(beginning[0]) >= kLowest &&
           static_cast<unsigned char>(beginning[0]) <= kHighest;
}

} // namespace

std::string_view name(Compression compression) noexcept
{
    constexpr std::array<std::string_view, 3> kNames{"", "gzip", "zstd"};
    return kNames.at(static_cast<std::size_t>(compression));
}

Compression compressionOf(std::string_view beginning) noexcept
{
    if (beginning.starts_with("\x1F\x8B"))
        return Compression::Gzip;
    if (beginning.starts_with("\x28\xB5\x2F\xFD") || isSkippableFrame(beginning))
        return Compression::Zstd;
    return Compression::None;
}

Result<std::unique_ptr<Unpacker>> Unpacker::create(Compression compression)
{
    return compression == Compression::Gzip ? begun<GzipUnpacker>() : begun<ZstdUnpacker>();
}

} // namespace mr
