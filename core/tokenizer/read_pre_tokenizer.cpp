// PreTokenizer from its JSON.

#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/pre_tokenizer.h"
#include "core/tokenizer/subword_model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mr {
namespace {

// GPT-2's, which ByteLevel brings along. Source: the published encoder of GPT-2.
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kPunctuation = R"([\p{P}!-/:-@\[-`{-~])";

} // namespace

Result<PreTokenizer> PreTokenizer::read(const JsonNode& node)
{
    PreTokenizer out;
    MR_TRY(out.readInto(node, 0));
    if (out.m_spelled)
        out.m_stages.emplace_back().letters = Letters::Read;
    return out;
}

Result<PreTokenizer::Behaviour> PreTokenizer::readBehaviour(
    const JsonNode& node, Behaviour otherwise)
{
    constexpr std::array<std::pair<std::string_view, Behaviour>, 5> kNames = {
        {{"Removed", Behaviour::Removed}, {"Isolated", Behaviour::Isolated},
            {"MergedWithPrevious", Behaviour::MergedWithPrevious},
            {"MergedWithNext", Behaviour::MergedWithNext}, {"Contiguous", Behaviour::Contiguous}}};
    std::string text;
    MR_TRY(node.read("behavior", text));
    if (!node.has("behavior"))
        return otherwise;
    for (const auto& [name, behaviour] : kNames)
        if (text == name)
            return behaviour;
    return node.fail("behavior \"" + text + "\" is not supported");
}

Status PreTokenizer::addSplit(const JsonNode& node, const std::string& pattern, Behaviour behaviour)
{
    Result<TextRegex> regex = TextRegex::compile(pattern);
    if (!regex.ok())
        return node.fail(regex.status().message());
    Stage stage;
    stage.regex = std::move(regex).value();
    stage.behaviour = behaviour;
    m_stages.push_back(std::move(stage));
    return {};
}

Status PreTokenizer::readSplit(const JsonNode& node)
{
    MR_ASSIGN(std::string pattern, readPattern(node));
    MR_ASSIGN(Behaviour behaviour, readBehaviour(node, Behaviour::Isolated));
    MR_TRY(addSplit(node, pattern, behaviour));
    return node.read("invert", m_stages.back().invert);
}

Status PreTokenizer::readMetaspace(const JsonNode& node)
{
    Stage stage;
    stage.replacement = std::string(kSpaceMark);
    MR_TRY(node.read("replacement", stage.replacement));
    if (stage.replacement.empty())
        return node.fail("replacement is empty");
    stage.prefixText = stage.replacement;
    bool older = true; // files from before prepend_scheme
    MR_TRY(node.read("add_prefix_space", older));
    std::string scheme = older ? "always" : "never";
    MR_TRY(node.read("prepend_scheme", scheme));
    if (scheme != "always" && scheme != "first" && scheme != "never")
        return node.fail("prepend_scheme \"" + scheme + "\" is not supported");
    stage.prefix = scheme == "always"  ? Prefix::Always
                   : scheme == "first" ? Prefix::First
                                       : Prefix::Never;
    bool split = true;
    MR_TRY(node.read("split", split));
    if (split) {
        Result<TextRegex> regex = TextRegex::compile(escapeRegex(stage.replacement));
        if (!regex.ok())
            return node.fail(regex.status().message());
        stage.regex = std::move(regex).value();
        stage.behaviour = Behaviour::MergedWithNext;
    }
    m_stages.push_back(std::move(stage));
    return {};
}

Status PreTokenizer::readByteLevel(const JsonNode& node)
{
    bool prefix = true;
    bool regex = true;
    MR_TRY(node.read("add_prefix_space", prefix));
    MR_TRY(node.read("use_regex", regex));
    if (regex)
        MR_TRY(addSplit(node, kGpt2Pattern, Behaviour::Isolated));
    if (prefix && !regex)
        m_stages.emplace_back();
    if (prefix) {
        m_stages.back().prefixText = " ";
        m_stages.back().prefix = Prefix::Always;
    }
    m_byteLevel = true;
    return {};
}

Status PreTokenizer::readSimple(const JsonNode& node, const std::string& type)
{
    if (type == "Digits") {
        bool individual = false;
        MR_TRY(node.read("individual_digits", individual));
        return addSplit(node, R"(\p{N})", individual ? Behaviour::Isolated : Behaviour::Contiguous);
    }
    if (type == "Punctuation") {
        Result<Behaviour> behaviour = readBehaviour(node, Behaviour::Isolated);
        return behaviour.ok() ? addSplit(node, kPunctuation, behaviour.value())
                              : behaviour.status();
    }
    if (type == "WhitespaceSplit")
        return addSplit(node, R"(\s)", Behaviour::Removed);
    if (type == "CharDelimiterSplit") {
        std::string delimiter;
        MR_TRY(node.require("delimiter", delimiter));
        return addSplit(node, escapeRegex(delimiter), Behaviour::Removed);
    }
    if (type != "Whitespace")
        return node.fail("type \"" + type + "\" is not supported");
    MR_TRY(addSplit(node, R"(\w+|[^\w\s]+)", Behaviour::Removed));
    m_stages.back().invert = true;
    return {};
}

Status PreTokenizer::readInto(const JsonNode& node, int depth)
{
    std::string type;
    MR_TRY(node.require("type", type));
    if (m_byteLevel && (type == "ByteLevel" || type == "Metaspace"))
        return node.fail("type \"" + type + "\" after ByteLevel is not supported");
    if (m_byteLevel && !m_spelled && type != "Sequence") {
        m_spelled = true;
        m_letters = byteLetters();
        m_byteOf.resize(1 + static_cast<std::size_t>(*std::ranges::max_element(m_letters)));
        for (std::size_t byte = 0; byte < m_letters.size(); ++byte)
            m_byteOf[static_cast<std::size_t>(m_letters[byte])] = static_cast<char>(byte);
        m_stages.emplace_back().letters = Letters::Spell;
    }
    if (type == "Split")
        return readSplit(node);
    if (type == "Metaspace")
        return readMetaspace(node);
    if (type == "ByteLevel")
        return readByteLevel(node);
    if (type != "Sequence")
        return readSimple(node, type);
    return readSequence(node, "pretokenizers", depth,
        [this](const JsonNode& part, int at) { return readInto(part, at); });
}

} // namespace mr
