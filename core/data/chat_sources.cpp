#include "core/data/chat_sources.h"

#include "core/base/file.h"
#include "core/tokenizer/tokenizer_config.h"

#include <nlohmann/json.hpp>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTemplateBytes = std::size_t{8} << 20;
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kMapFile = "special_tokens_map.json";

bool isThere(const fs::path& path)
{
    std::error_code ignored;
    return fs::exists(path, ignored);
}

Status readTemplateField(const fs::path& path, TemplateSources& out)
{
    if (!out.empty() || !isThere(path))
        return {};
    MR_ASSIGN(nlohmann::json config, readJsonObject(path));
    const auto found = config.find("chat_template");
    if (found == config.end() || found->is_null())
        return {};
    if (found->is_string()) {
        out["default"] = found->get<std::string>();
        return {};
    }
    for (const auto& named : found->is_array() ? *found : nlohmann::json::array()) {
        const bool sound = named.is_object() && named.contains("name") &&
                           named["name"].is_string() && named.contains("template") &&
                           named["template"].is_string();
        if (!sound)
            return Status::error(ErrorKind::InvalidArgument,
                path.string() + R"(: "chat_template" holds something without name and template)");
        out[named["name"].get<std::string>()] = named["template"].get<std::string>();
    }
    return {};
}

// A file that cannot be read says nothing here; opening the tokenizer refuses it by name.
nlohmann::json objectIn(const fs::path& path)
{
    if (!isThere(path))
        return nlohmann::json::object();
    Result<nlohmann::json> read = readJsonObject(path);
    return read.ok() ? std::move(read).value() : nlohmann::json::object();
}

bool isTokenName(const std::string& name)
{
    return name.ends_with("_token");
}

// A token is a text, or an object that holds it. Null takes a name away that was there.
void takeToken(const std::string& name, const nlohmann::json& token,
    std::map<std::string, std::string>& tokens)
{
    const nlohmann::json& text =
        token.is_object() && token.contains("content") ? token["content"] : token;
    if (text.is_string())
        tokens[name] = text.get<std::string>();
    else if (text.is_null())
        tokens.erase(name);
}

void takeTokens(const nlohmann::json& config, std::map<std::string, std::string>& tokens)
{
    for (const auto& [name, token] : config.items())
        if (isTokenName(name))
            takeToken(name, token, tokens);
    const auto extra = config.find("extra_special_tokens");
    if (extra != config.end() && extra->is_object())
        for (const auto& [name, token] : extra->items())
            takeToken(name, token, tokens);
}

} // namespace

Result<TemplateSources> readTemplateSources(const fs::path& folder)
{
    TemplateSources out;
    const fs::path jinja = folder / "chat_template.jinja";
    if (isThere(jinja)) {
        MR_ASSIGN(out["default"], readWholeFile(jinja, kMaxTemplateBytes));
    }
    MR_TRY(readTemplateField(folder / "chat_template.json", out));
    MR_TRY(readTemplateField(folder / kConfigFile, out));
    return out;
}

std::map<std::string, std::string> readTemplateTokens(const fs::path& folder)
{
    std::map<std::string, std::string> tokens;
    const nlohmann::json config = objectIn(folder / kConfigFile);
    takeTokens(config, tokens);
    if (!config.contains("added_tokens_decoder"))
        takeTokens(objectIn(folder / kMapFile), tokens);
    const bool isTekken = isThere(folder / "tekken.json") && !isThere(folder / "tokenizer.json");
    if (isTekken && !isThere(folder / kConfigFile)) // these names are fixed in such a file
        tokens.insert({{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    return tokens;
}

bool mayReadNoThink(const fs::path& folder)
{
    const nlohmann::json config = objectIn(folder / "config.json");
    const auto type = config.find("model_type");
    return type == config.end() || *type == "qwen3" || *type == "qwen3_moe";
}

} // namespace mr
