#include "core/data/data_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr {
namespace {

constexpr std::size_t kInputBytes = std::size_t{128} << 10;

std::string lowerExtension(const std::filesystem::path& path)
{
    std::string out = path.extension().string();
    for (char& c : out)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

} // namespace

std::string formatExtension(const std::filesystem::path& path)
{
    constexpr std::array<std::string_view, 4> kPacked{".gz", ".gzip", ".zst", ".zstd"};
    std::string extension = lowerExtension(path);
    if (std::find(kPacked.begin(), kPacked.end(), extension) != kPacked.end())
        return lowerExtension(path.stem());
    return extension;
}

Result<DataFile> DataFile::open(const std::filesystem::path& path)
{
    MR_ASSIGN(File file, File::openRead(path));
    MR_ASSIGN(std::uint64_t bytes, file.bytes());
    DataFile out(std::move(file), bytes);
    MR_TRY(out.lookAtBeginning());
    return out;
}

Status DataFile::lookAtBeginning()
{
    std::array<char, 4> beginning{};
    MR_ASSIGN(std::size_t count, readFile(beginning));
    m_offset = 0;
    m_compression = compressionOf({beginning.data(), count});
    if (m_compression == Compression::None)
        return {};
    MR_ASSIGN(m_unpacker, Unpacker::create(m_compression));
    m_input.resize(static_cast<std::size_t>(std::min<std::uint64_t>(m_fileBytes, kInputBytes)));
    return {};
}

Result<std::size_t> DataFile::readFile(std::span<char> out)
{
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(m_fileBytes - m_offset, out.size()));
    MR_TRY(m_file.readAt(m_offset, std::as_writable_bytes(out.first(count))));
    m_offset += count;
    return count;
}

// More compressed bytes; none at the end of the file.
Status DataFile::refill()
{
    m_at = 0;
    MR_ASSIGN(m_filled, readFile(m_input));
    return {};
}

Status DataFile::failed(const Status& status) const
{
    return Status::error(status.kind(), fmt::format("{}: behind {} bytes of its contents: {}",
                                            path().string(), m_made, status.message()));
}

Result<std::size_t> DataFile::read(std::span<char> out)
{
    if (m_compression == Compression::None)
        return readFile(out);
    std::size_t made = 0;
    while (made < out.size()) {
        if (m_at == m_filled && !m_holdsBack)
            MR_TRY(refill());
        if (m_at == m_filled && !m_holdsBack)
            break;
        const std::span<char> rest = out.subspan(made);
        Result<Unpacker::Step> step =
            m_unpacker->step(std::span(m_input).subspan(m_at, m_filled - m_at), rest);
        if (!step.ok())
            return failed(step.status());
        m_at += step.value().taken;
        made += step.value().made;
        m_made += step.value().made;
        m_within = !step.value().ended;
        m_holdsBack = m_within && step.value().made == rest.size();
    }
    if (made < out.size() && m_within)
        return failed(Status::error(ErrorKind::InvalidArgument,
            fmt::format("the {} data ends early, so the file is cut off; download or copy it again",
                name(m_compression))));
    return made;
}

} // namespace mr
