// Documents to sequences with a mask, counted; the work behind buildTokenSet() and the preview.
//
// Threads    Confined to its owner.
// Ownership  Borrows tokenizer and options.
// Errors     InvalidArgument: an id too large for a sequence; the errors of encode() and
//            SequenceStore.

#pragma once

#include "core/data/batch_stream.h"
#include "core/data/chat_format.h"
#include "core/data/documents.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mr {

// The one template that `sources` ask for. InvalidArgument: they ask for several.
Status takeTemplate(const std::vector<DataSource>& sources, TokenSetOptions& options);
// InvalidArgument: conversations, and neither the options nor the model have a template for them.
Status requireTemplate(
    const std::string& path, const DatasetShape& shape, const TokenSetOptions& options);

class TokenSetBuilder
{
public:
    TokenSetBuilder(const Tokenizer& tokenizer, const TokenSetOptions& options)
        : m_tokenizer(tokenizer)
        , m_options(options)
    {
    }

    // On an error nothing of the document is in the set; of a text in pieces, nothing of this one.
    Status add(const Document& document);
    // The next document has the rest of a text.
    bool isInText() const noexcept { return m_text.has_value() || !m_chatText.empty(); }
    // The file of the documents added since the last call.
    void setPath(const std::string& path) { m_set.unwritten.setPath(path); }
    const TokenSet& set() const noexcept { return m_set; }
    // Tokens of the last document's longest sequence before it was cut; 0: a text, which no length
    // cuts.
    std::uint64_t uncutTokens() const noexcept { return m_uncutTokens; }
    // Takes out the sequences added since the last call.
    TokenSet takeSet() { return std::exchange(m_set, TokenSet()); }

private:
    Status addRow(const Document& document);
    Status addPair(const Document& document);
    // A piece of a text; the last one if it does not go on.
    Status addText(const Document& document);
    // Adds the blocks of m_ids that are full; with `all` the rest, too.
    Status addBlocks(bool all);
    Status openChat();
    Status addPairChat(const Document& document);
    // `document`: the row that it comes from.
    Status addChat(nlohmann::ordered_json conversation, const Document& document);
    Status addChatMl(const std::string& text, const Document& document);
    // Whether the row is written by the model's chat template.
    bool takesTemplate(const Document& document);
    void countAnswers(const TrainedChat& chat);
    // Keeps a sequence of a conversation until all of its row could be written.
    void stage(ChatTokens&& tokens);
    Status addStaged();
    // Appends ids [begin, end) of m_ids as one sequence; targets from `firstTrained` on.
    Status addSequence(std::size_t begin, std::size_t end, std::size_t firstTrained);

    const Tokenizer& m_tokenizer;
    const TokenSetOptions& m_options;
    TokenSet m_set;
    std::uint64_t m_uncutTokens = 0;
    // A text that is not at its end.
    struct OpenText {
        std::unique_ptr<TextStream> stream;
        std::string waiting; // text that the stream did not take
        bool hasIds = false; // the text itself gave some ids
        bool hasBlocks = false;
        bool isFull = false; // it has its only block
        bool isCut = false;  // and text behind that
    };
    std::optional<OpenText> m_text;
    std::string m_chatText;              // ChatML so far
    std::vector<TokenId> m_ids;          // the current document's
    std::vector<std::uint8_t> m_trained; // the current sequence's
    std::optional<ChatFormat> m_chat;    // once a conversation came
    bool m_takesSystem = false;          // m_chat has a turn for a system text
    bool m_readsNoThink = true;          // the model does, or it is not known
    std::optional<bool> m_hasTemplate;   // once it was looked for
    std::vector<ChatTokens> m_staged;    // the current row's
};

} // namespace mr
