#include "core/hub/hub_list.h"

#include "core/api/json_text.h"
#include "core/base/shown_text.h"
#include "core/hub/hub_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 50;
constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kSha1Digits = 40;

Status broken(const std::string& source, const std::string& what)
{
    return Status::error(ErrorKind::DataCorrupt,
        source + ": " + what + "; HF_ENDPOINT may name something that is no hub");
}

// Nothing (null) where the field is missing.
json field(const json& object, const char* name)
{
    const auto found = object.find(name);
    return found == object.end() ? json() : *found;
}

Result<std::uint64_t> sizeOf(const json& value, const std::string& where)
{
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostFileBytes)
        return broken(where, "the field \"size\" is no count of bytes");
    return value.get<std::uint64_t>();
}

Result<std::string> hashOf(
    const json& object, const char* name, std::size_t digits, const std::string& where)
{
    const json value = field(object, name);
    if (!value.is_string() || !isHex(value.get_ref<const std::string&>(), digits))
        return broken(where, fmt::format("the field \"{}\" is no hash of {} digits", name, digits));
    return value.get<std::string>();
}

Result<HubFile> readFile(const json& entry, const std::string& source)
{
    if (!entry.is_object())
        return broken(source, "an entry of \"siblings\" is no object");
    const json path = field(entry, "rfilename");
    if (!path.is_string())
        return broken(source, "an entry of \"siblings\" has no text \"rfilename\"");
    HubFile file;
    file.path = path.get<std::string>();
    MR_TRY(checkHubPath(file.path));
    const std::string where = source + ": file " + shownName(file.path);
    const json large = field(entry, "lfs");
    file.isLarge = !large.is_null();
    if (!file.isLarge) {
        MR_ASSIGN(file.bytes, sizeOf(field(entry, "size"), where));
        MR_ASSIGN(file.hash, hashOf(entry, "blobId", kSha1Digits, where));
        return file;
    }
    if (!large.is_object())
        return broken(where, "the field \"lfs\" is no object");
    MR_ASSIGN(file.bytes, sizeOf(field(large, "size"), where));
    MR_ASSIGN(file.hash, hashOf(large, "sha256", kSha256Digits, where));
    const json size = field(entry, "size");
    if (!size.is_null() && size != json(file.bytes))
        return broken(where, "it has two sizes");
    return file;
}

} // namespace

Result<HubListing> parseHubList(std::string_view text, const std::string& source)
{
    if (text.size() > kMostHubListBytes)
        return broken(source, "it is larger than 64 MiB");
    auto parsed = parseJson(text, source);
    if (!parsed.ok())
        return broken(source, "it is no list of files (" + parsed.status().message() + ")");
    const json list = std::move(parsed).value();
    if (!list.is_object())
        return broken(source, "a JSON object is expected");
    HubListing listing;
    MR_ASSIGN(listing.commit, hashOf(list, "sha", kSha1Digits, source));
    const auto siblings = list.find("siblings");
    if (siblings == list.end() || !siblings->is_array())
        return broken(source, "it has no list \"siblings\"");
    if (siblings->size() > kMostHubFiles)
        return broken(source, fmt::format("it has more than {} files", kMostHubFiles));
    for (const json& entry : *siblings) {
        MR_ASSIGN(HubFile file, readFile(entry, source));
        listing.files.push_back(std::move(file));
    }
    MR_TRY(checkHubPaths(listing.files));
    std::sort(listing.files.begin(), listing.files.end(),
        [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
    return listing;
}

} // namespace mr
