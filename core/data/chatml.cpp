// Conversations written as ChatML in a text.

#include "core/data/conversation.h"
#include "core/data/white_space.h"
#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStart = "<|im_start|>";
constexpr std::string_view kEnd = "<|im_end|>";
constexpr std::string_view kEndOfText = "<|endoftext|>";

// Takes white space and ends of text away; whether there was an end of text.
bool skipBetween(std::string_view& text) noexcept
{
    bool ended = false;
    for (;;) {
        text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
        if (!text.starts_with(kEndOfText))
            return ended;
        text.remove_prefix(kEndOfText.size());
        ended = true;
    }
}

// Reads message after message off a text.
class ChatMlReader
{
public:
    explicit ChatMlReader(std::string_view text)
        : m_rest(text)
    {
    }

    bool startsAnew() noexcept { return skipBetween(m_rest); }
    bool atEnd() const noexcept { return m_rest.empty(); }

    Status next(Json& out)
    {
        ++m_count;
        if (!m_rest.starts_with(kStart))
            return fail("should begin with <|im_start|>, but \"" + excerpt() + "\" stands there");
        m_rest.remove_prefix(kStart.size());
        const std::size_t line = m_rest.find('\n');
        const std::size_t end = m_rest.find(kEnd);
        if (end == std::string_view::npos)
            return fail("has no <|im_end|>");
        if (line > end)
            return fail("has no line feed behind its role");
        std::string_view role = m_rest.substr(0, line);
        role = role.substr(0, role.find_last_not_of(kWhite) + 1);
        const std::string_view content = m_rest.substr(line + 1, end - line - 1);
        if (role.find(kStart) != std::string_view::npos ||
            content.find(kStart) != std::string_view::npos)
            return fail("has a second <|im_start|> before its <|im_end|>");
        out = {{"role", role}, {"content", content}};
        m_rest.remove_prefix(end + kEnd.size());
        return {};
    }

private:
    Status fail(const std::string& message) const
    {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("message {} of the ChatML text {}", m_count, message));
    }
    std::string excerpt() const
    {
        constexpr std::size_t kShownBytes = 24;
        return std::string(firstBytes(m_rest, kShownBytes));
    }

    std::string_view m_rest;
    int m_count = 0;
};

} // namespace

bool isChatMl(std::string_view text) noexcept
{
    skipBetween(text);
    return text.starts_with(kStart);
}

Result<std::vector<Json>> readChatMl(std::string_view text)
{
    ChatMlReader reader(text);
    std::vector<Json> lists;
    bool anew = true;
    (void)reader.startsAnew();
    while (!reader.atEnd()) {
        Json message;
        MR_TRY(reader.next(message));
        if (anew || message["role"].get<std::string>() == "system")
            lists.push_back(Json::array());
        lists.back().push_back(std::move(message));
        anew = reader.startsAnew();
    }
    std::vector<Json> out;
    for (const Json& list : lists) {
        MR_ASSIGN(Json read, readConversation({list.dump(), {}, {}}));
        out.push_back(std::move(read));
    }
    return out;
}

} // namespace mr
