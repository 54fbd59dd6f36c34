// Tokenizer: text to ids and back. Two implementations: SentencePiece's files through its library,
// and BPE and Unigram of our own for tokenizer.json, Mistral's tekken.json and GPT-2's vocab.json
// with merges.txt.
//
// Text never turns into control tokens: "</s>" in a document is four or so ordinary pieces.
//
// Threads  const functions may be called from any number of threads at once.
// Errors   open(): InvalidArgument names the file that is wrong or missing.

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

// A part of a text. Control tokens ("<|im_end|>", "<s>") are found only in parts that say so: a
// chat template's own words, never text that a person wrote.
struct TextPart {
    std::string_view text;
    bool controls = false;
};

// A text that comes in pieces from front to back and is encoded as if it came whole.
//
// Threads    Confined to its owner.
// Ownership  Borrows its tokenizer.
class TextStream
{
public:
    virtual ~TextStream() = default;

    // `text`, which is UTF-8, is the text that earlier calls did not take, with the text since;
    // `isEnd`: nothing comes behind it. Appends the ids that nothing behind it can change. Returns
    // the number of bytes taken, those of the ids; at the end it takes all.
    virtual Result<std::size_t> encode(
        std::string_view text, bool isEnd, std::vector<TokenId>& out) = 0;
};

class Tokenizer
{
public:
    // `path`: a model folder, or a tokenizer file. BOS and EOS habits come from
    // tokenizer_config.json (add_bos_token, add_eos_token) where it exists; without it a
    // SentencePiece model adds BOS and not EOS, as Llama's tokenizer does. The post-processor of a
    // tokenizer.json comes before tokenizer_config.json, as upstream.
    static Result<std::unique_ptr<Tokenizer>> open(const std::filesystem::path& path);

    // open() for a model whose embedding has `rows` rows. A tokenizer with more ids than that is
    // InvalidArgument: looking one of them up would read beyond the table.
    static Result<std::unique_ptr<Tokenizer>> openFor(
        const std::filesystem::path& path, std::int64_t rows);

    virtual ~Tokenizer() = default;

    // "sentencepiece", "bpe", "unigram", "tekken"
    virtual std::string_view kind() const noexcept = 0;
    // A sentence that the user should read: files beside each other that disagree. Empty: none.
    virtual std::string_view note() const noexcept { return {}; }
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

    // For texts larger than memory. A tokenizer that cannot tell its ids apart anywhere takes the
    // text whole at the end.
    virtual std::unique_ptr<TextStream> stream() const;

    // Appends the ids of the parts joined: control tokens are cut out first, the text between two
    // of them is encoded as one text. A control token counts only if all its bytes lie in parts
    // with controls; added tokens that are not special count in all text, here and in encode().
    // `ends`: for each id appended, the offset in the joined text behind its last byte; it never
    // falls, and a token that stands for no byte of its own ends with the one after it.
    virtual Status encodeParts(std::span<const TextPart> parts, std::vector<TokenId>& ids,
        std::vector<std::size_t>& ends) const = 0;

    // Control tokens are left out; ids outside the vocabulary are InvalidArgument.
    virtual Result<std::string> decode(std::span<const TokenId> ids) const = 0;

    // One token as the user should see it ("▁the", "<0x0A>", "<s>").
    virtual std::string piece(TokenId id) const = 0;
};

} // namespace mr
