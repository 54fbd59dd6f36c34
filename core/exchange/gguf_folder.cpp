#include "core/exchange/gguf_folder.h"

#include "core/base/cache_folder.h"
#include "core/base/file.h"
#include "core/exchange/gguf_config.h"
#include "core/exchange/gguf_tokenizer.h"
#include "core/model/gguf_weights.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;

// Another form of the folder has another number, so that one of an earlier program is not taken.
constexpr int kForm = 1;

Status failed(const char* what, const fs::path& path, const std::error_code& error)
{
    return Status::error(
        ErrorKind::Io, std::string(what) + " " + path.string() + ": " + error.message());
}

// A name for this content of this file.
Result<std::string> stampOf(const fs::path& file)
{
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    if (error)
        return failed("read", file, error);
    const auto changed = fs::last_write_time(file, error);
    if (error)
        return failed("read", file, error);
    const std::string text =
        fmt::format("{} {} {} {}", kForm, file.string(), bytes, changed.time_since_epoch().count());
    return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// Tokens that end an answer, which a tokenizer's own files do not list.
std::string generationConfig(const GgufKeys& keys)
{
    nlohmann::json ends = nlohmann::json::array();
    for (const char* name : {"eos", "eot", "eom"})
        if (const std::int64_t id = keys.id(name); id >= 0)
            ends.push_back(id);
    return nlohmann::json{{"eos_token_id", std::move(ends)}}.dump(2) + "\n";
}

Status fill(const fs::path& folder, const fs::path& file)
{
    MR_ASSIGN(const GgufFile opened, GgufFile::open(file));
    const GgufKeys keys(opened);
    MR_ASSIGN(const std::string config, ggufConfigText(keys));
    MR_ASSIGN(const auto texts, ggufTokenizerFiles(keys));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return failed("create folder", folder, error);
    for (const auto& [name, text] : texts)
        MR_TRY(replaceFile(folder / name, text));
    MR_TRY(replaceFile(folder / "generation_config.json", generationConfig(keys)));
    fs::remove(folder / kGgufLink, error);
    fs::create_symlink(file, folder / kGgufLink, error);
    if (error)
        return failed("link", folder / kGgufLink, error);
    return replaceFile(folder / "config.json", config); // last: with it the folder is complete
}

} // namespace

bool isGgufFile(const fs::path& path)
{
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        return false;
    Result<File> file = File::openRead(path);
    std::array<char, 4> magic{};
    return file.ok() && file.value().readAt(0, std::as_writable_bytes(std::span(magic))).ok() &&
           std::string_view(magic.data(), magic.size()) == "GGUF";
}

Result<fs::path> ggufFolder(const fs::path& file, const fs::path& under)
{
    std::error_code error;
    const fs::path whole = fs::canonical(file, error);
    if (error)
        return failed("read", file, error);
    MR_ASSIGN(const std::string stamp, stampOf(whole));
    fs::path place = under;
    if (place.empty()) {
        MR_ASSIGN(place, cacheFolder());
        place /= "gguf";
    }
    const fs::path folder = place / (whole.stem().string() + "-" + stamp);
    if (!fs::exists(folder / "config.json", error))
        MR_TRY(fill(folder, whole));
    return folder;
}

} // namespace mr
