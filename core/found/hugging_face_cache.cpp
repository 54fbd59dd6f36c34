#include "core/found/hugging_face_cache.h"

#include "core/base/hub_folder.h"
#include "core/found/judgement.h"
#include "core/found/licence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kModels = "models";
constexpr std::string_view kMain = "main";
constexpr std::uint64_t kMostRefBytes = 200;
constexpr std::size_t kCommitShown = 12;

std::string repoName(const fs::path& folder)
{
    return hubNameOf(kModels, folder.filename().string());
}

bool isRepo(const fs::path& folder)
{
    return !repoName(folder).empty();
}

// Names by the revision that they stand for; main comes before any other name.
void readRefs(const fs::path& folder, const std::string& prefix, int depth,
    std::map<std::string, std::string>& refs)
{
    const FolderList list = listFolder(folder);
    for (const fs::path& file : list.files) {
        std::string& ref = refs[firstLine(headOf(file, kMostRefBytes))];
        const std::string name = prefix + file.filename().string();
        if (ref.empty() || name == kMain)
            ref = name;
    }
    for (const fs::path& inner : list.folders)
        if (depth > 0)
            readRefs(inner, prefix + inner.filename().string() + "/", depth - 1, refs);
}

class Repo
{
public:
    Repo(const fs::path& folder, FoundModels& out)
        : m_name(repoName(folder))
        , m_out(out)
    {
        constexpr int kRefDepth = 2; // "pr/1"
        readRefs(folder / "refs", {}, kRefDepth, m_refs);
        const FolderList blobs = listFolder(folder / "blobs");
        m_unfinished = std::count_if(blobs.files.begin(), blobs.files.end(),
            [](const fs::path& file) { return file.extension() == ".incomplete"; });
        m_snapshots = listFolder(folder / "snapshots").folders;
        std::stable_partition(m_snapshots.begin(), m_snapshots.end(),
            [this](const fs::path& snapshot) { return refOf(snapshot) == kMain; });
    }

    void look()
    {
        for (const fs::path& snapshot : m_snapshots)
            lookAt(snapshot);
        if (!m_snapshots.empty() || !m_out.wants(m_name))
            return;
        FoundModel found;
        found.model.reason = m_unfinished > 0
                                 ? "incomplete: " + unfinishedWords()
                                 : "incomplete: its folder in the cache has no snapshot";
        add(std::move(found), m_name, {});
    }

private:
    std::string refOf(const fs::path& snapshot) const
    {
        const auto found = m_refs.find(snapshot.filename().string());
        return found == m_refs.end() ? std::string() : found->second;
    }

    std::string unfinishedWords() const
    {
        return m_unfinished == 1
                   ? "a download of its repository has not ended"
                   : fmt::format("{} downloads of its repository have not ended", m_unfinished);
    }

    void lookAt(const fs::path& snapshot)
    {
        std::string revision = refOf(snapshot);
        if (revision.empty())
            revision = snapshot.filename().string().substr(0, kCommitShown);
        const std::string end = revision == kMain ? std::string() : "@" + revision;
        const FolderList list = listFolder(snapshot);
        const auto groups = ggufGroups(filesFor(list));
        const bool isFolder = isModelFolder(list) || groups.empty();
        if (isFolder && m_out.wants(m_name + end))
            add(judgeFolder(snapshot, list), m_name + end, revision);
        const bool isAlone = groups.size() == 1 && !isFolder;
        for (const GgufGroup& group : groups) {
            const std::string name = m_name + (isAlone ? "" : "/" + group.name) + end;
            if (!m_out.wants(name))
                continue;
            FoundModel found = judgeGguf(group);
            if (found.model.licence.empty())
                found.model.licence = licenceOfFolder(snapshot);
            add(std::move(found), name, revision);
        }
    }

    // GGUF files lie in the snapshot or in folders of it.
    static std::vector<fs::path> filesFor(const FolderList& list)
    {
        std::vector<fs::path> files = list.files;
        files.insert(files.end(), list.broken.begin(), list.broken.end());
        for (const fs::path& inner : list.folders) {
            const FolderList below = listFolder(inner);
            files.insert(files.end(), below.files.begin(), below.files.end());
            files.insert(files.end(), below.broken.begin(), below.broken.end());
        }
        return files;
    }

    void add(FoundModel found, const std::string& name, const std::string& revision)
    {
        LocalModel& model = found.model;
        if (m_unfinished > 0 && model.use == ModelUse::Nothing && found.files.empty())
            model.reason = "incomplete: " + unfinishedWords() + ", and no weights are here";
        else if (m_unfinished > 0 && !model.path.empty())
            model.reason += " (" + unfinishedWords() + ")";
        model.name = name;
        model.revision = revision;
        m_out.add(std::move(found));
    }

    std::string m_name;
    FoundModels& m_out;
    std::map<std::string, std::string> m_refs; // by revision
    std::ptrdiff_t m_unfinished = 0;
    std::vector<fs::path> m_snapshots;
};

} // namespace

bool isHuggingFaceCache(const FolderList& list)
{
    return std::any_of(list.folders.begin(), list.folders.end(), isRepo);
}

void findInHuggingFaceCache(const FolderList& list, FoundModels& out)
{
    if (!list.fault.empty())
        out.blame(list.fault);
    for (const fs::path& folder : list.folders)
        if (isRepo(folder) && !out.isFull())
            Repo(folder, out).look();
}

} // namespace mr
