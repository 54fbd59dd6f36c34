#include "core/data/conversation.h"
#include "core/data/pair_format.h"
#include "core/data/token_set_builder.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {

void TokenSetBuilder::addSequence(std::size_t begin, std::size_t end, std::size_t firstTrained)
{
    const auto at = [this](
                        std::size_t i) { return m_ids.begin() + static_cast<std::ptrdiff_t>(i); };
    m_set.tokens.insert(m_set.tokens.end(), at(begin), at(end));
    // The first token of a sequence has nothing before it that could predict it.
    const std::size_t from = std::clamp(firstTrained, begin + 1, end);
    m_set.trained.resize(m_set.trained.size() + (from - begin), 0);
    m_set.trained.resize(m_set.tokens.size(), 1);
    m_set.trainedTokens += end - from;
    m_set.starts.push_back(m_set.tokens.size());
}

Status TokenSetBuilder::addPair(const Document& document)
{
    const auto limit = static_cast<std::size_t>(m_options.seqLen) + 1;
    if (m_options.specials)
        MR_TRY(encodePrompt(m_tokenizer, document.prompt, m_ids));
    else
        MR_TRY(m_tokenizer.encode(document.prompt, m_ids));
    const std::size_t border = m_ids.size();
    if (!document.response.empty()) {
        MR_TRY(m_tokenizer.encode(document.response, m_ids));
        if (m_options.specials && m_tokenizer.eos() >= 0)
            m_ids.push_back(m_tokenizer.eos());
    }
    const std::size_t end = std::min(limit, m_ids.size());
    m_set.cutRows += m_ids.size() > limit ? 1 : 0;
    if (border >= end || end < 2)
        ++m_set.emptyRows;
    else
        addSequence(0, end, border);
    return {};
}

Status TokenSetBuilder::addText(const std::string& text)
{
    if (m_options.specials && m_tokenizer.addsBos())
        m_ids.push_back(m_tokenizer.bos());
    const std::size_t before = m_ids.size();
    MR_TRY(m_tokenizer.encode(text, m_ids));
    if (m_ids.size() == before) {
        ++m_set.emptyRows;
        return {};
    }
    if (m_options.specials && m_options.endOfDocument && m_tokenizer.eos() >= 0)
        m_ids.push_back(m_tokenizer.eos());
    const auto stride = static_cast<std::size_t>(m_options.seqLen);
    const std::size_t length = stride + (m_options.overlapTarget ? 1 : 0);
    bool any = false;
    for (std::size_t begin = 0; begin < m_ids.size(); begin += stride) {
        const std::size_t end = std::min(begin + length, m_ids.size());
        if (end - begin < 2)
            break; // one token left: no target
        addSequence(begin, end, begin + 1);
        any = true;
        if (m_options.firstBlockOnly) {
            m_set.cutRows += end < m_ids.size() ? 1 : 0;
            break;
        }
    }
    m_set.emptyRows += any ? 0 : 1;
    return {};
}

// As many sequences as the template needs to write every turn as at its time; a row counts as cut
// or empty once.
Status TokenSetBuilder::addChat(const nlohmann::ordered_json& conversation)
{
    if (!m_chat.has_value()) {
        Result<ChatFormat> format = ChatFormat::open(m_options.modelFolder);
        if (!format.ok())
            return format.status();
        m_chat.emplace(std::move(format).value());
    }
    Result<std::vector<TrainedChat>> chats = m_chat->render(conversation);
    if (!chats.ok())
        return chats.status();
    const std::int64_t before = m_set.count();
    bool cut = false;
    for (const TrainedChat& chat : chats.value()) {
        Result<ChatTokens> tokens = encodeChat(chat, m_tokenizer);
        if (!tokens.ok())
            return tokens.status();
        cut |= tokens.value().ids.size() > static_cast<std::size_t>(m_options.seqLen) + 1;
        addChatTokens(tokens.value());
    }
    m_set.cutRows += cut ? 1 : 0;
    m_set.emptyRows += m_set.count() == before ? 1 : 0;
    return {};
}

void TokenSetBuilder::addChatTokens(const ChatTokens& tokens)
{
    const std::size_t end =
        std::min(static_cast<std::size_t>(m_options.seqLen) + 1, tokens.ids.size());
    const auto count = end < 2 ? 0
                               : std::count(tokens.trained.begin() + 1,
                                     tokens.trained.begin() + static_cast<std::ptrdiff_t>(end), 1);
    if (count == 0)
        return;
    m_set.tokens.insert(m_set.tokens.end(), tokens.ids.begin(),
        tokens.ids.begin() + static_cast<std::ptrdiff_t>(end));
    m_set.trained.push_back(0); // nothing before the first token could predict it
    m_set.trained.insert(m_set.trained.end(), tokens.trained.begin() + 1,
        tokens.trained.begin() + static_cast<std::ptrdiff_t>(end));
    m_set.trainedTokens += static_cast<std::uint64_t>(count);
    m_set.starts.push_back(m_set.tokens.size());
}

// A text of several conversations counts as that many rows.
Status TokenSetBuilder::addChatMl(const std::string& text)
{
    Result<std::vector<nlohmann::ordered_json>> read = readChatMl(text);
    if (!read.ok())
        return read.status();
    m_set.rows += read.value().size() - 1;
    for (const nlohmann::ordered_json& conversation : read.value())
        MR_TRY(addChat(conversation));
    return {};
}

bool TokenSetBuilder::takesTemplate(const Document& document)
{
    if (document.style != RowStyle::Auto || !m_options.specials)
        return document.style == RowStyle::Template;
    if (!m_hasTemplate.has_value())
        m_hasTemplate = ChatFormat::isIn(m_options.modelFolder);
    return *m_hasTemplate;
}

Status TokenSetBuilder::addRow(const Document& document)
{
    if (!document.chat.empty())
        return addChat(nlohmann::ordered_json::parse(document.chat));
    const bool plain = document.isPair ? document.response.empty() : !isChatMl(document.text);
    if (plain || !takesTemplate(document))
        return document.isPair ? addPair(document) : addText(document.text);
    return document.isPair ? addChat(pairConversation(document.prompt, document.response))
                           : addChatMl(document.text);
}

Status TokenSetBuilder::add(const Document& document)
{
    ++m_set.rows;
    m_ids.clear();
    MR_TRY(addRow(document));
    if (m_set.starts.size() > std::numeric_limits<std::uint32_t>::max())
        return Status::error(ErrorKind::InvalidArgument,
            "the dataset makes more than 4,294,967,294 sequences; use a part of it");
    return {};
}

Result<TokenSet> buildTokenSet(const std::vector<DataSource>& sources, const Tokenizer& tokenizer,
    const TokenSetOptions& options)
{
    if (options.seqLen < 1)
        return Status::error(ErrorKind::InvalidArgument,
            "the sequence length must be at least 1, not " + std::to_string(options.seqLen));
    TokenSetBuilder builder(tokenizer, options);
    for (const DataSource& source : sources) {
        DatasetShape shape;
        MR_TRY(findShape(source, shape));
        MR_TRY(readDocuments(source, shape, {options.split, options.perLine},
            [&](const Document& document) { return builder.add(document); }));
    }
    return std::move(builder).take();
}

} // namespace mr
