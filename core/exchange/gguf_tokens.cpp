#include "core/exchange/gguf_tokens.h"

#include "core/base/file.h"
#include "core/base/shown_text.h"
#include "core/exchange/json_reads.h"
#include "core/exchange/pre_tokenizers.h"
#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/json_tokenizer.h"
#include "core/tokenizer/spm_model.h"
#include "core/tokenizer/tekken_file.h"
#include "core/tokenizer/tokenizer_config.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostModelBytes = std::uint64_t{256} << 20;
constexpr float kUnusedScore = -10000.0F;
constexpr float kAddedScore = -1000.0F;

Status refuse(const fs::path& file, const std::string& what)
{
    return Status::error(ErrorKind::InvalidArgument, file.string() + ": " + what);
}

// Words that some tokenizers forgot to mark as control tokens.
bool looksSpecial(std::string_view text)
{
    constexpr std::array<std::string_view, 4> kWords{"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    constexpr std::string_view kWideOpen = "<｜";
    constexpr std::string_view kWideClose = "｜>";
    return std::ranges::find(kWords, text) != kWords.end() ||
           (text.starts_with("<|") && text.ends_with("|>")) ||
           (text.starts_with(kWideOpen) && text.ends_with(kWideClose)) ||
           (text.starts_with("<unused") && text.ends_with(">"));
}

class TokenList
{
public:
    TokenList(fs::path file, std::int64_t rows)
        : m_file(std::move(file))
        , m_rows(static_cast<std::size_t>(rows))
    {
        for (std::size_t id = 0; id < m_rows; ++id)
            out.tokens.push_back(fmt::format("[PAD{}]", id));
        out.scores.assign(m_rows, kUnusedScore);
        out.types.assign(m_rows, static_cast<std::int32_t>(GgufTokenType::Unused));
    }

    Status put(std::int64_t id, std::string text, float score, GgufTokenType type)
    {
        if (id < 0 || static_cast<std::size_t>(id) >= m_rows)
            return refuse(m_file,
                fmt::format("token {} has the id {}, but the model has {} rows (vocab_size): a "
                            "GGUF file cannot hold it; take the tokenizer files the model was "
                            "published with",
                    shownName(text), id, m_rows));
        const auto at = static_cast<std::size_t>(id);
        out.tokens[at] = std::move(text);
        out.scores[at] = score;
        out.types[at] = static_cast<std::int32_t>(type);
        return {};
    }

    Status putAdded(const AddedToken& token, bool byLook)
    {
        const bool isControl = token.special || (byLook && looksSpecial(token.text));
        std::string text = token.text;
        if (!isControl) // llama.cpp looks for these in text with spaces
            for (std::size_t at = text.find(kSpaceMark); at != std::string::npos;
                 at = text.find(kSpaceMark))
                text.replace(at, kSpaceMark.size(), " ");
        return put(token.id, std::move(text), kAddedScore,
            isControl ? GgufTokenType::Control : GgufTokenType::UserDefined);
    }

    // llama.cpp ends the process where two tokens have one text.
    Status checkTexts() const
    {
        std::unordered_map<std::string_view, std::size_t> seen;
        for (std::size_t id = 0; id < out.tokens.size(); ++id)
            if (const auto [at, isNew] = seen.emplace(out.tokens[id], id); !isNew)
                return refuse(m_file, fmt::format("tokens {} and {} both are {}; llama.cpp cannot "
                                                  "load that",
                                          at->second, id, shownName(out.tokens[id])));
        return {};
    }

    GgufTokens out;

private:
    fs::path m_file;
    std::size_t m_rows;
};

// Added tokens of a tokenizer.json.
Status addListed(const json& content, bool byLook, TokenList& list)
{
    for (const json& item : fieldOf(content, "added_tokens")) {
        AddedToken token;
        const json id = fieldOf(item, "id");
        token.id = id.is_number_integer() ? id.get<TokenId>() : -1;
        token.text = textOf(item, "content");
        token.special = flagOf(item, "special", false);
        MR_TRY(list.putAdded(token, byLook));
    }
    return {};
}

Status addBeside(const fs::path& folder, bool byLook, TokenList& list)
{
    MR_ASSIGN(const TokenizerHabits habits, readTokenizerHabits(folder));
    for (const auto& [id, token] : habits.added)
        MR_TRY(list.putAdded(token, byLook));
    return {};
}

GgufTokenType typeOf(SpmModel::Type type)
{
    switch (type) {
    case SpmModel::Type::Unknown:
        return GgufTokenType::Unknown;
    case SpmModel::Type::Control:
        return GgufTokenType::Control;
    case SpmModel::Type::Unused:
        return GgufTokenType::Unused;
    case SpmModel::Type::Byte:
        return GgufTokenType::Byte;
    default:
        return GgufTokenType::Normal; // llama.cpp's converter has user-defined pieces as these
    }
}

Result<GgufTokens> fromSentencePiece(
    const fs::path& file, std::int64_t rows, std::string_view architecture)
{
    MR_ASSIGN(const std::string bytes, readWholeFile(file, kMostModelBytes));
    auto model = readSpmModel(bytes, true);
    if (!model.ok())
        return badTokenizer(file, model.status().message());
    if (!model.value().isBpe)
        return refuse(file, "is no BPE model; llama.cpp tokenizes such models otherwise, so the "
                            "model cannot be written as GGUF");
    TokenList list(file, rows);
    for (std::size_t id = 0; id < model.value().vocabulary.size(); ++id) {
        const SpmModel::Piece& piece = model.value().vocabulary[id];
        MR_TRY(
            list.put(static_cast<std::int64_t>(id), piece.text, piece.score, typeOf(piece.type)));
    }
    const bool isPhi = architecture == "phi3";
    MR_TRY(addBeside(file.parent_path(), !isPhi, list));
    std::error_code ignored;
    if (const fs::path other = file.parent_path() / "tokenizer.json";
        isPhi && fs::exists(other, ignored)) {
        MR_ASSIGN(const json content, readJsonObject(other));
        MR_TRY(addListed(content, false, list));
    }
    MR_TRY(list.checkTexts());
    list.out.model = "llama";
    list.out.pre = "default";
    list.out.prefixesSpace = model.value().addDummyPrefix;
    list.out.normalises = model.value().removeExtraWhitespaces || model.value().normalizes;
    return std::move(list.out);
}

// "a b" of a merge in either spelling of the file.
std::string mergeText(const json& merge)
{
    if (merge.is_string())
        return textOf(merge);
    std::string text;
    for (const json& part : merge) {
        std::string piece = textOf(part);
        for (std::size_t at = piece.find(' '); at != std::string::npos; at = piece.find(' '))
            piece.replace(at, 1, "Ġ"); // the letter that stands for a space
        text += (text.empty() ? "" : " ") + piece;
    }
    return text;
}

// The rank of the first merge that makes a piece is what SentencePiece has as its score.
std::unordered_map<std::string, float> scoresOf(const json& merges)
{
    std::unordered_map<std::string, float> scores;
    float rank = 0.0F;
    for (const json& merge : merges) {
        std::string made = merge.is_string() ? textOf(merge) : std::string();
        if (merge.is_string())
            std::erase(made, ' ');
        else
            for (const json& part : merge)
                made += textOf(part);
        scores.emplace(std::move(made), -rank);
        rank += 1.0F;
    }
    return scores;
}

bool isByteToken(std::string_view text)
{
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
}

Status addVocabulary(const json& model, bool hasScores, TokenList& list)
{
    const json merges = fieldOf(model, "merges");
    const auto scores = hasScores ? scoresOf(merges) : std::unordered_map<std::string, float>();
    const json vocab = fieldOf(model, "vocab");
    for (const auto& [text, id] : vocab.items()) {
        const auto score = scores.find(text);
        const bool isByte = hasScores && isByteToken(text);
        MR_TRY(list.put(id.is_number_integer() ? id.get<std::int64_t>() : -1, text,
            score == scores.end() ? 0.0F : score->second,
            isByte ? GgufTokenType::Byte : GgufTokenType::Normal));
    }
    return {};
}

// Tokens that llama.cpp shows in answers of Gemma 4, whose chat it reads by them.
bool isShownGemmaToken(std::string_view text)
{
    constexpr std::array<std::string_view, 7> kShown{"<|channel>", "<channel|>", "<|tool_call>",
        "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>"};
    return std::ranges::find(kShown, text) != kShown.end();
}

bool isByteLevel(const json& stage)
{
    if (textOf(stage, "type") == "ByteLevel")
        return true;
    for (const json& part : fieldOf(stage, "pretokenizers"))
        if (isByteLevel(part))
            return true;
    return false;
}

// llama.cpp normalises no text.
Status checkNormalizer(const fs::path& file, const json& content)
{
    const json normalizer = fieldOf(content, "normalizer");
    if (normalizer.is_null() || textOf(normalizer, "type") == "NFC")
        return {};
    return refuse(file, "normalises text by " + shownName(textOf(normalizer, "type")) +
                            ", which llama.cpp does not; the model cannot be written as GGUF");
}

Result<GgufTokens> fromJson(
    const fs::path& file, const json& content, std::int64_t rows, std::string_view architecture)
{
    const json model = fieldOf(content, "model");
    if (textOf(model, "type", "BPE") != "BPE")
        return refuse(file, "holds a " + shownName(textOf(model, "type")) +
                                " model; llama.cpp has BPE for causal language models, so the "
                                "model cannot be written as GGUF");
    const bool isBytes = isByteLevel(fieldOf(content, "pre_tokenizer"));
    if (!isBytes && !flagOf(model, "byte_fallback", false))
        return refuse(file, "neither cuts bytes nor falls back to them, which llama.cpp takes for "
                            "granted; the model cannot be written as GGUF");
    TokenList list(file, rows);
    MR_TRY(addVocabulary(model, !isBytes, list));
    MR_TRY(addListed(content, isBytes, list));
    if (!content.contains("added_tokens"))
        MR_TRY(addBeside(file.parent_path(), isBytes, list));
    if (const auto unknown = list.out.find(textOf(model, "unk_token")); !isBytes && unknown >= 0)
        list.out.types[static_cast<std::size_t>(unknown)] =
            static_cast<std::int32_t>(GgufTokenType::Unknown);
    const bool isGemma4 = architecture == "gemma4" && !isBytes;
    for (std::size_t id = 0; isGemma4 && id < list.out.tokens.size(); ++id)
        if (isShownGemmaToken(list.out.tokens[id]))
            list.out.types[id] = static_cast<std::int32_t>(GgufTokenType::UserDefined);
    list.out.model = isBytes ? "gpt2" : isGemma4 ? "gemma4" : "llama";
    if (isBytes || isGemma4)
        for (const json& merge : fieldOf(model, "merges"))
            list.out.merges.push_back(mergeText(merge));
    if (isBytes) {
        MR_TRY(checkNormalizer(file, content));
        MR_ASSIGN(list.out.pre, preTokenizerName(content, architecture));
        list.out.scores.clear();
        list.out.normalises = !fieldOf(content, "normalizer").is_null();
    } else {
        list.out.pre = isGemma4 ? "" : "default";
        list.out.prefixesSpace = !isGemma4;
        // Text that begins with a space gets no other one from it, but in llama.cpp.
        list.out.normalises = textOf(fieldOf(content, "pre_tokenizer"), "type") == "Metaspace";
    }
    MR_TRY(list.checkTexts());
    return std::move(list.out);
}

// Bytes in the letters that stand for them.
std::string spelled(std::string_view bytes, const std::array<std::int32_t, 256>& letters)
{
    std::string out;
    for (const char byte : bytes)
        appendCharacter(letters[static_cast<unsigned char>(byte)], out);
    return out;
}

// Every way to cut a token into two of lower rank, in the order of what is made.
std::vector<std::string> mergesOf(
    const std::vector<std::string>& tokens, const std::array<std::int32_t, 256>& letters)
{
    std::unordered_map<std::string_view, std::size_t> ranks;
    for (std::size_t rank = 0; rank < tokens.size(); ++rank)
        ranks.emplace(tokens[rank], rank);
    std::vector<std::string> merges;
    for (const std::string& token : tokens) {
        const std::string_view whole = token;
        std::vector<std::pair<std::size_t, std::size_t>> cuts; // ranks of both sides
        for (std::size_t at = 1; at < whole.size(); ++at) {
            const auto left = ranks.find(whole.substr(0, at));
            const auto right = ranks.find(whole.substr(at));
            if (left != ranks.end() && right != ranks.end())
                cuts.emplace_back(left->second, right->second);
        }
        std::ranges::sort(cuts);
        for (const auto& cut : cuts)
            merges.push_back(
                spelled(tokens[cut.first], letters) + " " + spelled(tokens[cut.second], letters));
    }
    return merges;
}

Result<GgufTokens> fromTekken(const fs::path& file, std::int64_t rows)
{
    MR_ASSIGN(const TekkenFile read, readTekken(file));
    TokenList list(file, rows);
    const auto letters = byteLetters();
    for (std::size_t id = 0; id < read.controls.size(); ++id)
        MR_TRY(list.put(
            static_cast<std::int64_t>(id), read.controls[id], 0.0F, GgufTokenType::Control));
    for (std::size_t rank = 0; rank < read.tokens.size(); ++rank)
        MR_TRY(list.put(static_cast<std::int64_t>(rank + read.controls.size()),
            spelled(read.tokens[rank], letters), 0.0F, GgufTokenType::Normal));
    MR_TRY(list.checkTexts());
    const json content{
        {"pre_tokenizer", tekkenPreTokenizer(read.pattern)}, {"model", {{"ignore_merges", true}}}};
    list.out.model = "gpt2";
    MR_ASSIGN(list.out.pre, preTokenizerName(content, {}));
    list.out.scores.clear();
    list.out.merges = mergesOf(read.tokens, letters);
    return std::move(list.out);
}

} // namespace

std::int32_t GgufTokens::find(std::string_view token) const
{
    const auto at = std::ranges::find(tokens, token);
    return at == tokens.end() ? -1 : static_cast<std::int32_t>(at - tokens.begin());
}

// A tokenizer.json may know tokens that were added later; a tokenizer.model has true scores.
Result<GgufTokens> readGgufTokens(
    const fs::path& folder, std::int64_t rows, std::string_view architecture)
{
    std::error_code ignored;
    const fs::path pieces = folder / "tokenizer.model";
    const fs::path content = folder / "tokenizer.json";
    const fs::path tekken = folder / "tekken.json";
    if (fs::exists(pieces, ignored) && architecture != "gemma4") {
        MR_ASSIGN(const std::string bytes, readWholeFile(pieces, kMostModelBytes));
        if (readSpmModel(bytes).ok())
            return fromSentencePiece(pieces, rows, architecture);
    }
    if (fs::exists(content, ignored)) {
        MR_ASSIGN(const json read, readJsonObject(content));
        return fromJson(content, read, rows, architecture);
    }
    if (const fs::path words = folder / "vocab.json"; fs::exists(words, ignored)) {
        std::vector<std::size_t> lines;
        MR_ASSIGN(const json read, readGpt2Files(words, lines));
        return fromJson(words, read, rows, architecture);
    }
    if (fs::exists(tekken, ignored))
        return fromTekken(tekken, rows);
    return refuse(folder, "has no tokenizer.json, tokenizer.model or tekken.json, which a GGUF "
                          "file is to hold; put the model's tokenizer file into the folder");
}

} // namespace mr
