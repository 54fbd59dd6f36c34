// FoundModels: the entries of one place after the other, and the files that their weights are in.
//
// Threads  One thread.
// Limits   Entries beyond kMostModels are counted as a fault of the place.

#pragma once

#include <millrace/local_models.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr {

struct FoundModel {
    LocalModel model;
    std::vector<std::filesystem::path> files; // that `model.bytes` counts
};

class FoundModels
{
public:
    static constexpr std::size_t kMostModels = 2000;

    // `wanted`: the name of the models that are looked for; empty: all.
    explicit FoundModels(std::string wanted = {})
        : m_wanted(std::move(wanted))
    {
    }

    // Models of other names need not be judged.
    bool wants(const std::string& name) const noexcept
    {
        return m_wanted.empty() || name == m_wanted;
    }

    // Entries that follow are of this place. False: there is nothing to look at.
    bool beginPlace(ModelStore store, const std::filesystem::path& path);
    // An entry whose path an earlier place has is left out.
    void add(FoundModel found);
    // Keeps the first fault of the place.
    void blame(const std::string& fault);
    bool isFull() const noexcept { return m_models.models.size() >= kMostModels; }

    LocalModels take();

private:
    void countBytes(const std::vector<std::filesystem::path>& files);

    std::string m_wanted;
    LocalModels m_models;
    std::set<std::filesystem::path> m_earlier; // paths of places that were looked at
    std::set<std::filesystem::path> m_paths;   // ... and of this one
    std::set<std::pair<std::uint64_t, std::uint64_t>> m_counted; // device and number of files
};

} // namespace mr
