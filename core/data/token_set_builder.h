// Documents to sequences with a mask, counted; the work behind buildTokenSet() and the preview.
//
// Threads    Confined to its owner.
// Ownership  Borrows tokenizer and options.
// Errors     InvalidArgument: an id outside what a sequence can hold; what encode() and
//            SequenceStore report.

#pragma once

#include "core/data/batch_stream.h"
#include "core/data/chat_format.h"
#include "core/data/documents.h"

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

    Status add(const Document& document);
    const TokenSet& set() const noexcept { return m_set; }
    // What was added since the last call.
    TokenSet takeSet() { return std::exchange(m_set, TokenSet()); }

private:
    Status addRow(const Document& document);
    Status addPair(const Document& document);
    Status addText(const std::string& text);
    Status openChat();
    Status addPairChat(const Document& document);
    Status addChat(const nlohmann::ordered_json& conversation);
    Status addChatMl(const std::string& text);
    // Whether the row is written by the model's chat template.
    bool takesTemplate(const Document& document);
    Status addChatTokens(const ChatTokens& tokens);
    // Appends ids [begin, end) of m_ids as one sequence; targets from `firstTrained` on.
    Status addSequence(std::size_t begin, std::size_t end, std::size_t firstTrained);

    const Tokenizer& m_tokenizer;
    const TokenSetOptions& m_options;
    TokenSet m_set;
    std::vector<TokenId> m_ids;          // of one document
    std::vector<std::uint8_t> m_trained; // of one sequence
    std::optional<ChatFormat> m_chat;    // once a conversation came
    bool m_takesSystem = false;          // m_chat has a turn for a system text
    std::optional<bool> m_hasTemplate;   // once it was looked for
};

} // namespace mr
