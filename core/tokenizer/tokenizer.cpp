#include "core/tokenizer/tokenizer.h"

#include "core/base/file.h"
#include "core/tokenizer/json_tokenizer.h"
#include "core/tokenizer/sentencepiece_tokenizer.h"
#include "core/tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPointer = "version https://git-lfs";

// The tokenizer file in a folder, or an error that names the files there instead.
Result<fs::path> modelFile(const fs::path& path)
{
    std::error_code ignored;
    if (!fs::is_directory(path, ignored))
        return path;
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tekken.json"})
        if (fs::path file = path / name; fs::exists(file, ignored))
            return file;
    const bool merges = fs::exists(path / "merges.txt", ignored);
    if (fs::path file = path / "vocab.json"; merges && fs::exists(file, ignored))
        return file;
    if (fs::exists(path / "vocab.json", ignored))
        return badTokenizer(path, "has vocab.json but none of tokenizer.json, tokenizer.model, "
                                  "tekken.json, or merges.txt");
    return badTokenizer(path, "has no tokenizer.json, no tokenizer.model and no tekken.json, so "
                              "its text cannot be turned into tokens; "
                              "put the model's tokenizer file into the folder");
}

Status checkNoPointer(const fs::path& file)
{
    MR_ASSIGN(File opened, File::openRead(file));
    std::array<char, kPointer.size()> head{};
    const bool full = opened.readAt(0, std::as_writable_bytes(std::span(head))).ok();
    if (full && std::string_view(head.data(), head.size()) == kPointer)
        return badTokenizer(file, "is a git-lfs pointer, not the file itself; run \"git lfs pull\" "
                                  "in the folder, or download the file again");
    return {};
}

Result<std::unique_ptr<Tokenizer>> openFile(const fs::path& file)
{
    MR_TRY(checkNoPointer(file));
    const std::string name = file.filename().string();
    if (name == "vocab.json")
        return openGpt2Files(file);
    if (name.starts_with("tekken") && name.ends_with(".json"))
        return openTekken(file);
    return name.ends_with(".json") ? openTokenizerJson(file) : openSentencePiece(file);
}

class WholeText final : public TextStream
{
public:
    explicit WholeText(const Tokenizer& tokenizer)
        : m_tokenizer(tokenizer)
    {
    }

    Result<std::size_t> encode(
        std::string_view text, bool isEnd, std::vector<TokenId>& out) override
    {
        if (!isEnd)
            return std::size_t{0};
        MR_TRY(m_tokenizer.encode(text, out));
        return text.size();
    }

private:
    const Tokenizer& m_tokenizer;
};

} // namespace

std::unique_ptr<TextStream> Tokenizer::stream() const
{
    return std::make_unique<WholeText>(*this);
}

// tokenizer.json comes first, as upstream: it may know tokens that were added later. One that
// cannot be used steps back for a tokenizer.model or tekken.json, which are complete in themselves.
Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const fs::path& path)
{
    MR_ASSIGN(fs::path file, modelFile(path));
    Result<std::unique_ptr<Tokenizer>> opened = openFile(file);
    std::error_code ignored;
    for (const char* name : {"tokenizer.model", "tekken.json"}) {
        const fs::path other = path / name;
        if (opened.ok() || file == other || !fs::exists(other, ignored))
            continue;
        if (Result<std::unique_ptr<Tokenizer>> second = openFile(other); second.ok())
            return second;
    }
    return opened;
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::openFor(const fs::path& path, std::int64_t rows)
{
    Result<std::unique_ptr<Tokenizer>> opened = open(path);
    if (!opened.ok() || opened.value()->vocabulary() <= rows)
        return opened;
    return badTokenizer(
        path, fmt::format("the tokenizer has {} tokens, the model only {} (vocab_size): they do "
                          "not belong together; take the tokenizer files the model was published "
                          "with, or a model whose embedding was resized for the added tokens",
                  opened.value()->vocabulary(), rows));
}

} // namespace mr
