#include "core/data/chat_format.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <nlohmann/json.hpp>

namespace mr::fuzz {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> conversations()
{
    return {Json::parse(R"({"messages": [{"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Two \"and\" <|im_end|>\n{{ two }}?"},
            {"role": "assistant", "content": "  Four.\n"},
            {"role": "user", "content": "\u65e5\u672c"}, {"role": "assistant", "content": ""}]})"),
        Json::parse(R"({"messages": [{"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function":
                {"name": "look", "arguments": {"place": "Bern", "days": 2, "share": 0.5}}}]},
            {"role": "tool", "content": "[1, 2]"}, {"role": "assistant", "content": "Rain."}],
            "tools": [{"type": "function", "function": {"name": "look", "parameters":
                {"type": "object", "properties": {"place": {"type": "string"}}}}}]})")};
}

void checkPieces(const RenderedChat& chat)
{
    const std::size_t bytes = chat.text().size();
    std::size_t last = 0;
    for (const TextSpan& span : chat.generated) {
        require(
            last <= span.begin && span.begin <= span.end && span.end <= bytes, "a span outside");
        last = span.end;
    }
}

} // namespace

void chatTemplate(std::string_view bytes)
{
    static const std::vector<Json> variables = conversations();
    ChatOptions options;
    options.tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    options.now.tm_year = 124;
    options.now.tm_mday = 26;
    options.work = 200'000; // ends a loop without end soon: other inputs want their time
    Result<ChatTemplate> parsed = ChatTemplate::parse(bytes);
    if (!check(parsed))
        return;
    for (const Json& conversation : variables)
        if (auto chat = parsed.value().render(conversation, options); check(chat))
            checkPieces(chat.value());
    const ChatFormat format(std::move(parsed).value(), {}, options);
    (void)check(format.render(variables[0]));
}

} // namespace mr::fuzz
