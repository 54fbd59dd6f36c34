// Unpacker: the bytes within gzip or zstd data, a piece at a time.
//
// Several members (gzip) or frames (zstd) behind one another are one text, as `gzip -d` and
// `zstd -d` have it. Memory: gzip 40 KiB, zstd the window that the file asks for, at most 128 MiB,
// as the program zstd allows unasked.
//
// Threads  Confined to its owner.
// Errors   InvalidArgument without the name of the file: damaged, or not to be unpacked here.
// Source   RFC 1952 (gzip), RFC 8878 (zstd).

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace mr {

enum class Compression : std::uint8_t { None, Gzip, Zstd };

// "gzip", "zstd"; None: empty
std::string_view name(Compression compression) noexcept;

// By the first bytes of a file.
Compression compressionOf(std::string_view beginning) noexcept;

class Unpacker
{
public:
    struct Step {
        std::size_t taken = 0; // bytes of the input
        std::size_t made = 0;  // bytes of the output
        bool ended = false;    // a member or frame is complete; another one may follow
    };

    virtual ~Unpacker() = default;

    // Takes from `in` and fills `out` until one of them is used up, or a member ends.
    virtual Result<Step> step(std::span<const char> in, std::span<char> out) = 0;

    // `compression` is not None.
    static Result<std::unique_ptr<Unpacker>> create(Compression compression);
};

} // namespace mr
