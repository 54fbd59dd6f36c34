// GPT-2's files, vocab.json and merges.txt, in the words of tokenizer.json.

#include "core/base/file.h"
#include "core/base/shown_text.h"
#include "core/tokenizer/json_tokenizer.h"
#include "core/tokenizer/tokenizer_config.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace mr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxMergesBytes = std::uint64_t{64} << 20;
// Qwen2's words. Source: the tokenizer.json published with the same models.
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// One merge a line; the first line may name a version. `lines`: of each merge, from 1.
Result<json> readMerges(const fs::path& file, std::vector<std::size_t>& lines)
{
    MR_ASSIGN(std::string read, readWholeFile(file, kMaxMergesBytes));
    json merges = json::array();
    std::string_view rest = read;
    for (std::size_t line = 1; !rest.empty(); ++line) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view text = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (text.ends_with('\r'))
            text.remove_suffix(1);
        if (text.empty() || (line == 1 && text.starts_with("#version")))
            continue;
        merges.push_back(std::string(text));
        lines.push_back(line);
    }
    return merges;
}

// Why no tokenizer can be made of a merge, which is damage of merges.txt; empty: it can.
std::string whyBroken(const std::string& merge, const json& vocabulary)
{
    const std::size_t space = merge.find(' ');
    if (!isUtf8(merge))
        return "not valid UTF-8";
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
        return shownName(merge) + " is not two pieces with a space between them";
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    for (const std::string& piece : {left, right, left + right})
        if (!vocabulary.contains(piece))
            return shownName(merge) + " needs the piece " + shownName(piece) +
                   ", which vocab.json does not have";
    return {};
}

// The first merge that is to blame for `failure`, or that itself.
Status blameMerges(
    const fs::path& file, json content, const std::vector<std::size_t>& lines, Status failure)
{
    const json merges = std::exchange(content["model"]["merges"], json::array());
    if (!makeJsonTokenizer(file, content).ok())
        return failure; // without them, too
    for (std::size_t i = 0; i < lines.size(); ++i)
        if (const std::string why =
                whyBroken(merges[i].get_ref<const std::string&>(), content["model"]["vocab"]);
            !why.empty())
            return badTokenizer(file, fmt::format("line {}: {}", lines[i], why));
    return failure;
}

json stage(const char* type)
{
    json out;
    out["type"] = type;
    return out;
}

json byteLevel(bool regex)
{
    json out = stage("ByteLevel");
    out["add_prefix_space"] = false;
    out["use_regex"] = regex;
    return out;
}

// How words are cut is not in these files: it is known for the classes that have them.
Status addStages(const std::string& tokenizerClass, json& content)
{
    content["decoder"] = byteLevel(true);
    content["pre_tokenizer"] = byteLevel(true);
    if (tokenizerClass.empty() || tokenizerClass.starts_with("GPT2Tokenizer") ||
        tokenizerClass.starts_with("CodeGenTokenizer"))
        return {};
    if (!tokenizerClass.starts_with("Qwen2Tokenizer"))
        return Status::error(ErrorKind::InvalidArgument,
            "tokenizer_class \"" + tokenizerClass +
                "\" does not say how words are cut; put the model's tokenizer.json into the "
                "folder");
    json split = stage("Split");
    split["pattern"]["Regex"] = kQwen2Pattern;
    split["behavior"] = "Isolated";
    content["normalizer"] = stage("NFC");
    content["pre_tokenizer"] = stage("Sequence");
    content["pre_tokenizer"]["pretokenizers"].push_back(std::move(split));
    content["pre_tokenizer"]["pretokenizers"].push_back(byteLevel(false));
    return {};
}

} // namespace

Result<json> readGpt2Files(const fs::path& file, std::vector<std::size_t>& lines)
{
    MR_ASSIGN(json vocabulary, readJsonObject(file));
    Result<json> merges = readMerges(file.parent_path() / "merges.txt", lines);
    if (!merges.ok())
        return merges.status();
    MR_ASSIGN(TokenizerHabits beside, readTokenizerHabits(file.parent_path()));
    json content;
    content["model"]["type"] = "BPE";
    content["model"]["vocab"] = std::move(vocabulary);
    content["model"]["merges"] = std::move(merges).value();
    if (const Status staged = addStages(beside.tokenizerClass, content); !staged.ok())
        return badTokenizer(file.parent_path() / "tokenizer_config.json", staged.message());
    return content;
}

Result<std::unique_ptr<Tokenizer>> openGpt2Files(const fs::path& file)
{
    std::vector<std::size_t> lines;
    MR_ASSIGN(json content, readGpt2Files(file, lines));
    auto made = makeJsonTokenizer(file, content);
    if (!made.ok())
        return blameMerges(
            file.parent_path() / "merges.txt", std::move(content), lines, made.status());
    return made;
}

} // namespace mr
