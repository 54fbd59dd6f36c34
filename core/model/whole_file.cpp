#include "core/model/whole_file.h"

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
    Result<File> file = File::create(temporary);
    MR_TRY(file.status());
    whole.m_temporary = temporary;
    whole.m_file = std::move(file).value();
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
    Result<File> source = File::openRead(from);
    MR_TRY(source.status());
    Result<std::uint64_t> bytes = source.value().bytes();
    MR_TRY(bytes.status());
    Result<WholeFile> target = WholeFile::create(to);
    MR_TRY(target.status());
    std::vector<std::byte> piece(std::min(kCopyBytes, bytes.value()));
    for (std::uint64_t at = 0; at < bytes.value(); at += piece.size()) {
        const std::span<std::byte> part =
            std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes.value() - at));
        MR_TRY(source.value().readAt(at, part));
        MR_TRY(target.value().write(part));
    }
    return target.value().commit();
}

} // namespace mr
