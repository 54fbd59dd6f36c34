#include "core/tokenizer/special_tokens.h"

#include "core/base/shown_text.h"
#include "core/tokenizer/replacement.h"

#include <fmt/format.h>

#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

// The tokens a post-processor puts around a text.
struct Frame {
    bool known = false; // there is a template
    TokenId before = -1;
    TokenId after = -1;
};

Status addToken(AddedToken token, const WordModel& model, JsonHabits& habits)
{
    if (token.id < 0 || token.id > kMaxTokenId)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the added token {} has the id {}", shownName(token.text), token.id));
    if (token.text.empty())
        return {};
    const TokenId known = model.find(token.text);
    if (known >= 0 && known != token.id)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the added token {} has the id {}, but the vocabulary gives it {}",
                shownName(token.text), token.id, known));
    habits.added.emplace(token.id, std::move(token)); // the first word counts
    return {};
}

Status readAddedTokens(const JsonNode& root, const WordModel& model, JsonHabits& habits)
{
    if (!root.has("added_tokens"))
        return {};
    std::vector<JsonNode> list;
    MR_TRY(root.elements("added_tokens", list));
    for (const JsonNode& node : list) {
        AddedToken token;
        token.special = false;
        if (!node.has("id") || !node.at("id").value().is_number_integer())
            return node.fail("id must be a whole number");
        const auto id = node.at("id").value().get<std::int64_t>();
        token.id = id < 0 || id > kMaxTokenId ? -1 : static_cast<TokenId>(id);
        MR_TRY(node.require("content", token.text));
        if (token.id < 0)
            return node.fail(fmt::format("id {} is out of range", id));
        MR_TRY(node.read("special", token.special));
        token.normalized = !token.special;
        MR_TRY(node.read("normalized", token.normalized));
        MR_TRY(node.read("lstrip", token.lstrip));
        MR_TRY(node.read("rstrip", token.rstrip));
        MR_TRY(node.read("single_word", token.singleWord));
        if (const Status added = addToken(std::move(token), model, habits); !added.ok())
            return node.fail(added.message());
    }
    return {};
}

TokenId idOf(const std::string& text, const WordModel& model, const JsonHabits& habits)
{
    for (const auto& [id, token] : habits.added)
        if (token.text == text)
            return id;
    return model.find(text);
}

// {"SpecialToken": {"id": "<s>"}} with the ids that special_tokens gives the name.
Status readFrameToken(const JsonNode& processor, const JsonNode& item, TokenId& out)
{
    std::string name;
    MR_TRY(item.at("SpecialToken").require("id", name));
    if (out >= 0)
        return item.fail("a second token on the same side of the text is not supported");
    const JsonNode tokens =
        processor.has("special_tokens") ? processor.at("special_tokens") : processor;
    if (!tokens.has(name.c_str()) || !tokens.at(name.c_str()).has("ids"))
        return tokens.fail("has no ids for " + shownName(name));
    const JsonNode ids = tokens.at(name.c_str()).at("ids");
    const auto& value = ids.value();
    if (!value.is_array() || value.size() != 1 || !value[0].is_number_integer() ||
        value[0].get<std::int64_t>() < 0 || value[0].get<std::int64_t>() > kMaxTokenId)
        return ids.fail("must be one id");
    out = value[0].get<TokenId>();
    return {};
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}: older words for the token before and the one after.
Status readPairFrame(const JsonNode& node, Frame& out)
{
    out.known = true;
    for (const auto& [name, id] : {std::pair{"cls", &out.before}, std::pair{"sep", &out.after}}) {
        if (!node.has(name))
            return node.fail(std::string(name) + " is missing");
        const auto& value = node.at(name).value();
        const bool sound = value.is_array() && value.size() == 2 && value[1].is_number_integer() &&
                           value[1].get<std::int64_t>() >= 0 &&
                           value[1].get<std::int64_t>() <= kMaxTokenId;
        if (!sound)
            return node.at(name).fail("must be a text and its id");
        *id = value[1].get<TokenId>();
    }
    return {};
}

Status readFrame(const JsonNode& node, int depth, Frame& out)
{
    std::string type;
    MR_TRY(node.require("type", type));
    if (type == "ByteLevel")
        return {}; // changes offsets only
    if (type == "Sequence")
        return readSequence(node, "processors", depth,
            [&out](const JsonNode& part, int at) { return readFrame(part, at, out); });
    if (type == "RobertaProcessing" || type == "BertProcessing")
        return readPairFrame(node, out);
    if (type != "TemplateProcessing")
        return node.fail("type " + shownName(type) + " is not supported");
    std::vector<JsonNode> parts;
    MR_TRY(node.elements("single", parts));
    out.known = true;
    bool behind = false;
    for (const JsonNode& part : parts) {
        if (part.has("Sequence"))
            behind = true;
        else if (part.has("SpecialToken"))
            MR_TRY(readFrameToken(node, part, behind ? out.after : out.before));
        else
            return part.fail("must be a Sequence or a SpecialToken");
    }
    return {};
}

// A name from special_tokens_map.json where tokenizer_config.json has none.
Status readSpecialMap(const fs::path& folder, TokenizerHabits& beside)
{
    std::error_code ignored;
    const fs::path file = folder / "special_tokens_map.json";
    if (!fs::exists(file, ignored))
        return {};
    MR_ASSIGN(nlohmann::json object, readJsonObject(file));
    const JsonNode root(object, "");
    const auto read = [&](const char* name, std::string& out) {
        if (!out.empty() || !root.has(name))
            return;
        const JsonNode node = root.at(name);
        const auto& value = node.has("content") ? node.at("content").value() : node.value();
        out = value.is_string() ? value.get<std::string>() : std::string();
    };
    read("bos_token", beside.bosText);
    read("eos_token", beside.eosText);
    return {};
}

// The model's own config.json, for folders where nothing else names the token.
TokenId idOfConfig(const fs::path& folder, const char* name)
{
    std::error_code ignored;
    const fs::path file = folder / "config.json";
    if (!fs::exists(file, ignored))
        return -1;
    Result<nlohmann::json> object = readJsonObject(file);
    if (!object.ok())
        return -1;
    const nlohmann::json* config = &object.value();
    if (!config->contains(name) && config->contains("text_config")) // of a model that sees
        config = &(*config)["text_config"];
    if (!config->contains(name))
        return -1;
    const nlohmann::json& value = (*config)[name];
    const nlohmann::json& id = value.is_array() && !value.empty() ? value[0] : value;
    const bool inRange = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                         id.get<std::int64_t>() <= kMaxTokenId;
    return inRange ? id.get<TokenId>() : -1;
}

Status findNamed(const fs::path& folder, const char* name, const std::string& text,
    const WordModel& model, const JsonHabits& habits, TokenId& out)
{
    if (text.empty()) {
        out = idOfConfig(folder, (std::string(name) + "_id").c_str());
        return {};
    }
    out = idOf(text, model, habits);
    return out >= 0
               ? Status()
               : Status::error(ErrorKind::InvalidArgument,
                     std::string(name) + " " + shownName(text) + " (tokenizer_config.json or " +
                         "special_tokens_map.json) is neither in the vocabulary nor among " +
                         "the added tokens");
}

} // namespace

Result<JsonHabits> readJsonHabits(
    const JsonNode& root, const WordModel& model, const fs::path& folder)
{
    JsonHabits habits;
    MR_TRY(readAddedTokens(root, model, habits));
    MR_ASSIGN(TokenizerHabits beside, readTokenizerHabits(folder));
    for (auto& [id, token] : beside.added)
        MR_TRY(addToken(token, model, habits));
    MR_TRY(readSpecialMap(folder, beside));
    Frame frame;
    if (root.has("post_processor"))
        MR_TRY(readFrame(root.at("post_processor"), 0, frame));
    MR_TRY(findNamed(folder, "bos_token", beside.bosText, model, habits, habits.bos));
    MR_TRY(findNamed(folder, "eos_token", beside.eosText, model, habits, habits.eos));
    // Upstream follows the template; without one, the config.
    if (frame.before >= 0)
        habits.bos = frame.before;
    if (frame.after >= 0)
        habits.eos = frame.after;
    const bool addBos = frame.known ? frame.before >= 0 : beside.addBos.value_or(false);
    const bool addEos = frame.known ? frame.after >= 0 : beside.addEos.value_or(false);
    habits.addsBos = addBos && habits.bos >= 0;
    habits.addsEos = addEos && habits.eos >= 0;
    return habits;
}

} // namespace mr
