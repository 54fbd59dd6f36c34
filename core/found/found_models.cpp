#include "core/found/found_models.h"

#include <sys/stat.h>

#include <system_error>

namespace mr {

namespace fs = std::filesystem;

bool FoundModels::beginPlace(ModelStore store, const fs::path& path)
{
    m_earlier.insert(m_paths.begin(), m_paths.end());
    m_paths.clear();
    std::error_code error;
    const bool isFolder = fs::is_directory(path, error);
    const bool isLocked = error == std::errc::permission_denied;
    m_models.places.push_back({store, path.string(), isFolder || isLocked,
        isLocked ? "this user may not look into it" : ""});
    return isFolder;
}

void FoundModels::add(FoundModel found)
{
    if (isFull())
        return blame("more than " + std::to_string(kMostModels) +
                     " models; the others are not listed, name a smaller folder");
    found.model.store = m_models.places.back().store;
    if (!found.model.path.empty()) {
        std::error_code error;
        const fs::path whole = fs::weakly_canonical(found.model.path, error);
        if (m_earlier.contains(whole))
            return;
        m_paths.insert(whole);
    }
    countBytes(found.files);
    m_models.models.push_back(std::move(found.model));
}

void FoundModels::blame(const std::string& fault)
{
    if (m_models.places.back().fault.empty())
        m_models.places.back().fault = fault;
}

void FoundModels::countBytes(const std::vector<fs::path>& files)
{
    for (const fs::path& file : files) {
        struct stat info {
        };
        if (::stat(file.c_str(), &info) == 0 && m_counted.emplace(info.st_dev, info.st_ino).second)
            m_models.bytes += static_cast<std::uint64_t>(info.st_size);
    }
}

LocalModels FoundModels::take()
{
    return std::move(m_models);
}

} // namespace mr
