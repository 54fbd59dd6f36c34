#include "core/base/whole_file.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mr {

namespace {

constexpr std::uint64_t kCopyBytes = 1U << 20;

} // namespace

Result<WholeFile> WholeFile::create(const std::filesystem::path& path)
{
    WholeFile whole;
    whole.m_path = path;
    std::string name(".");
    name += path.filename().string();
    name += ".part";
    const std::filesystem::path temporary = path.parent_path() / name;
    MR_ASSIGN(File file, File::create(temporary));
    whole.m_temporary = temporary;
    whole.m_file = std::move(file);
    return whole;
}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : m_path(std::move(other.m_path))
    , m_temporary(std::exchange(other.m_temporary, {}))
    , m_file(std::move(other.m_file))
{
}

WholeFile::~WholeFile()
{
    std::error_code ignored; // nobody is left to tell
    if (!m_temporary.empty())
        std::filesystem::remove(m_temporary, ignored);
}

Status WholeFile::commit()
{
    MR_TRY(m_file.sync());
    m_file = File();
    std::error_code error;
    std::filesystem::rename(m_temporary, m_path, error);
    if (error)
        return Status::error(ErrorKind::Io,
            "rename " + m_temporary.string() + " to " + m_path.string() + ": " + error.message());
    m_temporary.clear();
    return syncFolder(m_path.parent_path());
}

Status copyWholeFile(const std::filesystem::path& from, const std::filesystem::path& to)
{
    MR_ASSIGN(File source, File::openRead(from));
    MR_ASSIGN(std::uint64_t bytes, source.bytes());
    MR_ASSIGN(WholeFile target, WholeFile::create(to));
    std::vector<std::byte> piece(std::min(kCopyBytes, bytes));
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
        const std::span<std::byte> part =
            std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at));
        MR_TRY(source.readAt(at, part));
        MR_TRY(target.write(part));
    }
    return target.commit();
}

} // namespace mr
