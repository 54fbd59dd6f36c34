#include "core/hub/hub_choice.h"

#include "core/base/bytes.h"
#include "core/base/utf8.h"
#include "core/hub/http_fields.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace mr {
namespace {

using Endings = std::span<const std::string_view>;

constexpr std::array<std::string_view, 13> kPrograms = {".py", ".pyc", ".ipynb", ".sh", ".bat",
    ".cmd", ".ps1", ".js", ".so", ".dll", ".dylib", ".exe", ".jar"};
constexpr std::array<std::string_view, 13> kOtherWeights = {".bin", ".pt", ".pth", ".ckpt", ".onnx",
    ".onnx_data", ".h5", ".msgpack", ".tflite", ".ot", ".pkl", ".mlmodel", ".npz"};
constexpr std::array<std::string_view, 9> kData = {
    ".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt", ".gz", ".zst", ".md"};
constexpr std::array<std::string_view, 4> kModelFiles = {
    ".safetensors", ".json", ".model", ".jinja"};
constexpr std::array<std::string_view, 3> kTokenizerTexts = {
    "merges.txt", "vocab.txt", "added_tokens.txt"};
constexpr std::array<std::string_view, 4> kAbout = {"license", "readme", "notice", "use_policy"};
constexpr std::size_t kMostNamed = 20;
constexpr std::size_t kMostNamedBytes = 100; // of a path

bool endsWithAny(std::string_view path, Endings endings)
{
    return std::any_of(endings.begin(), endings.end(),
        [&](std::string_view ending) { return path.ends_with(ending); });
}

std::string_view nameOf(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

bool isAbout(std::string_view lower)
{
    const std::string_view name = nameOf(lower);
    return std::any_of(kAbout.begin(), kAbout.end(),
        [&](std::string_view word) { return name.starts_with(word); });
}

bool isTop(std::string_view path)
{
    return path.find('/') == std::string_view::npos;
}

// Mistral's repositories hold the same weights a second time, in one file.
bool isSecondCopy(std::string_view lower, const std::vector<HubFile>& files)
{
    return lower.starts_with("consolidated") && lower.find("safetensors") != std::string::npos &&
           std::any_of(files.begin(), files.end(), [](const HubFile& file) {
               return file.path.starts_with("model") && file.path.ends_with(".safetensors");
           });
}

// Why a file of a model is not fetched; empty: it is.
std::string faultOfModelFile(std::string_view path, const std::vector<HubFile>& files)
{
    const std::string lower = lowerCase(path);
    if (lower.ends_with(".gguf"))
        return "a GGUF file: name it with --include";
    std::string_view weights = lower; // an index is of its weights
    if (weights.ends_with(".index.json"))
        weights.remove_suffix(std::string_view(".index.json").size());
    if (endsWithAny(weights, kOtherWeights))
        return "weights in another format";
    if (!isTop(path) && !lower.ends_with(".jinja"))
        return "in a folder of its own";
    if (isSecondCopy(lower, files))
        return "the same weights a second time";
    const bool isTaken =
        endsWithAny(lower, kModelFiles) || isAbout(lower) ||
        std::find(kTokenizerTexts.begin(), kTokenizerTexts.end(), lower) != kTokenizerTexts.end();
    return isTaken ? "" : "nothing that training needs";
}

std::string faultOfDataFile(std::string_view path)
{
    const std::string lower = lowerCase(path);
    return endsWithAny(lower, kData) || isAbout(lower) ? "" : "no data file";
}

bool matchesAny(const std::vector<std::string>& patterns, std::string_view path)
{
    return std::any_of(patterns.begin(), patterns.end(),
        [&](const std::string& pattern) { return matchesPattern(pattern, path); });
}

std::string faultOf(
    const HubRequest& request, std::string_view path, const std::vector<HubFile>& files)
{
    if (endsWithAny(lowerCase(path), kPrograms))
        return "a script or program";
    if (matchesAny(request.exclude, path))
        return "excluded";
    if (!request.include.empty())
        return matchesAny(request.include, path) ? "" : "not included";
    return request.kind == HubKind::Model ? faultOfModelFile(path, files) : faultOfDataFile(path);
}

Status refused(const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, message);
}

// One a line, behind the message.
template <typename Take>
std::string listed(const std::vector<HubFile>& files, const Take& take)
{
    std::string lines;
    std::size_t count = 0;
    for (const HubFile& file : files) {
        if (!take(file.path))
            continue;
        if (++count <= kMostNamed)
            lines += "\n  " + std::string(firstBytes(file.path, kMostNamedBytes)) +
                     (file.path.size() > kMostNamedBytes ? "..." : "") + " (" +
                     formatBytes(file.bytes) + ")";
    }
    if (count > kMostNamed)
        lines += "\n  and " + std::to_string(count - kMostNamed) + " more";
    return lines;
}

bool has(const std::vector<HubFile>& files, Endings endings)
{
    return std::any_of(files.begin(), files.end(),
        [&](const HubFile& file) { return endsWithAny(lowerCase(file.path), endings); });
}

// A pattern that was misspelt must not fetch less than was meant.
Status checkPatterns(const HubRequest& request, const std::vector<HubFile>& files)
{
    for (const std::string& pattern : request.include)
        if (std::none_of(files.begin(), files.end(),
                [&](const HubFile& file) { return matchesPattern(pattern, file.path); }))
            return refused("--include " + pattern + " matches no file of " + request.name +
                           "; its files are:" + listed(files, [](const auto&) { return true; }));
    return {};
}

Status checkWeights(
    const HubRequest& request, const std::vector<HubFile>& files, const HubChoice& choice)
{
    constexpr std::array<std::string_view, 1> kSafetensors = {".safetensors"};
    constexpr std::array<std::string_view, 1> kGguf = {".gguf"};
    if (request.kind != HubKind::Model || !request.include.empty() ||
        has(choice.files, kSafetensors))
        return {};
    if (has(files, kGguf))
        return refused(request.name +
                       " holds GGUF files; name the one that you want with --include, as a name or "
                       "a pattern:" +
                       listed(files, [](const std::string& path) {
                           return lowerCase(path).ends_with(".gguf");
                       }));
    if (has(files, kSafetensors) || has(files, kOtherWeights))
        return refused(
            request.name +
            " has no weights in safetensors that would be fetched; choose a revision that "
            "has them, or name files with --include:" +
            listed(files, [](const std::string& path) {
                return endsWithAny(lowerCase(path), kOtherWeights) ||
                       lowerCase(path).ends_with(".safetensors");
            }));
    return {};
}

} // namespace

// Goes back to the last '*' only, so that no pattern takes long.
bool matchesPattern(std::string_view pattern, std::string_view path)
{
    std::size_t p = 0;
    std::size_t at = 0;
    std::size_t star = std::string_view::npos;
    std::size_t starAt = 0;
    while (at < path.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            starAt = at;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == path[at])) {
            ++p;
            ++at;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            at = ++starAt;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<HubChoice> chooseHubFiles(const HubRequest& request, const std::vector<HubFile>& files)
{
    if (files.empty())
        return refused(request.name + " has no files at the revision " + request.revision);
    MR_TRY(checkPatterns(request, files));
    HubChoice choice;
    for (const HubFile& file : files) {
        std::string fault = faultOf(request, file.path, files);
        if (fault.empty())
            choice.files.push_back(file);
        else if (file.path != ".gitattributes")
            choice.leftOut.push_back({file.path, file.bytes, std::move(fault)});
    }
    MR_TRY(checkWeights(request, files, choice));
    if (choice.files.empty())
        return refused("no file of " + request.name +
                       " would be fetched; name files with --include. It has:" +
                       listed(files, [](const auto&) { return true; }));
    return choice;
}

} // namespace mr
