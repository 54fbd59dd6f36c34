#include "core/found/folder_walk.h"

#include "core/found/hugging_face_cache.h"
#include "core/found/judgement.h"
#include "core/found/ollama_store.h"

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace mr {

namespace fs = std::filesystem;

namespace {

constexpr int kMostDepth = 4;
constexpr std::size_t kMostFolders = 20'000;

class FolderWalk
{
public:
    FolderWalk(const fs::path& root, FoundModels& out)
        : m_root(root.lexically_normal())
        , m_out(out)
    {
    }

    void visit(const fs::path& folder, int depth)
    {
        if (m_out.isFull() || !enter(folder))
            return;
        const FolderList list = listFolder(folder);
        if (!list.fault.empty())
            m_out.blame(list.fault);
        if (isHuggingFaceCache(list))
            return findInHuggingFaceCache(list, m_out);
        if (isOllamaStore(list))
            return findInOllamaStore(folder, m_out);
        lookAt(folder, list);
        for (const fs::path& inner : list.folders)
            if (depth < kMostDepth && !inner.filename().string().starts_with('.'))
                visit(inner, depth + 1);
    }

private:
    // False for a folder that was visited by another name.
    bool enter(const fs::path& folder)
    {
        struct stat info {
        };
        if (::stat(folder.c_str(), &info) != 0 ||
            !m_visited.emplace(info.st_dev, info.st_ino).second)
            return false;
        if (m_visited.size() <= kMostFolders)
            return true;
        m_out.blame("has more than " + std::to_string(kMostFolders) +
                    " folders; the others were not looked at");
        return false;
    }

    void lookAt(const fs::path& folder, const FolderList& list)
    {
        const bool isFolder = isModelFolder(list) || holdsAdapter(list);
        if (const std::string name = nameOf(folder); isFolder && m_out.wants(name))
            add(judgeFolder(folder, list), name);
        std::vector<fs::path> files = list.files;
        files.insert(files.end(), list.broken.begin(), list.broken.end());
        const auto groups = ggufGroups(files);
        const bool isAlone = groups.size() == 1 && !isFolder && folder != m_root;
        for (const GgufGroup& group : groups) {
            const std::string name = nameOf(isAlone ? folder : folder / group.name);
            if (m_out.wants(name))
                add(judgeGguf(group), name);
        }
    }

    // As seen from the root; the root by its own name.
    std::string nameOf(const fs::path& path) const
    {
        const fs::path root = m_root.has_filename() ? m_root : m_root.parent_path();
        const std::string name = path.lexically_relative(root).string();
        return name.empty() || name == "." ? root.filename().string() : name;
    }

    void add(FoundModel found, const std::string& name)
    {
        found.model.name = name;
        m_out.add(std::move(found));
    }

    fs::path m_root;
    FoundModels& m_out;
    std::set<std::pair<std::uint64_t, std::uint64_t>> m_visited; // device and number
};

} // namespace

void findBelow(const fs::path& root, FoundModels& out)
{
    FolderWalk(root, out).visit(root.lexically_normal(), 0);
}

} // namespace mr
