#include "core/base/thread.h"
#include "core/data/conversation.h"
#include "core/data/pair_format.h"
#include "core/data/parallel_token_set.h"
#include "core/data/token_set_builder.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {

Status TokenSetBuilder::addSequence(std::size_t begin, std::size_t end, std::size_t firstTrained)
{
    // The first token of a sequence has nothing before it that could predict it.
    const std::size_t from = std::clamp(firstTrained, begin + 1, end);
    m_trained.assign(end - begin, 1);
    std::fill_n(m_trained.begin(), from - begin, std::uint8_t{0});
    m_set.trainedTokens += end - from;
    return m_set.sequences.add(std::span(m_ids).subspan(begin, end - begin), m_trained);
}

Status TokenSetBuilder::addPair(const Document& document)
{
    const auto limit = static_cast<std::size_t>(m_options.seqLen) + 1;
    if (m_options.specials)
        MR_TRY(encodePrompt(m_tokenizer, joinedPrompt(document), m_ids));
    else
        MR_TRY(m_tokenizer.encode(joinedPrompt(document), m_ids));
    const std::size_t border = m_ids.size();
    if (!document.response.empty()) {
        ++m_set.promptRows;
        MR_TRY(m_tokenizer.encode(document.response, m_ids));
        if (m_options.specials && m_tokenizer.eos() >= 0)
            m_ids.push_back(m_tokenizer.eos());
    }
    const std::size_t end = std::min(limit, m_ids.size());
    m_set.cutRows += m_ids.size() > limit ? 1 : 0;
    if (border >= end || end < 2)
        ++m_set.emptyRows;
    else
        return addSequence(0, end, border);
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
        MR_TRY(addSequence(begin, end, begin + 1));
        any = true;
        if (m_options.firstBlockOnly) {
            m_set.cutRows += end < m_ids.size() ? 1 : 0;
            break;
        }
    }
    m_set.emptyRows += any ? 0 : 1;
    return {};
}

Status TokenSetBuilder::openChat()
{
    if (m_chat.has_value())
        return {};
    Result<ChatFormat> format =
        ChatFormat::open(m_options.modelFolder, m_options.chatTemplate, m_tokenizer);
    if (!format.ok())
        return format.status();
    m_chat.emplace(std::move(format).value());
    m_takesSystem = m_chat->takesSystem();
    return {};
}

// The system text goes before the first question where the template has no turn for it.
Status TokenSetBuilder::addPairChat(const Document& document)
{
    MR_TRY(openChat());
    std::vector<ChatTurn> turns = document.history;
    turns.push_back({document.prompt, document.response});
    if (document.system.empty() || m_takesSystem)
        return addChat(pairConversation(document.system, turns));
    std::string first = document.system;
    closePrompt(first);
    turns.front().question.insert(0, first);
    return addChat(pairConversation({}, turns));
}

// As many sequences as the template needs to write every turn as at its time; a row counts as cut
// or empty once.
Status TokenSetBuilder::addChat(const nlohmann::ordered_json& conversation)
{
    const auto& messages = conversation["messages"];
    const bool answered = std::any_of(messages.begin(), messages.end(),
        [](const auto& message) { return message["role"] == "assistant"; });
    if (!answered) {
        ++m_set.emptyRows;
        return {};
    }
    ++m_set.promptRows;
    MR_TRY(openChat());
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
        MR_TRY(addChatTokens(tokens.value()));
    }
    m_set.cutRows += cut ? 1 : 0;
    m_set.emptyRows += m_set.count() == before ? 1 : 0;
    return {};
}

Status TokenSetBuilder::addChatTokens(const ChatTokens& tokens)
{
    const std::size_t end =
        std::min(static_cast<std::size_t>(m_options.seqLen) + 1, tokens.ids.size());
    const auto count = end < 2 ? 0
                               : std::count(tokens.trained.begin() + 1,
                                     tokens.trained.begin() + static_cast<std::ptrdiff_t>(end), 1);
    if (count == 0)
        return {};
    m_trained.assign(
        tokens.trained.begin(), tokens.trained.begin() + static_cast<std::ptrdiff_t>(end));
    m_trained.front() = 0; // nothing before the first token could predict it
    m_set.trainedTokens += static_cast<std::uint64_t>(count);
    return m_set.sequences.add(std::span(tokens.ids).first(end), m_trained);
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
        m_hasTemplate = !m_options.chatTemplate.empty() || ChatFormat::isIn(m_options.modelFolder);
    return *m_hasTemplate;
}

Status TokenSetBuilder::addRow(const Document& document)
{
    if (!document.chat.empty())
        return addChat(nlohmann::ordered_json::parse(document.chat));
    const bool plain = document.isPair ? document.response.empty() : !isChatMl(document.text);
    if (plain || !takesTemplate(document))
        return document.isPair ? addPair(document) : addText(document.text);
    return document.isPair ? addPairChat(document) : addChatMl(document.text);
}

Status TokenSetBuilder::add(const Document& document)
{
    ++m_set.rows;
    m_ids.clear();
    MR_TRY(addRow(document));
    if (m_set.count() >= std::numeric_limits<std::uint32_t>::max())
        return Status::error(ErrorKind::InvalidArgument,
            "the dataset makes more than 4,294,967,294 sequences; use a part of it");
    return {};
}

Status takeTemplate(const std::vector<DataSource>& sources, TokenSetOptions& options)
{
    for (const DataSource& source : sources) {
        const std::string asked = templateAsked(source);
        if (!asked.empty() && !options.chatTemplate.empty() && asked != options.chatTemplate)
            return Status::error(ErrorKind::InvalidArgument,
                source.path + ": asks for another chat template than the files before it; a model "
                              "is taught one");
        if (!asked.empty())
            options.chatTemplate = asked;
    }
    return {};
}

Status requireTemplate(
    const std::string& path, const DatasetShape& shape, const TokenSetOptions& options)
{
    if (!shape.isChat() || !options.chatTemplate.empty() || options.modelFolder.empty() ||
        ChatFormat::isIn(options.modelFolder))
        return {};
    return Status::error(
        ErrorKind::InvalidArgument, path + ": holds conversations, and " +
                                        ChatFormat::open(options.modelFolder).status().message());
}

namespace {

void noteUnused(const DatasetShape& shape, std::vector<std::string>& out)
{
    for (std::string& column : unusedColumns(shape.columns, shape.map))
        if (std::find(out.begin(), out.end(), column) == out.end())
            out.push_back(std::move(column));
}

} // namespace

Result<TokenSet> buildTokenSet(const std::vector<DataSource>& sources, const Tokenizer& tokenizer,
    const TokenSetOptions& given)
{
    if (given.seqLen < 1)
        return Status::error(ErrorKind::InvalidArgument,
            "the sequence length must be at least 1, not " + std::to_string(given.seqLen));
    TokenSetOptions options = given;
    MR_TRY(takeTemplate(sources, options));
    std::vector<std::string> unused;
    const int threads =
        options.threads > 0 ? options.threads : static_cast<int>(physicalCores().size());
    ParallelTokenSet set(tokenizer, options, threads);
    for (const DataSource& source : sources) {
        DatasetShape shape;
        MR_TRY(findShape(source, shape));
        MR_TRY(requireTemplate(source.path, shape, options));
        noteUnused(shape, unused);
        const Status read = readDocuments(source, shape, {options.split, options.perLine},
            [&](const Document& document) { return set.add(source, document); });
        if (!read.ok() && read.kind() != ErrorKind::Cancelled) {
            // A row before the one that could not be read may be wrong, too.
            auto before = set.finish();
            return before.ok() ? read : before.status();
        }
        if (!read.ok())
            break;
    }
    auto finished = set.finish();
    if (!finished.ok())
        return finished;
    finished.value().unusedColumns = std::move(unused);
    return finished;
}

} // namespace mr
