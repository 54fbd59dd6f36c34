#include "core/hub/hub_names.h"

#include "core/base/shown_text.h"
#include "core/base/utf8.h"
#include "core/hub/http_fields.h"

#include <algorithm>

namespace mr {
namespace {

constexpr std::size_t kLongestName = 96;
constexpr std::size_t kLongestRevision = 200;
constexpr std::size_t kLongestPath = 1024;
constexpr std::size_t kLongestPart = 240; // a name on disk has 255 bytes, and ours get an ending
constexpr std::size_t kCommitDigits = 40;

Status wrong(const char* kind, std::string_view text, const std::string& what)
{
    return Status::error(ErrorKind::InvalidArgument, kind + shownName(text) + " " + what);
}

bool isWord(std::string_view text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_';
    });
}

std::vector<std::string_view> partsOf(std::string_view path)
{
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t slash = std::min(path.find('/'), path.size());
        parts.push_back(path.substr(0, slash));
        if (slash == path.size())
            return parts;
        path.remove_prefix(slash + 1);
    }
}

// Empty: nothing is wrong with it.
std::string faultOfPart(std::string_view part)
{
    if (part.empty())
        return "has an empty part between slashes";
    if (part == "." || part == "..")
        return "leads out of its folder";
    if (part.size() > kLongestPart)
        return "has a part of more than 240 bytes";
    if (lowerCase(part) == ".git" || part == ".millrace-get")
        return "lies in a folder that belongs to another program";
    return {};
}

const char* listFolder(HubKind kind)
{
    return kind == HubKind::Model ? "/api/models/" : "/api/datasets/";
}

const char* fileFolder(HubKind kind)
{
    return kind == HubKind::Model ? "/" : "/datasets/";
}

} // namespace

Status checkHubName(std::string_view name)
{
    const std::vector<std::string_view> parts = partsOf(name);
    if (parts.size() > 2)
        return wrong("the name ", name, "has more than one slash; write it as organisation/name");
    for (const std::string_view part : parts) {
        if (!isWord(part) || part.size() > kLongestName)
            return wrong("the name ", name,
                "is none of a hub: letters, digits, '-', '_' and '.' only, and at most one slash, "
                "as "
                "in organisation/name");
        if (part.front() == '.' || part.front() == '-' || part.back() == '.' ||
            part.find("..") != std::string_view::npos || part.find("--") != std::string_view::npos)
            return wrong("the name ", name,
                "is none of a hub: no part of it begins with '.' or '-', ends with '.', or has "
                "'..' "
                "or '--' in it");
    }
    return {};
}

Status checkHubRevision(std::string_view revision)
{
    if (revision.size() > kLongestRevision)
        return wrong("the revision ", revision, "is longer than 200 characters");
    for (const std::string_view part : partsOf(revision))
        if (!isWord(part) || part.front() == '-' || !faultOfPart(part).empty())
            return wrong("the revision ", revision,
                "is neither a branch, a tag nor a commit: letters, digits, '-', '_', '.' and '/' "
                "only");
    return {};
}

Status checkHubPath(std::string_view path)
{
    const char* kind = "the hub lists the file ";
    if (path.empty() || path.front() == '/')
        return wrong(kind, path, "whose path is not relative; it is refused");
    if (path.size() > kLongestPath)
        return wrong(kind, path, "whose path is longer than 1024 bytes; it is refused");
    for (const std::string_view part : partsOf(path))
        if (const std::string fault = faultOfPart(part); !fault.empty())
            return wrong(kind, path, "whose path " + fault + "; it is refused");
    for (const char c : path)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\')
            return wrong(kind, path, "whose path has a control character or a '\\'; it is refused");
    if (validBytes(path, 0) != path.size())
        return wrong(kind, path, "whose path is not UTF-8; it is refused");
    return {};
}

Status checkHubPaths(const std::vector<HubFile>& files)
{
    std::vector<std::string> paths; // with an end that sorts before every other character
    paths.reserve(files.size());
    for (const HubFile& file : files)
        paths.push_back(file.path + "/");
    // A slash sorts before letters but behind '-' and '.', so it gives way to the lowest byte.
    for (std::string& path : paths)
        std::replace(path.begin(), path.end(), '/', '\1');
    std::sort(paths.begin(), paths.end());
    for (std::size_t i = 1; i < paths.size(); ++i) {
        if (!paths[i].starts_with(paths[i - 1]))
            continue;
        std::string path = paths[i - 1].substr(0, paths[i - 1].size() - 1);
        std::replace(path.begin(), path.end(), '\1', '/');
        return wrong("the hub lists ", path,
            paths[i] == paths[i - 1] ? "twice; the list is refused"
                                     : "as a file and as a folder; the list is refused");
    }
    return {};
}

bool isHex(std::string_view text, std::size_t count)
{
    return text.size() == count && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
}

bool isCommit(std::string_view text)
{
    return isHex(text, kCommitDigits);
}

std::string listAddress(const HubRequest& request)
{
    return listFolder(request.kind) + percentEncoded(request.name, true) + "/revision/" +
           percentEncoded(request.revision, false) + "?blobs=true";
}

std::string fileAddress(const HubRequest& request, std::string_view commit, std::string_view path)
{
    return fileFolder(request.kind) + percentEncoded(request.name, true) + "/resolve/" +
           std::string(commit) + "/" + percentEncoded(path, true);
}

std::string pageAddress(const HubRequest& request)
{
    return fileFolder(request.kind) + request.name;
}

} // namespace mr
