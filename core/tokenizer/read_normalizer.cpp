// TextNormalizer from its JSON.

#include "core/tokenizer/base64.h"
#include "core/tokenizer/text_normalizer.h"

#include <utf8proc.h>

#include <utility>

namespace mr {

Status TextNormalizer::readPrecompiled(const JsonNode& node)
{
    std::string text;
    std::string bytes;
    MR_TRY(node.require("precompiled_charsmap", text));
    if (!decodeBase64(text, bytes))
        return node.at("precompiled_charsmap").fail("is no base64");
    Result<PrecompiledCharsmap> map = PrecompiledCharsmap::read(bytes);
    if (!map.ok())
        return node.at("precompiled_charsmap").fail(map.status().message());
    return m_steps.emplace_back(Precompiled(std::move(map).value())), Status();
}

Result<TextNormalizer> TextNormalizer::read(const JsonNode& node)
{
    TextNormalizer out;
    MR_TRY(out.readInto(node, 0));
    return out;
}

Status TextNormalizer::readInto(const JsonNode& node, int depth)
{
    constexpr int kCompose = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    constexpr int kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    constexpr std::pair<const char*, int> kForms[] = {{"NFC", kCompose}, {"NFD", kDecompose},
        {"NFKC", kCompose | UTF8PROC_COMPAT}, {"NFKD", kDecompose | UTF8PROC_COMPAT}};
    std::string type;
    MR_TRY(node.require("type", type));
    for (const auto& [name, options] : kForms)
        if (type == name)
            return m_steps.emplace_back(makeForm(options)), Status();
    if (type == "Sequence")
        return readSequence(node, "normalizers", depth,
            [this](const JsonNode& part, int at) { return readInto(part, at); });
    if (type == "Lowercase")
        return m_steps.emplace_back(Lowercase{}), Status();
    if (type == "StripAccents")
        return m_steps.emplace_back(StripAccents{}), Status();
    if (type == "Nmt")
        return m_steps.emplace_back(Nmt{}), Status();
    if (type == "Precompiled")
        return readPrecompiled(node);
    if (type == "Strip") {
        Strip strip;
        MR_TRY(node.read("strip_left", strip.left));
        MR_TRY(node.read("strip_right", strip.right));
        return m_steps.emplace_back(strip), Status();
    }
    if (type == "Prepend") {
        Prepend prepend;
        MR_TRY(node.require("prepend", prepend.text));
        return m_steps.emplace_back(std::move(prepend)), Status();
    }
    if (type != "Replace")
        return node.fail("type \"" + type + "\" is not supported");
    MR_ASSIGN(Replacement replacement, readReplacement(node));
    return m_steps.emplace_back(std::move(replacement)), Status();
}

} // namespace mr
