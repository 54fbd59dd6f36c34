#include "core/base/file.h"
#include "core/data/spm_model.h"
#include "core/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxModelBytes = std::uint64_t{256} << 20; // the largest published: 5 MB
constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{64} << 20;
// Pieces of text this long are cheap for the library's heap of merges; one long string is slower.
constexpr std::size_t kChunkBytes = std::size_t{1} << 14;
// The library counts positions in int.
constexpr std::size_t kMaxUncutBytes = std::size_t{1} << 30;
constexpr std::int64_t kMaxAddedId = std::int64_t{1} << 24;

Status bad(const fs::path& path, const std::string& message)
{
    return Status::error(ErrorKind::InvalidArgument, path.string() + ": " + message);
}

struct AddedToken {
    std::string text;
    bool special = true;
};

struct Habits {
    std::optional<bool> addBos;
    std::optional<bool> addEos;
    std::string bosText; // empty: what the model file says
    std::string eosText;
    std::map<TokenId, AddedToken> added; // above the model file's own ids, or the same
};

std::string tokenText(const json& value)
{
    if (value.is_string())
        return value.get<std::string>();
    if (value.is_object() && value.contains("content") && value["content"].is_string())
        return value["content"].get<std::string>();
    return {};
}

Status addToken(const fs::path& file, std::int64_t id, AddedToken token, Habits& habits)
{
    if (id < 0 || id > kMaxAddedId)
        return bad(file, "added token \"" + token.text + "\" has the id " + std::to_string(id));
    habits.added[static_cast<TokenId>(id)] = std::move(token);
    return {};
}

Result<json> readObject(const fs::path& file)
{
    Result<std::string> text = readWholeFile(file, kMaxConfigBytes);
    if (!text.ok())
        return text.status();
    json parsed = json::parse(text.value(), nullptr, false);
    if (!parsed.is_object())
        return bad(file, "not a JSON object");
    return parsed;
}

Status readBool(
    const fs::path& file, const json& object, const char* name, std::optional<bool>& out)
{
    const auto found = object.find(name);
    if (found == object.end() || found->is_null())
        return {};
    if (!found->is_boolean())
        return bad(file, std::string(name) + " must be true or false");
    out = found->get<bool>();
    return {};
}

Status readAddedDecoder(const fs::path& file, const json& object, Habits& habits)
{
    const auto decoder = object.find("added_tokens_decoder");
    if (decoder == object.end() || !decoder->is_object())
        return {};
    for (const auto& [key, value] : decoder->items()) {
        const bool digits =
            !key.empty() && key.size() < 10 &&
            std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!digits)
            return bad(file, "added_tokens_decoder has the key \"" + key + "\", not an id");
        const bool special =
            !value.is_object() || !value.contains("special") || value["special"] != json(false);
        MR_TRY(addToken(file, std::stoll(key), {tokenText(value), special}, habits));
    }
    return {};
}

// tokenizer_config.json and added_tokens.json; both may be absent.
Result<Habits> readHabits(const fs::path& folder)
{
    Habits habits;
    std::error_code ignored;
    if (const fs::path file = folder / "added_tokens.json"; fs::exists(file, ignored)) {
        Result<json> object = readObject(file);
        if (!object.ok())
            return object.status();
        for (const auto& [text, id] : object.value().items()) {
            if (!id.is_number_integer())
                return bad(file, "\"" + text + "\" has no integer id");
            MR_TRY(addToken(file, id.get<std::int64_t>(), {text, true}, habits));
        }
    }
    const fs::path file = folder / "tokenizer_config.json";
    if (!fs::exists(file, ignored))
        return habits;
    Result<json> object = readObject(file);
    if (!object.ok())
        return object.status();
    MR_TRY(readBool(file, object.value(), "add_bos_token", habits.addBos));
    MR_TRY(readBool(file, object.value(), "add_eos_token", habits.addEos));
    habits.bosText = tokenText(object.value().value("bos_token", json()));
    habits.eosText = tokenText(object.value().value("eos_token", json()));
    MR_TRY(readAddedDecoder(file, object.value(), habits));
    return habits;
}

using Processor = sentencepiece::SentencePieceProcessor;

// The library may throw (its trie builder does); nothing of that leaves this function.
Status load(Processor& processor, std::string_view bytes)
{
    try {
        const auto status = processor.LoadFromSerializedProto(bytes);
        if (!status.ok())
            return Status::error(ErrorKind::InvalidArgument, status.error_message());
    } catch (const std::exception& e) {
        return Status::error(ErrorKind::InvalidArgument, e.what());
    }
    return {};
}

class SentencePieceTokenizer final : public Tokenizer
{
public:
    Status open(const fs::path& file, std::string_view bytes, Habits habits)
    {
        Result<SpmModel> model = readSpmModel(bytes);
        if (!model.ok())
            return bad(file, model.status().message());
        m_model = model.value();
        Status loaded = load(m_processor, bytes);
        if (loaded.ok())
            loaded = load(m_continuation,
                m_model.addDummyPrefix ? withoutDummyPrefix(bytes) : std::string(bytes));
        if (!loaded.ok())
            return bad(file, "SentencePiece cannot use it: " + loaded.message());
        m_vocabulary = m_processor.GetPieceSize();
        return applyHabits(file, std::move(habits));
    }

    std::string_view kind() const noexcept override { return "sentencepiece"; }
    std::int64_t vocabulary() const noexcept override { return m_vocabulary; }
    TokenId bos() const noexcept override { return m_bos; }
    TokenId eos() const noexcept override { return m_eos; }
    bool addsBos() const noexcept override { return m_addsBos; }
    bool addsEos() const noexcept override { return m_addsEos; }

    Status encode(std::string_view text, std::vector<TokenId>& out) const override;
    Result<std::string> decode(std::span<const TokenId> ids) const override;
    std::string piece(TokenId id) const override;

private:
    Status applyHabits(const fs::path& file, Habits&& habits);
    Status findSpecial(const fs::path& file, const char* name, const std::string& text,
        TokenId fallback, TokenId& out) const;
    Status decodeRun(const std::vector<int>& ids, bool first, std::string& out) const;

    SpmModel m_model;
    Processor m_processor;
    Processor m_continuation; // the same model for text that is not at the start: no dummy prefix
    std::map<TokenId, AddedToken> m_added; // ids from GetPieceSize() on
    std::int64_t m_vocabulary = 0;
    TokenId m_bos = -1;
    TokenId m_eos = -1;
    bool m_addsBos = false;
    bool m_addsEos = false;
};

Status SentencePieceTokenizer::findSpecial(const fs::path& file, const char* name,
    const std::string& text, TokenId fallback, TokenId& out) const
{
    out = fallback;
    if (text.empty())
        return {};
    const TokenId id = m_processor.PieceToId(text);
    if (id >= 0 && id < m_processor.GetPieceSize() && m_processor.IdToPiece(id) == text) {
        out = id;
        return {};
    }
    for (const auto& [addedId, token] : m_added) {
        if (token.text == text) {
            out = addedId;
            return {};
        }
    }
    return bad(file.parent_path() / "tokenizer_config.json",
        std::string(name) + " \"" + text + "\" is neither in " + file.filename().string() +
            " nor among the added tokens");
}

Status SentencePieceTokenizer::applyHabits(const fs::path& file, Habits&& habits)
{
    const TokenId own = m_processor.GetPieceSize();
    for (auto& [id, token] : habits.added) {
        if (id < own)
            continue; // a second name for a piece of the model file
        m_vocabulary = std::max<std::int64_t>(m_vocabulary, std::int64_t{id} + 1);
        m_added.emplace(id, std::move(token));
    }
    MR_TRY(findSpecial(file, "bos_token", habits.bosText, m_processor.bos_id(), m_bos));
    MR_TRY(findSpecial(file, "eos_token", habits.eosText, m_processor.eos_id(), m_eos));
    m_addsBos = habits.addBos.value_or(true) && m_bos >= 0;
    m_addsEos = habits.addEos.value_or(false) && m_eos >= 0;
    return {};
}

// Bytes up to the first place at or after kChunkBytes where a line feed meets something else.
std::size_t chunkBytes(std::string_view text)
{
    for (std::size_t at = kChunkBytes; at < text.size(); ++at) {
        at = text.find('\n', at - 1);
        if (at == std::string_view::npos)
            break;
        ++at;
        if (at < text.size() && text[at] != '\n')
            return at;
    }
    return text.size();
}

Status SentencePieceTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const
{
    std::vector<int> ids;
    for (bool first = true; !text.empty(); first = false) {
        const std::string_view chunk =
            m_model.linesAreIndependent() ? text.substr(0, chunkBytes(text)) : text;
        text.remove_prefix(chunk.size());
        if (chunk.size() > kMaxUncutBytes)
            return Status::error(ErrorKind::InvalidArgument,
                "a text of " + std::to_string(chunk.size()) +
                    " bytes cannot be encoded in one piece; split it into documents of at most 1 "
                    "GiB (--split)");
        const auto status = (first ? m_processor : m_continuation).Encode(chunk, &ids);
        if (!status.ok())
            return Status::error(ErrorKind::Internal,
                std::string("SentencePiece cannot encode: ") + status.error_message());
        // Without byte fallback neighbouring unknown characters are one token, also across a cut.
        const bool joined = !first && !m_model.byteFallback && !ids.empty() && !out.empty() &&
                            ids.front() == m_processor.unk_id() && out.back() == ids.front();
        out.insert(out.end(), ids.begin() + (joined ? 1 : 0), ids.end());
    }
    return {};
}

Status SentencePieceTokenizer::decodeRun(
    const std::vector<int>& ids, bool first, std::string& out) const
{
    if (ids.empty())
        return {};
    std::string text;
    const auto status = (first ? m_processor : m_continuation).Decode(ids, &text);
    if (!status.ok())
        return Status::error(ErrorKind::Internal,
            std::string("SentencePiece cannot decode: ") + status.error_message());
    out += text;
    return {};
}

Result<std::string> SentencePieceTokenizer::decode(std::span<const TokenId> ids) const
{
    std::string out;
    std::vector<int> run;
    bool first = true;
    for (const TokenId id : ids) {
        if (id >= 0 && id < m_processor.GetPieceSize()) {
            run.push_back(id);
            continue;
        }
        if (id < 0 || id >= m_vocabulary)
            return Status::error(ErrorKind::InvalidArgument, "token id " + std::to_string(id) +
                                                                 " is outside the vocabulary of " +
                                                                 std::to_string(m_vocabulary));
        const auto added = m_added.find(id);
        if (added == m_added.end() || added->second.special)
            continue;
        MR_TRY(decodeRun(run, first, out));
        run.clear();
        first = false;
        out += added->second.text;
    }
    MR_TRY(decodeRun(run, first, out));
    return out;
}

std::string SentencePieceTokenizer::piece(TokenId id) const
{
    if (id >= 0 && id < m_processor.GetPieceSize())
        return m_processor.IdToPiece(id);
    const auto added = m_added.find(id);
    return added == m_added.end() ? "<id " + std::to_string(id) + ">" : added->second.text;
}

// The tokenizer file in a folder, or a sentence that says what is there instead.
Result<fs::path> modelFile(const fs::path& path)
{
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
        if (path.extension() == ".json")
            return bad(path, "tokenizer.json files are not supported yet; a SentencePiece "
                             "tokenizer.model is needed");
        return path;
    }
    if (fs::path file = path / "tokenizer.model"; fs::exists(file, ignored))
        return file;
    for (const char* other : {"tokenizer.json", "tekken.json", "vocab.json"})
        if (fs::exists(path / other, ignored))
            return bad(path, std::string("has ") + other +
                                 " but no tokenizer.model; only SentencePiece tokenizers are "
                                 "supported yet");
    return bad(path, "has no tokenizer.model, so its text cannot be turned into tokens; put the "
                     "model's tokenizer file into the folder");
}

Status checkBytes(const fs::path& file, std::string_view bytes)
{
    if (bytes.empty())
        return bad(file, "is empty");
    if (bytes.starts_with("version https://git-lfs"))
        return bad(file, "is a git-lfs pointer, not the file itself; run \"git lfs pull\" in the "
                         "folder, or download the file again");
    return {};
}

} // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const fs::path& path)
{
    Result<fs::path> file = modelFile(path);
    if (!file.ok())
        return file.status();
    Result<std::string> bytes = readWholeFile(file.value(), kMaxModelBytes);
    if (!bytes.ok())
        return bytes.status();
    MR_TRY(checkBytes(file.value(), bytes.value()));
    Result<Habits> habits = readHabits(file.value().parent_path());
    if (!habits.ok())
        return habits.status();
    auto tokenizer = std::make_unique<SentencePieceTokenizer>();
    MR_TRY(tokenizer->open(file.value(), bytes.value(), std::move(habits).value()));
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace mr
