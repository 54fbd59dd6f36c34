#include "core/tokenizer/tokenizer_config.h"

#include "core/api/json_text.h"
#include "core/base/file.h"
#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{64} << 20;

std::string tokenText(const json& value)
{
    if (value.is_string())
        return value.get<std::string>();
    if (value.is_object() && value.contains("content") && value["content"].is_string())
        return value["content"].get<std::string>();
    return {};
}

bool flag(const json& object, const char* name, bool otherwise)
{
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() && found->is_boolean() ? found->get<bool>()
                                                                              : otherwise;
}

Status addToken(const fs::path& file, std::int64_t id, AddedToken token, TokenizerHabits& habits)
{
    if (id < 0 || id > kMaxTokenId)
        return badTokenizer(
            file, fmt::format("added token {} has the id {}", shownName(token.text), id));
    token.id = static_cast<TokenId>(id);
    habits.added[token.id] = std::move(token);
    return {};
}

Status readBool(
    const fs::path& file, const json& object, const char* name, std::optional<bool>& out)
{
    const auto found = object.find(name);
    if (found == object.end() || found->is_null())
        return {};
    if (!found->is_boolean())
        return badTokenizer(file, std::string(name) + " must be true or false");
    out = found->get<bool>();
    return {};
}

Status readAddedDecoder(const fs::path& file, const json& object, TokenizerHabits& habits)
{
    const auto decoder = object.find("added_tokens_decoder");
    if (decoder == object.end() || !decoder->is_object())
        return {};
    for (const auto& [key, value] : decoder->items()) {
        const bool digits =
            !key.empty() && key.size() < 10 &&
            std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!digits)
            return badTokenizer(
                file, "added_tokens_decoder has the key " + shownName(key) + ", not an id");
        AddedToken token{-1, tokenText(value)};
        token.special = flag(value, "special", true);
        token.normalized = flag(value, "normalized", !token.special);
        token.lstrip = flag(value, "lstrip", false);
        token.rstrip = flag(value, "rstrip", false);
        token.singleWord = flag(value, "single_word", false);
        MR_TRY(addToken(file, std::stoll(key), std::move(token), habits));
    }
    return {};
}

} // namespace

Status badTokenizer(const fs::path& file, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, file.string() + ": " + message);
}

Result<json> readJsonObject(const fs::path& file)
{
    MR_ASSIGN(std::string text, readWholeFile(file, kMaxConfigBytes));
    if (nestsTooDeeply(text))
        return badTokenizer(file, fmt::format("nested deeper than {} levels", kJsonDepth));
    json parsed = json::parse(text, nullptr, false);
    if (parsed.is_discarded()) // says where
        return Status::error(
            ErrorKind::InvalidArgument, parseJson(text, file.string()).status().message());
    if (!parsed.is_object())
        return badTokenizer(file, "not a JSON object");
    return parsed;
}

Result<TokenizerHabits> readTokenizerHabits(const fs::path& folder)
{
    TokenizerHabits habits;
    std::error_code ignored;
    if (const fs::path file = folder / "added_tokens.json"; fs::exists(file, ignored)) {
        MR_ASSIGN(json object, readJsonObject(file));
        for (const auto& [text, id] : object.items()) {
            if (!id.is_number_integer())
                return badTokenizer(file, shownName(text) + " has no integer id");
            MR_TRY(addToken(file, id.get<std::int64_t>(), {-1, text}, habits));
        }
    }
    const fs::path file = folder / "tokenizer_config.json";
    if (!fs::exists(file, ignored))
        return habits;
    MR_ASSIGN(json object, readJsonObject(file));
    MR_TRY(readBool(file, object, "add_bos_token", habits.addBos));
    MR_TRY(readBool(file, object, "add_eos_token", habits.addEos));
    MR_TRY(readBool(file, object, "legacy", habits.legacy));
    habits.tokenizerClass = tokenText(object.value("tokenizer_class", json()));
    habits.bosText = tokenText(object.value("bos_token", json()));
    habits.eosText = tokenText(object.value("eos_token", json()));
    MR_TRY(readAddedDecoder(file, object, habits));
    return habits;
}

} // namespace mr
