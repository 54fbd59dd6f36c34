#include "core/tokenizer/replacement.h"

#include "core/tokenizer/unicode_text.h"

#include <utility>
#include <vector>

namespace mr {
namespace {

constexpr int kMaxSequenceDepth = 8;

} // namespace

Result<std::string> readPattern(const JsonNode& node)
{
    std::string text;
    if (!node.has("pattern") || !node.at("pattern").value().is_object())
        return node.fail("pattern must be {\"String\": ...} or {\"Regex\": ...}");
    const JsonNode pattern = node.at("pattern");
    MR_TRY(pattern.read("Regex", text));
    if (pattern.has("Regex"))
        return text;
    MR_TRY(pattern.require("String", text));
    if (text.empty())
        return pattern.fail("String is empty");
    return escapeRegex(text);
}

Result<Replacement> readReplacement(const JsonNode& node)
{
    Result<std::string> pattern = readPattern(node);
    MR_TRY(pattern.status());
    Replacement out;
    MR_TRY(node.require("content", out.with));
    Result<TextRegex> regex = TextRegex::compile(pattern.value());
    if (!regex.ok())
        return node.fail(regex.status().message());
    out.regex = std::move(regex).value();
    out.isRunOfSpaces = pattern.value() == " {2,}" || pattern.value() == " +";
    std::string literal;
    MR_TRY(node.at("pattern").read("String", literal));
    out.isOneCharacter = !literal.empty() && characterAt(literal, 0).bytes == literal.size();
    return out;
}

Status readSequence(const JsonNode& node, const char* field, int depth,
    const std::function<Status(const JsonNode& part, int depth)>& read)
{
    std::vector<JsonNode> parts;
    MR_TRY(node.elements(field, parts));
    if (depth == kMaxSequenceDepth)
        return node.fail("Sequence within Sequence too often");
    for (const JsonNode& part : parts)
        MR_TRY(read(part, depth + 1));
    return {};
}

} // namespace mr
