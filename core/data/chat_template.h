// Chat templates: how the model that is trained wants a conversation to be written.
//
// Published models carry a Jinja program for it. Millrace runs the subset of Jinja that such
// programs use (template_*.h) and refuses the rest by name and line, because a conversation that is
// written a little differently trains the wrong thing without any sign of it.
//
// Threads    const functions may be called from any number of threads at once.
// Ownership  Owns the parsed template.
// Errors     InvalidArgument names the line of the template and the construct that is not
//            supported, or carries the words of the template's raise_exception().

#pragma once

#include <millrace/status.h>

#include <cstddef>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

// A run of text from one source. Text of the template itself may hold control tokens
// ("<|im_end|>"); text of the data never does, even if it spells one.
struct ChatPiece {
    std::string text;
    bool controls = false;
};

struct TextSpan {
    std::size_t begin = 0; // bytes of the joined text
    std::size_t end = 0;   // not included
};

struct RenderedChat {
    std::vector<ChatPiece> pieces;
    std::vector<TextSpan> generated; // inside {% generation %}, ascending and apart

    std::string text() const;
};

struct ChatOptions {
    bool addGenerationPrompt = false;
    // Names of special tokens and their text: "bos_token" and so on. A name that is not here is not
    // defined for the template.
    std::map<std::string, std::string> tokens;
    std::tm now{};         // time for strftime_now(); fixed for a run, so that it can be repeated
    int work = 10'000'000; // steps of one rendering; a conversation may be rendered once per turn
};

// Writes a conversation; with `prompt` up to where the model goes on.
using RenderChat =
    std::function<Result<RenderedChat>(const nlohmann::ordered_json& variables, bool prompt)>;

class ChatTemplate
{
public:
    static Result<ChatTemplate> parse(std::string_view source);

    ChatTemplate(ChatTemplate&&) noexcept;
    ChatTemplate& operator=(ChatTemplate&&) noexcept;
    ~ChatTemplate();

    // `variables` is an object: "messages", perhaps "tools", and any other name the template asks
    // for. The role of a message counts as the template's word: templates build control tokens out
    // of it ('<|' + role + '|>'), so known roles are let through as such, and any other stays data.
    Result<RenderedChat> render(
        const nlohmann::ordered_json& variables, const ChatOptions& options) const;

    // Whether the template itself marks its trained text, by {% generation %}.
    bool marksGeneration() const noexcept;

private:
    struct Tree;
    explicit ChatTemplate(std::unique_ptr<const Tree> tree);

    std::unique_ptr<const Tree> m_tree;
};

} // namespace mr
