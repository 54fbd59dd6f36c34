#include "core/tokenizer/token_decoder.h"

#include "core/tokenizer/bpe_model.h"
#include "core/tokenizer/unicode_text.h"

#include <charconv>

namespace mr {
namespace {

// The byte of "<0xNN>", or -1.
int byteOf(std::string_view text)
{
    int value = -1;
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
        return -1;
    const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
    return error == std::errc() && end == text.data() + 5 ? value : -1;
}

std::string replaceAll(std::string_view text, std::string_view from, std::string_view to)
{
    std::string out;
    std::size_t at = 0;
    for (std::size_t next = text.find(from); next != std::string_view::npos;
         next = text.find(from, at)) {
        out.append(text.substr(at, next - at)).append(to);
        at = next + from.size();
    }
    return out.append(text.substr(at));
}

std::size_t bytesOf(const std::vector<TokenDecoder::Token>& tokens)
{
    std::size_t bytes = 0;
    for (const TokenDecoder::Token& token : tokens)
        bytes += token.text.size();
    return bytes;
}

} // namespace

Status TokenDecoder::run(const ByteLevel& step, std::vector<Token>& tokens, std::size_t)
{
    for (Token& token : tokens) {
        std::string raw;
        bool all = !token.literal;
        for (std::size_t at = 0; at < token.text.size() && all;) {
            const Character c = characterAt(token.text, at);
            const auto byte = step.bytes.find(c.code);
            all = byte != step.bytes.end();
            raw += all ? byte->second : '\0';
            at += c.bytes;
        }
        if (all)
            token.text = raw;
    }
    return {};
}

Status TokenDecoder::run(const ByteFallback&, std::vector<Token>& tokens, std::size_t)
{
    bool joins = false; // the bytes of one character stay together, for the steps behind this one
    std::vector<Token> out;
    for (Token& token : tokens) {
        const int byte = token.literal ? -1 : byteOf(token.text);
        if (byte >= 0)
            token.text.assign(1, static_cast<char>(byte));
        if (byte >= 0 && joins)
            out.back().text += token.text;
        else
            out.push_back(std::move(token));
        joins = byte >= 0;
    }
    tokens = std::move(out);
    return {};
}

Status TokenDecoder::run(const Fuse&, std::vector<Token>& tokens, std::size_t)
{
    Token all;
    for (const Token& token : tokens)
        all.text += token.text;
    tokens.assign(1, std::move(all));
    return {};
}

Status TokenDecoder::run(const Strip& step, std::vector<Token>& tokens, std::size_t)
{
    for (Token& token : tokens) {
        std::string_view text = token.text;
        for (std::size_t i = 0; i < step.start && text.starts_with(step.content); ++i)
            text.remove_prefix(step.content.size());
        for (std::size_t i = 0; i < step.stop && text.ends_with(step.content); ++i)
            text.remove_suffix(step.content.size());
        token.text = std::string(text);
    }
    return {};
}

Status TokenDecoder::run(const Replacement& step, std::vector<Token>& tokens, std::size_t mostBytes)
{
    RegexMatcher matcher(step.regex);
    std::size_t made = 0;
    for (Token& token : tokens) {
        const std::string_view text = token.text;
        std::string out;
        std::size_t at = 0;
        RegexMatcher::Cursor cursor;
        TextRange match;
        while (!text.empty() && (at > 0 || isUtf8(text))) {
            MR_ASSIGN(bool found, matcher.next(text, cursor, match));
            if (!found)
                break;
            out.append(text.substr(at, match.begin - at)).append(step.with);
            at = match.end;
            if (made + out.size() > mostBytes)
                return replacedTooLong(made + out.size(), mostBytes);
        }
        out.append(text.substr(at));
        token.text = std::move(out);
        made += token.text.size();
    }
    return {};
}

Status TokenDecoder::run(const Metaspace& step, std::vector<Token>& tokens, std::size_t)
{
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i == 0 && step.prefix && tokens[i].text.starts_with(step.replacement))
            tokens[i].text.erase(0, step.replacement.size());
        tokens[i].text = replaceAll(tokens[i].text, step.replacement, " ");
    }
    return {};
}

Result<std::string> TokenDecoder::decode(std::vector<Token> tokens) const
{
    const std::size_t mostBytes = mostReplacedBytes(bytesOf(tokens));
    for (const Step& step : m_steps)
        MR_TRY(std::visit([&](const auto& s) { return run(s, tokens, mostBytes); }, step));
    std::string out;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0 && m_steps.empty())
            out += ' '; // without a decoder tokens are words
        out += tokens[i].text;
    }
    return out;
}

Result<TokenDecoder> TokenDecoder::read(const JsonNode& node)
{
    TokenDecoder out;
    MR_TRY(out.readInto(node, 0));
    return out;
}

Status TokenDecoder::readStrip(const JsonNode& node)
{
    Strip strip;
    MR_TRY(node.require("content", strip.content));
    for (const char* name : {"start", "stop"}) {
        const auto value = node.has(name) ? node.at(name).value() : nlohmann::json(0U);
        if (!value.is_number_unsigned() || strip.content.empty())
            return node.fail(std::string(name) + " must be a count, content a character");
        (name == std::string_view("start") ? strip.start : strip.stop) = value.get<std::size_t>();
    }
    return m_steps.emplace_back(std::move(strip)), Status();
}

Status TokenDecoder::readMetaspace(const JsonNode& node)
{
    Metaspace step{std::string(kSpaceMark), true};
    std::string scheme = "always";
    MR_TRY(node.read("replacement", step.replacement));
    MR_TRY(node.read("add_prefix_space", step.prefix));
    MR_TRY(node.read("prepend_scheme", scheme));
    step.prefix &= scheme != "never";
    if (step.replacement.empty())
        return node.fail("replacement is empty");
    return m_steps.emplace_back(std::move(step)), Status();
}

Status TokenDecoder::readInto(const JsonNode& node, int depth)
{
    std::string type;
    MR_TRY(node.require("type", type));
    if (type == "ByteLevel") {
        ByteLevel step;
        const auto letters = byteLetters();
        for (std::size_t byte = 0; byte < letters.size(); ++byte)
            step.bytes[letters[byte]] = static_cast<char>(byte);
        return m_steps.emplace_back(std::move(step)), Status();
    }
    if (type == "ByteFallback")
        return m_steps.emplace_back(ByteFallback{}), Status();
    if (type == "Fuse")
        return m_steps.emplace_back(Fuse{}), Status();
    if (type == "Strip")
        return readStrip(node);
    if (type == "Replace") {
        MR_ASSIGN(Replacement replacement, readReplacement(node));
        return m_steps.emplace_back(std::move(replacement)), Status();
    }
    if (type == "Metaspace")
        return readMetaspace(node);
    if (type != "Sequence")
        return node.fail("type \"" + type + "\" is not supported");
    return readSequence(node, "decoders", depth,
        [this](const JsonNode& part, int at) { return readInto(part, at); });
}

} // namespace mr
