#include "core/data/chat_template.h"

#include "core/template/evaluator.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kRoles{
    "system", "developer", "user", "assistant", "model", "tool", "ipython", "function"};

// A message with its role as the template's own word.
tpl::Value withPlainRole(const tpl::Value& message)
{
    if (!message.is(tpl::Kind::Dict))
        return message;
    tpl::Pairs pairs = message.pairs();
    for (auto& [key, value] : pairs) {
        const bool role = key.text().bytes() == "role" && value.is(tpl::Kind::String);
        if (role && std::find(kRoles.begin(), kRoles.end(), value.text().bytes()) != kRoles.end())
            value = tpl::Value::string(value.text().bytes());
    }
    return tpl::Value::dict(std::move(pairs));
}

tpl::Value withPlainRoles(const tpl::Value& messages)
{
    if (!messages.is(tpl::Kind::List))
        return messages;
    tpl::Items items;
    for (const tpl::Value& message : messages.items())
        items.push_back(withPlainRole(message));
    return tpl::Value::list(std::move(items));
}

RenderedChat asChat(const tpl::Text& text)
{
    RenderedChat out;
    std::size_t begin = 0;
    for (const tpl::Text::Run& run : text.runs()) {
        const bool controls = (run.flags & tpl::kFromData) == 0;
        const std::string piece = text.bytes().substr(begin, run.end - begin);
        if (!out.pieces.empty() && out.pieces.back().controls == controls)
            out.pieces.back().text += piece;
        else
            out.pieces.push_back({piece, controls});
        if ((run.flags & tpl::kTrained) != 0) {
            if (!out.generated.empty() && out.generated.back().end == begin)
                out.generated.back().end = run.end;
            else
                out.generated.push_back({begin, run.end});
        }
        begin = run.end;
    }
    return out;
}

bool holdsGeneration(const tpl::Node& node)
{
    return node.op == tpl::Op::Generation ||
           std::any_of(node.children.begin(), node.children.end(), [](const tpl::NodePtr& child) {
               return child != nullptr && holdsGeneration(*child);
           });
}

} // namespace

struct ChatTemplate::Tree {
    tpl::NodePtr root;
    bool marksGeneration = false;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Tree> tree)
    : m_tree(std::move(tree))
{
}

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

std::string RenderedChat::text() const
{
    std::string out;
    for (const ChatPiece& piece : pieces)
        out += piece.text;
    return out;
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source)
{
    MR_ASSIGN(tpl::NodePtr root, tpl::parseTemplate(source));
    const bool marks = holdsGeneration(*root);
    return ChatTemplate(std::make_unique<const Tree>(Tree{std::move(root), marks}));
}

bool ChatTemplate::marksGeneration() const noexcept
{
    return m_tree->marksGeneration;
}

Result<RenderedChat> ChatTemplate::render(const Json& variables, const ChatOptions& options) const
{
    std::vector<std::pair<std::string, tpl::Value>> names;
    for (const auto& [name, json] : variables.items()) {
        Result<tpl::Value> value = tpl::fromJson(json);
        if (!value.ok())
            return value.status();
        names.emplace_back(
            name, name == "messages" ? withPlainRoles(value.value()) : value.value());
    }
    names.emplace_back("add_generation_prompt", tpl::Value::boolean(options.addGenerationPrompt));
    for (const auto& [name, token] : options.tokens)
        names.emplace_back(name, tpl::Value::string(token));
    for (const char* absent : {"tools", "documents"})
        if (!variables.contains(absent))
            names.emplace_back(absent, tpl::Value::none());
    tpl::Limits limits;
    limits.work = options.work;
    tpl::Evaluator evaluator(limits, options.now);
    tpl::Text out;
    MR_TRY(evaluator.render(*m_tree->root, std::move(names), out));
    return asChat(out);
}

} // namespace mr
