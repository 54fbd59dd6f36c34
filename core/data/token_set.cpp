#include "core/base/thread.h"
#include "core/data/chat_sources.h"
#include "core/data/chat_thoughts.h"
#include "core/data/conversation.h"
#include "core/data/pair_format.h"
#include "core/data/parallel_token_set.h"
#include "core/data/token_set_builder.h"

#include <fmt/format.h>

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
    m_uncutTokens = m_ids.size();
    m_set.cutRows += m_ids.size() > limit ? 1 : 0;
    if (border >= end || end < 2)
        ++m_set.emptyRows;
    else
        return addSequence(0, end, border);
    return {};
}

Status TokenSetBuilder::addText(const Document& document)
{
    if (!m_text) {
        m_text = OpenText();
        m_text->stream = m_tokenizer.stream();
        m_ids.clear();
        if (m_options.specials && m_tokenizer.addsBos())
            m_ids.push_back(m_tokenizer.bos());
    }
    OpenText& text = *m_text;
    const std::size_t before = m_ids.size();
    const std::string_view all =
        text.waiting.empty() ? document.text : text.waiting.append(document.text);
    MR_ASSIGN(std::size_t taken, text.stream->encode(all, !document.goesOn, m_ids));
    text.hasIds |= m_ids.size() > before;
    text.waiting = std::string(all.substr(taken));
    if (document.goesOn)
        return addBlocks(false);
    if (text.hasIds && m_options.specials && m_options.endOfDocument && m_tokenizer.eos() >= 0)
        m_ids.push_back(m_tokenizer.eos());
    if (text.hasIds)
        MR_TRY(addBlocks(true));
    m_set.cutRows += text.isCut ? 1 : 0;
    m_set.emptyRows += text.hasBlocks ? 0 : 1;
    m_text.reset();
    return {};
}

Status TokenSetBuilder::addBlocks(bool all)
{
    const auto stride = static_cast<std::size_t>(m_options.seqLen);
    const std::size_t length = stride + (m_options.overlapTarget ? 1 : 0);
    std::size_t begin = 0;
    for (; begin < m_ids.size() && !m_text->isFull; begin += stride) {
        const std::size_t end = std::min(begin + length, m_ids.size());
        // One token that is left has no target.
        if (end - begin < 2 || (!all && begin + length > m_ids.size()))
            break;
        MR_TRY(addSequence(begin, end, begin + 1));
        m_text->hasBlocks = true;
        m_text->isFull = m_options.firstBlockOnly;
        m_text->isCut |= m_text->isFull && end < m_ids.size();
    }
    m_text->isCut |= m_text->isFull && begin == 0 && !m_ids.empty();
    m_ids.erase(m_ids.begin(),
        m_ids.begin() + static_cast<std::ptrdiff_t>(
                            m_text->isFull ? m_ids.size() : std::min(begin, m_ids.size())));
    return {};
}

Status TokenSetBuilder::openChat()
{
    if (m_chat.has_value())
        return {};
    MR_ASSIGN(ChatFormat format,
        ChatFormat::open(m_options.modelFolder, m_options.chatTemplate, m_tokenizer));
    m_chat.emplace(std::move(format));
    m_takesSystem = m_chat->takesSystem();
    m_readsNoThink = mayReadNoThink(m_options.modelFolder) || m_chat->readsNoThink();
    return {};
}

// The system text goes before the first question where the template has no turn for it.
Status TokenSetBuilder::addPairChat(const Document& document)
{
    MR_TRY(openChat());
    std::vector<ChatTurn> turns = document.history;
    turns.push_back({document.prompt, document.response});
    if (document.system.empty() || m_takesSystem)
        return addChat(pairConversation(document.system, turns), document);
    std::string first = document.system;
    closePrompt(first);
    turns.front().question.insert(0, first);
    return addChat(pairConversation({}, turns), document);
}

// As many sequences as the template needs to write every turn as at its time; a row counts as cut
// or empty once.
Status TokenSetBuilder::addChat(nlohmann::ordered_json conversation, const Document& document)
{
    dropParts(document.drop, conversation);
    const auto& messages = conversation["messages"];
    const bool answered = std::any_of(messages.begin(), messages.end(),
        [](const auto& message) { return message["role"] == "assistant"; });
    if (!answered) {
        ++m_set.emptyRows;
        return {};
    }
    ++m_set.promptRows;
    MR_TRY(openChat());
    if (const ChatParts lost = m_chat->unwritten(conversation); lost.any()) {
        m_set.unwritten.add(lost, {document.row, document.line});
        return {};
    }
    MR_ASSIGN(std::vector<TrainedChat> chats, m_chat->render(conversation));
    m_set.unreadSwitches += !m_readsNoThink && holdsNoThink(conversation) ? 1 : 0;
    const std::size_t before = m_staged.size();
    bool cut = false;
    for (const TrainedChat& chat : chats) {
        MR_ASSIGN(ChatTokens tokens, encodeChat(chat, m_tokenizer));
        countAnswers(chat);
        m_uncutTokens = std::max<std::uint64_t>(m_uncutTokens, tokens.ids.size());
        cut |= tokens.ids.size() > static_cast<std::size_t>(m_options.seqLen) + 1;
        stage(std::move(tokens));
    }
    m_set.cutRows += cut ? 1 : 0;
    m_set.emptyRows += m_staged.size() == before ? 1 : 0;
    return {};
}

void TokenSetBuilder::countAnswers(const TrainedChat& chat)
{
    const std::string text = chat.chat.text();
    for (const TextSpan& span : chat.trained) {
        const std::string_view answer =
            std::string_view(text).substr(span.begin, span.end - span.begin);
        m_set.emptyThoughts += beginsWithEmptyThought(answer) ? 1 : 0;
    }
    m_set.answers += chat.trained.size();
}

void TokenSetBuilder::stage(ChatTokens&& tokens)
{
    const std::size_t end =
        std::min(static_cast<std::size_t>(m_options.seqLen) + 1, tokens.ids.size());
    const auto count = end < 2 ? 0
                               : std::count(tokens.trained.begin() + 1,
                                     tokens.trained.begin() + static_cast<std::ptrdiff_t>(end), 1);
    if (count == 0)
        return;
    tokens.ids.resize(end);
    tokens.trained.resize(end);
    tokens.trained.front() = 0; // nothing before the first token could predict it
    m_set.trainedTokens += static_cast<std::uint64_t>(count);
    m_staged.push_back(std::move(tokens));
}

Status TokenSetBuilder::addStaged()
{
    for (const ChatTokens& tokens : m_staged)
        MR_TRY(m_set.sequences.add(tokens.ids, tokens.trained));
    return {};
}

// A text of several conversations counts as that many rows.
Status TokenSetBuilder::addChatMl(const std::string& text, const Document& document)
{
    MR_ASSIGN(std::vector<nlohmann::ordered_json> read, readChatMl(text));
    m_set.rows += read.size() - 1;
    for (nlohmann::ordered_json& conversation : read)
        MR_TRY(addChat(std::move(conversation), document));
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
        return addChat(nlohmann::ordered_json::parse(document.chat), document);
    if (document.isPair)
        return document.response.empty() || !takesTemplate(document) ? addPair(document)
                                                                     : addPairChat(document);
    const bool isChat =
        !m_chatText.empty() || (!m_text && isChatMl(document.text) && takesTemplate(document));
    if (!isChat)
        return addText(document);
    m_chatText += document.text;
    return document.goesOn ? Status() : addChatMl(std::exchange(m_chatText, {}), document);
}

Status TokenSetBuilder::add(const Document& document)
{
    const TokenCounts before = m_set;
    m_set.rows += m_text || !m_chatText.empty() ? 0 : 1;
    if (!m_text)
        m_ids.clear();
    m_staged.clear();
    m_uncutTokens = 0;
    if (Status done = addRow(document); !done.ok()) {
        static_cast<TokenCounts&>(m_set) = before;
        m_text.reset();
        m_chatText.clear();
        return done;
    }
    MR_TRY(addStaged());
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

// The meaning of the files' columns.
struct Meaning {
    std::vector<std::string> layouts;
    std::map<std::string, std::string> mapping; // first file only
    std::vector<std::string> unused;
};

void addNew(std::vector<std::string>& out, const std::string& name)
{
    if (std::find(out.begin(), out.end(), name) == out.end())
        out.push_back(name);
}

void note(const DatasetShape& shape, Meaning& meaning)
{
    if (meaning.layouts.empty())
        meaning.mapping = shape.map.asMap();
    addNew(meaning.layouts, shape.map.layout);
    for (const std::string& column : unusedColumns(shape.columns, shape.map))
        addNew(meaning.unused, column);
}

void keep(Meaning meaning, TokenSet& set)
{
    for (const std::string& layout : meaning.layouts)
        set.layout += (set.layout.empty() ? "" : "; ") + layout;
    set.mapping = std::move(meaning.mapping);
    set.unusedColumns = std::move(meaning.unused);
}

// Cancelled: `set` or `bad` has something to report.
Status readSource(const DataSource& source, const DatasetShape& shape,
    const TokenSetOptions& options, ParallelTokenSet& set, BadRows& bad)
{
    const auto take = [&](const Document& document) {
        MR_TRY(bad.rowRead());
        return set.add(source, document);
    };
    MR_TRY(readDocuments(source, shape, {options.split, options.perLine}, take,
        [&](const BadRow& row) { return bad.add(source, row); }));
    MR_TRY(set.flush());
    return bad.refusal();
}

} // namespace

Result<TokenSet> buildTokenSet(const std::vector<DataSource>& sources, const Tokenizer& tokenizer,
    const TokenSetOptions& given)
{
    if (given.seqLen < 1)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("the sequence length must be at least 1, not {}", given.seqLen));
    TokenSetOptions options = given;
    MR_TRY(takeTemplate(sources, options));
    Meaning meaning;
    const int threads =
        options.threads > 0 ? options.threads : static_cast<int>(physicalCores().size());
    const auto bad = std::make_shared<BadRows>();
    ParallelTokenSet set(tokenizer, options, threads, *bad);
    for (const DataSource& source : sources) {
        DatasetShape shape;
        MR_TRY(findShape(source, shape));
        MR_TRY(requireTemplate(source.path, shape, options));
        note(shape, meaning);
        if (const Status read = readSource(source, shape, options, set, *bad); !read.ok()) {
            // A row before the one that could not be read may be wrong, too.
            MR_TRY(set.finish().status());
            MR_TRY(bad->refusal());
            return read;
        }
    }
    auto finished = set.finish();
    MR_TRY(finished.status());
    MR_TRY(finished.value().unwritten.check(finished.value().rows));
    keep(std::move(meaning), finished.value());
    finished.value().badRows = bad;
    return finished;
}

} // namespace mr
