#include "core/data/file_marks.h"

#include "core/data/data_file.h"

#include <array>
#include <string_view>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kParquetMark = "PAR1";

struct Magic {
    std::string_view bytes;
    std::string_view what;
};

constexpr std::array kMagics{
    Magic{"\x1F\x8B", "is compressed twice (gzip within); unpack it first"},
    Magic{"\x28\xB5\x2F\xFD", "is compressed twice (zstd within); unpack it first"},
    Magic{"\xFD"
          "7zXZ",
        "is compressed with xz, which is not read; unpack it, or pack it with gzip or zstd"},
    Magic{"\x04\x22\x4D\x18",
        "is compressed with lz4, which is not read; unpack it, or pack it with gzip or zstd"},
    Magic{"7z\xBC\xAF\x27\x1C", "is a 7z archive; unpack it first"},
    Magic{"PK\x03\x04", "is a zip or office file; unpack it, or export it as CSV"},
    Magic{"PARE", "is an encrypted Parquet file; write it without encryption"},
    Magic{kParquetMark, "holds a Parquet file within; unpack it first"},
    Magic{"\xFF\xFE", "is UTF-16 text; save it as UTF-8"},
    Magic{"\xFE\xFF", "is UTF-16 text; save it as UTF-8"},
    Magic{"version https://git-lfs",
        "is a git-lfs pointer, not the file itself; run \"git lfs pull\", or download it again"},
};

Status refuseMarked(const fs::path& path, std::string_view message)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + std::string(message));
}

bool isBzip2(std::string_view beginning)
{
    constexpr std::string_view kBlock = "1AY&SY"; // behind "BZh" and a digit
    return beginning.starts_with("BZh") && beginning.substr(3, 1 + kBlock.size()).ends_with(kBlock);
}

bool isTar(std::string_view beginning)
{
    constexpr std::size_t kMagicAt = 257;
    return beginning.size() > kMagicAt && beginning.substr(kMagicAt).starts_with("ustar");
}

} // namespace

Status checkBeginning(const fs::path& path, std::string_view beginning)
{
    for (const Magic& magic : kMagics)
        if (beginning.starts_with(magic.bytes))
            return refuseMarked(path, magic.what);
    if (isBzip2(beginning))
        return refuseMarked(path,
            "is compressed with bzip2, which is not read; unpack it, or pack it with "
            "gzip or zstd");
    if (isTar(beginning))
        return refuseMarked(path, "is a tar archive; unpack it and name a file of it");
    if (beginning.find('\0') != std::string_view::npos)
        return refuseMarked(path,
            "looks like a binary file; JSON lines, JSON, CSV or UTF-8 text is "
            "needed");
    return {};
}

Result<std::string> readBeginning(const fs::path& path)
{
    MR_ASSIGN(DataFile file, DataFile::open(path));
    std::string out(kSniffBytes, '\0');
    MR_ASSIGN(std::size_t count, file.read(out));
    if (count == 0)
        return refuseMarked(path, "is empty");
    out.resize(count);
    return out;
}

Result<bool> isParquet(const fs::path& path)
{
    MR_ASSIGN(DataFile file, DataFile::open(path));
    std::array<char, kParquetMark.size()> mark{};
    if (file.compression() != Compression::None)
        return false;
    MR_ASSIGN(std::size_t count, file.read(mark));
    return std::string_view(mark.data(), count) == kParquetMark;
}

} // namespace mr
