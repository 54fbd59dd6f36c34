#include "core/found/small_reads.h"

#include "core/base/file.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <span>
#include <system_error>

namespace mr {

namespace fs = std::filesystem;

std::string headOf(const fs::path& path, std::uint64_t most)
{
    Result<File> file = File::openRead(path);
    if (!file.ok())
        return {};
    Result<std::uint64_t> bytes = file.value().bytes();
    if (!bytes.ok())
        return {};
    std::string head(static_cast<std::size_t>(std::min(bytes.value(), most)), '\0');
    if (!file.value().readAt(0, std::as_writable_bytes(std::span(head))).ok())
        return {};
    return head;
}

std::string firstLine(std::string_view text)
{
    constexpr std::size_t kMostBytes = 80;
    constexpr std::string_view kBlank = " \t\r\n\v\f";
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark))
        text.remove_prefix(kByteOrderMark.size());
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos)
        return {};
    std::string_view line = text.substr(begin);
    line = line.substr(0, line.find_first_of("\r\n"));
    line = firstBytes(line.substr(0, validBytes(line, 0)), kMostBytes);
    const std::size_t last = line.find_last_not_of(kBlank);
    return std::string(line.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

FolderList listFolder(const fs::path& folder)
{
    FolderList list;
    std::error_code error;
    std::size_t entries = 0;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
        if (++entries > FolderList::kMostEntries) {
            list.fault = folder.string() + ": has more than " +
                         std::to_string(FolderList::kMostEntries) +
                         " entries; the others were not looked at";
            break;
        }
        std::error_code ignored;
        const fs::file_status status = fs::status(it->path(), ignored);
        if (fs::is_directory(status))
            list.folders.push_back(it->path());
        else if (fs::is_regular_file(status))
            list.files.push_back(it->path());
        else if (fs::is_symlink(fs::symlink_status(it->path(), ignored)))
            list.broken.push_back(it->path());
    }
    if (error)
        list.fault = folder.string() + ": " + error.message();
    for (auto* names : {&list.folders, &list.files, &list.broken})
        std::sort(names->begin(), names->end());
    return list;
}

std::uint64_t bytesOf(const std::vector<fs::path>& files)
{
    std::uint64_t bytes = 0;
    for (const fs::path& file : files) {
        std::error_code error;
        const std::uint64_t own = fs::file_size(file, error);
        bytes += error ? 0 : own;
    }
    return bytes;
}

} // namespace mr
