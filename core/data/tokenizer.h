// Tokenizer: text to ids and back. One implementation per family; SentencePiece here.
//
// Text never turns into control tokens: "</s>" in a document is four or so ordinary pieces.
//
// Threads  const functions may be called from any number of threads at once.
// Errors   open(): InvalidArgument names the file and what is wrong or missing.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

using TokenId = std::int32_t;

class Tokenizer
{
public:
    // `path`: a model folder, or a tokenizer file. BOS and EOS habits come from
    // tokenizer_config.json (add_bos_token, add_eos_token) where it exists; without it BOS is
    // added and EOS is not, as Llama's tokenizer does.
    static Result<std::unique_ptr<Tokenizer>> open(const std::filesystem::path& path);

    virtual ~Tokenizer() = default;

    virtual std::string_view kind() const noexcept = 0; // "sentencepiece"
    virtual std::int64_t vocabulary() const noexcept = 0;
    virtual TokenId bos() const noexcept = 0; // -1: none
    virtual TokenId eos() const noexcept = 0; // -1: none
    virtual bool addsBos() const noexcept = 0;
    // Whether the model's own habit is to end every text with EOS (`millrace tokenize` follows it;
    // training documents always end with EOS).
    virtual bool addsEos() const noexcept { return false; }

    // Appends the ids of `text`, without BOS or EOS. Equal to encoding the text whole, however
    // long it is (long text is cut at line ends where that is provably the same).
    virtual Status encode(std::string_view text, std::vector<TokenId>& out) const = 0;

    // Control tokens are left out; ids outside the vocabulary are InvalidArgument.
    virtual Result<std::string> decode(std::span<const TokenId> ids) const = 0;

    // One token as the user should see it ("▁the", "<0x0A>", "<s>").
    virtual std::string piece(TokenId id) const = 0;
};

} // namespace mr
