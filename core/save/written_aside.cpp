#include "core/save/written_aside.h"

#include "core/base/file.h"

#include <algorithm>
#include <string>
#include <system_error>

namespace mr {

namespace fs = std::filesystem;

Status writeAside(const fs::path& out, const std::function<Status(const fs::path& made)>& write)
{
    std::error_code error;
    if (fs::exists(out, error))
        return Status::error(
            ErrorKind::InvalidArgument, out.string() + ": is there already; name one that is not");
    const fs::path whole = fs::absolute(out, error).lexically_normal();
    const fs::path final = whole.has_filename() ? whole : whole.parent_path();
    const fs::path made = final.parent_path() / ("." + final.filename().string() + ".part");
    fs::remove_all(made, error);
    fs::create_directories(final.parent_path(), error);
    Status status = write(made);
    if (status.ok()) {
        fs::rename(made, final, error);
        if (error)
            status = Status::error(
                ErrorKind::Io, "rename to " + final.string() + ": " + error.message());
    }
    if (status.ok())
        return syncFolder(final.parent_path());
    fs::remove_all(made, error);
    return status;
}

std::uint64_t bytesOfFiles(const fs::path& folder)
{
    std::uint64_t bytes = 0;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
        bytes += entry.file_size(error);
    return bytes;
}

Status compareWritten(
    const fs::path& file, const ParamTable& table, MasterReader& made, MasterReader& written)
{
    MasterPiece mine;
    MasterPiece theirs;
    const NamedTensor* tensor = nullptr;
    const auto compare = [&](std::int64_t first, const MasterView& view) -> Status {
        const MasterView got = theirs.view(std::ssize(view.high));
        MR_TRY(written.read(tensor->group, first, got));
        if (std::ranges::equal(got.high, view.high) && std::ranges::equal(got.low, view.low))
            return {};
        return Status::error(
            ErrorKind::DataCorrupt, file.string() + ": " + tensor->name +
                                        " was read back with other values than were written");
    };
    for (const NamedTensor& each : table.tensors) {
        tensor = &each;
        MR_TRY(forPieces(made, {each.group, each.first, each.count()}, mine, compare));
    }
    return {};
}

} // namespace mr
